#include "tensor.h"

#include <stdio.h>

ptrdiff_t mg_shape_size(int ndim, const ptrdiff_t *dim) {
    MG_CHECK(ndim >= 0 && ndim <= MG_MAX_DIM, "a tensor has 0 to %d dimensions, not %d", MG_MAX_DIM, ndim);
    MG_CHECK(ndim == 0 || dim, "the dimensions of a tensor are NULL");
    ptrdiff_t size = 1;
    for (int i = 0; i < ndim; i++) {
        MG_CHECK(dim[i] >= 1, "dimension %d of a tensor is %td; it must be at least 1", i, dim[i]);
        MG_CHECK(size <= PTRDIFF_MAX / 8 / dim[i], "a tensor with dimension %d = %td has more elements than memory can",
                 i, dim[i]);
        size *= dim[i];
    }
    return size;
}

ptrdiff_t mg_size(const mg_tensor *x) {
    MG_CHECK(x, "a tensor is NULL");
    ptrdiff_t size = 1;
    for (int i = 0; i < x->ndim; i++) size *= x->dim[i];
    return size;
}

bool mg_same_shape(const mg_tensor *a, const mg_tensor *b) {
    if (a->ndim != b->ndim) return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->dim[i] != b->dim[i]) return false;
    return true;
}

mg_shape_text mg_shape(const mg_tensor *x) {
    mg_shape_text shape;
    size_t used = 0;
    shape.text[used++] = '(';
    for (int i = 0; i < x->ndim; i++)
        used += (size_t)snprintf(shape.text + used, sizeof shape.text - used, i ? ", %td" : "%td", x->dim[i]);
    snprintf(shape.text + used, sizeof shape.text - used, ")");
    return shape;
}

mg_shape_text mg_dims(int ndim, const ptrdiff_t *dim) {
    mg_tensor x = {.ndim = ndim};
    for (int i = 0; i < ndim && i < MG_MAX_DIM; i++) x.dim[i] = dim[i];
    return mg_shape(&x);
}
