/* Lab cache, second part: what the n-th token costs.
 *
 * Counted: how many scores q·k were computed, by looking which places of a captured map were written. Measured: the
 * time of this thread's own work, the fastest of several repeats, since whatever else a machine does only adds to it.
 */
#include "cache.h"
#include "kv_cache.h"
#include "lab_private.h"
#include "operation.h"
#include "parallel.h"
#include "prefill.h"
#include "training.h"

#include <math.h>
#include <string.h>

enum { POINTS = 8, MOST_SCORES = 1 << 24, CACHED = 0, PLAIN = 1 };

typedef struct cost {
    double n, scores[2], seconds[2], attention[2]; /* attention: the seconds of that operation only */
} cost;

typedef struct bench {
    mg_gpt *gpt;
    mg_tape *tape;
    mg_kv_cache *cache;
    mg_real *map;
    int *ids;
} bench;

/* The cache holds the n tokens before the one that is measured. */
static void fill(const bench *s, int n) {
    mg_kv_cache_clear(s->cache);
    ptrdiff_t done = n > 0 ? mg_prefill(s->gpt, s->tape, s->cache, s->ids, n) : 0;
    mg_gpt_pass rest = {.cache = &s->cache, .cache_only = true};
    if (done < n) mg_gpt_forward(s->gpt, s->tape, s->ids + done, 1, n - done, &rest);
    mg_tape_reset(s->tape);
}

/* The n-th token: with the cache one token after n − 1, without it n tokens again. */
static void nth_token(const bench *s, int way, int n, mg_gpt_capture *capture) {
    mg_gpt_pass pass = {.last_only = true, .capture = capture};
    if (way == CACHED) {
        mg_kv_cache_cut(s->cache, n - 1);
        pass.cache = &s->cache;
        mg_gpt_forward(s->gpt, s->tape, s->ids + n - 1, 1, 1, &pass);
    } else {
        mg_gpt_forward(s->gpt, s->tape, s->ids, 1, n, &pass);
    }
}

static double count_scores(const bench *s, int way, int n) {
    const mg_gpt_config *c = mg_gpt_get_config(s->gpt);
    ptrdiff_t places = (ptrdiff_t)c->n_layer * c->n_head * n * (way == CACHED ? 1 : n);
    for (ptrdiff_t i = 0; i < places; i++) s->map[i] = NAN;
    nth_token(s, way, n, &(mg_gpt_capture){.scores = s->map});
    mg_tape_reset(s->tape);
    double count = 0;
    for (ptrdiff_t i = 0; i < places; i++) count += !isnan(s->map[i]) && s->map[i] != -INFINITY;
    return count;
}

static double attention_seconds(const mg_profile *profile) {
    for (int i = 0; i < profile->n_rows; i++)
        if (strcmp(profile->row[i].op->name, "attention") == 0) return profile->row[i].forward_seconds;
    return NAN;
}

static void time_token(const bench *s, int way, int n, int repeats, cost *c) {
    c->seconds[way] = c->attention[way] = INFINITY;
    for (int i = 0; i < repeats; i++) {
        mg_profile profile = {0};
        mg_tape_profile(s->tape, &profile);
        double begin = lab_thread_seconds();
        nth_token(s, way, n, NULL);
        c->seconds[way] = fmin(c->seconds[way], lab_thread_seconds() - begin);
        mg_tape_profile(s->tape, NULL);
        mg_tape_reset(s->tape);
        c->attention[way] = fmin(c->attention[way], attention_seconds(&profile));
    }
}

static mg_status measure(mg_lab *lab, const bench *s, int longest, cost *costs, mg_error *error) {
    /* A large model's times are long, and need fewer repeats to stand out. */
    bool few = lab_asked(lab)->quick || lab_asked(lab)->checkpoint;
    for (int i = 0; i < POINTS; i++) {
        /* From longest/16 on: where the part that grows is not lost in the part that does not. */
        int n = (int)lround(longest * pow(16, (i + 1.0) / POINTS - 1));
        costs[i].n = n = n < 1 ? 1 : n;
        lab_progress(lab, "measuring", i, POINTS, "token %d", n);
        mg_status status = lab_interrupted(lab, error);
        if (status) return status;
        fill(s, n - 1);
        for (int way = 0; way < 2; way++) {
            costs[i].scores[way] = count_scores(s, way, n);
            time_token(s, way, n, (few ? 7 : 21) * (way == CACHED ? 10 : 1), &costs[i]);
        }
    }
    lab_progress(lab, "measuring", POINTS, POINTS, "done");
    return MG_OK;
}

