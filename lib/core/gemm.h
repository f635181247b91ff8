/* Matrix products on the calling thread: BLAS never starts threads of its own here (mg_parallel does), so a product's
 * bits depend only on its shape and its operands. */
#ifndef MASKGRAD_GEMM_H
#define MASKGRAD_GEMM_H

#include "tensor.h"

/* One operand: a row-major matrix with `stride` elements from row to row, used as it is or transposed. */
typedef struct mg_matrix {
    const mg_real *data;
    ptrdiff_t stride;
    bool transposed;
} mg_matrix;

/* C (m,n) = alpha op(A) (m,k) op(B) (k,n) + beta C. With beta = 0, C is not read. Any size may be 0. */
MG_API void mg_gemm(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, mg_real alpha, mg_matrix a, mg_matrix b, mg_real beta,
                    mg_real *c, ptrdiff_t c_stride);

/* ---- Not installed: between maskgrad's own files ---- */
/* Fails unless the sizes are at least 0, and the rows of no matrix overlap, which BLAS would only report on the
 * terminal. */
static inline void mg_gemm_check(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, mg_matrix a, mg_matrix b, const mg_real *c,
                                 ptrdiff_t c_stride) {
    ptrdiff_t a_columns = a.transposed ? m : k, b_columns = b.transposed ? k : n;
    MG_CHECK(m >= 0 && n >= 0 && k >= 0, "gemm: the sizes are %td, %td and %td; none may be negative", m, n, k);
    if (m == 0 || n == 0) return;
    MG_CHECK(c_stride >= n && c, "gemm: the rows of C are %td apart, but have %td elements", c_stride, n);
    if (k == 0) return;
    MG_CHECK(a.data && b.data, "gemm: %s is NULL", a.data ? "B" : "A");
    MG_CHECK(a.stride >= a_columns, "gemm: the rows of A are %td apart, but have %td elements", a.stride, a_columns);
    MG_CHECK(b.stride >= b_columns, "gemm: the rows of B are %td apart, but have %td elements", b.stride, b_columns);
}
/* Keep BLAS from starting threads in products of the calling thread. Each thread calls it before its first product,
 * while no other thread is in one: an OpenBLAS built on OpenMP keeps this setting per thread. */
void mg_gemm_one_thread(void);
/* Read a block (rows,n) once, in the order of its memory, so that it is in this thread's cache for the next product.
 * BLAS packs its operands a few columns at a time, which no prefetcher follows: with operands that were not in the
 * cache, products of width 128 are 3 to 9 % slower without this pass. */
void mg_gemm_warm(ptrdiff_t rows, ptrdiff_t n, const mg_real *x, ptrdiff_t stride);
/* "OpenBLAS 0.3.21 Haswell": which library and which kernel compute the products. */
const char *mg_blas_name(void);

#ifndef MG_LIBRARY /* whose line a failure names: error.h */
MG_CALLED_VOID(mg_gemm, (c), (m, n, k, alpha, a, b, beta, c, c_stride), ptrdiff_t m, ptrdiff_t n, ptrdiff_t k,
               mg_real alpha, mg_matrix a, mg_matrix b, mg_real beta, mg_real *c, ptrdiff_t c_stride)
#define mg_gemm(...) MG_AT(mg_gemm, __VA_ARGS__)
#endif

#endif
