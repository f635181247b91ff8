/* Reading what PyTorch computed: the files that tests/reference/make_reference.py writes. */
#ifndef MASKGRAD_TESTS_REFERENCE_H
#define MASKGRAD_TESTS_REFERENCE_H

#include "tensor.h"

#include "check.h"

#include <hdf5.h>
#include <stdlib.h>

#ifdef MG_DOUBLE
static const double TOLERANCE = 1e-10;
#else
static const double TOLERANCE = 1e-5;
#endif

/* A dataset; free(data). */
typedef struct reference {
    int ndim;
    ptrdiff_t dim[MG_MAX_DIM], n;
    double *data;
} reference;

static inline hid_t open_reference(const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%s/tests/reference/%s", MASKGRAD_SOURCE_DIR, name);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(file >= 0);
    return file;
}

static inline bool has_dataset(hid_t group, const char *name) {
    return H5Lexists(group, name, H5P_DEFAULT) > 0;
}

static inline reference read_reference(hid_t group, const char *name) {
    hid_t dataset = H5Dopen2(group, name, H5P_DEFAULT);
    assert_true(dataset >= 0);
    hid_t space = H5Dget_space(dataset);
    hsize_t dim[MG_MAX_DIM] = {0};
    reference r = {.ndim = H5Sget_simple_extent_dims(space, dim, NULL), .n = 1};
    assert_in_range(r.ndim, 0, MG_MAX_DIM);
    for (int i = 0; i < r.ndim; i++) r.n *= r.dim[i] = (ptrdiff_t)dim[i];
    r.data = calloc((size_t)r.n, sizeof *r.data);
    assert_non_null(r.data);
    assert_true(H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, r.data) >= 0);
    H5Sclose(space);
    H5Dclose(dataset);
    return r;
}

/* The largest difference relative to the largest magnitude of the tensor, which is how rounding enters a sum.
 * Infinities must be where they should be, and NaN is as wrong as it gets. */
static inline double relative_error(const mg_real *ours, const double *theirs, ptrdiff_t n) {
    double difference = 0, scale = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        if ((double)ours[i] == theirs[i]) continue;
        double d = fabs((double)ours[i] - theirs[i]);
        if (!(d < INFINITY)) return INFINITY;
        difference = fmax(difference, d);
    }
    for (ptrdiff_t i = 0; i < n; i++)
        if (isfinite(theirs[i])) scale = fmax(scale, fabs(theirs[i]));
    return difference == 0 ? 0 : difference / scale;
}

#endif
