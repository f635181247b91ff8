/* y_i = e^{x_i − m} / Σ_j e^{x_j − m} with m = max x, which changes nothing but keeps e^x finite.
 * dL/dx_i = y_i (dL/dy_i − Σ_j y_j dL/dy_j).
 *
 * At the edges it takes the limit: a row of nothing but −inf has no weight to give, y = 0; one that holds +inf shares
 * its weight among those. NaN makes its whole row NaN. */
#include "ops.h"
#include "rows.h"
#include "simd.h"

/* y = 1 where x is +inf, NaN where it is NaN, else 0. */
static void mark_infinite(mg_rows r) {
    for (ptrdiff_t i = 0; i < r.width; i++) r.to[i] = isnan(r.x[i]) ? r.x[i] : (mg_real)(r.x[i] == (mg_real)INFINITY);
}

MG_KERNEL static void forward(mg_rows r) {
    mg_real max = -(mg_real)INFINITY, sum = 0;
#pragma omp simd reduction(max : max)
    for (ptrdiff_t i = 0; i < r.width; i++) max = r.x[i] > max ? r.x[i] : max;
    if (max == (mg_real)INFINITY) {
        mark_infinite(r);
    } else {
        const mg_real shift = max == -(mg_real)INFINITY ? 0 : max;
#pragma omp simd
        for (ptrdiff_t i = 0; i < r.width; i++) r.to[i] = mg_exp_real(r.x[i] - shift);
    }
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t i = 0; i < r.width; i++) sum += r.to[i];
    const mg_real inverse = sum == 0 ? 0 : 1 / sum;
#pragma omp simd
    for (ptrdiff_t i = 0; i < r.width; i++) r.to[i] *= inverse;
}

MG_KERNEL static void backward(mg_rows r) {
    mg_real dot = 0;
#pragma omp simd reduction(+ : dot)
    for (ptrdiff_t i = 0; i < r.width; i++) dot += r.x[i] * r.dy[i];
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
