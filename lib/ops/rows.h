/* Operations on rows, the vectors along the last dimension. */
#ifndef MASKGRAD_ROWS_H
#define MASKGRAD_ROWS_H

#include "operation.h"
#include "simd.h"

typedef struct mg_rows {
    ptrdiff_t n, width;
    const mg_real *x;  /* what is read: forward the input, backward the output */
    const mg_real *dy; /* backward */
    mg_real *to;       /* forward the output, backward the input's gradient */
    bool fresh;        /* backward: `to` holds nothing yet */
} mg_rows;

/* One row: the pointers point to it, and n is 1. */
typedef void mg_rows_fn(mg_rows row);

/* A whole operation, forward and backward. */
mg_tensor *mg_rowwise(mg_tape *tape, const mg_op *op, mg_tensor *x, mg_rows_fn *kernel);
void mg_rowwise_gradient(mg_tape *tape, const mg_node *node, mg_rows_fn *kernel);

/* ---- Softmax at its edges ----
 *
 * The softmax of a row, e^{x_i} / Σ_j e^{x_j}, is e^{x_i − m} / Σ_j e^{x_j − m} with m = max x, whatever the size of x.
 * Where m is infinite it is a limit: n times +inf get 1/n each and the others 0; in a row of only −inf all weights are
 * 0, and a NaN makes its whole row NaN. m and log Σ_j e^{x_j − m} are never added together: a large m would absorb the
 * logarithm in rounding. */

/* m, but 0 for a row of only −inf. */
MG_INLINE mg_real mg_softmax_shift(ptrdiff_t n, const mg_real *x) {
    mg_real max = mg_greatest(n, x);
    return max == -(mg_real)INFINITY ? 0 : max;
}

/* x − m, and with m = +inf its limit: 0 for +inf, −inf for the others, and NaN for NaN. */
MG_INLINE mg_real mg_softmax_below(mg_real x, mg_real shift) {
    return x == (mg_real)INFINITY && shift == x ? 0 : x - shift;
}

/* Σ exp(x − m); 0 for a row of only −inf. */
MG_INLINE double mg_softmax_sum(ptrdiff_t n, const mg_real *x, mg_real shift) {
    double sum = 0;
    if (isinf(shift)) { /* rare, and the comparison takes time */
        for (ptrdiff_t i = 0; i < n; i++) sum += (double)mg_exp_real(mg_softmax_below(x[i], shift));
        return sum;
    }
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t i = 0; i < n; i++) sum += (double)mg_exp_real(x[i] - shift);
    return sum;
}

/* The softmax of a row whose greatest element is infinite. Returns log Σ exp(x). y may be x. */
mg_real mg_softmax_limit(ptrdiff_t n, const mg_real *x, mg_real *y);

#endif
