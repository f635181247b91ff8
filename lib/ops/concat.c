/* y = the inputs one after another along an axis. dL/dx of each = its own part of dL/dy. */
#include "axis.h"
#include "ops.h"

/* From an input of this length along the axis to its part of y. */
static mg_blocks into(mg_axis y, ptrdiff_t n) {
    return (mg_blocks){y.outer, n * y.inner, y.n * y.inner, n * y.inner};
}

static void concat_backward(mg_tape *tape, const mg_node *node) {
    const mg_axis *y = node->saved;
    const mg_real *dy = node->out->grad;
    for (int i = 0; i < node->n_in; i++) {
        mg_tensor *x = node->in[i];
        mg_blocks part = into(*y, x->dim[y->number]);
        mg_blocks back = {part.count, part.size, part.from_stride, part.to_stride};
        mg_real beta, *dx = mg_grad_beta(tape, x, &beta);
        if (dx && beta == 0) mg_blocks_copy(back, dx, dy);
        if (dx && beta != 0) mg_blocks_add(back, dx, dy);
        dy += part.size;
    }
}

static const mg_op op = {"concat", concat_backward};

/* Whether a and b have the same shape but for this axis. */
static bool alike(const mg_tensor *a, const mg_tensor *b, int axis) {
    if (a->ndim != b->ndim) return false;
    for (int d = 0; d < a->ndim; d++)
        if (d != axis && a->dim[d] != b->dim[d]) return false;
    return true;
}

mg_tensor *(mg_concat)(mg_tape *tape, int n, mg_tensor *const *x, int axis) {
    MG_OP_CHECK(tape, &op, n >= 1, "there are %d tensors; it needs at least 1", n);
    for (int i = 0; i < n; i++) MG_OP_CHECK(tape, &op, x[i], "tensor %d is NULL", i);
    mg_axis *a = mg_tape_alloc(tape, 1, sizeof *a, "the axis of concat");
    *a = mg_axis_of(tape, &op, x[0], axis);
    for (int i = 1; i < n; i++) {
        MG_OP_CHECK(tape, &op, alike(x[0], x[i], a->number), "shapes %s and %s differ in more than axis %d",
                    mg_shape(x[0]).text, mg_shape(x[i]).text, axis);
        a->n += x[i]->dim[a->number];
    }
    mg_tensor like = *x[0];
    like.dim[a->number] = a->n;
    mg_tensor *y = mg_tape_output(tape, like.ndim, like.dim);
    mg_real *to = y->data;
    for (int i = 0; i < n; i++) {
        mg_blocks part = into(*a, x[i]->dim[a->number]);
        mg_blocks_copy(part, to, x[i]->data);
        to += part.size;
    }
    mg_tape_append(tape, &op, y, n, x, a);
    return y;
}
