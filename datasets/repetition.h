/* How much of the validation split occurs verbatim in the training split. */
#ifndef MASKGRAD_REPETITION_H
#define MASKGRAD_REPETITION_H

#include "corpus.h"

enum { MG_REPETITION_CHARACTERS = 50 };

/* The share of validation windows of about 50 characters that occur in the training split too, looked up for up to
 * 4,000 of them at even distances in one pass. Where it is more than a little, a low validation loss shows memory.
 * *share is 0 where the splits are the same tokens, or the source is a grammar, whose sentences recur by their nature.
 */
mg_status mg_corpus_repetition(const mg_corpus *corpus, double *share, mg_error *error);
/* A sentence on a share of more than 1%, in `text`; else NULL. */
const char *mg_repetition_say(double share, char *text, size_t size);

#endif
