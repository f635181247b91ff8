/* y_i = x_i − m − ln Σ_j e^{x_j − m} with m = max x. dL/dx_i = dL/dy_i − e^{y_i} Σ_j dL/dy_j.
 *
 * The edges are softmax's: a row of nothing but −inf stays −inf and passes no gradient; in one that holds n times +inf,
 * those are −ln n and the others −inf. NaN makes its whole row NaN. */
#include "ops.h"
#include "rows.h"
#include "simd.h"

/* With m = +inf, x − m is 0 for +inf, −inf for the others, and NaN for NaN. */
MG_INLINE mg_real below(mg_real x, mg_real max) {
    const mg_real infinity = (mg_real)INFINITY;
    return x == infinity && max == infinity ? 0 : x - max;
}

MG_KERNEL static void forward(mg_rows r) {
    mg_real max = mg_greatest(r.width, r.x), sum = 0;
    const mg_real shift = max == -(mg_real)INFINITY ? 0 : max;
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t i = 0; i < r.width; i++) sum += mg_exp_real(below(r.x[i], shift));
    const mg_real log_sum = sum == 0 ? 0 : mg_log_real(sum);
#pragma omp simd
    for (ptrdiff_t i = 0; i < r.width; i++) r.to[i] = below(r.x[i], shift) - log_sum;
}

MG_KERNEL static void backward(mg_rows r) {
    mg_real total = 0, weight = 0;
#pragma omp simd reduction(+ : total, weight)
    for (ptrdiff_t i = 0; i < r.width; i++) {
        total += r.dy[i];
        weight += mg_exp_real(r.x[i]);
    }
    const bool empty = weight == 0;
#pragma omp simd
    for (ptrdiff_t i = 0; i < r.width; i++) {
        const mg_real slope = empty ? 0 : r.dy[i] - mg_exp_real(r.x[i]) * total;
        r.to[i] = (r.fresh ? 0 : r.to[i]) + slope;
    }
}

static void log_softmax_backward(mg_tape *tape, const mg_node *node) {
    mg_rowwise_gradient(tape, node, backward);
}

static const mg_op op = {"log_softmax", log_softmax_backward};

mg_tensor *(mg_log_softmax)(mg_tape *tape, mg_tensor *x) {
    return mg_rowwise(tape, &op, x, forward);
}
