/* The products of attention, for a group of rows at a time. Each sums over exactly the keys it is given: a mask that
 * hides a key simply makes a length smaller, so that a hidden key is not multiplied by 0 but left out. Only what pads a
 * vector after the last key is also computed, and discarded.
 *
 * They are written with vectors. Four rows share what is loaded, and the sums stay in registers: that is what makes
 * them as fast as a BLAS, which has no product that stops at a diagonal. */
#ifndef MASKGRAD_ATTENTION_KERNELS_H
#define MASKGRAD_ATTENTION_KERNELS_H

#include "mask.h"
#include "rows.h"
#include "simd.h"

/* As long as the processor's, for which the including file is compiled, and as many sums for each of four rows as its
 * registers hold. */
#if defined(__AVX512F__) && !defined(MG_PORTABLE)
enum { MG_VECTOR_BYTES = 64, MG_VECTORS = 4 };
#elif defined(__AVX__) && !defined(MG_PORTABLE)
enum { MG_VECTOR_BYTES = 32, MG_VECTORS = 2 };
#else
enum { MG_VECTOR_BYTES = 16, MG_VECTORS = 2 };
#endif
enum { MG_LANES = MG_VECTOR_BYTES / sizeof(mg_real) };
typedef mg_real mg_vec __attribute__((vector_size(MG_VECTOR_BYTES), aligned(sizeof(mg_real)), may_alias));

/* Macros, not functions: a vector as an argument would tie the ABI to the processor. */
#define mg_load(p) (*(const mg_vec *)(p))
#define mg_store(p, v) (*(mg_vec *)(p) = (v))

enum {
    MG_GROUP = 4,                     /* rows that are processed together */
    MG_PANEL = MG_VECTORS * MG_LANES, /* columns of a panel, 4 or more */
};

typedef mg_real mg_four __attribute__((vector_size(4 * sizeof(mg_real)), aligned(sizeof(mg_real)), may_alias));

