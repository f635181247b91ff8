/* y_i = x_i − m − ln Σ_j e^{x_j − m} with m = max x. dL/dx_i = dL/dy_i − e^{y_i} Σ_j dL/dy_j.
 *
 * The edges are softmax's: a row of only −inf stays −inf and passes no gradient; in one that holds n times +inf, those
 * are −ln n and the others −inf. NaN makes its whole row NaN. */
#include "ops.h"
#include "rows.h"

MG_KERNEL static void forward(mg_rows r) {
    const mg_real shift = mg_softmax_shift(r.width, r.x);
    const double sum = mg_softmax_sum(r.width, r.x, shift);
    const mg_real log_sum = sum == 0 ? 0 : (mg_real)mg_log_double(sum);
#pragma omp simd
    for (ptrdiff_t i = 0; i < r.width; i++) r.to[i] = mg_softmax_below(r.x[i], shift) - log_sum;
}

MG_KERNEL static void backward(mg_rows r) {
    double total = 0, weight = 0;
#pragma omp simd reduction(+ : total, weight)
    for (ptrdiff_t i = 0; i < r.width; i++) {
        total += (double)r.dy[i];
        weight += (double)mg_exp_real(r.x[i]);
    }
    const bool empty = weight == 0;
    const mg_real factor = (mg_real)total;
#pragma omp simd
    for (ptrdiff_t i = 0; i < r.width; i++) {
        const mg_real slope = empty ? 0 : r.dy[i] - mg_exp_real(r.x[i]) * factor;
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
