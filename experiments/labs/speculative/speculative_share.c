/* Lab speculative, second part: how many drafted tokens stay, how many tokens a pass writes, and what that saves. */
#include "kv_cache.h"
#include "lab_private.h"
#include "parallel.h"
#include "speculative.h"

#include <math.h>

/* ---- What is predicted: from texts that the target writes by itself ---- */

/* Over texts: accepted tokens and passes, and how far their ratio is certain. */
typedef struct ratio {
    int n;
    double *accepted, *passes; /* of each text */
} ratio;

static ratio new_ratio(mg_lab *lab, int n) {
    return (ratio){n, lab_numbers(lab, n), lab_numbers(lab, n)};
}

static double value_of(const ratio *r) {
    double accepted = 0, passes = 0;
    for (int i = 0; i < r->n; i++) accepted += r->accepted[i], passes += r->passes[i];
    return accepted / passes;
}

/* Cochran 1977, section 6.4: the texts are independent, the tokens of a text are not. */
static double error_of(const ratio *r) {
    double passes = 0, squares = 0, value = value_of(r);
    for (int i = 0; i < r->n; i++) {
        double apart = r->accepted[i] - value * r->passes[i];
        passes += r->passes[i];
        squares += apart * apart;
    }
    return sqrt(squares) / passes;
}

typedef struct share {
    mg_generator *plain;
    mg_speculator *with[SPECULATIVE_GAMMAS];
    int n_texts, length;
    double alpha;                        /* mean of Σ min(p, q) over all contexts of plain texts */
    ratio expected[SPECULATIVE_GAMMAS];  /* from plain texts */
    ratio counted[SPECULATIVE_GAMMAS];   /* from drafted ones */
    double overlap[SPECULATIVE_GAMMAS];  /* Σ over judged tokens of Σ min(p, q) */
    double variance[SPECULATIVE_GAMMAS]; /* of how many stay, given those sums */
} share;

void speculative_expect(int gamma, int length, const double *stays, double *accepted, double *passes) {
    double at[SPECULATIVE_MOST + 1] = {1}; /* [k]: that the token is in a pass that has accepted k before it */
    *accepted = 0;
    *passes = 1;
    for (int t = 0; t < length + gamma; t++) {
        double ends = at[gamma]; /* the token after all that were drafted is its pass's last */
        for (int k = gamma; k > 0; k--) {
            ends += at[k - 1] * (1 - stays[t]);
            at[k] = at[k - 1] * stays[t];
            *accepted += at[k];
        }
        at[0] = t + 1 < length ? ends : 0;
        *passes += at[0];
    }
}

/* p, q (T, n_ids): what the models predict after each token of ids (T + 1), which begin with the start. */
static void judge_text(const speculative_models *m, share *s, int text, const int *ids, int T, const double *p,
                       const double *q, double *stays) {
    for (int t = 0; t < T; t++, p += m->n_ids, q += m->n_ids) {
        stays[t] = lab_smaller(1, q[ids[t + 1]] / p[ids[t + 1]]);
        if (t < s->length) s->alpha += speculative_overlap(p, q, m->n_ids) / s->length / s->n_texts;
    }
    for (int k = 0; k < SPECULATIVE_GAMMAS; k++)
        speculative_expect(speculative_gammas[k], s->length, stays, &s->expected[k].accepted[text],
                           &s->expected[k].passes[text]);
}

/* Texts as long as the last pass can reach. */
static mg_status read_plain_texts(mg_lab *lab, const speculative_models *m, share *s, mg_error *error) {
    int T = m->block_size, *ids = lab_memory(lab, (size_t)T + 1, sizeof *ids);
    double *p = lab_numbers(lab, (ptrdiff_t)T * m->n_ids), *q = lab_numbers(lab, (ptrdiff_t)T * m->n_ids);
    double *stays = lab_numbers(lab, T);
    mg_tape *tape = lab_inference_tape();
    mg_status status = MG_OK;
    ids[0] = m->start;
    for (int text = 0; text < s->n_texts && !status; text++) {
        status = mg_generate_ids(s->plain, &speculative_sampler, lab_asked(lab)->seed,
                                 SPECULATIVE_SHARE + (uint32_t)text, T, ids + 1, error);
        if (status) break;
        speculative_predict(m, m->target, tape, ids, T, T, p);
        speculative_predict(m, m->draft, tape, ids, T, T, q);
        judge_text(m, s, text, ids, T, p, q, stays);
        status = lab_interrupted(lab, error);
    }
    mg_tape_free(tape);
    return status;
}

