/* Keys and values of the tokens seen so far, one pair of (capacity, n_embd) buffers per layer. Exact only because of
 * causality: a key never changes once computed, since no later token can affect it. What no later token sees is dropped
 * when room is needed, so that a window of W positions takes memory for some 2 W tokens, however long the text is, and
 * a text of documents, whose positions restart, goes on beyond the context. */
#ifndef MASKGRAD_KV_CACHE_H
#define MASKGRAD_KV_CACHE_H

#include "gpt_config.h"
#include "tensor.h"

typedef struct mg_kv_cache {
    int n_layer;
    ptrdiff_t length, capacity, width; /* tokens seen, tokens it can hold, n_embd */
    ptrdiff_t first;                   /* the tokens before this one were dropped */
    ptrdiff_t window;                  /* how many tokens a token sees at most; 0: all */
    int *document; /* (block_size + 1): where each token's document begins, and the next one's; NULL: no documents */
    mg_real *keys, *values; /* (n_layer, capacity, width): of tokens first … length - 1 */
} mg_kv_cache;

/* How many tokens a cache for such a model can hold. */
ptrdiff_t mg_kv_cache_capacity(const mg_gpt_config *config);
size_t mg_kv_cache_bytes(const mg_kv_cache *cache); /* 2 · L · capacity · C · sizeof(mg_real) */
/* For models of this configuration. MG_ERR_STATE with the reason if any head looks ahead. */
mg_status mg_kv_cache_new(mg_kv_cache **cache, const mg_gpt_config *config, mg_error *error);
void mg_kv_cache_free(mg_kv_cache *cache);
void mg_kv_cache_clear(mg_kv_cache *cache);
/* Keep only the first `length` tokens, which no later one has changed. False, and nothing is left, if some that the
 * next token sees were dropped. */
bool mg_kv_cache_cut(mg_kv_cache *cache, ptrdiff_t length);
/* Leave out the first n tokens, of which the next one sees none (mg_gpt_ended): the cache is then that of the others.
 */
void mg_kv_cache_drop(mg_kv_cache *cache, ptrdiff_t n);
/* to->length = from->length and its content; both made for the same model. Many samples can continue one prompt. */
void mg_kv_cache_copy(mg_kv_cache *to, const mg_kv_cache *from);

#endif
