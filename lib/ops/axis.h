/* A tensor seen along one axis: (outer, n, inner), row-major. */
#ifndef MASKGRAD_AXIS_H
#define MASKGRAD_AXIS_H

#include "operation.h"

typedef struct mg_axis {
    int number; /* of the axis, counted from the front; −1 for all of them as one */
    ptrdiff_t outer, n, inner;
} mg_axis;

/* Negative axes count from the end. One that x does not have goes to the failure handler with the operation's name. */
mg_axis mg_axis_of(const mg_tape *tape, const mg_op *op, const mg_tensor *x, int axis);
/* The same, where MG_ALL_AXES is fine too. */
mg_axis mg_axis_to_reduce(const mg_tape *tape, const mg_op *op, const mg_tensor *x, int axis);
/* The output of a reduction: x's shape without the axis. */
mg_tensor *mg_axis_output(mg_tape *tape, const mg_tensor *x, mg_axis axis);

/* sum (outer, inner) = factor · Σ of x (outer, n, inner) along the axis, rounded once. */
void mg_axis_sum(mg_axis axis, double factor, const mg_real *x, mg_real *sum);
/* x (outer, n, inner) = factor · sum (outer, inner), repeated along the axis; unless fresh, added to what x holds. */
void mg_axis_spread(mg_axis axis, double factor, const mg_real *sum, mg_real *x, bool fresh);

/* `count` blocks of `size` elements, each at its own distance from the next. */
typedef struct mg_blocks {
    ptrdiff_t count, size, to_stride, from_stride;
} mg_blocks;
void mg_blocks_copy(mg_blocks blocks, mg_real *to, const mg_real *from);
void mg_blocks_add(mg_blocks blocks, mg_real *to, const mg_real *from);

#endif
