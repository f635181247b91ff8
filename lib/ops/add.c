/* y = a + b. dL/da = dL/dy, dL/db = dL/dy, each summed over the positions where the operand was repeated. */
#include "broadcast.h"
#include "ops.h"

MG_INLINE mg_real value(mg_real a, mg_real b, mg_real factor) {
    (void)factor;
    return a + b;
}

MG_INLINE mg_real slope(mg_real g, mg_real a, mg_real b, mg_real factor) {
    (void)a;
    (void)b;
    (void)factor;
    return g;
}

MG_KERNEL static void forward(mg_row row) {
    mg_row_write(row, value);
}

MG_KERNEL static void backward(mg_row row) {
    mg_row_add(row, slope);
}

static void add_backward(mg_tape *tape, const mg_node *node) {
    mg_binary_gradient(tape, node, 0, backward);
    mg_binary_gradient(tape, node, 1, backward);
}

static const mg_op op = {"add", add_backward};

mg_tensor *(mg_add)(mg_tape *tape, mg_tensor *a, mg_tensor *b) {
    return mg_binary(tape, &op, a, b, forward);
}
