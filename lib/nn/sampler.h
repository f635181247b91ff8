/* From logits to a token. */
#ifndef MASKGRAD_SAMPLER_H
#define MASKGRAD_SAMPLER_H

#include "rng.h"
#include "tensor.h"

typedef struct mg_sampler {
    double temperature; /* 0: the largest logit, the lowest id among equals */
    int top_k;          /* 0: off; at or above the vocabulary: no effect */
    double top_p;       /* 0 or 1: off; the smallest set of most likely tokens whose mass reaches top_p */
} mg_sampler;

/* ---- Not installed: between maskgrad's own files ---- */
mg_status mg_sampler_check(const mg_sampler *sampler, mg_error *error);
/* probabilities (n) of the tokens under the sampler; they sum to 1 and are exactly 0 outside its support. `order` is
 * scratch, n places. A logit of NaN is a bug of the caller. */
void mg_sampler_probabilities(const mg_sampler *sampler, const mg_real *logits, int n, double *probabilities,
                              int *order);
/* A token: a function only of the probabilities and of (rng, index). */
int mg_sampler_draw(const double *probabilities, int n, mg_rng rng, uint64_t index);

#endif