/* ---- What is counted ---- */

typedef struct witness {
    double *overlap, *variance;
} witness;

static bool judge_and_note(const double *p, const double *q, int n, int *id, mg_rng rng, uint64_t index, void *user) {
    const witness *w = user;
    double overlap = speculative_overlap(p, q, n);
    *w->overlap += overlap;
    *w->variance += overlap * (1 - overlap);
    return mg_draft_judge(p, q, n, id, rng, index, NULL);
}

static mg_status count(mg_lab *lab, share *s, mg_error *error) {
    int *ids = lab_memory(lab, (size_t)s->length, sizeof *ids);
    for (int k = 0; k < SPECULATIVE_GAMMAS; k++) {
        witness w = {&s->overlap[k], &s->variance[k]};
        mg_speculator_set_rule(s->with[k], judge_and_note, &w);
        for (int text = 0; text < s->n_texts; text++) {
            uint32_t sample = SPECULATIVE_SHARE + (uint32_t)((k + 1) * s->n_texts + text);
            mg_speculation before = mg_speculator_counts(s->with[k]);
            mg_status status = mg_speculate_ids(s->with[k], &speculative_sampler, lab_asked(lab)->seed, sample,
                                                s->length, ids, error);
            mg_speculation after = mg_speculator_counts(s->with[k]);
            s->counted[k].accepted[text] = (double)(after.accepted - before.accepted);
            s->counted[k].passes[text] = (double)(after.passes - before.passes);
            if (!status) status = lab_interrupted(lab, error);
            if (status) return status;
        }
        mg_speculator_set_rule(s->with[k], mg_draft_judge, NULL);
        lab_progress(lab, "counting", k + 1, SPECULATIVE_GAMMAS, "%d drafted per pass", speculative_gammas[k]);
    }
    return MG_OK;
}

