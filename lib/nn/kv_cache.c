#include "kv_cache.h"
#include "gpt.h"

#include <string.h>

mg_status mg_kv_cache_new(mg_kv_cache **cache, const mg_gpt *gpt, mg_error *error) {
    *cache = NULL;
    const mg_gpt_config *config = mg_gpt_get_config(gpt);
    if (!mg_gpt_is_causal(config))
        return mg_error_set(
            error, MG_ERR_STATE,
            "this model looks ahead, so every new token changes the keys and values of the earlier ones: "
            "a KV cache would be wrong");
    mg_kv_cache *c = mg_alloc_zero(1, sizeof *c, "a KV cache", error);
    if (!c) return MG_ERR_MEMORY;
    *c = (mg_kv_cache){.n_layer = config->n_layer, .capacity = config->block_size, .width = config->n_embd};
    size_t size = (size_t)c->n_layer * (size_t)c->capacity * (size_t)c->width;
    /* Not filled: nothing beyond the length is read, and what is never written takes no memory. */
    c->keys = mg_alloc(size, sizeof(mg_real), "a KV cache's keys", error);
    c->values = mg_alloc(size, sizeof(mg_real), "a KV cache's values", error);
    if (!c->keys || !c->values) {
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
    mg_free(cache);
}

void mg_kv_cache_clear(mg_kv_cache *cache) {
    cache->length = 0;
}

void mg_kv_cache_copy(mg_kv_cache *to, const mg_kv_cache *from) {
    MG_CHECK(to->n_layer == from->n_layer && to->capacity == from->capacity && to->width == from->width,
             "kv_cache: one is for %d layers, %td tokens and width %td, the other for %d, %td and %td", to->n_layer,
             to->capacity, to->width, from->n_layer, from->capacity, from->width);
    if (to == from) return;
    for (int layer = 0; layer < from->n_layer; layer++) {
        ptrdiff_t at = layer * from->capacity * from->width;
        size_t bytes = (size_t)(from->length * from->width) * sizeof(mg_real);
        memcpy(to->keys + at, from->keys + at, bytes);
        memcpy(to->values + at, from->values + at, bytes);
    }
    to->length = from->length;
}

size_t mg_kv_cache_bytes(const mg_kv_cache *c) {
    return 2 * (size_t)c->n_layer * (size_t)c->capacity * (size_t)c->width * sizeof(mg_real);
}
