/* The two halves of lab leak: what the models predict (leak.c) and what they write (leak_text.c). */
#ifndef MASKGRAD_LAB_LEAK_H
#define MASKGRAD_LAB_LEAK_H

#include "training.h"

/* Let both models write, show the texts side by side, and judge them: by the grammar where the source is one, by the
 * masked model where it is text. `why` says why a text cannot tell the two apart; NULL if it can. */
mg_status lab_leak_write(mg_lab *lab, lab_training *training, const mg_corpus *corpus, const char *why,
                         mg_error *error);

#endif
