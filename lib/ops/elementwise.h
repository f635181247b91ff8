/* Operations that turn each element into another one. */
#ifndef MASKGRAD_ELEMENTWISE_H
#define MASKGRAD_ELEMENTWISE_H

#include "row.h"
#include "tape.h"

/* y = value(x), by a kernel that calls mg_row_map. saved: NULL, or the mg_real that the formulas get as `factor`, in
 * the tape's memory. */
mg_tensor *mg_elementwise(mg_tape *tape, const mg_op *op, mg_tensor *x, mg_row_fn *kernel, const mg_real *saved);
/* dL/dx += slope(dL/dy, x, y), by a kernel that calls mg_row_add. */
void mg_elementwise_gradient(mg_tape *tape, const mg_node *node, mg_row_fn *kernel);

#endif
