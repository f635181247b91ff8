/* One head's attention at a time. attention_heads.c holds it, which is built for each kind of processor: with vectors
 * as long as that one has, and as many of them as it has registers for. The program takes the best when it starts. */
#ifndef MASKGRAD_ATTENTION_HEADS_H
#define MASKGRAD_ATTENTION_HEADS_H

#include "attention.h"

typedef struct mg_attention_job {
    ptrdiff_t B, queries, keys, C;
    ptrdiff_t width;                  /* of a head, d_k */
    ptrdiff_t first, first_key;       /* positions of the first query and key: not 0 with a cache */
    ptrdiff_t done;                   /* queries of the call before the first of these */
    ptrdiff_t all_queries, all_keys;  /* of the call: a capture's rows and columns */
    ptrdiff_t key_stride;             /* between a head's keys: 3C in qkv, C in a cache */
    const mg_real *qkv, *key, *value; /* of batch 0, head 0 */
    mg_attention_options o;
    mg_real *out;                /* (B,T,C) */
    mg_real *greatest, *inverse; /* (B,H,T) each: a query's greatest score, and 1 / Σ exp(score − greatest) */
    const mg_real *dout;
    mg_real *dqkv, dqkv_beta;
} mg_attention_job;

typedef struct mg_attention_heads {
    /* Head `index`, which is b · n_head + h; with a workspace of that many bytes. */
    void (*forward)(const mg_attention_job *job, ptrdiff_t index, mg_real *workspace);
    void (*backward)(const mg_attention_job *job, ptrdiff_t index, mg_real *workspace);
    size_t (*forward_bytes)(const mg_attention_job *job);
    size_t (*backward_bytes)(const mg_attention_job *job);
} mg_attention_heads;

/* x86-64-v4 has AVX-512, v3 AVX2 and FMA. */
extern const mg_attention_heads mg_attention_heads_v4, mg_attention_heads_v3, mg_attention_heads_baseline;

/* Those that this processor can run, the best first; NULL ends the list. */
const mg_attention_heads *const *mg_attention_heads_list(void);
/* For tests: use these from now on instead of the best. */
void mg_attention_heads_use(const mg_attention_heads *heads);

#endif
