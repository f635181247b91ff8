/* NumPy's broadcasting, walked in stretches that are consecutive in memory: neighboring dimensions that both operands
 * walk alike are joined first, so equal shapes are a single stretch, and a row vector gives one per row. */
#ifndef MASKGRAD_BROADCAST_H
#define MASKGRAD_BROADCAST_H

#include "operation.h"
#include "row.h"

typedef struct mg_broadcast {
    int ndim; /* the result's shape */
    ptrdiff_t shape[MG_MAX_DIM];
    ptrdiff_t dim[MG_MAX_DIM];              /* the joined dimensions, 1 in front */
    ptrdiff_t out[MG_MAX_DIM];              /* the result's strides */
    ptrdiff_t a[MG_MAX_DIM], b[MG_MAX_DIM]; /* the operands' strides, 0 where they repeat */
} mg_broadcast;

/* How a and b meet. Shapes that do not go to the failure handler with the operation's name. */
mg_broadcast mg_broadcast_of(const mg_tape *tape, const mg_op *op, const mg_tensor *a, const mg_tensor *b);

/* to = value(a, b) everywhere. */
void mg_broadcast_run(const mg_broadcast *walk, mg_row row, mg_row_fn *kernel);
/* to += Σ slope(g, a, b) over the positions where the operand with these strides (walk->a or walk->b) repeats:
 * sums.h. */
void mg_broadcast_sum(const mg_broadcast *walk, const ptrdiff_t *strides, mg_row row, mg_row_fn *kernel);

/* A whole binary operation: forward, and backward to operand 0 or 1. */
mg_tensor *mg_binary(mg_tape *tape, const mg_op *op, mg_tensor *a, mg_tensor *b, mg_row_fn *kernel);
void mg_binary_gradient(mg_tape *tape, const mg_node *node, int operand, mg_row_fn *kernel);
/* Both from three expressions: the result in terms of a and b, dL/da and dL/db in terms of g = dL/dy, a and b. */
#define MG_BINARY(name, value_of_ab, slope_a_of_gab, slope_b_of_gab)                                                   \
    MG_VALUE_KERNEL(forward, mg_row_write, a, b, value_of_ab)                                                          \
    MG_SLOPE_KERNEL(slope_a, a, b, slope_a_of_gab)                                                                     \
    MG_SLOPE_KERNEL(slope_b, a, b, slope_b_of_gab)                                                                     \
    static void backward(mg_tape *tape, const mg_node *node) {                                                         \
        mg_binary_gradient(tape, node, 0, slope_a);                                                                    \
        mg_binary_gradient(tape, node, 1, slope_b);                                                                    \
    }                                                                                                                  \
    static const mg_op op = {#name, backward};                                                                         \
    mg_tensor *(mg_##name)(mg_tape * tape, mg_tensor * a, mg_tensor * b) {                                             \
        return mg_binary(tape, &op, a, b, forward);                                                                    \
    }

#endif
