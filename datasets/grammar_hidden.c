/* What the words on both sides say about a hidden one. */
#include "beliefs.h"

#include "heap.h"

#include <string.h>

/* belief: P(state | the first n words). False if they are impossible. */
static bool look_back(const mg_grammar *g, const int *ids, ptrdiff_t n, double *belief) {
    double next[MG_GRAMMAR_MAX_STATES];
    memcpy(belief, g->stationary, (size_t)g->states.n * sizeof *belief);
    for (ptrdiff_t t = 0; t < n; t++) {
        if (mg_grammar_filter(g, belief, ids[t], next) == 0) return false;
        memcpy(belief, next, (size_t)g->states.n * sizeof *belief);
    }
    return true;
}

/* ahead[state]: P(the n words | state before them), up to a common factor. False if they are impossible. */
static bool look_ahead(const mg_grammar *g, const int *ids, ptrdiff_t n, double *ahead) {
    for (int s = 0; s < g->states.n; s++) ahead[s] = 1;
    for (ptrdiff_t t = n - 1; t >= 0; t--) {
        double before[MG_GRAMMAR_MAX_STATES] = {0}, largest = 0;
        for (ptrdiff_t i = g->word_first[ids[t]]; i < g->word_first[ids[t] + 1]; i++) {
            const mg_arc *arc = &g->word_arc[i];
            before[arc->state] += arc->p * ahead[arc->next];
            if (before[arc->state] > largest) largest = before[arc->state];
        }
        if (largest == 0) return false;
        for (int s = 0; s < g->states.n; s++) ahead[s] = before[s] / largest;
    }
    return true;
}

void mg_grammar_hidden_word(const mg_grammar *g, const int *ids, ptrdiff_t T, ptrdiff_t at, double *p) {
    double belief[MG_GRAMMAR_MAX_STATES], ahead[MG_GRAMMAR_MAX_STATES], sum = 0;
    MG_CHECK(at >= 0 && at < T, "position %td of a window of %td words", at, T);
    memset(p, 0, (size_t)g->words.n * sizeof *p);
    if (!look_back(g, ids, at, belief) || !look_ahead(g, ids + at + 1, T - at - 1, ahead)) return;
    for (ptrdiff_t i = 0; i < g->n_arcs; i++) {
        double weight = belief[g->arc[i].state] * g->arc[i].p * ahead[g->arc[i].next];
        p[g->arc[i].word] += weight;
        sum += weight;
    }
    for (int word = 0; word < g->words.n && sum > 0; word++) p[word] /= sum;
}

/* ---- The expected entropy ----
 *
 * H(x_at | the others) = H(all) − H(the others). Both by the chain rule, word after word: of the others, an observer
 * forgets what the hidden word was, but not that there was one, and goes on from the belief that this leaves. */

typedef struct gap {
    mg_beliefs seen, after; /* without a hidden word so far; after one */
    int *number;            /* of what a hidden word makes of a belief of `seen`, in `after` */
    double *share[2], *share_after[2];
} gap;

/* next: the belief after a word that was not seen. */
static void miss_word(const mg_grammar *g, const double *belief, double *next) {
    memset(next, 0, (size_t)g->states.n * sizeof *next);
    for (ptrdiff_t i = 0; i < g->n_arcs; i++) next[g->arc[i].next] += belief[g->arc[i].state] * g->arc[i].p;
}

static mg_status enumerate_both(const mg_grammar *g, ptrdiff_t T, gap *x, bool *is_exact, mg_error *error) {
    mg_status status = mg_beliefs_enumerate(g, T, &x->seen, is_exact, error);
    if (status || !*is_exact) return status;
    size_t n = (size_t)x->seen.n, n_states = (size_t)g->states.n;
    double *missed = mg_alloc(n * n_states, sizeof *missed, "the beliefs of a grammar", error);
    x->number = mg_alloc(n, sizeof *x->number, "the beliefs of a grammar", error);
    if (!missed || !x->number) status = MG_ERR_MEMORY;
    for (size_t i = 0; i < n && !status; i++) miss_word(g, x->seen.belief + i * n_states, missed + i * n_states);
    if (!status) status = mg_beliefs_enumerate_from(g, x->seen.n, missed, x->number, T, &x->after, is_exact, error);
    mg_free(missed);
    return status;
}

static mg_status new_shares(gap *x, mg_error *error) {
    for (int i = 0; i < 2; i++) {
        x->share[i] = mg_alloc_zero((size_t)x->seen.n, sizeof(double), "the beliefs of a grammar", error);
        x->share_after[i] = mg_alloc_zero((size_t)x->after.n, sizeof(double), "the beliefs of a grammar", error);
        if (!x->share[i] || !x->share_after[i]) return MG_ERR_MEMORY;
    }
    x->share[0][0] = 1;
    return MG_OK;
}

/* The entropy of n words that follow a hidden one, where x->share[0] is what was known before it. */
static double entropy_after(gap *x, ptrdiff_t n) {
    double sum = 0;
    memset(x->share_after[0], 0, (size_t)x->after.n * sizeof(double));
    for (ptrdiff_t i = 0; i < x->seen.n; i++) x->share_after[0][x->number[i]] += x->share[0][i];
    for (ptrdiff_t t = 0; t < n; t++, mg_beliefs_step(&x->after, x->share_after))
        sum += mg_beliefs_mean_entropy(&x->after, x->share_after[0]);
    return sum;
}

static void fill(gap *x, ptrdiff_t T, double *entropy) {
    for (ptrdiff_t at = 0; at < T; at++, mg_beliefs_step(&x->seen, x->share)) {
        double own = mg_beliefs_mean_entropy(&x->seen, x->share[0]);
        entropy[at] = -entropy_after(x, T - at - 1);
        for (ptrdiff_t t = 0; t <= at; t++) entropy[t] += own; /* H(x_at | those before it) */
    }
}

mg_status mg_grammar_hidden_entropy(const mg_grammar *g, ptrdiff_t T, double *entropy, bool *is_exact,
                                    mg_error *error) {
    MG_CHECK(T >= 1, "a window of %td words", T);
    gap x = {.number = NULL};
    mg_status status = enumerate_both(g, T, &x, is_exact, error);
    if (!status && *is_exact) *is_exact = (double)T * (double)T * (double)(x.after.n_ways + x.after.n) < 4e9;
    if (!status && *is_exact) status = new_shares(&x, error);
    if (!status && *is_exact) fill(&x, T, entropy);
    mg_beliefs_free(&x.seen);
    mg_beliefs_free(&x.after);
    mg_free(x.number);
    for (int i = 0; i < 2; i++) {
        mg_free(x.share[i]);
        mg_free(x.share_after[i]);
    }
    return status;
}