static void show_counts(mg_lab *lab, const share *s) {
    double gamma[SPECULATIVE_MOST + 1], predicted[SPECULATIVE_MOST + 1];
    double counted_at[SPECULATIVE_GAMMAS], counted[SPECULATIVE_GAMMAS];
    lab_table *table = lab_table_begin(lab, "share", "What stays of the draft, and what a pass writes",
                                       "γ\tjudged\tstay\tΣ min(p, q)\ttokens per pass\t± s.e.\texpected\tformula");
    for (int g = 0; g <= SPECULATIVE_MOST; g++) {
        gamma[g] = g;
        predicted[g] = speculative_tokens(s->alpha, g);
    }
    for (int k = 0; k < SPECULATIVE_GAMMAS; k++) {
        mg_speculation c = mg_speculator_counts(s->with[k]);
        int g = speculative_gammas[k];
        double judged = (double)c.judged, stays = (double)c.accepted / judged;
        counted_at[k] = g;
        counted[k] = 1 + value_of(&s->counted[k]);
        double expected = 1 + value_of(&s->expected[k]);
        double error = hypot(error_of(&s->counted[k]), error_of(&s->expected[k]));
        lab_table_row(table, "%d\t%.0f\t%.4f\t%.4f\t%.3f\t%.3f\t%.3f\t%.3f", g, judged, stays, s->overlap[k] / judged,
                      counted[k], error, expected, predicted[g]);
        lab_check_near(lab, lab_format(lab, "γ = %d: share of judged tokens that stay, against Σ min(p, q)", g), stays,
                       s->overlap[k] / judged, 4 * sqrt(s->variance[k]) / judged + 1e-9, "");
        lab_check_near(lab, lab_format(lab, "γ = %d: tokens per pass, against those expected of plain texts", g),
                       counted[k], expected, 4 * error + 1e-9, "");
        if (g == 4) lab_answer(lab, "tokens", counted[k]);
    }
    lab_table_end(table,
                  "Σ min(p, q): its mean over the tokens that were judged, from both models' distributions. Expected: "
                  "of %s that the target wrote by itself, where a token x would have been drafted and accepted with "
                  "probability min(1, q(x)/p(x)); the standard error is that of the difference. Formula: "
                  "(1 − α^(γ+1)) / (1 − α) with α = %.4f, the mean of Σ min(p, q) over all contexts of those texts, as "
                  "if every token stayed or not independently of the others.",
                  mg_count(s->n_texts, "text").text, s->alpha);
    lab_figure *figure = lab_figure_begin(
        lab, "tokens", "Tokens per pass of the target",
        (lab_axes){.x = "γ, tokens drafted per pass", .y = "tokens per pass", .y_from_zero = true});
    lab_line(figure, LAB_MASKED, lab_format(lab, "(1 − α^(γ+1)) / (1 − α), α = %.3f", s->alpha), SPECULATIVE_MOST + 1,
             gamma, predicted);
    lab_points(figure, LAB_AMBER, "counted", SPECULATIVE_GAMMAS, counted_at, counted);
    lab_figure_end(figure,
                   "Without a draft a pass writes one token. However much is drafted, the curve never gets above "
                   "1 / (1 − α): the first token that does not stay ends the pass. Points beside the curve are texts "
                   "whose tokens do not stay independently.");
}

/* ---- Time ---- */

typedef struct times {
    double plain, draft, with[SPECULATIVE_GAMMAS]; /* seconds per token */
} times;

enum { PLAIN = -1, DRAFT = -2, TIMED_TEXTS = 8 };

static mg_status write_text(mg_lab *lab, const share *s, mg_generator *small, int way, uint32_t text, int *ids,
                            mg_error *error) {
    uint64_t seed = lab_asked(lab)->seed;
    uint32_t sample = SPECULATIVE_TIME + text;
    if (way >= 0) return mg_speculate_ids(s->with[way], &speculative_sampler, seed, sample, s->length, ids, error);
    return mg_generate_ids(way == PLAIN ? s->plain : small, &speculative_sampler, seed, sample, s->length, ids, error);
}

/* The fastest of several repeats, text by text: what disturbs a cache only adds to it. */
static mg_status time_texts(mg_lab *lab, const share *s, mg_generator *small, int *ids, times *t, mg_error *error) {
    enum { REPEATS = 20 };
    for (uint32_t text = 0; text < TIMED_TEXTS; text++) {
        lab_progress(lab, "timing", text, TIMED_TEXTS, "texts");
        for (int way = DRAFT; way < SPECULATIVE_GAMMAS; way++) {
            double least = INFINITY;
            for (int repeat = 0; repeat < REPEATS; repeat++) {
                double begin = lab_thread_seconds();
                mg_status status = write_text(lab, s, small, way, text, ids, error);
                if (status) return status;
                least = fmin(least, lab_thread_seconds() - begin);
            }
            *(way == DRAFT ? &t->draft : way == PLAIN ? &t->plain : &t->with[way]) += least / (TIMED_TEXTS * s->length);
        }
        mg_status status = lab_interrupted(lab, error);
        if (status) return status;
    }
    lab_progress(lab, "timing", TIMED_TEXTS, TIMED_TEXTS, "done");
    return MG_OK;
}

