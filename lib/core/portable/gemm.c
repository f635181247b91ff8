/* Matrix products with the same bits everywhere: each element of op(A) op(B) is one sum, from k = 0 on, however the
 * product is cut into blocks. So a row does not depend on how many rows there are, either: one token's products are
 * those of a whole window, bit for bit.
 *
 * Blocks of 4 rows and two vectors of columns stay in registers; a block's columns of B are packed, so that they lie in
 * one piece. */
#include "gemm.h"

enum {
    VECTOR_BYTES = 16,
    LANES = VECTOR_BYTES / sizeof(mg_real),
    COLUMNS = 2 * LANES,
    ROWS = 4,
    DEPTH = 512, /* of k that is packed at a time */
    TILE = 128   /* rows that use a packed piece while it is near */
};
typedef mg_real vector __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(mg_real)), may_alias));

/* A, so that element (i, k) is at data[i * row_step + k * step]. */
typedef struct operand {
    const mg_real *data;
    ptrdiff_t row_step, step;
} operand;

void mg_gemm_one_thread(void) {
}

/* panel (depth,COLUMNS) = op(B)'s elements from (k, j) on, and 0 after its last column. */
static void pack(mg_matrix b, ptrdiff_t k, ptrdiff_t depth, ptrdiff_t j, ptrdiff_t columns, mg_real *restrict panel) {
    ptrdiff_t step = b.transposed ? 1 : b.stride, column_step = b.transposed ? b.stride : 1;
    const mg_real *from = b.data + k * step + j * column_step;
    if (columns == COLUMNS && column_step == 1) {
        for (ptrdiff_t d = 0; d < depth; d++, from += step, panel += COLUMNS) {
            *(vector *)panel = *(const vector *)from;
            *(vector *)(panel + LANES) = *(const vector *)(from + LANES);
        }
        return;
    }
    for (ptrdiff_t d = 0; d < depth; d++, from += step, panel += COLUMNS)
        for (ptrdiff_t c = 0; c < COLUMNS; c++) panel[c] = c < columns ? from[c * column_step] : 0;
}

/* sum (R,COLUMNS) += R rows of A times the panel */
static inline __attribute__((always_inline)) void multiply(const int R, ptrdiff_t depth, operand a,
                                                           const mg_real *panel, mg_real *sums) {
    vector left[ROWS], right[ROWS];
#pragma GCC unroll 4
    for (int r = 0; r < R; r++) {
        left[r] = *(const vector *)(sums + r * COLUMNS);
        right[r] = *(const vector *)(sums + r * COLUMNS + LANES);
    }
    for (ptrdiff_t d = 0; d < depth; d++, panel += COLUMNS) {
        const vector b0 = *(const vector *)panel, b1 = *(const vector *)(panel + LANES);
#pragma GCC unroll 4
        for (int r = 0; r < R; r++) {
            mg_real x = a.data[r * a.row_step + d * a.step];
            left[r] += x * b0;
            right[r] += x * b1;
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; r++) {
        *(vector *)(sums + r * COLUMNS) = left[r];
        *(vector *)(sums + r * COLUMNS + LANES) = right[r];
    }
}

static void multiply_rows(ptrdiff_t rows, ptrdiff_t depth, operand a, const mg_real *panel, mg_real *sums) {
    ptrdiff_t i = 0;
    for (; i + ROWS <= rows; i += ROWS, a.data += ROWS * a.row_step, sums += ROWS * COLUMNS)
        multiply(ROWS, depth, a, panel, sums);
    for (; i < rows; i++, a.data += a.row_step, sums += COLUMNS) multiply(1, depth, a, panel, sums);
}

/* C = alpha sums + beta C */
static void finish(ptrdiff_t rows, ptrdiff_t columns, mg_real alpha, const mg_real *sums, mg_real beta, mg_real *c,
                   ptrdiff_t stride) {
    for (ptrdiff_t i = 0; i < rows; i++, sums += COLUMNS, c += stride)
        for (ptrdiff_t j = 0; j < columns; j++) c[j] = beta == 0 ? alpha * sums[j] : alpha * sums[j] + beta * c[j];
}

void mg_gemm(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, mg_real alpha, mg_matrix a, mg_matrix b, mg_real beta, mg_real *c,
             ptrdiff_t c_stride) {
    mg_real panel[DEPTH * COLUMNS], sums[TILE * COLUMNS];
    mg_gemm_check(m, n, k, a, b, c, c_stride);
    ptrdiff_t row_step = a.transposed ? 1 : a.stride, step = a.transposed ? a.stride : 1;
    for (ptrdiff_t j = 0; j < n; j += COLUMNS) {
        ptrdiff_t columns = n - j < COLUMNS ? n - j : COLUMNS;
        for (ptrdiff_t i = 0; i < m; i += TILE) {
            ptrdiff_t rows = m - i < TILE ? m - i : TILE;
            for (ptrdiff_t s = 0; s < rows * COLUMNS; s++) sums[s] = 0;
            for (ptrdiff_t d = 0; d < k; d += DEPTH) {
                ptrdiff_t depth = k - d < DEPTH ? k - d : DEPTH;
                if (i == 0 || k > DEPTH) pack(b, d, depth, j, columns, panel);
                multiply_rows(rows, depth, (operand){a.data + i * row_step + d * step, row_step, step}, panel, sums);
            }
            finish(rows, columns, alpha, sums, beta, c + i * c_stride + j, c_stride);
        }
    }
}

void mg_gemm_warm(ptrdiff_t rows, ptrdiff_t n, const mg_real *x, ptrdiff_t stride) {
    (void)rows;
    (void)n;
    (void)x;
    (void)stride;
}

const char *mg_blas_name(void) {
    return "portable arithmetic";
}
