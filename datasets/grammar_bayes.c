/* How well the best possible predictor does. */
#include "beliefs.h"
#include "grammar_internal.h"

#include "arithmetic.h"
#include "heap.h"

#include <math.h>
#include <string.h>

static double probability(const mg_grammar *g, const double *belief, int word) {
    double p = 0;
    for (ptrdiff_t i = g->word_first[word]; i < g->word_first[word + 1]; i++)
        p += belief[g->word_arc[i].state] * g->word_arc[i].p;
    return p;
}

double mg_grammar_filter(const mg_grammar *g, const double *belief, int word, double *next) {
    double p = probability(g, belief, word);
    if (p == 0) return 0;
    memset(next, 0, (size_t)g->states.n * sizeof *next);
    for (ptrdiff_t i = g->word_first[word]; i < g->word_first[word + 1]; i++)
        next[g->word_arc[i].next] += belief[g->word_arc[i].state] * g->word_arc[i].p;
    for (int s = 0; s < g->states.n; s++) next[s] /= p;
    return p;
}

/* By states: an observer soon knows the state, or a few. */
double mg_grammar_predict(const mg_grammar *g, const double *belief, double *p) {
    double entropy = 0;
    memset(p, 0, (size_t)g->words.n * sizeof *p);
    for (int s = 0; s < g->states.n; s++) {
        if (belief[s] == 0) continue;
        for (ptrdiff_t i = g->first[s]; i < g->first[s + 1]; i++) p[g->arc[i].word] += belief[s] * g->arc[i].p;
    }
    for (int word = 0; word < g->words.n; word++)
        if (p[word] > 0) entropy -= p[word] * mg_log_double(p[word]);
    return entropy;
}

/* belief = the belief after `word`; if the word was impossible, what it implies about the state by itself. Returns its
 * probability. */
static double observe(const mg_grammar *g, double *belief, int word) {
    double next[MG_GRAMMAR_MAX_STATES];
    double p = mg_grammar_filter(g, belief, word, next);
    if (p == 0) mg_grammar_filter(g, g->stationary, word, next);
    memcpy(belief, next, (size_t)g->states.n * sizeof *next);
    return p;
}

void mg_grammar_bayes_loss(const mg_grammar *g, const int *ids, const int *targets, ptrdiff_t T, double *loss) {
    double belief[MG_GRAMMAR_MAX_STATES];
    memcpy(belief, g->stationary, (size_t)g->states.n * sizeof *belief);
    for (ptrdiff_t t = 0; t < T; t++) {
        MG_CHECK(ids[t] >= 0 && ids[t] < g->words.n && targets[t] >= 0 && targets[t] < g->words.n,
                 "position %td: words %d and %d, but the grammar has %d", t, ids[t], targets[t], g->words.n);
        observe(g, belief, ids[t]);
        double p = probability(g, belief, targets[t]);
        loss[t] = p > 0 ? -mg_log_double(p) : INFINITY;
    }
}

/* ---- The mean over sampled walks, when there are too many beliefs. ---- */

/* A million words, or fewer if each is expensive: a second or two. */
enum { SAMPLED_WORDS = 1 << 20, FEWEST_WINDOWS = 30, MOST_WINDOWS = 20000, RATE_WARM_UP = 1000 };
#define SAMPLED_ARCS ((ptrdiff_t)1 << 30)

static ptrdiff_t words_to_sample(const mg_grammar *g) {
    return SAMPLED_ARCS / g->n_arcs < SAMPLED_WORDS ? SAMPLED_ARCS / g->n_arcs : SAMPLED_WORDS;
}

/* A walker whose state is hidden and an observer who sees its words. */
typedef struct walk {
    const mg_grammar *grammar;
    mg_rng rng;
    uint64_t n_drawn;
    int state;
    double belief[MG_GRAMMAR_MAX_STATES];
    double *p; /* of each word, under the belief */
} walk;

static mg_status walk_new(walk *w, const mg_grammar *g, uint32_t number, mg_error *error) {
    *w = (walk){.grammar = g, .rng = {0, MG_STREAM_GRAMMAR, number}};
    w->p = mg_alloc((size_t)g->words.n, sizeof *w->p, "the words of a grammar", error);
    return w->p ? MG_OK : MG_ERR_MEMORY;
}

/* Both forget: the state is drawn from the stationary distribution. */
static void restart(walk *w) {
    const mg_grammar *g = w->grammar;
    double u = mg_rng_uniform(w->rng, w->n_drawn++);
    for (w->state = 0; w->state < g->states.n - 1 && u >= g->stationary[w->state]; w->state++)
        u -= g->stationary[w->state];
    memcpy(w->belief, g->stationary, (size_t)g->states.n * sizeof *w->belief);
}

static void advance(walk *w) {
    const mg_arc *arc = mg_grammar_draw(w->grammar, w->state, mg_rng_uniform(w->rng, w->n_drawn++));
    observe(w->grammar, w->belief, arc->word);
    w->state = arc->next;
}

static mg_status sampled_rate(const mg_grammar *g, double *rate, mg_error *error) {
    walk w;
    mg_status status = walk_new(&w, g, 1, error);
    if (status != MG_OK) return status;
    ptrdiff_t n = words_to_sample(g);
    double sum = 0;
    restart(&w);
    for (int i = 0; i < RATE_WARM_UP; i++) advance(&w);
    for (ptrdiff_t i = 0; i < n; i++) {
        advance(&w);
        sum += mg_grammar_predict(g, w.belief, w.p);
    }
    mg_free(w.p);
    *rate = sum / (double)n;
    return MG_OK;
}

