/* Reading a prompt into a KV cache. */
#ifndef MASKGRAD_PREFILL_H
#define MASKGRAD_PREFILL_H

#include "gpt.h"
#include "kv_cache.h"

/* Read the ids into the cache in parts, while more than one part is left, and return how many were read. The caller
 * reads the rest, at least 1 of them, for its logits. A long prompt goes through a large model in parts, so that most
 * of the memory is for the weights. Resets the tape. */
ptrdiff_t mg_prefill(mg_gpt *gpt, mg_tape *tape, mg_kv_cache *cache, const int *ids, ptrdiff_t n);

#endif
