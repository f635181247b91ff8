/* y = factor · x. dL/dx = factor · dL/dy. */
#include "elementwise.h"
#include "ops.h"

MG_INLINE mg_real value(mg_real x, mg_real unused, mg_real factor) {
    (void)unused;
    return factor * x;
}

MG_INLINE mg_real slope(mg_real g, mg_real x, mg_real y, mg_real factor) {
    (void)x;
    (void)y;
    return factor * g;
}

MG_KERNEL static void forward(mg_row row) {
    mg_row_map(row, value);
}

MG_KERNEL static void backward(mg_row row) {
    mg_row_add(row, slope);
}

static void scale_backward(mg_tape *tape, const mg_node *node) {
    mg_elementwise_gradient(tape, node, backward);
}

static const mg_op op = {"scale", scale_backward};

mg_tensor *(mg_scale)(mg_tape *tape, mg_tensor *x, mg_real factor) {
    mg_real *saved = mg_tape_alloc(tape, 1, sizeof *saved, "the factor of scale");
    *saved = factor;
    return mg_elementwise(tape, &op, x, forward, saved);
}
