/* y = gelu(x), whose formulas are gelu.h's. The backward computes them again: that is cheaper than reading something
 * back from memory. */
#include "gelu.h"
#include "elementwise.h"
#include "ops.h"

MG_INLINE mg_real value(mg_real x, mg_real unused, mg_real factor) {
    (void)unused;
    (void)factor;
    return mg_gelu_value(x, mg_gelu_logistic(x));
}

MG_INLINE mg_real slope(mg_real g, mg_real x, mg_real y, mg_real factor) {
    (void)y;
    (void)factor;
    return g * mg_gelu_slope(x, mg_gelu_logistic(x));
}

MG_KERNEL static void forward(mg_row row) {
    mg_row_map(row, value);
}

MG_KERNEL static void backward(mg_row row) {
    mg_row_add(row, slope);
}

static void gelu_backward(mg_tape *tape, const mg_node *node) {
    mg_elementwise_gradient(tape, node, backward);
}

static const mg_op op = {"gelu", gelu_backward};

mg_tensor *(mg_gelu)(mg_tape *tape, mg_tensor *x) {
    return mg_elementwise(tape, &op, x, forward, NULL);
}
