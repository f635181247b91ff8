/* What short contexts allow: the loss of predictors that only count, on a text whose true entropy nobody knows. */
#ifndef MASKGRAD_LAB_CONTEXTS_H
#define MASKGRAD_LAB_CONTEXTS_H

#include "lab.h"

enum { LAB_CONTEXTS = 3 };

/* Validation losses in nats per token of tables that were counted on the training tokens. */
typedef struct lab_contexts {
    double loss[LAB_CONTEXTS]; /* [k]: from the k tokens before */
    double memory;             /* what context is worth: loss[0] minus the lowest; never negative */
} lab_contexts;

/* p_k(x | c) = (n(c x) + a p_{k−1}(x | c without its oldest token)) / (n(c) + a), with p_{−1} uniform: MacKay & Peto
 * 1995. Of a long corpus the first million training tokens are counted, and 20,000 validation tokens are predicted. */
lab_contexts lab_contexts_of(mg_lab *lab, const mg_corpus *corpus);

/* Mean loss over all positions but the last: those whose label is in the input. */
double lab_labeled_loss(const mg_evaluation *evaluation);
/* Why no leak can show on this data: an honest model comes as low. NULL if it does not. */
const char *lab_too_easy(mg_lab *lab, const mg_evaluation *honest);

#endif
