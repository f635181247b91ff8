#include "sums.h"

#include "simd.h"

MG_KERNEL static double total(ptrdiff_t n, const mg_real *x) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t i = 0; i < n; i++) sum += (double)x[i];
    return sum;
}

double mg_total(ptrdiff_t n, const mg_real *x) {
    return total(n, x);
}

enum { COLUMNS = 512 }; /* whose sums stay in the first-level cache */

/* sum[k] += Σ_i x[i][k]. Four rows share each load and store of the sums. */
MG_INLINE void add_rows(ptrdiff_t rows, ptrdiff_t n, const mg_real *restrict x, ptrdiff_t stride,
                        double *restrict sum) {
    ptrdiff_t i = 0;
    for (; i + 4 <= rows; i += 4, x += 4 * stride) {
        const mg_real *a = x, *b = a + stride, *c = b + stride, *d = c + stride;
#pragma omp simd
        for (ptrdiff_t k = 0; k < n; k++) sum[k] += ((double)a[k] + (double)b[k]) + ((double)c[k] + (double)d[k]);
    }
    for (; i < rows; i++, x += stride)
#pragma omp simd
        for (ptrdiff_t k = 0; k < n; k++) sum[k] += (double)x[k];
}

MG_KERNEL static void sum_columns(ptrdiff_t rows, ptrdiff_t n, const mg_real *x, ptrdiff_t stride, double factor,
                                  bool fresh, mg_real *restrict to) {
    double sum[COLUMNS];
#pragma omp simd
    for (ptrdiff_t k = 0; k < n; k++) sum[k] = fresh ? 0 : (double)to[k];
    add_rows(rows, n, x, stride, sum);
#pragma omp simd
    for (ptrdiff_t k = 0; k < n; k++) to[k] = (mg_real)(factor * sum[k]);
}

void mg_sum_rows(ptrdiff_t rows, ptrdiff_t n, const mg_real *x, ptrdiff_t stride, double factor, bool fresh,
                 mg_real *to) {
    for (ptrdiff_t k = 0; k < n; k += COLUMNS)
        sum_columns(rows, n - k < COLUMNS ? n - k : COLUMNS, x + k, stride, factor, fresh, to + k);
}
