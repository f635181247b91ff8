/* The products of attention, for a group of rows at a time. Each takes exactly the keys it is told to: a mask that
 * hides a key simply makes a length smaller, so hidden keys are not exponentiated, not multiplied by 0 and not added.
 *
 * They are written with vectors of MG_LANES reals. Four rows share what is loaded, and the sums stay in registers: that
 * is what makes them as fast as a BLAS, which has no product that stops at a diagonal. All are inlined into the
 * MG_KERNEL functions of attention.c, which are built for each processor. */
#ifndef MASKGRAD_ATTENTION_KERNELS_H
#define MASKGRAD_ATTENTION_KERNELS_H

#include "rows.h"
#include "simd.h"

/* Macros, not functions: a vector as an argument would tie the ABI to the processor. */
#define mg_load(p) (*(const mg_vec *)(p))
#define mg_store(p, v) (*(mg_vec *)(p) = (v))

enum { MG_GROUP = 4 }; /* rows that are treated together */

/* out[r · out_stride + j] = Σ_k rows[r · row_stride + k] · columns[k · stride + j] for r < R and j < n. `columns` and
 * `out` are padded with memory of the caller's to a multiple of MG_LANES columns; what is written behind n is
 * undefined. */
MG_INLINE void mg_rows_times_columns_block(const int R, const int V, ptrdiff_t depth, const mg_real *rows,
                                           ptrdiff_t row_stride, const mg_real *columns, ptrdiff_t stride, mg_real *out,
                                           ptrdiff_t out_stride) {
    mg_vec sum[MG_GROUP * 2] = {{0}};
    for (ptrdiff_t k = 0; k < depth; k++) {
#pragma GCC unroll 4
        for (int r = 0; r < R; r++)
#pragma GCC unroll 2
            for (int v = 0; v < V; v++)
                sum[r * V + v] += rows[r * row_stride + k] * mg_load(columns + k * stride + v * MG_LANES);
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; r++)
#pragma GCC unroll 2
        for (int v = 0; v < V; v++) mg_store(out + r * out_stride + v * MG_LANES, sum[r * V + v]);
}

MG_INLINE void mg_rows_times_columns(const int R, ptrdiff_t n, ptrdiff_t depth, const mg_real *rows,
                                     ptrdiff_t row_stride, const mg_real *columns, ptrdiff_t stride, mg_real *out,
                                     ptrdiff_t out_stride) {
    ptrdiff_t j = 0;
    for (; j + MG_LANES < n; j += 2 * MG_LANES)
        mg_rows_times_columns_block(R, 2, depth, rows, row_stride, columns + j, stride, out + j, out_stride);
    for (; j < n; j += MG_LANES)
        mg_rows_times_columns_block(R, 1, depth, rows, row_stride, columns + j, stride, out + j, out_stride);
}

/* out[r · out_stride + d] (+)= Σ_{j<n} weights[r · across + j · along] · rows[j · stride + d] for r < R and
 * d < V · MG_LANES. Where R · V leaves registers free, even and odd j have sums of their own. */
MG_INLINE void mg_weighted_rows_block(const int R, const int V, ptrdiff_t n, const mg_real *weights, ptrdiff_t across,
                                      ptrdiff_t along, const mg_real *rows, ptrdiff_t stride, bool add, mg_real *out,
                                      ptrdiff_t out_stride) {
    const int U = R * V <= 4 ? 2 : 1;
    mg_vec sum[MG_GROUP * 4] = {{0}};
    ptrdiff_t j = 0;
    for (; j + U <= n; j += U) {
#pragma GCC unroll 2
        for (int u = 0; u < U; u++)
#pragma GCC unroll 4
            for (int r = 0; r < R; r++)
#pragma GCC unroll 4
                for (int v = 0; v < V; v++)
                    sum[(u * R + r) * V + v] += weights[r * across + (j + u) * along] *
                                                mg_load(rows + (j + u) * stride + v * MG_LANES);
    }
    for (; j < n; j++)
#pragma GCC unroll 4
        for (int r = 0; r < R; r++)
#pragma GCC unroll 4
            for (int v = 0; v < V; v++)
                sum[r * V + v] += weights[r * across + j * along] * mg_load(rows + j * stride + v * MG_LANES);
#pragma GCC unroll 4
    for (int r = 0; r < R; r++)
#pragma GCC unroll 4
        for (int v = 0; v < V; v++) {
            mg_vec total = sum[r * V + v];
            if (U == 2) total += sum[(R + r) * V + v];
            if (add) total += mg_load(out + r * out_stride + v * MG_LANES);
            mg_store(out + r * out_stride + v * MG_LANES, total);
        }
}

MG_INLINE void mg_weighted_rows(const int R, ptrdiff_t n, ptrdiff_t width, const mg_real *weights, ptrdiff_t across,
                                ptrdiff_t along, const mg_real *rows, ptrdiff_t stride, bool add, mg_real *out,
                                ptrdiff_t out_stride) {
    ptrdiff_t d = 0;
    for (; d + 4 * MG_LANES <= width; d += 4 * MG_LANES)
        mg_weighted_rows_block(R, 4, n, weights, across, along, rows + d, stride, add, out + d, out_stride);
    for (; d + 2 * MG_LANES <= width; d += 2 * MG_LANES)
        mg_weighted_rows_block(R, 2, n, weights, across, along, rows + d, stride, add, out + d, out_stride);
    for (; d + MG_LANES <= width; d += MG_LANES)
        mg_weighted_rows_block(R, 1, n, weights, across, along, rows + d, stride, add, out + d, out_stride);
    for (; d < width; d++)
        for (int r = 0; r < R; r++) {
            mg_real sum = add ? out[r * out_stride + d] : 0;
            for (ptrdiff_t j = 0; j < n; j++) sum += weights[r * across + j * along] * rows[j * stride + d];
            out[r * out_stride + d] = sum;
        }
}

/* Σ_d a[d] · b[d] */
MG_INLINE mg_real mg_dot(ptrdiff_t n, const mg_real *a, const mg_real *b) {
    mg_real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t d = 0; d < n; d++) sum += a[d] * b[d];
    return sum;
}

/* n rounded up to whole vectors. Rows of weights are as long as that, and loops over them are too: a loop that stops in
 * the middle of a vector ends in slow single steps. */
MG_INLINE ptrdiff_t mg_pad(ptrdiff_t n) {
    return (n + MG_LANES - 1) / MG_LANES * MG_LANES;
}

/* scores[0 … n) become their softmax, with zeros behind them up to mg_pad(n); returns log Σ exp(score), from which the
 * backward makes the weights again. Where a score is infinite, it is mg_softmax's limit. */
MG_INLINE mg_real mg_softmax_row(ptrdiff_t n, mg_real *scores) {
    ptrdiff_t padded = mg_pad(n);
    for (ptrdiff_t j = n; j < padded; j++) scores[j] = -INFINITY;
    mg_real max = scores[0], sum = 0;
#pragma omp simd reduction(max : max)
    for (ptrdiff_t j = 0; j < padded; j++) max = scores[j] > max ? scores[j] : max;
    if (isinf(max)) return mg_softmax_limit(padded, scores, scores);
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t j = 0; j < padded; j++) {
        scores[j] = mg_exp_real(scores[j] - max);
        sum += scores[j];
    }
    mg_real inverse = 1 / sum;
#pragma omp simd
    for (ptrdiff_t j = 0; j < padded; j++) scores[j] *= inverse;
    return max + mg_log_real(sum);
}

#endif
