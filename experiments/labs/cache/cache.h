/* The three parts of lab cache. */
#ifndef MASKGRAD_LAB_CACHE_H
#define MASKGRAD_LAB_CACHE_H

#include "subject.h"

/* cache.c: the same logits, whatever the chunks; and how many bytes it takes. */
/* cache_cost.c: scores counted and time measured against the position. */
mg_status lab_cache_cost(mg_lab *lab, lab_subject *subject, mg_error *error);
/* cache_unmasked.c: why a model without the mask cannot have a cache. `masked` and `unmasked` may be one subject: a
 * checkpoint, with the mask switched on and off. */
mg_status lab_cache_unmasked(mg_lab *lab, lab_subject *masked, lab_subject *unmasked, mg_error *error);

#endif
