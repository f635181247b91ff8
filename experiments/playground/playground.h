/* The playground's door to the library: playground.c. */
#ifndef MASKGRAD_PLAYGROUND_H
#define MASKGRAD_PLAYGROUND_H

#include "tensor.h"

#ifdef __wasm__
#define PLAYGROUND(name) __attribute__((export_name(#name)))
#else
#define PLAYGROUND(name)
#endif

/* Room for a corpus of n ids, to be filled by the caller. NULL: no memory. */
PLAYGROUND(playground_corpus) int *playground_corpus(int n);
/* A fresh model, causal, at step 0; windows of `batch` times `context` tokens. 0: see the message. */
PLAYGROUND(playground_new)
int playground_new(int n_layer, int n_embd, int context, int batch, int vocab_size, unsigned seed, double lr);
/* From the next step on: kind 0 looks n tokens ahead (-1: all), kind 1 sees the last n. */
PLAYGROUND(playground_mask) void playground_mask(int kind, int n);
/* One update; the loss before it. */
PLAYGROUND(playground_step) double playground_step(void);
/* The last step's loss at each position, `context` of them. */
PLAYGROUND(playground_by_position) const double *playground_by_position(void);
/* Attention weights (layer, head, query, key) on the first window of the corpus. */
PLAYGROUND(playground_maps) const mg_real *playground_maps(void);
/* FNV-1a of the weights. */
PLAYGROUND(playground_hash) uint64_t playground_hash(void);
/* What went wrong last. */
PLAYGROUND(playground_message) const char *playground_message(void);

#endif
