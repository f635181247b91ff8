#include "stationary.h"

#include "heap.h"

/* Eliminate the states from the last to the second: what went to k is passed on to where k goes. */
static void eliminate(double *p, size_t n) {
    for (size_t k = n - 1; k > 0; k--) {
        double leaves = 0;
        for (size_t j = 0; j < k; j++) leaves += p[k * n + j];
        for (size_t i = 0; i < k; i++) {
            if (p[i * n + k] == 0) continue;
            p[i * n + k] /= leaves;
            for (size_t j = 0; j < k; j++) p[i * n + j] += p[i * n + k] * p[k * n + j];
        }
    }
}

mg_status mg_stationary(const mg_grammar *g, double *pi, mg_error *error) {
    size_t n = (size_t)g->states.n;
    double *p = mg_alloc_zero(n * n, sizeof *p, "the transition matrix of a grammar", error);
    if (!p) return MG_ERR_MEMORY;
    for (ptrdiff_t i = 0; i < g->n_arcs; i++) p[(size_t)g->arc[i].state * n + (size_t)g->arc[i].next] += g->arc[i].p;
    eliminate(p, n);
    double total = pi[0] = 1;
    for (size_t k = 1; k < n; k++) {
        pi[k] = 0;
        for (size_t i = 0; i < k; i++) pi[k] += pi[i] * p[i * n + k];
        total += pi[k];
    }
    for (size_t k = 0; k < n; k++) pi[k] /= total;
    mg_free(p);
    return MG_OK;
}
