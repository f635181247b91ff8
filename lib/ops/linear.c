/* y = x W + b:  (N,in) · (in,out) + (out), with every leading dimension of x folded into N.
 *
 *     dx = dy Wᵀ      dW = xᵀ dy      db = Σ_rows dy
 *
 * linear_tied is y = x Wᵀ with W (out,in): GPT-2's head, whose matrix is the token embedding (Press & Wolf 2017). */
#include "gemm.h"
#include "ops.h"
#include "parallel.h"
#include "simd.h"

#include <string.h>

/* Rows of x a tile takes. With fewer rows than that there is one row of tiles, and it is cut along the outputs:
 * decoding one token streams W through all threads. */
enum { TILE_ROWS = 128, TILE_OUTPUTS = 256 };

/* BLAS packs W anew for every tile, so that larger tiles are faster: 122, 127 and 129 GFLOP/s with 128, 192 and 384
 * rows of width 128. Four tiles leave work for four threads. */
static ptrdiff_t tile_rows(ptrdiff_t n) {
    ptrdiff_t quarter = mg_tile_count(mg_tile_count(n, 4), 64) * 64;
    return quarter < TILE_ROWS ? TILE_ROWS : quarter > 4 * TILE_ROWS ? 4 * TILE_ROWS : quarter;
}

typedef struct job {
    ptrdiff_t n, in, out;
    bool tied;
    const mg_real *x, *w, *bias, *dy;
    mg_real *y, *dx, *dw, *db;
    mg_real dx_beta, dw_beta, db_beta;
    ptrdiff_t dx_tiles;          /* backward: the tiles of dx come first, then those of dW */
    ptrdiff_t tile_in, tile_out; /* the part of dW that a tile takes */
} job;

/* W's part that makes outputs begin … */
static mg_matrix weight(const job *j, ptrdiff_t begin) {
    return j->tied ? (mg_matrix){j->w + begin * j->in, j->in, true} : (mg_matrix){j->w + begin, j->out, false};
}

MG_KERNEL static void add_bias(ptrdiff_t rows, ptrdiff_t n, const mg_real *restrict bias, mg_real *restrict y,
                               ptrdiff_t stride) {
    for (ptrdiff_t i = 0; i < rows; i++)
#pragma omp simd
        for (ptrdiff_t j = 0; j < n; j++) y[i * stride + j] += bias[j];
}

MG_KERNEL static void sum_rows(ptrdiff_t rows, ptrdiff_t n, const mg_real *restrict dy, ptrdiff_t stride,
                               mg_real *restrict sum) {
    for (ptrdiff_t i = 0; i < rows; i++)
#pragma omp simd
        for (ptrdiff_t j = 0; j < n; j++) sum[j] += dy[i * stride + j];
}

static void forward_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const job *j = context;
    mg_range rows = {0, j->n}, outputs = {0, j->out};
    if (j->n > TILE_ROWS)
        rows = mg_tile_range(j->n, tile_rows(j->n), tile);
    else
        outputs = mg_tile_range(j->out, TILE_OUTPUTS, tile);
    mg_real *y = j->y + rows.begin * j->out + outputs.begin;
    ptrdiff_t n_rows = rows.end - rows.begin, n_out = outputs.end - outputs.begin;
    mg_gemm(n_rows, n_out, j->in, 1, (mg_matrix){j->x + rows.begin * j->in, j->in, false}, weight(j, outputs.begin), 0,
            y, j->out);
    if (j->bias) add_bias(n_rows, n_out, j->bias + outputs.begin, y, j->out);
}

/* dx[rows] = dy[rows] Wᵀ */
static void backward_x(const job *j, ptrdiff_t tile) {
    mg_range rows = mg_tile_range(j->n, tile_rows(j->n), tile);
    mg_matrix dy = {j->dy + rows.begin * j->out, j->out, false};
    mg_matrix w = {j->w, j->tied ? j->in : j->out, !j->tied};
    mg_gemm(rows.end - rows.begin, j->in, j->out, 1, dy, w, j->dx_beta, j->dx + rows.begin * j->in, j->in);
}

/* dW[inputs, outputs] = x[:, inputs]ᵀ dy[:, outputs], tied its transpose; with the first inputs, db[outputs] too. */
static void backward_weight(const job *j, ptrdiff_t tile) {
    ptrdiff_t across = mg_tile_count(j->out, j->tile_out);
    mg_range in = mg_tile_range(j->in, j->tile_in, tile / across),
             out = mg_tile_range(j->out, j->tile_out, tile % across);
    ptrdiff_t n_in = in.end - in.begin, n_out = out.end - out.begin;
    mg_matrix x = {j->x + in.begin, j->in, !j->tied}, dy = {j->dy + out.begin, j->out, j->tied};
    if (j->dw && j->tied)
        mg_gemm(n_out, n_in, j->n, 1, dy, x, j->dw_beta, j->dw + out.begin * j->in + in.begin, j->in);
    else if (j->dw)
        mg_gemm(n_in, n_out, j->n, 1, x, dy, j->dw_beta, j->dw + in.begin * j->out + out.begin, j->out);
    if (!j->db || in.begin > 0) return;
    if (j->db_beta == 0) memset(j->db + out.begin, 0, (size_t)n_out * sizeof(mg_real));
    sum_rows(j->n, n_out, j->dy + out.begin, j->out, j->db + out.begin);
}

