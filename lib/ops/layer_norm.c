/* y = gain · x̂ + bias,  x̂ = (x − mean) / √(variance + eps), along the last dimension (N,C).
 *
 * Ba, Kiros & Hinton 2016. With r = 1/√(variance + eps) and g = gain · dy:
 *     dx = r · (g − mean(g) − x̂ · mean(g · x̂))      dgain = Σ_rows dy · x̂      dbias = Σ_rows dy */
#include "operation.h"
#include "ops.h"
#include "parallel.h"
#include "simd.h"
#include "sums.h"

#include <string.h>

enum { TILE_ROWS = 64 };

typedef struct saved {
    double *mean;  /* (N) */
    mg_real *rstd; /* (N) */
} saved;

typedef struct job {
    ptrdiff_t n, c;
    mg_real eps;
    const mg_real *x, *gain, *bias, *dy;
    mg_real *y, *dx, dx_beta;
    mg_real *partial; /* backward: (tiles, 2, C), each tile's dgain and dbias */
    saved s;
} job;

/* x − mean, with the mean as the sum of two mg_reals: near the mean the first difference is exact, however far from 0
 * both are. */
typedef struct center {
    mg_real high, low;
} center;

MG_INLINE center split(double mean) {
    mg_real high = (mg_real)mean;
    return (center){high, (mg_real)(mean - (double)high)};
}

MG_INLINE mg_real centered(mg_real x, center mean) {
    return (x - mean.high) - mean.low;
}

/* Mean and 1/√(variance + eps), from sums about the row's first element: equal numbers have differences of exactly 0,
 * and nothing that a large mean would cancel. */
MG_KERNEL static void measure_row(ptrdiff_t c, const mg_real *restrict x, mg_real eps, double *mean, mg_real *rstd) {
    const double first = (double)x[0];
    double sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum, squares)
    for (ptrdiff_t j = 0; j < c; j++) {
        double d = (double)x[j] - first;
        sum += d;
        squares += d * d;
    }
    sum /= (double)c;
    *mean = first + sum;
    *rstd = (mg_real)(1 / sqrt(squares / (double)c - sum * sum + (double)eps));
}

MG_KERNEL static void forward_row(ptrdiff_t c, const mg_real *restrict x, const mg_real *restrict gain,
                                  const mg_real *restrict bias, double mean, mg_real rstd, mg_real *restrict y) {
    const center m = split(mean);
#pragma omp simd
    for (ptrdiff_t j = 0; j < c; j++) y[j] = centered(x[j], m) * rstd * gain[j] + bias[j];
}

MG_KERNEL static void backward_row(ptrdiff_t c, const mg_real *restrict x, const mg_real *restrict gain,
                                   const mg_real *restrict dy, double mean, mg_real rstd, mg_real beta,
                                   mg_real *restrict dx, mg_real *restrict dgain, mg_real *restrict dbias) {
    const center m = split(mean);
    double sum = 0, dot = 0; /* of g, and of g · x̂ */
#pragma omp simd reduction(+ : sum, dot)
    for (ptrdiff_t j = 0; j < c; j++) {
        mg_real normal = centered(x[j], m) * rstd, g = gain[j] * dy[j];
        dgain[j] += dy[j] * normal;
        dbias[j] += dy[j];
        sum += (double)g;
        dot += (double)(g * normal);
    }
    if (!dx) return;
    const mg_real mean_g = (mg_real)(sum / (double)c), mean_gx = (mg_real)(dot / (double)c);
    for (ptrdiff_t j = 0; beta == 0 && j < c; j++) dx[j] = 0;
#pragma omp simd
    for (ptrdiff_t j = 0; j < c; j++) dx[j] += rstd * (gain[j] * dy[j] - mean_g - centered(x[j], m) * rstd * mean_gx);
}

static void forward_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const job *j = context;
    mg_range r = mg_tile_range(j->n, TILE_ROWS, tile);
    for (ptrdiff_t i = r.begin; i < r.end; i++) {
        const mg_real *x = j->x + i * j->c;
        measure_row(j->c, x, j->eps, j->s.mean + i, j->s.rstd + i);
        forward_row(j->c, x, j->gain, j->bias, j->s.mean[i], j->s.rstd[i], j->y + i * j->c);
    }
}

/* Some rows' dx, and their part of dgain and dbias. */
static void backward_rows(const job *j, mg_range rows, mg_real *part) {
    memset(part, 0, (size_t)(2 * j->c) * sizeof *part);
    for (ptrdiff_t i = rows.begin; i < rows.end; i++)
        backward_row(j->c, j->x + i * j->c, j->gain, j->dy + i * j->c, j->s.mean[i], j->s.rstd[i], j->dx_beta,
                     j->dx ? j->dx + i * j->c : NULL, part, part + j->c);
}

/* dgain and dbias of a tile in blocks of rows: sums.h. */
static void backward_tile(void *context, ptrdiff_t tile, void *workspace) {
    const job *j = context;
    mg_range r = mg_tile_range(j->n, TILE_ROWS, tile);
    ptrdiff_t blocks = mg_tile_count(r.end - r.begin, MG_BLOCK);
    for (ptrdiff_t b = 0; b < blocks; b++) {
        mg_range rows = {r.begin + b * MG_BLOCK, r.begin + (b + 1) * MG_BLOCK};
        if (rows.end > r.end) rows.end = r.end;
        backward_rows(j, rows, (mg_real *)workspace + b * 2 * j->c);
    }
    mg_sum_rows(blocks, 2 * j->c, workspace, 2 * j->c, 1, true, j->partial + tile * 2 * j->c);
}

static void layer_norm_backward(mg_tape *tape, const mg_node *node) {
    mg_tensor *x = node->in[0], *gain = node->in[1], *bias = node->in[2];
    job j = {.c = gain->dim[0], .x = x->data, .gain = gain->data, .dy = node->out->grad};
    j.n = mg_size(x) / j.c;
    j.s = *(const saved *)node->saved;
    j.dx = mg_grad_beta(tape, x, &j.dx_beta);
    ptrdiff_t tiles = mg_tile_count(j.n, TILE_ROWS);
    j.partial = mg_tape_alloc(tape, (size_t)(tiles * 2 * j.c), sizeof(mg_real), "layer_norm's partial sums");
    mg_parallel(tiles, backward_tile, &j, (size_t)(TILE_ROWS / MG_BLOCK * 2 * j.c) * sizeof(mg_real));
    mg_real *dgain = mg_grad(tape, gain), *dbias = mg_grad(tape, bias);
    if (dgain) mg_sum_rows(tiles, j.c, j.partial, 2 * j.c, 1, false, dgain);
    if (dbias) mg_sum_rows(tiles, j.c, j.partial + j.c, 2 * j.c, 1, false, dbias);
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
    j.s.mean = mg_tape_alloc(tape, (size_t)j.n, sizeof(double), "layer_norm's means");
    j.s.rstd = mg_tape_alloc(tape, (size_t)j.n, sizeof(mg_real), "layer_norm's deviations");
    mg_parallel(mg_tile_count(j.n, TILE_ROWS), forward_tile, &j, 0);
    saved *s = mg_tape_alloc(tape, 1, sizeof *s, "layer_norm's state");
    *s = j.s;
    mg_tape_append(tape, &op, y, 3, (mg_tensor *[]){x, gain, bias}, s);
    return y;
}
