/* The two halves of lab packed: what the models lose (packed.c), and who moves whom in a window (packed_windows.c). */
#ifndef MASKGRAD_LAB_PACKED_H
#define MASKGRAD_LAB_PACKED_H

#include "training.h"

/* Windows of the validation split that hold a border between two documents, and the masks put to the test in them:
 * `packed` sees its document only, `causal` all that is before it. `end` is the token that ends a document. The lab's
 * undecided checks say why where no window has a border. */
mg_status lab_packed_windows(mg_lab *lab, const mg_corpus *corpus, mg_gpt *packed, mg_gpt *causal, int end,
                             mg_error *error);

#endif