static void show_times(mg_lab *lab, const share *s, const times *t) {
    double c = t->draft / t->plain, gamma[SPECULATIVE_GAMMAS], faster[SPECULATIVE_GAMMAS],
           predicted[SPECULATIVE_GAMMAS];
    lab_table *table = lab_table_begin(lab, "time", "Time per token, on one thread",
                                       "γ\tµs per token\ttimes faster\tpredicted");
    lab_table_row(table, "no draft\t%.1f\t1\t1", 1e6 * t->plain);
    for (int k = 0; k < SPECULATIVE_GAMMAS; k++) {
        int g = speculative_gammas[k];
        gamma[k] = g;
        faster[k] = t->plain / t->with[k];
        predicted[k] = speculative_tokens(s->alpha, g) / (g * c + 1);
        lab_table_row(table, "%d\t%.1f\t%.2f\t%.2f", g, 1e6 * t->with[k], faster[k], predicted[k]);
        if (g == 4) lab_answer(lab, "faster", faster[k]);
    }
    lab_table_end(table,
                  "Predicted: (1 − α^(γ+1)) / ((1 − α)(γc + 1)), where a step of the draft model takes c = %.3f of one "
                  "of the target (%.1f µs). It takes a pass over γ + 1 tokens to cost as much as one over a single "
                  "token, which it does where reading the weights is what takes the time. Each text at its fastest of "
                  "several; no verdict depends on it.",
                  c, 1e6 * t->draft);
    lab_figure *figure = lab_figure_begin(
        lab, "faster", "How many times faster the text is written",
        (lab_axes){.x = "γ, tokens drafted per pass", .y = "times", .y_from_zero = true});
    lab_points(figure, LAB_AMBER, "measured", SPECULATIVE_GAMMAS, gamma, faster);
    lab_line(figure, LAB_MASKED, "predicted, if a pass costs the same for any γ", SPECULATIVE_GAMMAS, gamma, predicted);
    lab_floor(figure, "without a draft", 1);
    lab_figure_end(
        figure, "Drafting pays while the passes that it saves cost more than those of the draft model. The line takes "
                "a pass over several tokens to cost no more than one over a single token; the points pay what it costs "
                "here, which the next picture shows.");
}

/* ---- What a pass over several tokens costs ---- */

enum { LONGEST_PASS = SPECULATIVE_MOST + 1, PAST = 4 };

/* seconds[n - 1]: of a pass over n tokens after PAST others, in a cache. */
static mg_status time_passes(mg_lab *lab, mg_gpt *gpt, int repeats, double seconds[LONGEST_PASS], mg_error *error) {
    mg_kv_cache *cache;
    mg_status status = mg_kv_cache_new(&cache, mg_gpt_get_config(gpt), error);
    if (status) return status;
    mg_tape *tape = lab_inference_tape();
    const int ids[PAST + LONGEST_PASS] = {0};
    for (int n = 1; n <= LONGEST_PASS; n++) seconds[n - 1] = INFINITY;
    for (int repeat = 0; repeat < repeats && !status; repeat++) {
        for (int n = 1; n <= LONGEST_PASS; n++) {
            mg_kv_cache_clear(cache);
            mg_gpt_forward(gpt, tape, ids, 1, PAST, &(mg_gpt_pass){.cache = &cache, .cache_only = true});
            double begin = lab_thread_seconds();
            mg_gpt_forward(gpt, tape, ids, 1, n, &(mg_gpt_pass){.cache = &cache});
            seconds[n - 1] = fmin(seconds[n - 1], lab_thread_seconds() - begin);
            mg_tape_reset(tape);
        }
        status = lab_interrupted(lab, error);
    }
    mg_tape_free(tape);
    mg_kv_cache_free(cache);
    return status;
}

/* GPT-2's width: weights that a processor's second cache does not hold. What they are does not matter to the time. */
static mg_status new_large(const speculative_models *m, mg_gpt **large, mg_error *error) {
    mg_gpt_config c = {0};
    c.n_head = 12;
    c.n_embd = 768;
    c.vocab_size = m->n_ids;
    mg_status status = mg_gpt_new_zeros(large, &c, false, error);
    if (status) return status;
    mg_params *params = mg_gpt_params(*large);
    for (ptrdiff_t i = 0; i < params->size; i++) params->values[i] = (mg_real)0.01; /* zeros would take no memory */
    return MG_OK;
}

