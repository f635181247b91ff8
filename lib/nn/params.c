#include "params.h"
#include "parallel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static ptrdiff_t padded(ptrdiff_t n) {
    ptrdiff_t unit = MG_ALIGNMENT / (ptrdiff_t)sizeof(mg_real);
    return mg_tile_count(n, unit) * unit;
}

static void check_specs(int n, const mg_param_spec *specs) {
    MG_CHECK(n >= 0, "params: there are %d of them", n);
    ptrdiff_t total = 0;
    for (int i = 0; i < n; i++) {
        ptrdiff_t size = mg_shape_size(specs[i].ndim, specs[i].dim);
        MG_CHECK(size <= PTRDIFF_MAX / 16 - total, "params: more elements than memory can have");
        total += padded(size);
    }
}

static mg_status allocate(mg_params *params, int n, const mg_param_spec *specs, bool trainable, mg_error *error) {
    params->n = n;
    params->param = mg_alloc_zero((size_t)n, sizeof(mg_param), "the table of parameters", error);
    if (!params->param) return MG_ERR_MEMORY;
    for (int i = 0; i < n; i++) {
        mg_param *p = &params->param[i];
        snprintf(p->name, sizeof p->name, "%s", specs[i].name);
        p->tensor = (mg_tensor){.ndim = specs[i].ndim, .requires_grad = trainable, .leaf = true};
        memcpy(p->tensor.dim, specs[i].dim, (size_t)specs[i].ndim * sizeof specs[i].dim[0]);
        p->decay = specs[i].ndim > 1;
        p->offset = params->size;
        params->size += padded(mg_shape_size(specs[i].ndim, specs[i].dim));
    }
    params->values = mg_alloc_zero((size_t)params->size, sizeof(mg_real), "the parameters", error);
    if (params->values && trainable)
        params->grads = mg_alloc_zero((size_t)params->size, sizeof(mg_real), "the gradients", error);
    return params->values && (params->grads || !trainable) ? MG_OK : MG_ERR_MEMORY;
}

mg_status mg_params_new(mg_params **params, int n, const mg_param_spec *specs, bool trainable, mg_error *error) {
    *params = NULL;
    check_specs(n, specs);
    mg_params *made = mg_alloc_zero(1, sizeof *made, "the parameters", error);
    if (!made) return MG_ERR_MEMORY;
    mg_status status = allocate(made, n, specs, trainable, error);
    if (status != MG_OK) {
        mg_params_free(made);
        return status;
    }
    for (int i = 0; i < n; i++) made->param[i].tensor.data = made->values + made->param[i].offset;
    if (trainable) mg_params_exchange_grads(made, made->grads);
    *params = made;
    return MG_OK;
}

void mg_params_free(mg_params *params) {
    if (!params) return;
    mg_free(params->param);
    mg_free(params->values);
    mg_free(params->grads);
    mg_free(params);
}

mg_real *mg_params_exchange_grads(mg_params *params, mg_real *grads) {
    mg_real *before = params->grads;
    params->grads = grads;
    for (int i = 0; i < params->n; i++) params->param[i].tensor.grad = grads + params->param[i].offset;
    return before;
}

mg_param *mg_params_find(const mg_params *params, const char *name) {
    for (int i = 0; i < params->n; i++)
        if (strcmp(params->param[i].name, name) == 0) return &params->param[i];
    return NULL;
}

ptrdiff_t mg_params_count(const mg_params *params) {
    ptrdiff_t count = 0;
    for (int i = 0; i < params->n; i++) count += mg_size(&params->param[i].tensor);
    return count;
}

static bool all_finite(const mg_real *x, ptrdiff_t n) {
    ptrdiff_t bad = 0;
    for (ptrdiff_t i = 0; i < n; i++) bad += !isfinite(x[i]);
    return bad == 0;
}

const mg_param *mg_params_find_not_finite(const mg_params *params) {
    for (int i = 0; i < params->n; i++)
        if (!all_finite(params->param[i].tensor.data, mg_size(&params->param[i].tensor))) return &params->param[i];
    return NULL;
}

const mg_param *mg_params_find_not_finite_grad(const mg_params *params) {
    for (int i = 0; i < params->n; i++)
        if (!all_finite(params->param[i].tensor.grad, mg_size(&params->param[i].tensor))) return &params->param[i];
    return NULL;
}

void mg_params_zero_grad(mg_params *params) {
    MG_CHECK(params->grads, "params: these were made without gradients");
    memset(params->grads, 0, (size_t)params->size * sizeof(mg_real));
}

enum { TILE = 16384 };

typedef struct norm_job {
    const mg_real *grads;
    ptrdiff_t n;
    double *sum; /* one per tile */
} norm_job;

static void sum_of_squares(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    norm_job *j = context;
    mg_range r = mg_tile_range(j->n, TILE, tile);
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t i = r.begin; i < r.end; i++) sum += (double)j->grads[i] * (double)j->grads[i];
    j->sum[tile] = sum;
}

double mg_params_grad_norm(const mg_params *params) {
    /* The partial sums live on the stack: a model of 2^31 parameters needs more tiles than that, so the tiles are taken
     * in rounds. */
    enum { ROUND = 1024 };
    MG_CHECK(params->grads, "params: these were made without gradients");
    double total = 0, sum[ROUND];
    for (ptrdiff_t begin = 0; begin < params->size; begin += (ptrdiff_t)ROUND * TILE) {
        ptrdiff_t n = params->size - begin < (ptrdiff_t)ROUND * TILE ? params->size - begin : (ptrdiff_t)ROUND * TILE;
        norm_job j = {params->grads + begin, n, sum};
        ptrdiff_t tiles = mg_tile_count(n, TILE);
        mg_parallel(tiles, sum_of_squares, &j, 0);
        for (ptrdiff_t i = 0; i < tiles; i++) total += sum[i];
    }
    return sqrt(total);
}
