/* y = x at begin … end−1 of an axis. dL/dx = dL/dy there, and 0 elsewhere. */
#include "axis.h"
#include "ops.h"

typedef struct cut {
    mg_blocks blocks; /* from x to y */
    ptrdiff_t first;  /* where in x the first block is */
} cut;

static void slice_backward(mg_tape *tape, const mg_node *node) {
    const cut *c = node->saved;
    mg_real *dx = mg_grad(tape, node->in[0]);
    if (!dx) return;
    mg_blocks back = {c->blocks.count, c->blocks.size, c->blocks.from_stride, c->blocks.to_stride};
    mg_blocks_add(back, dx + c->first, node->out->grad);
}

static const mg_op op = {"slice", slice_backward};

mg_tensor *(mg_slice)(mg_tape *tape, mg_tensor *x, int axis, ptrdiff_t begin, ptrdiff_t end) {
    mg_axis a = mg_axis_of(tape, &op, x, axis);
    MG_OP_CHECK(tape, &op, 0 <= begin && begin < end && end <= a.n,
                "%td to %td of axis %d is not a part of shape %s: 0 <= begin < end <= %td", begin, end, axis,
                mg_shape(x).text, a.n);
    mg_tensor like = *x;
    like.dim[a.number] = end - begin;
    mg_tensor *y = mg_tape_output(tape, like.ndim, like.dim);
    cut *c = mg_tape_alloc(tape, 1, sizeof *c, "the place of slice");
    ptrdiff_t size = (end - begin) * a.inner;
    *c = (cut){{a.outer, size, size, a.n * a.inner}, begin * a.inner};
    mg_blocks_copy(c->blocks, y->data, x->data + c->first);
    mg_tape_append(tape, &op, y, 1, &x, c);
    return y;
}
