/* y = gain · x̂ + bias,  x̂ = (x − mean) / √(variance + eps), along the last dimension (N,C).
 *
 * Ba, Kiros & Hinton 2016. With r = 1/√(variance + eps) and g = gain · dy:
 *     dx = r · (g − mean(g) − x̂ · mean(g · x̂))      dgain = Σ_rows dy · x̂      dbias = Σ_rows dy */
#include "ops.h"
#include "parallel.h"
#include "simd.h"

#include <string.h>

enum { TILE_ROWS = 64 };

typedef struct saved {
    mg_real *mean, *rstd; /* (N) each */
} saved;

typedef struct job {
    ptrdiff_t n, c;
    mg_real eps;
    const mg_real *x, *gain, *bias, *dy;
    mg_real *y, *dx, dx_beta;
    mg_real *partial; /* backward: (tiles, 2, C), each tile's dgain and dbias */
    saved s;
} job;

MG_KERNEL static void forward_row(ptrdiff_t c, const mg_real *restrict x, const mg_real *restrict gain,
                                  const mg_real *restrict bias, mg_real eps, mg_real *restrict y, mg_real *mean_out,
                                  mg_real *rstd_out) {
    mg_real mean = 0, variance = 0;
#pragma omp simd reduction(+ : mean)
    for (ptrdiff_t j = 0; j < c; j++) mean += x[j];
    mean /= (mg_real)c;
#pragma omp simd reduction(+ : variance)
    for (ptrdiff_t j = 0; j < c; j++) variance += (x[j] - mean) * (x[j] - mean);
    mg_real rstd = 1 / mg_sqrt_real(variance / (mg_real)c + eps);
#pragma omp simd
    for (ptrdiff_t j = 0; j < c; j++) y[j] = (x[j] - mean) * rstd * gain[j] + bias[j];
    *mean_out = mean;
    *rstd_out = rstd;
}

MG_KERNEL static void backward_row(ptrdiff_t c, const mg_real *restrict x, const mg_real *restrict gain,
                                   const mg_real *restrict dy, mg_real mean, mg_real rstd, mg_real beta,
                                   mg_real *restrict dx, mg_real *restrict dgain, mg_real *restrict dbias) {
    mg_real sum = 0, dot = 0; /* of g, and of g · x̂ */
#pragma omp simd reduction(+ : sum, dot)
    for (ptrdiff_t j = 0; j < c; j++) {
        mg_real normal = (x[j] - mean) * rstd;
        dgain[j] += dy[j] * normal;
        dbias[j] += dy[j];
        sum += gain[j] * dy[j];
        dot += gain[j] * dy[j] * normal;
    }
    if (!dx) return;
    sum /= (mg_real)c;
    dot /= (mg_real)c;
    for (ptrdiff_t j = 0; beta == 0 && j < c; j++) dx[j] = 0;
#pragma omp simd
    for (ptrdiff_t j = 0; j < c; j++) dx[j] += rstd * (gain[j] * dy[j] - sum - (x[j] - mean) * rstd * dot);
}

static void forward_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const job *j = context;
    mg_range r = mg_tile_range(j->n, TILE_ROWS, tile);
    for (ptrdiff_t i = r.begin; i < r.end; i++)
        forward_row(j->c, j->x + i * j->c, j->gain, j->bias, j->eps, j->y + i * j->c, j->s.mean + i, j->s.rstd + i);
}

static void backward_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const job *j = context;
    mg_range r = mg_tile_range(j->n, TILE_ROWS, tile);
    mg_real *dgain = j->partial + tile * 2 * j->c, *dbias = dgain + j->c;
    memset(dgain, 0, (size_t)(2 * j->c) * sizeof(mg_real));
    for (ptrdiff_t i = r.begin; i < r.end; i++)
        backward_row(j->c, j->x + i * j->c, j->gain, j->dy + i * j->c, j->s.mean[i], j->s.rstd[i], j->dx_beta,
                     j->dx ? j->dx + i * j->c : NULL, dgain, dbias);
}

/* into += the tiles' parts, one after the other. */
static void add_parts(mg_real *into, const mg_real *part, ptrdiff_t tiles, ptrdiff_t c) {
    for (ptrdiff_t tile = 0; into && tile < tiles; tile++)
        for (ptrdiff_t j = 0; j < c; j++) into[j] += part[tile * 2 * c + j];
}

static void layer_norm_backward(mg_tape *tape, const mg_node *node) {
    mg_tensor *x = node->in[0], *gain = node->in[1], *bias = node->in[2];
    job j = {.c = gain->dim[0], .x = x->data, .gain = gain->data, .dy = node->out->grad};
    j.n = mg_size(x) / j.c;
    j.s = *(const saved *)node->saved;
    j.dx = mg_grad_beta(tape, x, &j.dx_beta);
    ptrdiff_t tiles = mg_tile_count(j.n, TILE_ROWS);
    j.partial = mg_tape_alloc(tape, (size_t)(tiles * 2 * j.c), sizeof(mg_real), "layer_norm's partial sums");
    mg_parallel(tiles, backward_tile, &j, 0);
    add_parts(mg_grad(tape, gain), j.partial, tiles, j.c);
    add_parts(mg_grad(tape, bias), j.partial + j.c, tiles, j.c);
}

static const mg_op op = {"layer_norm", layer_norm_backward};

mg_tensor *(mg_layer_norm)(mg_tape *tape, mg_tensor *x, mg_tensor *gain, mg_tensor *bias, mg_real eps) {
    MG_OP_CHECK(tape, &op,
                x->ndim >= 1 && gain->ndim == 1 && gain->dim[0] == x->dim[x->ndim - 1] && mg_same_shape(gain, bias),
                "x is %s, the gain is %s and the bias is %s; both must have the length of x's last dimension",
                mg_shape(x).text, mg_shape(gain).text, mg_shape(bias).text);
    mg_tensor *y = mg_tape_output(tape, x->ndim, x->dim);
    job j = {.c = gain->dim[0], .eps = eps, .x = x->data, .gain = gain->data, .bias = bias->data, .y = y->data};
    j.n = mg_size(x) / j.c;
    j.s.mean = mg_tape_alloc(tape, (size_t)j.n, sizeof(mg_real), "layer_norm's means");
    j.s.rstd = mg_tape_alloc(tape, (size_t)j.n, sizeof(mg_real), "layer_norm's deviations");
    mg_parallel(mg_tile_count(j.n, TILE_ROWS), forward_tile, &j, 0);
    saved *s = mg_tape_alloc(tape, 1, sizeof *s, "layer_norm's state");
    *s = j.s;
    mg_tape_append(tape, &op, y, 3, (mg_tensor *[]){x, gain, bias}, s);
    return y;
}
