/* The stationary distribution of a grammar's states. */
#ifndef MASKGRAD_STATIONARY_H
#define MASKGRAD_STATIONARY_H

#include "grammar_internal.h"

/* Fill pi[state] with pi = pi P, sum 1, by the elimination of Grassmann, Taksar and Heyman ("Regenerative analysis and
 * steady state distributions for Markov chains", 1985), which never subtracts and so loses no digits. The states must
 * all reach one another. */
mg_status mg_stationary(const mg_grammar *grammar, double *pi, mg_error *error);

#endif
