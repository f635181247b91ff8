/* Masked multi-head attention (Vaswani et al. 2017, section 3.2). */
#ifndef MASKGRAD_ATTENTION_H
#define MASKGRAD_ATTENTION_H

#include "mask.h"
#include "rng.h"
#include "tensor.h"

#include <math.h>

/* Decoding: the keys and values of the positions first … end - 1, in (capacity, C) buffers of the caller. */
typedef struct mg_cached {
    mg_real *keys, *values;
    ptrdiff_t capacity, first, end;
} mg_cached;

typedef struct mg_attention_options {
    int n_head;
    const mg_mask *mask; /* n_head of them; NULL: all causal */
    /* What each query of each sequence may see at most, (B,T): it sees what this and its head's mask have in common.
     * NULL: no limit. An interval holds its query's own position, ends at T or before, and neither of its ends is
     * before the previous query's. */
    const mg_interval *sequence;
    mg_real scale; /* of the scores; 0: 1/sqrt(d_k). 1 shows what happens without */

    /* B of them, one per sequence, which may hold different numbers of tokens. qkv holds the T tokens that follow
     * those: their keys and values are appended, and the queries look there. When a cache is full, what no later query
     * sees is dropped. No head may look ahead. NULL: no cache. */
    mg_cached *cache;

    mg_real dropout; /* of the weights; 0 is off */
    mg_rng dropout_rng;

    /* For inspection: (B, n_head, n_queries, n_keys) each, or NULL; with a cache, B is 1. They change no bit of the
     * result. */
    mg_real *weights; /* exactly 0 where a key is not visible */
    mg_real *scores;  /* scaled, -inf where a key is not visible */
} mg_attention_options;

/* mg_attention(tape, qkv, options), declared in ops.h: qkv (B,T,3C) holds queries, keys and values side by side, head h
 * in columns h·d_k … of each. Returns (B,T,C), the heads' concatenated outputs. Infinite scores are treated as in
 * mg_softmax. */

/* ---- Not installed: between maskgrad's own files ---- */
static inline mg_real mg_attention_scale(const mg_attention_options *options, ptrdiff_t head_width) {
    return options->scale != 0 ? options->scale : (mg_real)(1 / sqrt((double)head_width));
}

#endif