/* Cut dW into two tiles or more, large ones into many, none of them narrower than BLAS likes. */
static void choose_weight_tiles(job *j) {
    j->tile_in = j->in;
    j->tile_out = j->out;
    while ((j->tile_in == j->in && j->tile_out == j->out) || j->tile_in * j->tile_out > 65536) {
        ptrdiff_t *larger = j->tile_in > j->tile_out ? &j->tile_in : &j->tile_out;
        if (*larger < 64) return;
        *larger = (*larger + 1) / 2;
    }
}

static void backward_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const job *j = context;
    if (tile < j->dx_tiles)
        backward_x(j, tile);
    else
        backward_weight(j, tile - j->dx_tiles);
}

static void backward(mg_tape *tape, const mg_node *node, bool tied) {
    mg_tensor *x = node->in[0], *w = node->in[1], *bias = node->in[2];
    job j = {.in = x->dim[x->ndim - 1], .tied = tied, .x = x->data, .w = w->data, .dy = node->out->grad};
    j.n = mg_size(x) / j.in;
    j.out = mg_size(node->out) / j.n;
    j.dx = mg_grad_beta(tape, x, &j.dx_beta);
    j.dw = mg_grad_beta(tape, w, &j.dw_beta);
    j.db = bias ? mg_grad_beta(tape, bias, &j.db_beta) : NULL;
    j.dx_tiles = j.dx ? mg_tile_count(j.n, tile_rows(j.n)) : 0;
    choose_weight_tiles(&j);
    ptrdiff_t weight_tiles = mg_tile_count(j.in, j.tile_in) * mg_tile_count(j.out, j.tile_out);
    if (!j.dw && !j.db) weight_tiles = 0;
    mg_parallel(j.dx_tiles + weight_tiles, backward_tile, &j, 0);
}

static void linear_backward(mg_tape *tape, const mg_node *node) {
    backward(tape, node, false);
}

static void linear_tied_backward(mg_tape *tape, const mg_node *node) {
    backward(tape, node, true);
}

static const mg_op linear_op = {"linear", linear_backward};
static const mg_op linear_tied_op = {"linear_tied", linear_tied_backward};

static mg_tensor *linear(mg_tape *tape, const mg_op *op, mg_tensor *x, mg_tensor *w, mg_tensor *bias, bool tied) {
    MG_OP_CHECK(tape, op, x->ndim >= 1 && w->ndim == 2 && x->dim[x->ndim - 1] == w->dim[tied ? 1 : 0],
                "x is %s and W is %s; x's last dimension must equal W's %s", mg_shape(x).text, mg_shape(w).text,
                tied ? "second" : "first");
    job j = {.in = x->dim[x->ndim - 1], .out = w->dim[tied ? 0 : 1], .tied = tied, .x = x->data, .w = w->data};
    MG_OP_CHECK(tape, op, !bias || (bias->ndim == 1 && bias->dim[0] == j.out), "W is %s and the bias is %s, not (%td)",
                mg_shape(w).text, bias ? mg_shape(bias).text : "", j.out);
    j.n = mg_size(x) / j.in;
    j.bias = bias ? bias->data : NULL;
    ptrdiff_t dim[MG_MAX_DIM];
    memcpy(dim, x->dim, sizeof dim);
    dim[x->ndim - 1] = j.out;
    mg_tensor *y = mg_tape_output(tape, x->ndim, dim);
    j.y = y->data;
    mg_parallel(j.n > TILE_ROWS ? mg_tile_count(j.n, tile_rows(j.n)) : mg_tile_count(j.out, TILE_OUTPUTS), forward_tile,
                &j, 0);
    mg_tape_append(tape, op, y, 3, (mg_tensor *[]){x, w, bias}, NULL);
    return y;
}

mg_tensor *(mg_linear)(mg_tape *tape, mg_tensor *x, mg_tensor *w, mg_tensor *bias) {
    return linear(tape, &linear_op, x, w, bias, false);
}

mg_tensor *(mg_linear_tied)(mg_tape *tape, mg_tensor *x, mg_tensor *w) {
    return linear(tape, &linear_tied_op, x, w, NULL, true);
}
