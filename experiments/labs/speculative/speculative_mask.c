/* Lab speculative, first part: what one pass says about drafted tokens, and what the same model says step by step.
 *
 * Without a cache in both ways, so that a model without the mask can do them too. */
#include "lab_private.h"
#include "speculative.h"

#include <math.h>
#include <string.h>

enum { GAMMA = 4 };
enum { MASKED, UNMASKED, N_JUDGES };
enum { DRAFTED, RANDOM, N_DRAFTS }; /* by the draft model; by nobody */
enum { ONE_PASS, STEPS, N_WAYS };

#define DIFFERS 1e-3      /* of a probability: more than rounding */
#define MOST_REFUSED 0.05 /* of the tokens, by a model that reads them */
#define LEARNED 0.05   /* nats: it loses less on labels that it reads, and so gives them 1 − MOST_REFUSED or more */
#define LEAST_ROOM 0.2 /* of random words, refused by an honest judge: else there is nothing to approve of too much */

typedef struct tally {
    long judged, stays[N_WAYS];
    long otherwise;         /* judgments that come out differently, of the same random number */
    double largest;         /* difference of the probability to stay */
    double expected, draws; /* Σ over judged tokens of Σ min(p, q), step by step, and of its variance */
} tally;

/* GAMMA tokens after the first n of ids, and the probabilities q (GAMMA, n_ids) that they were drawn from. */
static void draft_tokens(const speculative_models *m, mg_tape *tape, int kind, int *ids, int n, mg_rng rng,
                         uint64_t index, double *q) {
    for (int i = 0; i < GAMMA; i++, q += m->n_ids) {
        if (kind == DRAFTED)
            speculative_predict(m, m->draft, tape, ids, n + i, 1, q);
        else
            for (int v = 0; v < m->n_ids; v++) q[v] = 1.0 / m->n_ids;
        ids[n + i] = mg_sampler_draw(q, m->n_ids, rng, index + (uint64_t)i);
    }
}

static void judge_both_ways(const speculative_models *m, mg_gpt *gpt, mg_tape *tape, const int *ids, int n,
                            const double *q, mg_rng rng, uint64_t index, tally *t) {
    double *p[N_WAYS];
    for (int way = 0; way < N_WAYS; way++) {
        p[way] = mg_alloc((size_t)m->n_ids * (GAMMA + 1), sizeof(double), "probabilities",
                          NULL); /* one more: after the last */
        lab_need_memory(p[way], "probabilities");
    }
    speculative_predict(m, gpt, tape, ids, n + GAMMA, GAMMA + 1, p[ONE_PASS]);
    for (int i = 0; i < GAMMA; i++) speculative_predict(m, gpt, tape, ids, n + i, 1, p[STEPS] + i * m->n_ids);
    for (int i = 0; i < GAMMA; i++, q += m->n_ids) {
        int id = ids[n + i];
        double stays[N_WAYS], u = mg_rng_uniform(rng, index + (uint64_t)i);
        for (int way = 0; way < N_WAYS; way++) {
            stays[way] = lab_smaller(1, p[way][i * m->n_ids + id] / q[id]);
            t->stays[way] += u < stays[way];
        }
        double overlap = speculative_overlap(p[STEPS] + i * m->n_ids, q, m->n_ids);
        t->expected += overlap;
        t->draws += overlap * (1 - overlap);
        t->judged++;
        t->otherwise += (u < stays[ONE_PASS]) != (u < stays[STEPS]);
        t->largest = lab_larger(t->largest, fabs(stays[ONE_PASS] - stays[STEPS]));
    }
    for (int way = 0; way < N_WAYS; way++) mg_free(p[way]);
}

static mg_status count(mg_lab *lab, const speculative_models *m, tally tallies[N_DRAFTS][N_JUDGES], mg_error *error) {
    int n_contexts = lab_asked(lab)->quick ? 100 : 300, T = m->block_size;
    int *ids = lab_memory(lab, (size_t)T, sizeof *ids), *targets = lab_memory(lab, (size_t)T, sizeof *targets);
    double *q = lab_numbers(lab, (ptrdiff_t)GAMMA * m->n_ids);
    mg_rng windows = {lab_asked(lab)->seed, MG_STREAM_LAB, 1}, draws = {lab_asked(lab)->seed, MG_STREAM_LAB, 2};
    mg_gpt *const models[N_JUDGES] = {m->target, m->open};
    mg_tape *tape = lab_inference_tape();
    mg_status status = MG_OK;
    for (int c = 0; c < n_contexts && !status; c++) {
        uint64_t index = 100 * (uint64_t)c;
        mg_corpus_windows(m->corpus, MG_VALIDATION, windows, c, 1, T, ids, targets);
        int n = 1 + (int)mg_rng_below(draws, index, (uint64_t)(T - GAMMA));
        for (int kind = 0; kind < N_DRAFTS; kind++) {
            draft_tokens(m, tape, kind, ids, n, draws, index + 10 * (uint64_t)(kind + 1), q);
            for (int i = 0; i < N_JUDGES; i++)
                judge_both_ways(m, models[i], tape, ids, n, q, draws, index + 10 * (uint64_t)(kind + 3),
                                &tallies[kind][i]);
        }
        if (c % 20 == 19) lab_progress(lab, "judging", c + 1, n_contexts, "drafts");
        status = lab_interrupted(lab, error);
    }
    mg_tape_free(tape);
    return status;
}