typedef struct exponents {
    double cached, plain;
} exponents;

/* Both ways in one picture, with the power laws that fit. */
static exponents picture(mg_lab *lab, const cost *costs, size_t offset, const char *name, const char *title,
                         const char *unit, const char *caption) {
    double n[POINTS], y[2][POINTS];
    for (int i = 0; i < POINTS; i++) {
        const double *pair = (const double *)((const char *)&costs[i] + offset);
        n[i] = costs[i].n;
        y[CACHED][i] = pair[CACHED];
        y[PLAIN][i] = pair[PLAIN];
    }
    lab_figure *figure = lab_figure_begin(
        lab, name, title, (lab_axes){.x = "position n of the token", .y = unit, .log_x = true, .log_y = true});
    exponents e;
    lab_points(figure, LAB_MASKED, "with the cache", POINTS, n, y[CACHED]);
    e.cached = lab_fit_power(figure, LAB_MASKED, "with", POINTS, n, y[CACHED]);
    lab_points(figure, LAB_AMBER, "without", POINTS, n, y[PLAIN]);
    e.plain = lab_fit_power(figure, LAB_AMBER, "without", POINTS, n, y[PLAIN]);
    lab_figure_end(figure, "%s", caption);
    return e;
}

static void show_table(mg_lab *lab, const mg_gpt_config *c, const cost *costs) {
    double C = c->n_embd, products = 24 * C * C * c->n_layer, head = 2 * C * c->vocab_size, score = 4 * C / c->n_head;
    lab_table *table = lab_table_begin(lab, "cost", "What the n-th token costs: with the cache, and without",
                                       "n\tµs with\tµs w/o\tfaster\tMFLOP with\tMFLOP w/o");
    for (int i = 0; i < POINTS; i++) {
        double n = costs[i].n;
        lab_table_row(table, "%.0f\t%.1f\t%.1f\t%.1f\t%.3f\t%.1f", n, 1e6 * costs[i].seconds[CACHED],
                      1e6 * costs[i].seconds[PLAIN], costs[i].seconds[PLAIN] / costs[i].seconds[CACHED],
                      (products + head + score * costs[i].scores[CACHED]) / 1e6,
                      (products * n + head + score * costs[i].scores[PLAIN]) / 1e6);
    }
    const char *crossing = lab_format(
        lab,
        " With the cache attention outgrows the products at n = 6·C = %d, without it at n = 12·C = %d; "
        "before that the whole cost grows like its other part.",
        6 * c->n_embd, 12 * c->n_embd);
    lab_table_end(table,
                  "Operations: 24·C² per layer and token for the matrix products, 4·C per layer for each pair of a "
                  "query and a key that it sees, 2·C·V for the logits of the last token.%s",
                  lab_cache_is_plain(c) ? crossing : "");
}

/* The scores of query i, counted from what the mask says: of all heads of all layers. */
static double scores_of_query(const bench *s, int i) {
    const mg_gpt_config *c = mg_gpt_get_config(s->gpt);
    ptrdiff_t start = 0;
    double count = 0;
    for (int k = 0; c->documents && k < i; k++)
        if (s->ids[k] == c->document_end) start = k + 1;
    for (int head = 0; head < c->n_layer * c->n_head; head++) {
        mg_interval keys = mg_visible(mg_gpt_mask(c, head / c->n_head, head % c->n_head), i, i + 1);
        count += (double)(keys.end - (keys.first > start ? keys.first : start));
    }
    return count;
}

static void check_counts(mg_lab *lab, const bench *s, const cost *costs, exponents counted) {
    double wrong = 0, whole = 0;
    for (int i = 0, n = 0; i < POINTS; i++) {
        while (n < (int)costs[i].n) whole += scores_of_query(s, n++);
        wrong += costs[i].scores[CACHED] != scores_of_query(s, n - 1);
        wrong += costs[i].scores[PLAIN] != whole;
    }
    bool is_plain = lab_cache_is_plain(mg_gpt_get_config(s->gpt));
    lab_check_zero(lab,
                   is_plain ? "positions whose scores are not n, and n(n+1)/2, per head"
                            : "positions whose scores are not what the mask shows",
                   wrong, "");
    if (!is_plain) return;
    lab_check_near(lab, "scores for the n-th token, with the cache: exponent of n", counted.cached, 1, 0.001, "");
    lab_check_between(lab, "scores for the n-th token, without: exponent of n", counted.plain, 1.75, 2, "");
}

