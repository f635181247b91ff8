/* y_i = e^{x_i − m} / Σ_j e^{x_j − m} with m = max x, which changes nothing but keeps e^x finite; rows.h has its edges.
 * dL/dx_i = y_i (dL/dy_i − Σ_j y_j dL/dy_j). */
#include "ops.h"
#include "rows.h"

mg_real mg_softmax_limit(ptrdiff_t n, const mg_real *x, mg_real *y) {
    mg_real max = -(mg_real)INFINITY;
    double sum = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        max = x[i] > max ? x[i] : max;
        y[i] = isnan(x[i]) ? x[i] : (mg_real)(x[i] == (mg_real)INFINITY);
        sum += (double)y[i];
    }
    for (ptrdiff_t i = 0; i < n && sum != 0; i++) y[i] = (mg_real)((double)y[i] / sum);
    return isnan(sum) ? (mg_real)sum : max;
}

MG_KERNEL static void forward(mg_rows r) {
    mg_real max = mg_greatest(r.width, r.x);
    double sum = 0;
    if (isinf(max)) {
        mg_softmax_limit(r.width, r.x, r.to);
        return;
    }
#pragma omp simd
    for (ptrdiff_t i = 0; i < r.width; i++) r.to[i] = mg_exp_real(r.x[i] - max);
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t i = 0; i < r.width; i++) sum += (double)r.to[i];
    const mg_real inverse = (mg_real)(1 / sum);
#pragma omp simd
    for (ptrdiff_t i = 0; i < r.width; i++) r.to[i] *= inverse;
}

MG_KERNEL static void backward(mg_rows r) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t i = 0; i < r.width; i++) sum += (double)(r.x[i] * r.dy[i]);
    const mg_real dot = (mg_real)sum;
#pragma omp simd
    for (ptrdiff_t i = 0; i < r.width; i++) r.to[i] = (r.fresh ? 0 : r.to[i]) + r.x[i] * (r.dy[i] - dot);
}

static void softmax_backward(mg_tape *tape, const mg_node *node) {
    mg_rowwise_gradient(tape, node, backward);
}

static const mg_op op = {"softmax", softmax_backward};

mg_tensor *(mg_softmax)(mg_tape *tape, mg_tensor *x) {
    return mg_rowwise(tape, &op, x, forward);
}
