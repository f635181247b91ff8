/* A tensor: up to four dimensions, row-major, contiguous, with room for its gradient. */
#ifndef MASKGRAD_TENSOR_H
#define MASKGRAD_TENSOR_H

#include "heap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef MG_DOUBLE
typedef double mg_real; /* the twin build, in which gradients are checked */
#else
typedef float mg_real;
#endif

enum { MG_MAX_DIM = 4 };

typedef struct mg_tensor {
    int ndim;                  /* 0 for a scalar */
    ptrdiff_t dim[MG_MAX_DIM]; /* the first ndim are used, each at least 1 */
    mg_real *data;
    mg_real *grad;      /* NULL until a gradient flows back to it; same shape as data */
    bool requires_grad; /* whether backward computes grad */
    bool leaf;          /* made by the user: grad accumulates over calls of mg_backward until the user clears it */
    uint64_t grad_pass; /* not a leaf: the call of mg_backward that grad belongs to */
} mg_tensor;

/* The number of elements, the product of dim. */
MG_API ptrdiff_t mg_size(const mg_tensor *x);

typedef struct mg_shape_text {
    char text[96];
} mg_shape_text;
/* "(2, 3, 4)", for messages: mg_shape(x).text lives to the end of the full expression. */
MG_API mg_shape_text mg_shape(const mg_tensor *x);

/* ---- Not installed: between maskgrad's own files ---- */
mg_shape_text mg_dims(int ndim, const ptrdiff_t *dim);
bool mg_same_shape(const mg_tensor *a, const mg_tensor *b);
/* The number of elements of a shape. A dimension below 1, more than MG_MAX_DIM of them, or a product over PTRDIFF_MAX/8
 * is a bug of the caller and goes to the failure handler. */
ptrdiff_t mg_shape_size(int ndim, const ptrdiff_t *dim);

#ifndef MG_LIBRARY /* whose line a failure names: error.h */
MG_CALLED(ptrdiff_t, mg_size, (x), (x), const mg_tensor *x)
MG_CALLED(mg_shape_text, mg_shape, (x), (x), const mg_tensor *x)
#define mg_size(...) MG_AT(mg_size, __VA_ARGS__)
#define mg_shape(...) MG_AT(mg_shape, __VA_ARGS__)
#endif

#endif
