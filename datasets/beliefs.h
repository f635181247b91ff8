/* All beliefs (distributions over a grammar's states) that an observer can come to hold, who starts from the stationary
 * distribution and sees word after word: a Markov chain of its own. */
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

/* Enumerate what `depth` words lead to (or any number of words, if depth is -1); beliefs that agree to 1e-12 are one.
 * *is_complete is false if there are too many (over 200,000 or some 100 MB), and then nothing else is of use. */
mg_status mg_beliefs_enumerate(const mg_grammar *grammar, ptrdiff_t depth, mg_beliefs *beliefs, bool *is_complete,
                               mg_error *error);
void mg_beliefs_free(mg_beliefs *beliefs);
/* after = the distribution over beliefs one word after `before`. Beliefs that were not gone on from lose their share.
 */
void mg_beliefs_step(const mg_beliefs *beliefs, const double *before, double *after);

#endif