static void show_passes(mg_lab *lab, const double small[LONGEST_PASS], const double large[LONGEST_PASS]) {
    double n[LONGEST_PASS], cost[2][LONGEST_PASS];
    for (int i = 0; i < LONGEST_PASS; i++) {
        n[i] = i + 1;
        cost[0][i] = small[i] / small[0];
        cost[1][i] = large[i] / large[0];
    }
    lab_figure *figure = lab_figure_begin(
        lab, "pass", "What a pass over several tokens costs, on one thread",
        (lab_axes){.x = "tokens in the pass", .y = "times a pass over one token", .y_from_zero = true});
    lab_line(figure, LAB_MASKED, lab_format(lab, "the target, %.0f µs for one", 1e6 * small[0]), LONGEST_PASS, n,
             cost[0]);
    lab_line(figure, LAB_AMBER, lab_format(lab, "width 768, %.0f µs for one", 1e6 * large[0]), LONGEST_PASS, n,
             cost[1]);
    lab_line(figure, LAB_FLOOR, "as many passes over one", LONGEST_PASS, n, n);
    lab_figure_end(
        figure, "Drafting can pay only where a pass over several tokens costs less than as many passes over one. "
                "That is so where reading the weights takes the time, and a product with several rows reads them once. "
                "The weights of the model of width 768 were not trained; its time does not depend on them.");
}

static mg_status compare_passes(mg_lab *lab, const speculative_models *m, mg_error *error) {
    double small[LONGEST_PASS], large[LONGEST_PASS];
    mg_gpt *gpt;
    mg_status status = new_large(m, &gpt, error);
    if (!status) status = time_passes(lab, m->target, 50, small, error);
    if (!status) status = time_passes(lab, gpt, 5, large, error);
    if (!status) show_passes(lab, small, large);
    mg_gpt_free(gpt);
    return status;
}

static mg_status time_it(mg_lab *lab, const speculative_models *m, const share *s, mg_error *error) {
    int *ids = lab_memory(lab, (size_t)s->length, sizeof *ids), threads = mg_threads();
    mg_generator *small;
    mg_status status = mg_generator_new(&small, m->draft, m->n_ids, true, error);
    if (status) return status;
    mg_generator_prompt(small, &m->start, 1);
    times t = {0};
    mg_set_threads(1);
    status = time_texts(lab, s, small, ids, &t, error);
    if (!status) show_times(lab, s, &t);
    if (!status) status = compare_passes(lab, m, error);
    mg_set_threads(threads);
    mg_generator_free(small);
    return status;
}

/* ---- All of it ---- */

mg_status lab_speculative_share(mg_lab *lab, const speculative_models *m, mg_error *error) {
    /* So long that the largest γ fits into the window to the last. */
    share s = {.n_texts = lab_asked(lab)->quick ? 100 : 400, .length = m->block_size - SPECULATIVE_MOST};
    for (int k = 0; k < SPECULATIVE_GAMMAS; k++) {
        s.expected[k] = new_ratio(lab, s.n_texts);
        s.counted[k] = new_ratio(lab, s.n_texts);
    }
    mg_status status = mg_generator_new(&s.plain, m->target, m->n_ids, true, error);
    if (!status) mg_generator_prompt(s.plain, &m->start, 1);
    for (int k = 0; k < SPECULATIVE_GAMMAS && !status; k++) {
        status = mg_speculator_new(&s.with[k], m->target, m->draft, m->n_ids, speculative_gammas[k], error);
        if (!status) mg_speculator_prompt(s.with[k], &m->start, 1);
    }
    if (!status) status = read_plain_texts(lab, m, &s, error);
    if (!status) status = count(lab, &s, error);
    if (!status) show_counts(lab, &s);
    if (!status) status = time_it(lab, m, &s, error);
    mg_generator_free(s.plain);
    for (int k = 0; k < SPECULATIVE_GAMMAS; k++) mg_speculator_free(s.with[k]);
    return status;
}
