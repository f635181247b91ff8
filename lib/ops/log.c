/* y = ln x. dL/dx = dL/dy / x. */
#include "elementwise.h"
#include "ops.h"

MG_INLINE mg_real value(mg_real x, mg_real unused, mg_real factor) {
    (void)unused;
    (void)factor;
    return mg_log_real(x);
}

MG_INLINE mg_real slope(mg_real g, mg_real x, mg_real y, mg_real factor) {
    (void)y;
    (void)factor;
    return g / x;
}

MG_KERNEL static void forward(mg_row row) {
    mg_row_map(row, value);
}

MG_KERNEL static void backward(mg_row row) {
    mg_row_add(row, slope);
}

static void log_backward(mg_tape *tape, const mg_node *node) {
    mg_elementwise_gradient(tape, node, backward);
}

static const mg_op op = {"log", log_backward};

mg_tensor *(mg_log)(mg_tape *tape, mg_tensor *x) {
    return mg_elementwise(tape, &op, x, forward, NULL);
}