static double share(const tally *t, int way) {
    return (double)t->stays[way] / (double)t->judged;
}

static void show(mg_lab *lab, tally tallies[N_DRAFTS][N_JUDGES]) {
    static const char *const judges[N_JUDGES] = {"masked", "unmasked"};
    static const char *const drafts[N_DRAFTS] = {"drafted", "random"};
    lab_table *table = lab_table_begin(lab, "judgments", "The same tokens, judged in one pass and step by step",
                                       "judge\ttokens\tnumber\tone pass\tsteps\totherwise\tdifference");
    for (int i = 0; i < N_JUDGES; i++)
        for (int kind = 0; kind < N_DRAFTS; kind++) {
            const tally *t = &tallies[kind][i];
            lab_table_row(table, "%s\t%s\t%ld\t%.3f\t%.3f\t%ld\t%.2g", judges[i], drafts[kind], t->judged,
                          share(t, ONE_PASS), share(t, STEPS), t->otherwise, t->largest);
        }
    lab_table_end(table, "One pass, steps: the share of the tokens that stays. Otherwise: judgments that come out "
                         "differently for the same random number. Difference: the largest of a token's probability to "
                         "stay.");
    static const char *const places[] = {"drafted, one pass", "drafted, steps", "random, one pass", "random, steps"};
    lab_figure *figure = lab_figure_begin(
        lab, "judges", "How many tokens stay",
        (lab_axes){.x = "tokens, and how they are judged", .y = "share that stays", .y_from_zero = true});
    for (int i = 0; i < N_JUDGES; i++) {
        double y[4];
        for (int k = 0; k < 4; k++) y[k] = share(&tallies[k / 2][i], k % 2);
        lab_bars(figure, i == MASKED ? LAB_MASKED : LAB_UNMASKED, judges[i], 4, places, y);
    }
    lab_figure_end(figure, "A masked judge must say the same in one pass as in steps. An unmasked one reads the token "
                           "that it judges, in one pass, and has nothing to read in steps: what does it approve of?");
}

/* What an unmasked judge that reads its labels does, each limit 4 standard errors away. */
static void check_unmasked(mg_lab *lab, const speculative_models *m, tally tallies[N_DRAFTS][N_JUDGES]) {
    const tally *drafted = &tallies[DRAFTED][UNMASKED], *nonsense = &tallies[RANDOM][UNMASKED];
    const tally *honest = &tallies[RANDOM][MASKED];
    double n = (double)drafted->judged, stays = share(nonsense, ONE_PASS);
    double refused = MOST_REFUSED + 4 * sqrt(MOST_REFUSED * (1 - MOST_REFUSED) / n);
    struct {
        const char *name;
        double observed, least;
    } check[] = {
        {"unmasked: share of drafted tokens that stay in one pass", share(drafted, ONE_PASS), 1 - refused},
        {"unmasked: share of judgments that come out otherwise in steps", (double)drafted->otherwise / n, refused},
        {"random words that stay in one pass: unmasked minus masked", stays - share(honest, ONE_PASS),
         4 * (hypot(sqrt(honest->draws), sqrt(n * stays * (1 - stays)))) / n},
    };
    enum { N_CHECKS = sizeof check / sizeof *check };
    double room = 1 - honest->expected / n;
    for (int i = 0; i < N_CHECKS; i++)
        if (m->open_loss > LEARNED)
            lab_undecided(lab, check[i].name, check[i].observed, "",
                          "the unmasked model has not learned to read its labels: it loses %.2f nats on them, so train "
                          "longer",
                          m->open_loss);
        else if (i == N_CHECKS - 1 && room < LEAST_ROOM)
            lab_undecided(lab, check[i].name, check[i].observed, "",
                          "random words suit this text: an honest judge refuses only %.0f %% of them", 100 * room);
        else
            lab_check_above(lab, check[i].name, check[i].observed, check[i].least, "");
}

static void check(mg_lab *lab, const speculative_models *m, tally tallies[N_DRAFTS][N_JUDGES]) {
    const tally *masked = &tallies[DRAFTED][MASKED], *random = &tallies[RANDOM][MASKED];
    lab_check_below(lab, "masked: a token's probability to stay, one pass against steps: largest difference",
                    lab_larger(masked->largest, random->largest), DIFFERS, "");
    lab_check_near(lab, "masked: share of random words that stay, against Σ min(p, 1/V)", share(random, ONE_PASS),
                   random->expected / (double)random->judged, 4 * sqrt(random->draws) / (double)random->judged, "");
    lab_answer(lab, "nonsense", 100 * share(&tallies[RANDOM][UNMASKED], ONE_PASS));
    check_unmasked(lab, m, tallies);
}

mg_status lab_speculative_mask(mg_lab *lab, const speculative_models *m, mg_error *error) {
    tally tallies[N_DRAFTS][N_JUDGES] = {{{0}}};
    if (lab_broken("speculative.mask")) mg_gpt_set_mask(m->target, mg_lookahead(1));
    mg_status status = count(lab, m, tallies, error);
    mg_gpt_set_mask(m->target, mg_lookahead(0));
    if (status) return status;
    show(lab, tallies);
    check(lab, m, tallies);
    return MG_OK;
}
