/* y = (1/n) Σ x along the axis, whose length is n. dL/dx = (1/n) dL/dy, repeated along it. */
#include "axis.h"
#include "ops.h"

static void mean_backward(mg_tape *tape, const mg_node *node) {
    const mg_axis *axis = node->saved;
    mg_real beta, *dx = mg_grad_beta(tape, node->in[0], &beta);
    if (dx) mg_axis_spread(*axis, 1 / (double)axis->n, node->out->grad, dx, beta == 0);
}

static const mg_op op = {"mean", mean_backward};

mg_tensor *(mg_mean)(mg_tape *tape, mg_tensor *x, int axis) {
    mg_axis *along = mg_tape_alloc(tape, 1, sizeof *along, "the axis of mean");
    *along = mg_axis_to_reduce(tape, &op, x, axis);
    mg_tensor *y = mg_axis_output(tape, x, *along);
    mg_axis_sum(*along, 1 / (double)along->n, x->data, y->data);
    mg_tape_append(tape, &op, y, 1, &x, along);
    return y;
}
