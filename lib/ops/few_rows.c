#include "few_rows.h"
#include "attention_kernels.h"

#include <string.h>

#ifndef MG_FEW_ROWS_BUILD
#define MG_FEW_ROWS_BUILD mg_few_rows_baseline
#endif

/* ---- y += x w ---- */

/* R rows, V vectors of the outputs; the sums go on from what y holds. */
MG_INLINE void columns(const int R, const int V, ptrdiff_t k, const mg_real *x, const mg_real *w, ptrdiff_t w_stride,
                       mg_real *y, ptrdiff_t y_stride) {
    mg_vec sum[MG_GROUP * MG_VECTORS];
#pragma GCC unroll 4
    for (int r = 0; r < R; r++)
#pragma GCC unroll 4
        for (int v = 0; v < V; v++) sum[r * V + v] = mg_load(y + r * y_stride + v * MG_LANES);
    for (ptrdiff_t i = 0; i < k; i++) {
#pragma GCC unroll 4
        for (int r = 0; r < R; r++)
#pragma GCC unroll 4
            for (int v = 0; v < V; v++) sum[r * V + v] += x[r * k + i] * mg_load(w + i * w_stride + v * MG_LANES);
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; r++)
#pragma GCC unroll 4
        for (int v = 0; v < V; v++) mg_store(y + r * y_stride + v * MG_LANES, sum[r * V + v]);
}

MG_INLINE void groups(const int V, ptrdiff_t m, ptrdiff_t k, const mg_real *x, const mg_real *w, ptrdiff_t w_stride,
                      mg_real *y, ptrdiff_t y_stride) {
    for (; m >= 4; m -= 4, x += 4 * k, y += 4 * y_stride) columns(4, V, k, x, w, w_stride, y, y_stride);
    if (m == 3) columns(3, V, k, x, w, w_stride, y, y_stride);
    if (m == 2) columns(2, V, k, x, w, w_stride, y, y_stride);
    if (m == 1) columns(1, V, k, x, w, w_stride, y, y_stride);
}

/* The last outputs, fewer than a vector: as a vector, for the sums to have the order of the others. */
static void last_columns(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const mg_real *x, const mg_real *w, ptrdiff_t w_stride,
                         mg_real *y, ptrdiff_t y_stride) {
    for (ptrdiff_t r = 0; r < m; r++, x += k, y += y_stride) {
        mg_vec sum = {0}, part = {0};
        memcpy(&sum, y, (size_t)n * sizeof *y);
        for (ptrdiff_t i = 0; i < k; i++) {
            memcpy(&part, w + i * w_stride, (size_t)n * sizeof *w);
            sum += x[i] * part;
        }
        memcpy(y, &sum, (size_t)n * sizeof *y);
    }
}

/* y (n whole vectors) += Σ x[i] w_i of S rows of w. */
MG_INLINE void add_rows(const int S, ptrdiff_t n, const mg_real *x, const mg_real *w, ptrdiff_t w_stride, mg_real *y) {
    for (ptrdiff_t d = 0; d < n; d += MG_LANES) {
        mg_vec sum = mg_load(y + d);
#pragma GCC unroll 8
        for (int s = 0; s < S; s++) sum += x[s] * mg_load(w + s * w_stride + d);
        mg_store(y + d, sum);
    }
}

/* One row reads w once, row by row, as memory likes it: y stays in the first-level cache meanwhile. */
static void one_row(ptrdiff_t n, ptrdiff_t k, const mg_real *x, const mg_real *w, ptrdiff_t w_stride, mg_real *y) {
    ptrdiff_t i = 0;
    for (; i + 8 <= k; i += 8) add_rows(8, n, x + i, w + i * w_stride, w_stride, y);
    for (; i < k; i++) add_rows(1, n, x + i, w + i * w_stride, w_stride, y);
}

/* From so many rows on, a copy of the columns that a group reads pays: rows of w are far apart. */
enum { ROWS_FOR_COPY = 12 };

static size_t plain_bytes(ptrdiff_t m, ptrdiff_t k) {
    return m < ROWS_FOR_COPY ? 0 : (size_t)(k * MG_PANEL) * sizeof(mg_real);
}

static void plain(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const mg_real *x, const mg_real *w, ptrdiff_t w_stride,
                  mg_real *y, ptrdiff_t y_stride, mg_real *workspace) {
    ptrdiff_t d = 0;
    if (m == 1) {
        d = n / MG_LANES * MG_LANES;
        one_row(d, k, x, w, w_stride, y);
    }
    for (; d + MG_PANEL <= n; d += MG_PANEL) {
        const mg_real *panel = w + d;
        ptrdiff_t stride = w_stride;
        if (m >= ROWS_FOR_COPY) {
            for (ptrdiff_t i = 0; i < k; i++)
                memcpy(workspace + i * MG_PANEL, w + d + i * w_stride, MG_PANEL * sizeof *w);
            panel = workspace;
            stride = MG_PANEL;
        }
        groups(MG_VECTORS, m, k, x, panel, stride, y + d, y_stride);
    }
    for (; d + MG_LANES <= n; d += MG_LANES) groups(1, m, k, x, w + d, w_stride, y + d, y_stride);
    if (d < n) last_columns(m, n - d, k, x, w + d, w_stride, y + d, y_stride);
}

/* ---- y = x wᵀ ---- */

/* R rows of x and four of w. Each sum has the order of mg_dot. */
MG_INLINE void dots(const int R, const int S, ptrdiff_t k, const mg_real *x, const mg_real *w, mg_real *y,
                    ptrdiff_t y_stride) {
    mg_vec sum[MG_GROUP * 4] = {{0}};
    ptrdiff_t d = 0;
    for (; d + MG_LANES <= k; d += MG_LANES)
#pragma GCC unroll 4
        for (int r = 0; r < R; r++)
#pragma GCC unroll 4
            for (int s = 0; s < S; s++) sum[r * S + s] += mg_load(x + r * k + d) * mg_load(w + s * k + d);
    for (int r = 0; r < R; r++)
        for (int s = 0; s < S; s++) {
            mg_real total = mg_sum_lanes(sum[r * S + s]);
            for (ptrdiff_t e = d; e < k; e++) total += x[r * k + e] * w[s * k + e];
            y[r * y_stride + s] = total;
        }
}

MG_INLINE void dot_groups(const int S, ptrdiff_t m, ptrdiff_t k, const mg_real *x, const mg_real *w, mg_real *y,
                          ptrdiff_t y_stride) {
    enum { R = MG_VECTORS > 2 ? 4 : 2 };
    for (; m >= R; m -= R, x += R * k, y += R * y_stride) dots(R, S, k, x, w, y, y_stride);
    for (; m > 0; m--, x += k, y += y_stride) dots(1, S, k, x, w, y, y_stride);
}

static void tied(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const mg_real *x, const mg_real *w, mg_real *y,
                 ptrdiff_t y_stride) {
    ptrdiff_t s = 0;
    for (; s + 4 <= n; s += 4) dot_groups(4, m, k, x, w + s * k, y + s, y_stride);
    for (; s < n; s++) dot_groups(1, m, k, x, w + s * k, y + s, y_stride);
}

const mg_few_rows MG_FEW_ROWS_BUILD = {plain, plain_bytes, tied};
