#include "gemm.h"

#include <cblas.h>
#include <limits.h>
#include <stdio.h>

#ifdef MG_DOUBLE
#define BLAS_GEMM cblas_dgemm
#define BLAS_GEMV cblas_dgemv
#else
#define BLAS_GEMM cblas_sgemm
#define BLAS_GEMV cblas_sgemv
#endif

void mg_gemm_one_thread(void) {
    static _Thread_local bool done;
    if (done) return;
    openblas_set_num_threads(1);
    done = true;
}

static blasint blas_int(ptrdiff_t n) {
    MG_CHECK(n <= INT_MAX, "gemm: a size of %td does not fit BLAS, whose sizes are at most %d", n, INT_MAX);
    return (blasint)n;
}

/* C = beta C: a product with nothing to add. */
static void scale(ptrdiff_t m, ptrdiff_t n, mg_real beta, mg_real *c, ptrdiff_t stride) {
    for (ptrdiff_t i = 0; i < m; i++)
        for (ptrdiff_t j = 0; j < n; j++) c[i * stride + j] = beta == 0 ? 0 : beta * c[i * stride + j];
}

void mg_gemm(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, mg_real alpha, mg_matrix a, mg_matrix b, mg_real beta, mg_real *c,
             ptrdiff_t c_stride) {
    mg_gemm_one_thread();
    mg_gemm_check(m, n, k, a, b, c, c_stride);
    if (m == 0 || n == 0) return;
    if (k == 0) { /* BLAS's product with a vector would leave C as it is */
        scale(m, n, beta, c, c_stride);
        return;
    }
    if (m == 1 && !a.transposed) { /* one row times a matrix: the case of decoding, bound by memory */
        blasint rows = blas_int(b.transposed ? n : k), columns = blas_int(b.transposed ? k : n);
        BLAS_GEMV(CblasRowMajor, b.transposed ? CblasNoTrans : CblasTrans, rows, columns, alpha, b.data,
                  blas_int(b.stride), a.data, 1, beta, c, 1);
        return;
    }
    BLAS_GEMM(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans, b.transposed ? CblasTrans : CblasNoTrans,
              blas_int(m), blas_int(n), blas_int(k), alpha, a.data, blas_int(a.stride), b.data, blas_int(b.stride),
              beta, c, blas_int(c_stride));
}

void mg_gemm_warm(ptrdiff_t rows, ptrdiff_t n, const mg_real *x, ptrdiff_t stride) {
    enum { LINE = 64 / sizeof(mg_real) };
    for (ptrdiff_t i = 0; i < rows; i++)
        for (ptrdiff_t k = 0; k < n; k += LINE) (void)*(const volatile mg_real *)&x[i * stride + k];
}

const char *mg_blas_name(void) {
    static char name[64];
    char version[32] = "";
    sscanf(openblas_get_config(), "OpenBLAS %31s", version);
    snprintf(name, sizeof name, "OpenBLAS %s %s", version, openblas_get_corename());
    return name;
}
