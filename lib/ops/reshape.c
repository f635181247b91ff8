/* y = x's elements, in their order, under another shape: y looks at x's data. dL/dx = dL/dy under x's shape. */
#include "elementwise.h"
#include "ops.h"

MG_UNARY_BACKWARD(reshape, g)

mg_tensor *(mg_reshape)(mg_tape *tape, mg_tensor *x, int ndim, const ptrdiff_t *dim) {
    mg_tensor *y = mg_tape_view(tape, ndim, dim, x->data);
    MG_OP_CHECK(tape, &op, mg_size(y) == mg_size(x), "shape %s has %td elements, and %s has %td", mg_shape(x).text,
                mg_size(x), mg_shape(y).text, mg_size(y));
    mg_tape_append(tape, &op, y, 1, &x, NULL);
    return y;
}
