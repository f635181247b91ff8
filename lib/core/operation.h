/* Writing an operation: the tape's other half.
 *
 * An operation is one file: the formula, the forward function, the backward function and
 *
 *     static const mg_op op = {"name", name_backward};
 *
 * Forward makes its output with mg_tape_output, computes, and calls mg_tape_append. Backward adds d loss / d input to
 * each input that wants it, given node->out->grad. */
#ifndef MASKGRAD_OPERATION_H
#define MASKGRAD_OPERATION_H

#include "arena.h"
#include "tape.h"

typedef struct mg_node mg_node;

typedef struct mg_op {
    const char *name;
    void (*backward)(mg_tape *tape, const mg_node *node);
} mg_op;

struct mg_node {
    const mg_op *op;
    mg_tensor *out;
    int n_in;
    mg_tensor **in;
    const void *saved; /* what the forward kept for the backward, in the tape's arena */
    mg_node *previous;
};

/* An output: data not initialized, no gradient yet, not a leaf. */
MG_API mg_tensor *mg_tape_output(mg_tape *tape, int ndim, const ptrdiff_t *dim);
/* Memory that lives until the reset. */
MG_API void *mg_tape_alloc(mg_tape *tape, size_t count, size_t size, const char *what);
/* Record the operation if the tape is recording and an input requires a gradient; then out requires one too. */
MG_API void mg_tape_append(mg_tape *tape, const mg_op *op, mg_tensor *out, int n_in, mg_tensor *const *in,
                           const void *saved);

/* The gradient of x to add to: zeroed at its first use in this call of mg_backward. NULL if x requires none. */
MG_API mg_real *mg_grad(mg_tape *tape, mg_tensor *x);

/* MG_CHECK for an operation: "FILE:LINE: NAME: message", with the line of the public call. */
#define MG_OP_CHECK(tape, op, condition, ...)                                                                          \
    ((condition) ? (void)(tape) : mg_op_fail(__FILE__, __LINE__, (op)->name, __VA_ARGS__))
MG_API MG_NORETURN void mg_op_fail(const char *file, int line, const char *name, const char *format, ...)
    MG_PRINTF(4, 5);

/* ---- Not installed: between maskgrad's own files ---- */
/* A tensor that shares the given data, in another shape. */
mg_tensor *mg_tape_view(mg_tape *tape, int ndim, const ptrdiff_t *dim, mg_real *data);
/* For kernels that can write as cheaply as add. *beta is 0 if the buffer is not initialized and every element must be
 * written, 1 if it must be added to. NULL if x requires none. */
mg_real *mg_grad_beta(mg_tape *tape, mg_tensor *x, mg_real *beta);
bool mg_tape_is_recording(const mg_tape *tape);
/* Drop everything made since the mark. Only while nothing is recorded, or inside an operation's backward. */
mg_arena_mark mg_tape_mark(const mg_tape *tape);
void mg_tape_rewind(mg_tape *tape, mg_arena_mark mark);
/* Whether an operation on these inputs would be recorded; if not, skip what only the backward needs. */
bool mg_tape_wants(const mg_tape *tape, int n_in, mg_tensor *const *in);

/* ---- Watching the tape ---- */

typedef struct mg_profile_row {
    const mg_op *op;
    double forward_seconds, backward_seconds;
    long calls;
} mg_profile_row;

typedef struct mg_profile {
    mg_profile_row row[64];
    int n_rows;
} mg_profile;

/* From now on add each operation's time to *profile; NULL stops. The time between two operations counts for the second
 * one, so profile code that does little else. */
void mg_tape_profile(mg_tape *tape, mg_profile *profile);

#ifdef MG_HOSTILE
/* For tests of tests: from now on, what operation `op` adds to the gradient of its input number `input` is multiplied
 * by factor, as if its backward were wrong. NULL stops. */
void mg_tape_break(const char *op, int input, mg_real factor);
#endif

#ifndef MG_LIBRARY /* whose line a failure names: error.h */
MG_CALLED(mg_tensor *, mg_tape_output, (tape), (tape, ndim, dim), mg_tape *tape, int ndim, const ptrdiff_t *dim)
MG_CALLED(void *, mg_tape_alloc, (tape, what), (tape, count, size, what), mg_tape *tape, size_t count, size_t size,
          const char *what)
MG_CALLED_VOID(mg_tape_append, (tape, op, out), (tape, op, out, n_in, in, saved), mg_tape *tape, const mg_op *op,
               mg_tensor *out, int n_in, mg_tensor *const *in, const void *saved)
MG_CALLED(mg_real *, mg_grad, (tape, x), (tape, x), mg_tape *tape, mg_tensor *x)
#define mg_tape_output(...) MG_AT(mg_tape_output, __VA_ARGS__)
#define mg_tape_alloc(...) MG_AT(mg_tape_alloc, __VA_ARGS__)
#define mg_tape_append(...) MG_AT(mg_tape_append, __VA_ARGS__)
#define mg_grad(...) MG_AT(mg_grad, __VA_ARGS__)
#endif

#endif
