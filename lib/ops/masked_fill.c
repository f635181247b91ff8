/* y = value where the mask is not 0, x elsewhere. dL/dx = 0 where the mask is not 0, dL/dy elsewhere. */
#include "broadcast.h"
#include "ops.h"

#include <string.h>

MG_INLINE mg_real value(mg_real x, mg_real mask, mg_real filler) {
    return mask == 0 ? x : filler;
}

MG_INLINE mg_real slope(mg_real g, mg_real x, mg_real mask, mg_real filler) {
    (void)x;
    (void)filler;
    return mask == 0 ? g : 0;
}

MG_KERNEL static void forward(mg_row row) {
    mg_row_write(row, value);
}

MG_KERNEL static void backward(mg_row row) {
    mg_row_add(row, slope);
}

static void masked_fill_backward(mg_tape *tape, const mg_node *node) {
    const mg_tensor *mask = node->saved, *x = node->in[0];
    mg_real beta, *dx = mg_grad_beta(tape, node->in[0], &beta);
    if (!dx) return;
    mg_broadcast walk = mg_broadcast_of(tape, node->op, x, mask);
    mg_row row = {.to = dx, .g = node->out->grad, .a = x->data, .b = mask->data, .fresh = beta == 0};
    mg_broadcast_sum(&walk, walk.a, row, backward);
}

static const mg_op op = {"masked_fill", masked_fill_backward};

/* The caller may free or change its own before the backward. */
static const mg_tensor *copy(mg_tape *tape, const mg_tensor *mask) {
    mg_tensor *kept = mg_tape_output(tape, mask->ndim, mask->dim);
    memcpy(kept->data, mask->data, (size_t)mg_size(mask) * sizeof *kept->data);
    return kept;
}

mg_tensor *(mg_masked_fill)(mg_tape *tape, mg_tensor *x, const mg_tensor *mask, mg_real filler) {
    mg_broadcast walk = mg_broadcast_of(tape, &op, x, mask);
    mg_tensor *y = mg_tape_output(tape, walk.ndim, walk.shape);
    MG_OP_CHECK(tape, &op, mg_same_shape(x, y), "a mask of shape %s does not fit into shape %s", mg_shape(mask).text,
                mg_shape(x).text);
    mg_broadcast_run(&walk, (mg_row){.to = y->data, .a = x->data, .b = mask->data, .factor = filler}, forward);
    mg_tape_append(tape, &op, y, 1, &x, mg_tape_wants(tape, 1, &x) ? copy(tape, mask) : NULL);
    return y;
}