/* The sum of a vector's elements. */
#define mg_sum_lanes(v) mg_sum_of((const mg_real *)&(v))
MG_INLINE mg_real mg_sum_of(const mg_real *lane) {
    if (MG_LANES < 4) return lane[0] + lane[1];
    mg_four sum = *(const mg_four *)lane;
    for (int i = 4; i < MG_LANES; i += 4) sum += *(const mg_four *)(lane + i);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* n rounded up to whole vectors. Rows of weights are as long as that, and loops over them are too: a loop that stops in
 * the middle of a vector ends in slow single steps. */
MG_INLINE ptrdiff_t mg_pad(ptrdiff_t n) {
    return (n + MG_LANES - 1) / MG_LANES * MG_LANES;
}

/* ---- Rows times columns ----
 *
 * The columns are n vectors of `depth` elements, transposed and cut into panels, so that a panel lies in one piece and
 * stays in the first-level cache for as many rows as come by: element d of column j is at
 * [j / MG_PANEL][d][j % MG_PANEL]. */
static inline ptrdiff_t mg_panels_size(ptrdiff_t n, ptrdiff_t depth) {
    return (n + MG_PANEL - 1) / MG_PANEL * MG_PANEL * depth;
}

/* to[c · MG_PANEL + r] = from[r · stride + c] for r, c < 4 */
MG_INLINE void mg_transpose_four(const mg_real *from, ptrdiff_t stride, mg_real *to) {
    mg_four a = *(const mg_four *)from, b = *(const mg_four *)(from + stride);
    mg_four c = *(const mg_four *)(from + 2 * stride), d = *(const mg_four *)(from + 3 * stride);
    mg_four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    mg_four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(mg_four *)to = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
    *(mg_four *)(to + MG_PANEL) = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
    *(mg_four *)(to + 2 * MG_PANEL) = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    *(mg_four *)(to + 3 * MG_PANEL) = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

/* Rows of a head are pieces of longer rows, and no processor predicts where the next piece is: they are prefetched
 * MG_AHEAD rows before they are read. */
enum { MG_AHEAD = 16 };
static inline void mg_prefetch(ptrdiff_t n, const mg_real *row) {
    enum { LINE = 64 / sizeof(mg_real) };
    for (ptrdiff_t d = 0; d < n; d += LINE) __builtin_prefetch(row + d);
}

/* Panels of the n vectors from[j · stride …], padded with zeros after the last one up to a whole vector. */
static inline void mg_make_panels(ptrdiff_t n, ptrdiff_t depth, const mg_real *from, ptrdiff_t stride,
                                  mg_real *restrict panels) {
    ptrdiff_t padded = mg_pad(n), whole = depth / 4 * 4;
    for (ptrdiff_t j = 0; j < padded; j += 4) {
        for (ptrdiff_t i = j + MG_AHEAD; i < j + MG_AHEAD + 4 && i < n; i++) mg_prefetch(depth, from + i * stride);
        mg_real *to = panels + j / MG_PANEL * MG_PANEL * depth + j % MG_PANEL;
        ptrdiff_t d = 0;
        if (j + 4 <= n)
            for (; d < whole; d += 4) mg_transpose_four(from + j * stride + d, stride, to + d * MG_PANEL);
        for (; d < depth; d++)
            for (ptrdiff_t i = j; i < j + 4; i++) to[d * MG_PANEL + i - j] = i < n ? from[i * stride + d] : 0;
    }
}

/* out[r · out_stride + j] = factor · Σ_d rows[r · row_stride + d] · panel[d · MG_PANEL + j] for r < R and
 * j < V · MG_LANES. */
MG_INLINE void mg_rows_times_vectors(const int R, const int V, ptrdiff_t depth, const mg_real *rows,
                                     ptrdiff_t row_stride, const mg_real *panel, mg_real factor, mg_real *out,
                                     ptrdiff_t out_stride) {
    mg_vec sum[MG_GROUP * MG_VECTORS] = {{0}};
    for (ptrdiff_t d = 0; d < depth; d++) {
#pragma GCC unroll 4
        for (int r = 0; r < R; r++)
#pragma GCC unroll 4
            for (int v = 0; v < V; v++)
                sum[r * V + v] += rows[r * row_stride + d] * mg_load(panel + d * MG_PANEL + v * MG_LANES);
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; r++)
#pragma GCC unroll 4
        for (int v = 0; v < V; v++) mg_store(out + r * out_stride + v * MG_LANES, sum[r * V + v] * factor);
}

/* The same for j < n ≤ MG_PANEL, n rounded up to whole vectors. */
MG_INLINE void mg_rows_times_panel(const int R, ptrdiff_t n, ptrdiff_t depth, const mg_real *rows, ptrdiff_t row_stride,
                                   const mg_real *panel, mg_real factor, mg_real *out, ptrdiff_t out_stride) {
    if (MG_VECTORS > 3 && n > 3 * MG_LANES)
        mg_rows_times_vectors(R, 4, depth, rows, row_stride, panel, factor, out, out_stride);
    else if (MG_VECTORS > 2 && n > 2 * MG_LANES)
        mg_rows_times_vectors(R, 3, depth, rows, row_stride, panel, factor, out, out_stride);
    else if (n > MG_LANES)
        mg_rows_times_vectors(R, 2, depth, rows, row_stride, panel, factor, out, out_stride);
    else
        mg_rows_times_vectors(R, 1, depth, rows, row_stride, panel, factor, out, out_stride);
}

/* ---- Weighted sums of rows ----
 *
 * out[r] (+)= factor[r] · Σ_j weights[r · across + j · along] · rows[j] over the first n + min(r, stairs) rows, for r <
 * R: along the diagonal, each further result sees one row more. The rows are `stride` apart and the results
 * `out_stride`; every stride may be negative, and then the staircase is climbed from its other end. factor may be NULL.
 */

/* The stairs: row n + e is for the results r > e. */
MG_INLINE void mg_climb_stairs(const int R, const int V, int stairs, const mg_real *weights, ptrdiff_t across,
                               ptrdiff_t along, const mg_real *rows, ptrdiff_t stride, mg_vec *sum) {
#pragma GCC unroll 4
    for (int e = 0; e + 1 < R; e++) {
        if (e >= stairs) return;
#pragma GCC unroll 4
        for (int r = e + 1; r < R; r++)
#pragma GCC unroll 4
            for (int v = 0; v < V; v++)
                sum[r * V + v] += weights[r * across + e * along] * mg_load(rows + e * stride + v * MG_LANES);
    }
}

/* V · MG_LANES elements of each row. Where R · V leaves registers free, even and odd j have sums of their own; not in
 * portable arithmetic, where no result depends on what is computed beside it. */
MG_INLINE void mg_weighted_vectors(const int R, const int V, ptrdiff_t n, int stairs, const mg_real *weights,
                                   ptrdiff_t across, ptrdiff_t along, const mg_real *rows, ptrdiff_t stride,
                                   const mg_real *factor, bool add, mg_real *out, ptrdiff_t out_stride) {
    const int U = R * V <= 4 && !MG_ONE_SUM ? 2 : 1;
    mg_vec sum[MG_GROUP * MG_VECTORS] = {{0}};
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
    if (U == 2 && j < n) {
#pragma GCC unroll 4
        for (int r = 0; r < R; r++)
#pragma GCC unroll 4
            for (int v = 0; v < V; v++)
                sum[r * V + v] += weights[r * across + j * along] * mg_load(rows + j * stride + v * MG_LANES);
    }
    mg_climb_stairs(R, V, stairs, weights + n * along, across, along, rows + n * stride, stride, sum);
#pragma GCC unroll 4
    for (int r = 0; r < R; r++)
#pragma GCC unroll 4
        for (int v = 0; v < V; v++) {
            mg_vec total = sum[r * V + v];
            if (U == 2) total += sum[(R + r) * V + v];
            if (factor) total *= factor[r];
            if (add) total += mg_load(out + r * out_stride + v * MG_LANES);
            mg_store(out + r * out_stride + v * MG_LANES, total);
        }
}

/* All `width` elements of each row. */
MG_INLINE void mg_weighted_rows(const int R, ptrdiff_t n, int stairs, ptrdiff_t width, const mg_real *weights,
                                ptrdiff_t across, ptrdiff_t along, const mg_real *rows, ptrdiff_t stride,
                                const mg_real *factor, bool add, mg_real *out, ptrdiff_t out_stride) {
    ptrdiff_t d = 0;
    for (; MG_VECTORS > 3 && d + 4 * MG_LANES <= width; d += 4 * MG_LANES)
        mg_weighted_vectors(R, 4, n, stairs, weights, across, along, rows + d, stride, factor, add, out + d,
                            out_stride);
    for (; d + 2 * MG_LANES <= width; d += 2 * MG_LANES)
        mg_weighted_vectors(R, 2, n, stairs, weights, across, along, rows + d, stride, factor, add, out + d,
                            out_stride);
    for (; d + MG_LANES <= width; d += MG_LANES)
        mg_weighted_vectors(R, 1, n, stairs, weights, across, along, rows + d, stride, factor, add, out + d,
                            out_stride);
    for (; d < width; d++)
        for (int r = 0; r < R; r++) {
            mg_real sum = 0;
            for (ptrdiff_t j = 0; j < n + (r < stairs ? r : stairs); j++)
                sum += weights[r * across + j * along] * rows[j * stride + d];
            if (factor) sum *= factor[r];
            out[r * out_stride + d] = add ? out[r * out_stride + d] + sum : sum;
        }
}

/* ---- Weighted sums of intervals of rows ----
 *
 * out[r] (+)= factor[r] · Σ_j weights[r · across + j · along] · rows[j] over the rows j of interval[r], for r < R.
 * Neither end of an interval is before that of the one before. Each result is one sum in the order of j, whatever R is:
 * it depends on what is in its interval, not on where that is or what lies beside it. */

/* Of the rows from … to - 1, those that each result has. */
MG_INLINE void mg_add_some(const int R, const int V, ptrdiff_t from, ptrdiff_t to, const mg_interval *interval,
                           const mg_real *weights, ptrdiff_t across, ptrdiff_t along, const mg_real *rows,
                           ptrdiff_t stride, mg_vec *sum) {
    for (ptrdiff_t j = from; j < to; j++)
#pragma GCC unroll 4
        for (int r = 0; r < R; r++) {
            if (j < interval[r].first || j >= interval[r].end) continue;
#pragma GCC unroll 4
            for (int v = 0; v < V; v++)
                sum[r * V + v] += weights[r * across + j * along] * mg_load(rows + j * stride + v * MG_LANES);
        }
}

/* V · MG_LANES elements of each row. */
MG_INLINE void mg_ragged_vectors(const int R, const int V, const mg_interval *interval, const mg_real *weights,
                                 ptrdiff_t across, ptrdiff_t along, const mg_real *rows, ptrdiff_t stride,
                                 const mg_real *factor, bool add, mg_real *out, ptrdiff_t out_stride) {
    ptrdiff_t first = interval[R - 1].first, end = interval[0].end; /* what all have; nothing if first >= end */
    mg_vec sum[MG_GROUP * MG_VECTORS] = {{0}};
    mg_add_some(R, V, interval[0].first, first, interval, weights, across, along, rows, stride, sum);
    for (ptrdiff_t j = first; j < end; j++) {
#pragma GCC unroll 4
        for (int r = 0; r < R; r++)
#pragma GCC unroll 4
            for (int v = 0; v < V; v++)
                sum[r * V + v] += weights[r * across + j * along] * mg_load(rows + j * stride + v * MG_LANES);
    }
    mg_add_some(R, V, first > end ? first : end, interval[R - 1].end, interval, weights, across, along, rows, stride,
                sum);
#pragma GCC unroll 4
    for (int r = 0; r < R; r++)
#pragma GCC unroll 4
        for (int v = 0; v < V; v++) {
            mg_vec total = sum[r * V + v];
            if (factor) total *= factor[r];
            if (add) total += mg_load(out + r * out_stride + v * MG_LANES);
            mg_store(out + r * out_stride + v * MG_LANES, total);
        }
}

/* All `width` elements of each row. */
MG_INLINE void mg_ragged_rows(const int R, const mg_interval *interval, ptrdiff_t width, const mg_real *weights,
                              ptrdiff_t across, ptrdiff_t along, const mg_real *rows, ptrdiff_t stride,
                              const mg_real *factor, bool add, mg_real *out, ptrdiff_t out_stride) {
    ptrdiff_t d = 0;
    for (; d + 2 * MG_LANES <= width; d += 2 * MG_LANES)
        mg_ragged_vectors(R, 2, interval, weights, across, along, rows + d, stride, factor, add, out + d, out_stride);
    for (; d + MG_LANES <= width; d += MG_LANES)
        mg_ragged_vectors(R, 1, interval, weights, across, along, rows + d, stride, factor, add, out + d, out_stride);
    for (; d < width; d++)
        for (int r = 0; r < R; r++) {
            mg_real sum = 0;
            for (ptrdiff_t j = interval[r].first; j < interval[r].end; j++)
                sum += weights[r * across + j * along] * rows[j * stride + d];
            if (factor) sum *= factor[r];
            out[r * out_stride + d] = add ? out[r * out_stride + d] + sum : sum;
        }
}

/* Σ_d a[d] · b[d]; in portable arithmetic in the order of mg_rows_times_panel. */
MG_INLINE mg_real mg_dot(ptrdiff_t n, const mg_real *a, const mg_real *b) {
    mg_vec sums = {0};
    ptrdiff_t d = 0;
    for (; !MG_ONE_SUM && d + MG_LANES <= n; d += MG_LANES) sums += mg_load(a + d) * mg_load(b + d);
    mg_real sum = mg_sum_lanes(sums);
    for (; d < n; d++) sum += a[d] * b[d];
    return sum;
}

/* Elements n … mg_pad(n) of a row = value. A whole vector is written: one that is read after single elements of it were
 * written has to wait for each. */
MG_INLINE void mg_fill_up(ptrdiff_t n, mg_real value, mg_real *row) {
    ptrdiff_t last = mg_pad(n) - MG_LANES;
    int used = (int)(n - last);
#pragma omp simd
    for (int k = 0; k < MG_LANES; k++) row[last + k] = k < used ? row[last + k] : value;
}

/* The elements interval[r] of R rows of scores become their softmax but for factor[r]. From that and greatest[r] the
 * backward makes the weights again, exp(score − greatest) · factor; not from their logarithms, in which a large score
 * would round that of the sum away. Where a score is infinite, it is mg_softmax's limit. Each step is taken for all
 * rows before the next: they do not wait for another, as the steps of a row do. */
MG_INLINE void mg_softmax_rows(const int R, const mg_interval *interval, mg_real *scores, ptrdiff_t stride,
                               mg_real *factor, mg_real *greatest) {
    mg_real max[MG_GROUP], sum[MG_GROUP];
    ptrdiff_t n[MG_GROUP];
    for (int r = 0; r < R; r++) {
        mg_real *row = scores + r * stride + interval[r].first;
        n[r] = interval[r].end - interval[r].first;
        mg_fill_up(n[r], row[0], row); /* not −inf, of which the vector exp takes each by itself */
        max[r] = mg_greatest(mg_pad(n[r]), row);
    }
    for (int r = 0; r < R; r++) {
        mg_real *row = scores + r * stride + interval[r].first;
        if (isinf(max[r])) continue;
#pragma omp simd
        for (ptrdiff_t j = 0; j < mg_pad(n[r]); j++) row[j] = mg_exp_real(row[j] - max[r]);
    }
    for (int r = 0; r < R; r++) {
        mg_real *row = scores + r * stride + interval[r].first;
        mg_vec sums = {0};
        if (!isinf(max[r])) mg_fill_up(n[r], 0, row);
        for (ptrdiff_t j = 0; j < n[r]; j += MG_LANES) sums += mg_load(row + j);
        sum[r] = mg_sum_lanes(sums);
    }
    for (int r = 0; r < R; r++) {
        factor[r] = 1 / sum[r];
        greatest[r] = max[r];
        if (!isinf(max[r])) continue;
        factor[r] = 1;
        mg_real *row = scores + r * stride + interval[r].first;
        greatest[r] = mg_softmax_limit(n[r], row, row);
    }
}

#endif
