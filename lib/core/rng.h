/* Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011),
 * from Random123 or, in portable arithmetic, our own. A draw is a pure function of (seed, stream, step, index): there
 * is no generator state to lose, to share between threads, or to draw from in another order. */
#ifndef MASKGRAD_RNG_H
#define MASKGRAD_RNG_H

#include "error.h"

#include <stdint.h>

/* Who draws. Two streams never meet, whatever their steps and indices. */
typedef enum mg_stream {
    MG_STREAM_INIT = 1, /* initial weights; step: which parameter */
    MG_STREAM_BATCH,    /* offsets of training windows; step: iteration */
    MG_STREAM_EVAL,     /* offsets of evaluation windows */
    MG_STREAM_DROPOUT,  /* step: iteration and place in the model */
    MG_STREAM_SAMPLE,   /* sampling tokens; step: which sample, index: which token */
    MG_STREAM_GRAMMAR,  /* sentences of a grammar */
    MG_STREAM_LAB,      /* data that a lab makes up */
    MG_STREAM_TEST
} mg_stream;

typedef struct mg_rng {
    uint64_t seed;
    uint32_t stream;
    uint32_t step;
} mg_rng;

/* Standard normal (Box and Muller 1958). */
MG_API double mg_rng_normal(mg_rng rng, uint64_t index);

/* ---- Not installed: between maskgrad's own files ---- */
/* Four independent 32-bit words for this index. */
void mg_rng_words(mg_rng rng, uint64_t index, uint32_t words[4]);
/* An integer in [0, n), n >= 1, without noticeable modulo bias (64 random bits times n, the high word). */
uint64_t mg_rng_below(mg_rng rng, uint64_t index, uint64_t n);
/* Uniform in [0, 1), 53 bits. */
double mg_rng_uniform(mg_rng rng, uint64_t index);

#endif
