/* Products of few rows with a matrix, for decoding: one token of each of some texts, or some tokens of one. BLAS copies
 * its operands first, which pays from some hundred rows on. Here each result is one sum in one order, however many
 * rows there are: a text is the same to the last bit whatever is computed beside it.
 *
 * few_rows.c is built for each kind of processor, as attention_heads.c is. */
#ifndef MASKGRAD_FEW_ROWS_H
#define MASKGRAD_FEW_ROWS_H

#include "tensor.h"

enum { MG_FEW_ROWS = 64 }; /* more of them are BLAS's */

typedef struct mg_few_rows {
    /* y (m,n) += x (m,k) · w (k,n), the rows of y and of w y_stride and w_stride apart; with a workspace of that many
     * bytes. */
    void (*plain)(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const mg_real *x, const mg_real *w, ptrdiff_t w_stride,
                  mg_real *y, ptrdiff_t y_stride, mg_real *workspace);
    size_t (*plain_bytes)(ptrdiff_t m, ptrdiff_t k);
    /* y (m,n) = x (m,k) · wᵀ, w (n,k) */
    void (*tied)(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, const mg_real *x, const mg_real *w, mg_real *y,
                 ptrdiff_t y_stride);
} mg_few_rows;

extern const mg_few_rows mg_few_rows_v4, mg_few_rows_v3, mg_few_rows_baseline;

/* The best for this processor. */
const mg_few_rows *mg_few_rows_best(void);

#endif
