/* y = a / b. dL/da = dL/dy / b, dL/db = −dL/dy · (a/b) / b, each summed over the positions where the operand was
 * repeated. */
#include "broadcast.h"
#include "ops.h"

MG_INLINE mg_real value(mg_real a, mg_real b, mg_real factor) {
    (void)factor;
    return a / b;
}

MG_INLINE mg_real slope_a(mg_real g, mg_real a, mg_real b, mg_real factor) {
    (void)a;
    (void)factor;
    return g / b;
}

MG_INLINE mg_real slope_b(mg_real g, mg_real a, mg_real b, mg_real factor) {
    (void)factor;
    return -g * (a / b) / b;
}

MG_KERNEL static void forward(mg_row row) {
    mg_row_write(row, value);
}

MG_KERNEL static void backward_a(mg_row row) {
    mg_row_add(row, slope_a);
}

MG_KERNEL static void backward_b(mg_row row) {
    mg_row_add(row, slope_b);
}

static void div_backward(mg_tape *tape, const mg_node *node) {
    mg_binary_gradient(tape, node, 0, backward_a);
    mg_binary_gradient(tape, node, 1, backward_b);
}

static const mg_op op = {"div", div_backward};

mg_tensor *(mg_div)(mg_tape *tape, mg_tensor *a, mg_tensor *b) {
    return mg_binary(tape, &op, a, b, forward);
}
