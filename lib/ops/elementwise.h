/* Operations that turn each element into another one. */
#ifndef MASKGRAD_ELEMENTWISE_H
#define MASKGRAD_ELEMENTWISE_H

#include "operation.h"
#include "row.h"

/* y = value(x), by a kernel that calls mg_row_map. saved: NULL, or the mg_real that the formulas get as `factor`, in
 * the tape's memory. */
mg_tensor *mg_elementwise(mg_tape *tape, const mg_op *op, mg_tensor *x, mg_row_fn *kernel, const mg_real *saved);
/* dL/dx += slope(dL/dy, x, y), by a kernel that calls mg_row_add. */
void mg_elementwise_gradient(mg_tape *tape, const mg_node *node, mg_row_fn *kernel);

/* The operation `name` from two expressions: the result in terms of x, and dL/dx in terms of g = dL/dy, x and y. */
#define MG_UNARY(name, value_of_x, slope_of_gxy)                                                                       \
    MG_UNARY_KERNELS(name, value_of_x, slope_of_gxy)                                                                   \
    mg_tensor *(mg_##name)(mg_tape * tape, mg_tensor * x) {                                                            \
        return mg_elementwise(tape, &op, x, forward, NULL);                                                            \
    }
/* Without its function: the kernel `forward`, and `op` with its backward. The expressions may use `factor`, too. */
#define MG_UNARY_KERNELS(name, value_of_x, slope_of_gxy)                                                               \
    MG_VALUE_KERNEL(forward, mg_row_map, x, unused, value_of_x)                                                        \
    MG_UNARY_BACKWARD(name, slope_of_gxy)
#define MG_UNARY_BACKWARD(name, slope_of_gxy)                                                                          \
    MG_SLOPE_KERNEL(slope, x, y, slope_of_gxy)                                                                         \
    static void backward(mg_tape *tape, const mg_node *node) {                                                         \
        mg_elementwise_gradient(tape, node, slope);                                                                    \
    }                                                                                                                  \
    static const mg_op op = {#name, backward};

#endif
