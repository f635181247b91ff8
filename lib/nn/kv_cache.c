#include "kv_cache.h"

#include <string.h>

/* How many tokens a token of this model sees at most; 0: all before it. */
static ptrdiff_t window_of(const mg_gpt_config *c) {
    bool has_one = c->mask.kind == MG_MASK_WINDOW && c->leak_layer < 0 && c->mask.n < c->block_size;
    return has_one ? c->mask.n : 0;
}

/* For a window of n, n more or 32 more, whichever is larger, so that dropping moves each token once on average. */
ptrdiff_t mg_kv_cache_capacity(const mg_gpt_config *c) {
    enum { FEWEST_AT_ONCE = 32 };
    ptrdiff_t window = window_of(c), more = window > FEWEST_AT_ONCE ? window : FEWEST_AT_ONCE;
    return window > 0 && window + more < c->block_size ? window + more : c->block_size;
}

mg_status mg_kv_cache_new(mg_kv_cache **cache, const mg_gpt_config *config, mg_error *error) {
    *cache = NULL;
    if (!mg_gpt_is_causal(config))
        return mg_error_set(error, MG_ERR_STATE,
                            "this model looks ahead, so new tokens change the keys and values of earlier ones: "
                            "a KV cache would be wrong");
    mg_kv_cache *c = mg_alloc_zero(1, sizeof *c, "a KV cache", error);
    if (!c) return MG_ERR_MEMORY;
    *c = (mg_kv_cache){.n_layer = config->n_layer,
                       .capacity = mg_kv_cache_capacity(config),
                       .width = config->n_embd,
                       .window = window_of(config)};
    size_t size = (size_t)c->n_layer * (size_t)c->capacity * (size_t)c->width;
    /* Not filled: nothing beyond the length is read, and what is never written takes no memory. */
    c->keys = mg_alloc(size, sizeof(mg_real), "a KV cache's keys", error);
    c->values = mg_alloc(size, sizeof(mg_real), "a KV cache's values", error);
    if (config->documents)
        c->document = mg_alloc_zero((size_t)config->block_size + 1, sizeof *c->document, "a KV cache", error);
    if (!c->keys || !c->values || (config->documents && !c->document)) {
        mg_kv_cache_free(c);
        return MG_ERR_MEMORY;
    }
    mg_heap_fills_slowly(c->keys, size * sizeof(mg_real));
    mg_heap_fills_slowly(c->values, size * sizeof(mg_real));
    *cache = c;
    return MG_OK;
}

void mg_kv_cache_free(mg_kv_cache *cache) {
    if (!cache) return;
    mg_free(cache->keys);
    mg_free(cache->values);
    mg_free(cache->document);
    mg_free(cache);
}

void mg_kv_cache_clear(mg_kv_cache *cache) {
    cache->length = cache->first = 0;
}

bool mg_kv_cache_cut(mg_kv_cache *cache, ptrdiff_t length) {
    MG_CHECK(length >= 0, "kv_cache: cut to %td tokens", length);
    if (length >= cache->length) return true;
    ptrdiff_t needed = cache->window > 0 && length >= cache->window ? length + 1 - cache->window : 0;
    if (cache->document && cache->document[length] > needed) needed = cache->document[length];
    bool has_all = needed >= cache->first;
    if (has_all)
        cache->length = length;
    else
        mg_kv_cache_clear(cache);
    return has_all;
}

void mg_kv_cache_drop(mg_kv_cache *c, ptrdiff_t n) {
    MG_CHECK(c->document && n >= 0 && n <= c->document[c->length],
             "kv_cache: the next of %td tokens may see some of the first %td", c->length, n);
    ptrdiff_t first = n > c->first ? n : c->first;
    size_t bytes = (size_t)((c->length - first) * c->width) * sizeof(mg_real);
    for (int layer = 0; layer < c->n_layer; layer++) {
        ptrdiff_t at = layer * c->capacity * c->width, from = at + (first - c->first) * c->width;
        memmove(c->keys + at, c->keys + from, bytes);
        memmove(c->values + at, c->values + from, bytes);
    }
    for (ptrdiff_t i = n; i <= c->length; i++) c->document[i - n] = c->document[i] - (int)n;
    c->first = first - n;
    c->length -= n;
}

void mg_kv_cache_copy(mg_kv_cache *to, const mg_kv_cache *from) {
    MG_CHECK(to->n_layer == from->n_layer && to->capacity == from->capacity && to->width == from->width,
             "kv_cache: one is for %d layers, %td tokens and width %td, the other for %d, %td and %td", to->n_layer,
             to->capacity, to->width, from->n_layer, from->capacity, from->width);
    if (to == from) return;
    for (int layer = 0; layer < from->n_layer; layer++) {
        ptrdiff_t at = layer * from->capacity * from->width;
        size_t bytes = (size_t)((from->length - from->first) * from->width) * sizeof(mg_real);
        memcpy(to->keys + at, from->keys + at, bytes);
        memcpy(to->values + at, from->values + at, bytes);
    }
    to->length = from->length;
    to->first = from->first;
    if (to->document && from->document)
        memcpy(to->document, from->document, (size_t)(from->length + 1) * sizeof *to->document);
}

size_t mg_kv_cache_bytes(const mg_kv_cache *c) {
    return 2 * (size_t)c->n_layer * (size_t)c->capacity * (size_t)c->width * sizeof(mg_real);
}
