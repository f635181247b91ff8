/* y = factor · x. dL/dx = factor · dL/dy. */
#include "elementwise.h"
#include "ops.h"

MG_UNARY_KERNELS(scale, (factor * x), (factor * g))

mg_tensor *(mg_scale)(mg_tape *tape, mg_tensor *x, mg_real factor) {
    mg_real *saved = mg_tape_alloc(tape, 1, sizeof *saved, "the factor of scale");
    *saved = factor;
    return mg_elementwise(tape, &op, x, forward, saved);
}
