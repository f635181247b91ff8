#include "parameters_h5.h"

#include <stdio.h>

mg_h5_path mg_h5_member(const char *group, const char *name) {
    mg_h5_path path;
    snprintf(path.text, sizeof path.text, "%s/%s", group, name);
    return path;
}

/* The file's datasets have at least one dimension: a scalar has one, of size 1. */
typedef struct shape {
    int ndim;
    const ptrdiff_t *dim;
} shape;

static shape stored(int ndim, const ptrdiff_t *dim) {
    static const ptrdiff_t one = 1;
    return ndim == 0 ? (shape){1, &one} : (shape){ndim, dim};
}

mg_status mg_parameters_h5_write(const mg_h5 *h5, const char *group, const mg_params *params, const mg_real *block) {
    mg_status status = mg_h5_write_group(h5, group);
    for (int i = 0; i < params->n && status == MG_OK; i++) {
        const mg_param *p = &params->param[i];
        shape s = stored(p->tensor.ndim, p->tensor.dim);
        status = mg_h5_write_data(h5, mg_h5_member(group, p->name).text, MG_H5_FLOAT32, s.ndim, s.dim,
                                  block + p->offset);
    }
    return status;
}

/* Datasets that are requested together. */
typedef struct batch {
    const mg_h5 *h5;
    int n;
    mg_h5_path path[MG_H5_AT_ONCE];
    mg_h5_data data[MG_H5_AT_ONCE];
} batch;

static mg_status finish(batch *b) {
    int n = b->n;
    b->n = 0;
    return mg_h5_read_data(b->h5, n, b->data);
}

static mg_status add(batch *b, const char *group, const char *name, int ndim, const ptrdiff_t *dim, mg_real *to) {
    b->path[b->n] = mg_h5_member(group, name);
    shape s = stored(ndim, dim);
    b->data[b->n] = (mg_h5_data){b->path[b->n].text, MG_H5_FLOAT32, s.ndim, s.dim, to};
    return ++b->n < MG_H5_AT_ONCE ? MG_OK : finish(b);
}

mg_status mg_parameters_h5_read(const mg_h5 *h5, const char *group, const mg_params *params, mg_real *block) {
    batch b = {.h5 = h5};
    mg_status status = MG_OK;
    for (int i = 0; i < params->n && status == MG_OK; i++) {
        const mg_param *p = &params->param[i];
        status = add(&b, group, p->name, p->tensor.ndim, p->tensor.dim, block + p->offset);
    }
    return status == MG_OK ? finish(&b) : status;
}

mg_status mg_parameters_h5_check(const mg_h5 *h5, const char *group, int n, const mg_param_spec *specs) {
    batch b = {.h5 = h5};
    mg_status status = MG_OK;
    for (int i = 0; i < n && status == MG_OK; i++)
        status = add(&b, group, specs[i].name, specs[i].ndim, specs[i].dim, NULL);
    if (status == MG_OK) status = finish(&b);
    int64_t held = 0;
    if (status == MG_OK) status = mg_h5_count(h5, group, &held);
    if (status == MG_OK && held != n)
        status = mg_h5_error(h5, "%s holds more than the %d parameters in its configuration", group, n);
    return status;
}
