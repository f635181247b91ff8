/* y = tanh x. dL/dx = dL/dy · (1 − y²). */
#include "elementwise.h"
#include "ops.h"

MG_INLINE mg_real value(mg_real x, mg_real unused, mg_real factor) {
    (void)unused;
    (void)factor;
    return mg_tanh_real(x);
}

MG_INLINE mg_real slope(mg_real g, mg_real x, mg_real y, mg_real factor) {
    (void)x;
    (void)factor;
    return g * (1 - y * y);
}

MG_KERNEL static void forward(mg_row row) {
    mg_row_map(row, value);
}

MG_KERNEL static void backward(mg_row row) {
    mg_row_add(row, slope);
}

static void tanh_backward(mg_tape *tape, const mg_node *node) {
    mg_elementwise_gradient(tape, node, backward);
}

static const mg_op op = {"tanh", tanh_backward};

mg_tensor *(mg_tanh)(mg_tape *tape, mg_tensor *x) {
    return mg_elementwise(tape, &op, x, forward, NULL);
}
