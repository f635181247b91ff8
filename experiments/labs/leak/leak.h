/* The two halves of lab leak: what the models predict (lab_leak.c) and what they write (lab_leak_text.c). */
#ifndef MASKGRAD_LAB_LEAK_H
#define MASKGRAD_LAB_LEAK_H

#include "training.h"

/* Let both models write, show the texts side by side, and judge them: by the grammar where the source is one, by the
 * masked model where it is text. */
mg_status lab_leak_write(mg_lab *lab, lab_training *training, const mg_corpus *corpus, mg_error *error);

#endif
