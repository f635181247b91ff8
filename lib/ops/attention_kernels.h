/* The four products of attention, for one query or one key at a time. Each takes exactly the rows it is told to: a mask
 * that hides a key simply makes n smaller, so hidden keys are not scored, not exponentiated and not multiplied by 0.
 *
 * They are written with vectors of MG_LANES reals and a few accumulators in registers. All are inlined into the
 * MG_KERNEL functions of attention.c, which are built for each processor. */
#ifndef MASKGRAD_ATTENTION_KERNELS_H
#define MASKGRAD_ATTENTION_KERNELS_H

#include "simd.h"

/* Macros, not functions: a vector as an argument would tie the ABI to the processor. */
#define mg_load(p) (*(const mg_vec *)(p))
#define mg_store(p, v) (*(mg_vec *)(p) = (v))

/* out[j] = Σ_d row[d] · columns[d · stride + j] for j < n, where `columns` is a matrix whose rows are padded with
 * readable memory to a multiple of MG_LANES. `out` is padded likewise; what is behind n is undefined. */
MG_INLINE void mg_row_times_columns(ptrdiff_t n, ptrdiff_t depth, const mg_real *row, const mg_real *columns,
                                    ptrdiff_t stride, mg_real *out) {
    ptrdiff_t j = 0;
    for (; j + 4 * MG_LANES <= n; j += 4 * MG_LANES) {
        mg_vec a = {0}, b = {0}, c = {0}, d = {0};
        for (ptrdiff_t k = 0; k < depth; k++) {
            const mg_real *p = columns + k * stride + j;
            a += row[k] * mg_load(p);
            b += row[k] * mg_load(p + MG_LANES);
            c += row[k] * mg_load(p + 2 * MG_LANES);
            d += row[k] * mg_load(p + 3 * MG_LANES);
        }
        mg_store(out + j, a);
        mg_store(out + j + MG_LANES, b);
        mg_store(out + j + 2 * MG_LANES, c);
        mg_store(out + j + 3 * MG_LANES, d);
    }
    for (; j < n; j += MG_LANES) {
        mg_vec a = {0}, b = {0};
        ptrdiff_t k = 0;
        for (; k + 2 <= depth; k += 2) {
            a += row[k] * mg_load(columns + k * stride + j);
            b += row[k + 1] * mg_load(columns + (k + 1) * stride + j);
        }
        if (k < depth) a += row[k] * mg_load(columns + k * stride + j);
        mg_store(out + j, a + b);
    }
}

/* out[0 … V·MG_LANES) (+)= Σ_{j<n} weight[j · weight_stride] · rows[j · stride + …], with 4 accumulators in all. */
MG_INLINE void mg_weighted_rows_block(const int V, ptrdiff_t n, const mg_real *weight, ptrdiff_t weight_stride,
                                      const mg_real *rows, ptrdiff_t stride, bool add, mg_real *out) {
    const int U = 4 / V;
    mg_vec sum[4] = {{0}, {0}, {0}, {0}};
    ptrdiff_t j = 0;
    for (; j + U <= n; j += U) {
#pragma GCC unroll 4
        for (int u = 0; u < U; u++)
#pragma GCC unroll 4
            for (int v = 0; v < V; v++)
                sum[u * V + v] += weight[(j + u) * weight_stride] * mg_load(rows + (j + u) * stride + v * MG_LANES);
    }
    for (; j < n; j++)
#pragma GCC unroll 4
        for (int v = 0; v < V; v++) sum[v] += weight[j * weight_stride] * mg_load(rows + j * stride + v * MG_LANES);
#pragma GCC unroll 4
    for (int v = 0; v < V; v++) {
        mg_vec total = sum[v];
#pragma GCC unroll 4
        for (int u = 1; u < U; u++) total += sum[u * V + v];
        if (add) total += mg_load(out + v * MG_LANES);
        mg_store(out + v * MG_LANES, total);
    }
}

/* out[d] (+)= Σ_{j<n} weight[j · weight_stride] · rows[j · stride + d] for d < width. */
MG_INLINE void mg_weighted_rows(ptrdiff_t n, ptrdiff_t width, const mg_real *weight, ptrdiff_t weight_stride,
                                const mg_real *rows, ptrdiff_t stride, bool add, mg_real *out) {
    ptrdiff_t d = 0;
    for (; d + 4 * MG_LANES <= width; d += 4 * MG_LANES)
        mg_weighted_rows_block(4, n, weight, weight_stride, rows + d, stride, add, out + d);
    for (; d + 2 * MG_LANES <= width; d += 2 * MG_LANES)
        mg_weighted_rows_block(2, n, weight, weight_stride, rows + d, stride, add, out + d);
    for (; d + MG_LANES <= width; d += MG_LANES)
        mg_weighted_rows_block(1, n, weight, weight_stride, rows + d, stride, add, out + d);
    for (; d < width; d++) {
        mg_real sum = add ? out[d] : 0;
        for (ptrdiff_t j = 0; j < n; j++) sum += weight[j * weight_stride] * rows[j * stride + d];
        out[d] = sum;
    }
}

/* Σ_d a[d] · b[d] */
MG_INLINE mg_real mg_dot(ptrdiff_t n, const mg_real *a, const mg_real *b) {
    mg_real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t d = 0; d < n; d++) sum += a[d] * b[d];
    return sum;
}

/* scores[0 … n) become their softmax; returns log Σ exp(score), from which the backward makes the weights again. */
MG_INLINE mg_real mg_softmax_row(ptrdiff_t n, mg_real *scores) {
    mg_real max = scores[0], sum = 0;
#pragma omp simd reduction(max : max)
    for (ptrdiff_t j = 0; j < n; j++) max = scores[j] > max ? scores[j] : max;
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t j = 0; j < n; j++) {
        scores[j] = mg_exp_real(scores[j] - max);
        sum += scores[j];
    }
    mg_real inverse = 1 / sum;
#pragma omp simd
    for (ptrdiff_t j = 0; j < n; j++) scores[j] *= inverse;
    return max + mg_log_real(sum);
}

#endif
