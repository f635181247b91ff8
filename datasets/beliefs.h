/* All beliefs (distributions over a grammar's states) that an observer can reach who starts from the stationary
 * distribution, or from other beliefs, and sees word after word. They form a Markov chain of their own. */
#ifndef MASKGRAD_BELIEFS_H
#define MASKGRAD_BELIEFS_H

#include "grammar_internal.h"

typedef struct mg_beliefs {
    ptrdiff_t n, room;
    double *belief;   /* n rows of n_states; belief 0 is the stationary distribution */
    double *entropy;  /* of the next word under each, in nats */
    ptrdiff_t *first; /* the ways out of belief b are first[b] … first[b + 1] - 1 */
    ptrdiff_t n_ways, way_room;
    int *way_to;
    double *way_p;
} mg_beliefs;

/* Enumerate the beliefs that `depth` words lead to (any number of words if depth is -1); beliefs that agree to 1e-12
 * count as one. *is_complete is false if there are too many (over 200,000 or some 100 MB); the rest is then useless. */
mg_status mg_beliefs_enumerate(const mg_grammar *grammar, ptrdiff_t depth, mg_beliefs *beliefs, bool *is_complete,
                               mg_error *error);
/* The same from n_starts other beliefs, rows of n_states; number[i] is that of the i-th in `beliefs`. */
mg_status mg_beliefs_enumerate_from(const mg_grammar *grammar, ptrdiff_t n_starts, const double *starts, int *number,
                                    ptrdiff_t depth, mg_beliefs *beliefs, bool *is_complete, mg_error *error);
void mg_beliefs_free(mg_beliefs *beliefs);
/* The expected entropy of the next word, where share[b] is the probability of belief b. */
double mg_beliefs_mean_entropy(const mg_beliefs *beliefs, const double *share);
/* share[0] becomes the distribution over beliefs one word later; the two arrays change places, and what was in share[1]
 * is lost. Beliefs that were not expanded lose their share. */
void mg_beliefs_step(const mg_beliefs *beliefs, double *share[2]);

#endif
