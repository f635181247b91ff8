/* Masked multi-head attention (Vaswani et al. 2017, section 3.2) and the one rule of the mask. */
#ifndef MASKGRAD_ATTENTION_H
#define MASKGRAD_ATTENTION_H

#include "rng.h"
#include "tensor.h"

#include <limits.h>
#include <math.h>

/* How many positions past itself a query may see. 0 is the causal mask; k leaks k tokens; ALL is no mask. */
enum { MG_LOOKAHEAD_ALL = INT_MAX };

/* THE MASK. How many keys a query sees: those at positions 0 … query_position + lookahead, of the n_keys there are.
 * Everything else follows from it: forward, backward, cache, the printed triangle, the audit. */
static inline ptrdiff_t mg_visible(ptrdiff_t query_position, int lookahead, ptrdiff_t n_keys) {
    if (lookahead >= n_keys) return n_keys;
    ptrdiff_t visible = query_position + 1 + lookahead;
    return visible < n_keys ? visible : n_keys;
}

typedef struct mg_attention_options {
    int n_head;
    const int *lookahead; /* n_head of them; NULL: all causal */
    mg_real scale;        /* of the scores; 0: 1/sqrt(d_k). 1 shows what happens without */

    /* Decoding: qkv holds the n tokens that follow the `cached` ones (B is 1). Their keys and values are appended to
     * these (cache_capacity, C) buffers, and the queries look at all of them. NULL: no cache. */
    mg_real *cached_keys, *cached_values;
    ptrdiff_t cached, cache_capacity;

    mg_real dropout; /* of the weights; 0 is off */
    mg_rng dropout_rng;

    /* For inspection: (B, n_head, n_queries, n_keys) each, or NULL. They change no bit of the result. */
    mg_real *weights; /* exactly 0 where a key is not visible */
    mg_real *scores;  /* scaled, -inf where a key is not visible */
} mg_attention_options;

static inline mg_real mg_attention_scale(const mg_attention_options *options, ptrdiff_t head_width) {
    return options->scale > 0 ? options->scale : (mg_real)(1 / sqrt((double)head_width));
}

/* mg_attention(tape, qkv, options), declared in ops.h: qkv (B,T,3C) holds queries, keys and values side by side, head h
 * in columns h·d_k … of each. Returns (B,T,C), the heads' concatenated outputs. Infinite scores are treated as in
 * mg_softmax. */

#endif
