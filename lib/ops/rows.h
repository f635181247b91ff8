/* Operations on rows, the vectors along the last dimension. */
#ifndef MASKGRAD_ROWS_H
#define MASKGRAD_ROWS_H

#include "tape.h"

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

/* The softmax of a row whose greatest element is infinite, where x − max says nothing: its limit. Several +inf share
 * the weight, nothing but −inf gives 0, and a NaN makes the whole row NaN. Returns log Σ exp(x). y may be x. */
mg_real mg_softmax_limit(ptrdiff_t n, const mg_real *x, mg_real *y);

#endif
