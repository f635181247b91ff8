/* y = the largest x along the axis; NaN if there is one, as in NumPy. dL/dx = dL/dy at the first place that holds y,
 * and 0 elsewhere. */
#include "axis.h"
#include "ops.h"

#include <math.h>

/* Which of n elements, `stride` apart, is the largest. */
static ptrdiff_t place_of_largest(const mg_real *x, ptrdiff_t n, ptrdiff_t stride) {
    ptrdiff_t best = 0;
    for (ptrdiff_t i = 1; i < n && !isnan(x[best * stride]); i++)
        if (x[i * stride] > x[best * stride] || isnan(x[i * stride])) best = i;
    return best;
}

static void max_backward(mg_tape *tape, const mg_node *node) {
    const ptrdiff_t *place = node->saved;
    mg_real *dx = mg_grad(tape, node->in[0]);
    if (!dx) return;
    ptrdiff_t n = mg_size(node->out);
    for (ptrdiff_t i = 0; i < n; i++) dx[place[i]] += node->out->grad[i];
}

static const mg_op op = {"max", max_backward};

mg_tensor *(mg_max)(mg_tape *tape, mg_tensor *x, int axis) {
    mg_axis a = mg_axis_to_reduce(tape, &op, x, axis);
    mg_tensor *y = mg_axis_output(tape, x, a);
    ptrdiff_t n = mg_size(y), *place = mg_tape_alloc(tape, (size_t)n, sizeof *place, "the places of max");
    for (ptrdiff_t i = 0; i < n; i++) {
        ptrdiff_t first = i / a.inner * a.n * a.inner + i % a.inner;
        place[i] = first + a.inner * place_of_largest(x->data + first, a.n, a.inner);
        y->data[i] = x->data[place[i]];
    }
    mg_tape_append(tape, &op, y, 1, &x, place);
    return y;
}
