/* How often one token follows another in a split: all that a predictor that sees one token can know. */
#ifndef MASKGRAD_PAIRS_H
#define MASKGRAD_PAIRS_H

#include "corpus.h"

typedef struct mg_pairs mg_pairs;

/* Counts (x[i], x[i + distance]) over all i at which a window of T inputs and their targets may begin: what
 * mg_corpus_windows draws uniformly. One pass; memory only for pairs that occur. */
mg_status mg_pairs_new(mg_pairs **pairs, const mg_corpus *corpus, mg_split split, ptrdiff_t T, ptrdiff_t distance,
                       mg_error *error);
void mg_pairs_free(mg_pairs *pairs);
/* -ln p(second | first) in nats. A pair that does not occur is taken as if it had occurred once more. */
double mg_pairs_surprisal(const mg_pairs *pairs, int first, int second);
/* The conditional entropy H(second | first) in nats per token: the lowest mean loss of any predictor that only sees
 * `first` (Gibbs' inequality). */
double mg_pairs_entropy(const mg_pairs *pairs);

#endif
