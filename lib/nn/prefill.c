#include "prefill.h"

/* A pass holds at most 18 numbers per token and unit of width. */
static ptrdiff_t part_size(const mg_gpt_config *config) {
    enum { BYTES = 7 << 17, SMALLEST = 16 };
    ptrdiff_t token = 18 * (ptrdiff_t)sizeof(mg_real) * config->n_embd;
    return BYTES / token > SMALLEST ? BYTES / token : SMALLEST;
}

ptrdiff_t mg_prefill(mg_gpt *gpt, mg_tape *tape, mg_kv_cache *cache, const int *ids, ptrdiff_t n) {
    ptrdiff_t part = part_size(mg_gpt_get_config(gpt)), done = 0;
    for (; n - done > part; done += part) {
        mg_gpt_forward(gpt, tape, ids + done, 1, part, &(mg_gpt_pass){.cache = &cache, .cache_only = true});
        mg_tape_reset(tape);
    }
    return done;
}
