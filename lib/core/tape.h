/* The tape: operations record themselves as they compute, and mg_backward reads it from the end.
 *
 *     mg_tape_new(&tape, &error);
 *     mg_tensor *x = mg_leaf(tape, 1, (ptrdiff_t[]){3});            fill x->data
 *     mg_tensor *loss = mg_sum(tape, mg_mul(tape, x, x), ...);
 *     mg_backward(tape, loss);                                      x->grad holds 2x
 *     mg_tape_reset(tape);                                          every tensor of the tape is gone, in O(1)
 *     mg_tape_free(tape);
 *
 * A tape belongs to one thread. */
#ifndef MASKGRAD_TAPE_H
#define MASKGRAD_TAPE_H

#include "rng.h"
#include "tensor.h"

#include <stdio.h>

typedef struct mg_tape mg_tape;

/* MG_ERR_MEMORY, and *tape is NULL. */
MG_API mg_status mg_tape_new(mg_tape **tape, mg_error *error);
MG_API void mg_tape_free(mg_tape *tape);
/* Off: operations compute without being recorded, for inference. A new tape records. */
MG_API void mg_tape_record(mg_tape *tape, bool on);
/* Drop every tensor and operation since the last reset. O(1). */
MG_API void mg_tape_reset(mg_tape *tape);
/* d loss / d x into x->grad for every x that the loss depends on and that requires it. loss has one element. Gradients
 * of leaves accumulate from call to call; interior gradients start at 0 in each call and can be read until the reset,
 * unless they are recycled. */
MG_API void mg_backward(mg_tape *tape, mg_tensor *loss);
/* On: mg_backward reuses an interior gradient's memory as soon as it has passed it, and x->grad is NULL again. That is
 * enough for training and takes about half the memory, and the memory that is written next is still in the cache. A new
 * tape keeps all gradients. */
MG_API void mg_tape_recycle_gradients(mg_tape *tape, bool on);
/* A tensor of the user's on this tape: zeros, requires_grad, with a zeroed gradient. Lives until the reset. */
MG_API mg_tensor *mg_leaf(mg_tape *tape, int ndim, const ptrdiff_t *dim);
/* The same, without a gradient: data. */
MG_API mg_tensor *mg_constant(mg_tape *tape, int ndim, const ptrdiff_t *dim);
/* Data from an array (copied), and from N(0, 1), element i being mg_rng_normal(rng, i). */
MG_API mg_tensor *mg_values(mg_tape *tape, int ndim, const ptrdiff_t *dim, const mg_real *values);
MG_API mg_tensor *mg_randn(mg_tape *tape, int ndim, const ptrdiff_t *dim, mg_rng rng);
/* Print shape and values for people, one row per line, in brackets as in NumPy; of a long axis, the first and last. */
MG_API void mg_print(const mg_tensor *x, FILE *out);

/* ---- Not installed: between maskgrad's own files ---- */
size_t mg_tape_bytes(const mg_tape *tape); /* the largest number of bytes in use between two resets so far */

#ifndef MG_LIBRARY /* whose line a failure names: error.h */
MG_CALLED(mg_status, mg_tape_new, (tape), (tape, error), mg_tape **tape, mg_error *error)
MG_CALLED_VOID(mg_tape_record, (tape), (tape, on), mg_tape *tape, bool on)
MG_CALLED_VOID(mg_tape_reset, (tape), (tape), mg_tape *tape)
MG_CALLED_VOID(mg_backward, (tape, loss), (tape, loss), mg_tape *tape, mg_tensor *loss)
MG_CALLED_VOID(mg_tape_recycle_gradients, (tape), (tape, on), mg_tape *tape, bool on)
MG_CALLED(mg_tensor *, mg_leaf, (tape), (tape, ndim, dim), mg_tape *tape, int ndim, const ptrdiff_t *dim)
MG_CALLED(mg_tensor *, mg_constant, (tape), (tape, ndim, dim), mg_tape *tape, int ndim, const ptrdiff_t *dim)
MG_CALLED(mg_tensor *, mg_values, (tape, values), (tape, ndim, dim, values), mg_tape *tape, int ndim,
          const ptrdiff_t *dim, const mg_real *values)
MG_CALLED(mg_tensor *, mg_randn, (tape), (tape, ndim, dim, rng), mg_tape *tape, int ndim, const ptrdiff_t *dim,
          mg_rng rng)
MG_CALLED_VOID(mg_print, (x, out), (x, out), const mg_tensor *x, FILE *out)
#define mg_tape_new(...) MG_AT(mg_tape_new, __VA_ARGS__)
#define mg_tape_record(...) MG_AT(mg_tape_record, __VA_ARGS__)
#define mg_tape_reset(...) MG_AT(mg_tape_reset, __VA_ARGS__)
#define mg_backward(...) MG_AT(mg_backward, __VA_ARGS__)
#define mg_tape_recycle_gradients(...) MG_AT(mg_tape_recycle_gradients, __VA_ARGS__)
#define mg_leaf(...) MG_AT(mg_leaf, __VA_ARGS__)
#define mg_constant(...) MG_AT(mg_constant, __VA_ARGS__)
#define mg_values(...) MG_AT(mg_values, __VA_ARGS__)
#define mg_randn(...) MG_AT(mg_randn, __VA_ARGS__)
#define mg_print(...) MG_AT(mg_print, __VA_ARGS__)
#endif

#endif
