/* y = max(x, 0). dL/dx = dL/dy where x > 0, and 0 elsewhere, x = 0 included. Both comparisons are written so that NaN
 * stays NaN. */
#include "elementwise.h"
#include "ops.h"

MG_INLINE mg_real value(mg_real x, mg_real unused, mg_real factor) {
    (void)unused;
    (void)factor;
    return x < 0 ? 0 : x;
}

MG_INLINE mg_real slope(mg_real g, mg_real x, mg_real y, mg_real factor) {
    (void)y;
    (void)factor;
    return x <= 0 ? 0 : g;
}

MG_KERNEL static void forward(mg_row row) {
    mg_row_map(row, value);
}

MG_KERNEL static void backward(mg_row row) {
    mg_row_add(row, slope);
}

static void relu_backward(mg_tape *tape, const mg_node *node) {
    mg_elementwise_gradient(tape, node, backward);
}

static const mg_op op = {"relu", relu_backward};

mg_tensor *(mg_relu)(mg_tape *tape, mg_tensor *x) {
    return mg_elementwise(tape, &op, x, forward, NULL);
}