static mg_status run(mg_lab *lab, bench *s, int longest, bool own, mg_error *error) {
    const mg_gpt_config *c = mg_gpt_get_config(s->gpt);
    bool is_plain = lab_cache_is_plain(c);
    cost costs[POINTS];
    /* On one thread: on several, waiting for each other is part of the time of a short token. */
    int threads = mg_threads();
    mg_set_threads(1);
    mg_status status = measure(lab, s, longest, costs, error);
    mg_set_threads(threads);
    if (status) return status;
    exponents counted = picture(
        lab, costs, offsetof(cost, scores), "scores", "Scores computed for the n-th token", "scores",
        is_plain ? "Counted, not estimated: places of the captured maps that were written. With the cache one row of "
                   "n, without it the whole triangle of n(n+1)/2, of which only the last row is new."
                 : "Counted, not estimated: places of the captured maps that were written. With the cache one row of "
                   "what the mask shows, without it all rows, of which only the last is new.");
    exponents attention = picture(
        lab, costs, offsetof(cost, attention), "attention", "Time of attention, on one thread", "seconds",
        "The operation that grows. For short rows the fixed cost of starting dominates; exponents of time are then "
        "below those of the counts. Fastest of several repeats.");
    exponents whole = picture(
        lab, costs, offsetof(cost, seconds), "time", "Time of the n-th token, on one thread", "seconds",
        is_plain ? "With the cache the time should go as a + b·n: nearly flat as long as the matrix products of one "
                   "token are most of the work. Without it as a·n + b·n²/2: from n to n² as attention takes over."
                 : "With the cache the time goes with what one token sees, nearly flat as long as the matrix products "
                   "of one token are most of the work. Without it with n and what all tokens see.");
    lab_answer(lab, "faster", costs[POINTS - 1].seconds[PLAIN] / costs[POINTS - 1].seconds[CACHED]);
    show_table(lab, c, costs);
    check_counts(lab, s, costs, counted);
    lab_note(lab,
             "Exponents of n, fitted from n = %.0f to %.0f: scores %.2f with the cache and %.2f without; time of "
             "attention %.2f and %.2f; time of the whole token %.2f and %.2f.",
             costs[0].n, costs[POINTS - 1].n, counted.cached, counted.plain, attention.cached, attention.plain,
             whole.cached, whole.plain);
    if (!own) return MG_OK;
    lab_check_above(lab, "time of attention: exponent without the cache minus exponent with",
                    attention.plain - attention.cached, 0.3, "");
    lab_check_above(lab, lab_format(lab, "token %d: how many times faster with the cache", longest),
                    costs[POINTS - 1].seconds[PLAIN] / costs[POINTS - 1].seconds[CACHED], 5, "times");
    return MG_OK;
}

/* What the weights are does not matter to the cost, but how long the context is does: the small model of the other
 * parts has too short a one, so an untrained model stands in. A checkpoint is measured itself, as far as it goes. */
mg_status lab_cache_cost(mg_lab *lab, const lab_cache_model *served, mg_error *error) {
    bool own = !lab_asked(lab)->checkpoint;
    mg_gpt *untrained = NULL;
    if (own) {
        mg_gpt_config config = {.block_size = 1024, .vocab_size = 64};
        mg_status status = mg_gpt_new_zeros(&untrained, &config, false, error);
        if (status) return status;
        mg_gpt_randomize(untrained, lab_asked(lab)->seed);
        char words[128];
        mg_model_words(mg_gpt_get_config(untrained), words, sizeof words);
        lab_setting(lab, "model that is timed", "%s, untrained", words);
    }
    bench s = {.gpt = own ? untrained : lab_cache_gpt(served), .tape = lab_inference_tape()};
    const mg_gpt_config *c = mg_gpt_get_config(s.gpt);
    int longest = c->block_size;
    while ((double)c->n_layer * c->n_head * longest * longest > MOST_SCORES) longest /= 2;
    if (!own && lab_subject_affords(served->subject, 64, longest) < 64 && longest > 64) longest = 64;
    mg_status status = mg_kv_cache_new(&s.cache, mg_gpt_get_config(s.gpt), error);
    s.map = mg_arena_alloc(lab->arena, (size_t)c->n_layer * (size_t)c->n_head * (size_t)longest * (size_t)longest,
                           sizeof(mg_real), "maps");
    s.ids = mg_arena_alloc(lab->arena, (size_t)longest, sizeof *s.ids, "ids");
    for (int i = 0; i < longest; i++) s.ids[i] = i % c->vocab_size;
    if (!status) status = run(lab, &s, longest, own, error);
    mg_kv_cache_free(s.cache);
    mg_tape_free(s.tape);
    mg_gpt_free(untrained);
    return status;
}