/* The entropy of the next word instead of the loss: the same mean, with less noise. */
static mg_status sampled_floor(const mg_grammar *g, ptrdiff_t T, double *floor, double *standard_error,
                               mg_error *error) {
    walk w;
    mg_status status = walk_new(&w, g, 2, error);
    if (status != MG_OK) return status;
    ptrdiff_t n_windows = words_to_sample(g) / T;
    if (n_windows < FEWEST_WINDOWS) n_windows = FEWEST_WINDOWS;
    if (n_windows > MOST_WINDOWS) n_windows = MOST_WINDOWS;
    double sum = 0, squares = 0;
    for (ptrdiff_t t = 0; t < T; t++) floor[t] = 0;
    for (ptrdiff_t window = 0; window < n_windows; window++) {
        double mean = 0;
        restart(&w);
        for (ptrdiff_t t = 0; t < T; t++) {
            advance(&w);
            double entropy = mg_grammar_predict(g, w.belief, w.p);
            floor[t] += entropy / (double)n_windows;
            mean += entropy / (double)T;
        }
        sum += mean;
        squares += mean * mean;
    }
    mg_free(w.p);
    double n = (double)n_windows, variance = (squares - sum * sum / n) / (n - 1);
    *standard_error = variance > 0 ? sqrt(variance / n) : 0;
    return MG_OK;
}

/* ---- Exactly, by the chain of beliefs. ---- */

/* How many steps of the chain take a few seconds. */
static ptrdiff_t affordable_steps(const mg_beliefs *b) {
    return ((ptrdiff_t)1 << 32) / (b->n_ways + b->n);
}

/* Two distributions over beliefs, the first of them certain of belief 0. */
static mg_status new_shares(const mg_beliefs *b, double *share[2], mg_error *error) {
    for (int i = 0; i < 2; i++)
        share[i] = mg_alloc_zero((size_t)b->n, sizeof **share, "the beliefs of a grammar", error);
    if (!share[0] || !share[1]) return MG_ERR_MEMORY;
    share[0][0] = 1;
    return MG_OK;
}

mg_status mg_grammar_floor(const mg_grammar *g, ptrdiff_t T, double *floor, double *standard_error, bool *is_exact,
                           mg_error *error) {
    MG_CHECK(T >= 1, "a window of %td positions", T);
    mg_beliefs beliefs;
    double *share[2] = {NULL, NULL};
    mg_status status = mg_beliefs_enumerate(g, T, &beliefs, is_exact, error);
    if (status == MG_OK && *is_exact) *is_exact = T <= affordable_steps(&beliefs);
    if (status == MG_OK && *is_exact) status = new_shares(&beliefs, share, error);
    for (ptrdiff_t t = 0; t < T && status == MG_OK && *is_exact; t++) {
        mg_beliefs_step(&beliefs, share);
        floor[t] = mg_beliefs_mean_entropy(&beliefs, share[0]);
    }
    mg_beliefs_free(&beliefs);
    mg_free(share[0]);
    mg_free(share[1]);
    *standard_error = 0;
    return status == MG_OK && !*is_exact ? sampled_floor(g, T, floor, standard_error, error) : status;
}

/* The mean entropy falls from step to step (a longer past never hurts) towards the rate; once it stops falling, it is
 * the rate. */
static mg_status limit(const mg_beliefs *b, double *rate, bool *is_exact, mg_error *error) {
    enum { STILL = 100, MOST_STEPS = 20000 };
    double *share[2] = {NULL, NULL};
    mg_status status = new_shares(b, share, error);
    int still = 0;
    *rate = INFINITY;
    for (int i = 0; i < MOST_STEPS && i < affordable_steps(b) && still < STILL && status == MG_OK; i++) {
        mg_beliefs_step(b, share);
        double now = mg_beliefs_mean_entropy(b, share[0]);
        still = fabs(now - *rate) < 1e-13 ? still + 1 : 0;
        *rate = now;
    }
    *is_exact = still == STILL;
    mg_free(share[0]);
    mg_free(share[1]);
    return status;
}

/* Shannon 1948, theorem 5 and section 7: where state and word determine the next state, an unknown first state costs
 * a bounded amount once, so that the rate is the stationary mean of the state's entropy. */
static double unifilar_rate(const mg_grammar *g) {
    double rate = 0;
    for (ptrdiff_t i = 0; i < g->n_arcs; i++)
        rate -= g->stationary[g->arc[i].state] * g->arc[i].p * mg_log_double(g->arc[i].p);
    return rate;
}

mg_status mg_grammar_entropy_rate(const mg_grammar *g, double *rate, bool *is_exact, mg_error *error) {
    *is_exact = true;
    if (g->is_unifilar) {
        *rate = unifilar_rate(g);
        return MG_OK;
    }
    mg_beliefs beliefs;
    mg_status status = mg_beliefs_enumerate(g, -1, &beliefs, is_exact, error);
    if (status == MG_OK && *is_exact) status = limit(&beliefs, rate, is_exact, error);
    mg_beliefs_free(&beliefs);
    return status == MG_OK && !*is_exact ? sampled_rate(g, rate, error) : status;
}
