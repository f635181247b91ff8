/* y = x W + b:  (N,in) · (in,out) + (out), with every leading dimension of x folded into N.
 *
 *     dx = dy Wᵀ      dW = xᵀ dy      db = Σ_rows dy
 *
 * linear_tied is y = x Wᵀ with W (out,in): GPT-2's head, whose matrix is the token embedding (Press & Wolf 2017).
 * linear_add is y = r + x W + b and linear_gelu is y = gelu(x W + b): what follows the product is done to a tile while
 * it is in the cache, which saves a pass over memory in each direction. */
#include "few_rows.h"
#include "gelu.h"
#include "gemm.h"
#include "operation.h"
#include "ops.h"
#include "parallel.h"
#include "sums.h"

#include <string.h>

/* The least rows of x per tile. With fewer rows than that there is one row of tiles, and it is cut along the
 * outputs: decoding one token streams W through all threads. */
enum { TILE_ROWS = 128 };

/* W (in,out) is then read by slices of its rows, and wide slices are read faster: with GPT-2 small's matrices and two
 * threads, 47 GB/s by halves and 33 GB/s by 256 outputs. */
static ptrdiff_t tile_outputs(ptrdiff_t out) {
    enum { SMALLEST = 128, LARGEST = 2048, UNIT = 16 };
    ptrdiff_t tiles = out < 2 * SMALLEST ? 1 : 2 * mg_tile_count(out, 2 * LARGEST);
    return mg_tile_count(mg_tile_count(out, tiles), UNIT) * UNIT;
}

/* BLAS packs W again for every tile, so larger tiles are faster: 122, 127 and 129 GFLOP/s with 128, 192 and 384
 * rows of width 128. Forward four tiles leave work for four threads; backward, where each but the first must be added
 * up, there are two, until they are large. */
static ptrdiff_t tile_rows(ptrdiff_t n, ptrdiff_t tiles) {
    ptrdiff_t rows = mg_tile_count(mg_tile_count(n, tiles), 64) * 64;
    return rows < TILE_ROWS ? TILE_ROWS : rows > 4 * TILE_ROWS ? 4 * TILE_ROWS : rows;
}

typedef struct job {
    ptrdiff_t n, in, out;
    bool tied, gelu;
    bool few;                               /* rows, and no backward: few_rows.h computes them */
    ptrdiff_t tile_rows;                    /* what a tile takes of x's rows, … */
    const mg_real *x, *w, *bias, *residual; /* bias and residual may be NULL */
    mg_real *y, *slope;                     /* slope: gelu's at x W + b, or NULL */
    /* Backward. */
    const mg_real *dy;
    mg_real *dx, *dw, *db, *dr; /* NULL if not needed */
    mg_real dx_beta, dw_beta, db_beta, dr_beta;
    ptrdiff_t tile_in; /* … of the inputs */
    mg_range panel;    /* … and of the outputs */
    mg_real *shares;   /* the row groups' parts of dW and db */
    int first_share;   /* the first group that has one: those before it write to dW and db themselves */
} job;

/* ---- Forward ---- */

/* W's part that makes outputs begin … */
static mg_matrix weight(const job *j, ptrdiff_t begin) {
    return j->tied ? (mg_matrix){j->w + begin * j->in, j->in, true} : (mg_matrix){j->w + begin, j->out, false};
}

/* y = residual + bias, which the product is then added to: BLAS clears its result before it begins, or leaves it. */
MG_KERNEL static void preset(ptrdiff_t rows, ptrdiff_t n, const mg_real *restrict residual,
                             const mg_real *restrict bias, mg_real *restrict y, ptrdiff_t stride) {
    for (ptrdiff_t i = 0; i < rows; i++, y += stride, residual += residual ? stride : 0) {
        if (!residual) {
            memcpy(y, bias, (size_t)n * sizeof *y);
        } else if (!bias) {
            memcpy(y, residual, (size_t)n * sizeof *y);
        } else {
#pragma omp simd
            for (ptrdiff_t k = 0; k < n; k++) y[k] = residual[k] + bias[k];
        }
    }
}

/* y = gelu(y), and its slope for the backward, which then needs no exponential: half the work is common to both. */
MG_KERNEL static void gelu_rows(ptrdiff_t rows, ptrdiff_t n, mg_real *restrict y, mg_real *restrict slope,
                                ptrdiff_t stride) {
    for (ptrdiff_t i = 0; i < rows; i++, y += stride, slope += slope ? stride : 0) {
        if (slope) {
#pragma omp simd
            for (ptrdiff_t k = 0; k < n; k++) {
                mg_real x = y[k], s = mg_gelu_logistic(x);
                y[k] = mg_gelu_value(x, s);
                slope[k] = mg_gelu_slope(x, s);
            }
        } else {
#pragma omp simd
            for (ptrdiff_t k = 0; k < n; k++) y[k] = mg_gelu_value(y[k], mg_gelu_logistic(y[k]));
        }
    }
}

static const mg_few_rows *few_rows(void) {
#ifdef MG_CLONES
    if (__builtin_cpu_supports("x86-64-v4")) return &mg_few_rows_v4;
    if (__builtin_cpu_supports("x86-64-v3")) return &mg_few_rows_v3;
#endif
    return &mg_few_rows_baseline;
}

/* y = x W, or added to what was preset. */
static void multiply_few(const job *j, mg_range outputs, bool is_preset, mg_real *workspace) {
    ptrdiff_t n = outputs.end - outputs.begin;
    mg_real *y = j->y + outputs.begin;
    if (j->tied) {
        few_rows()->tied(j->n, n, j->in, j->x, j->w + outputs.begin * j->in, y, j->out);
        return;
    }
    for (ptrdiff_t i = 0; i < j->n && !is_preset; i++) memset(y + i * j->out, 0, (size_t)n * sizeof *y);
    few_rows()->plain(j->n, n, j->in, j->x, j->w + outputs.begin, j->out, y, j->out, workspace);
}

static void forward_tile(void *context, ptrdiff_t tile, void *workspace) {
    const job *j = context;
    mg_range rows = {0, j->n}, outputs = {0, j->out};
    if (j->n > TILE_ROWS)
        rows = mg_tile_range(j->n, j->tile_rows, tile);
    else
        outputs = mg_tile_range(j->out, tile_outputs(j->out), tile);
    ptrdiff_t n_rows = rows.end - rows.begin, n_out = outputs.end - outputs.begin;
    ptrdiff_t at = rows.begin * j->out + outputs.begin;
    bool is_preset = j->residual || j->bias;
    if (is_preset)
        preset(n_rows, n_out, j->residual ? j->residual + at : NULL, j->bias ? j->bias + outputs.begin : NULL,
               j->y + at, j->out);
    if (j->few)
        multiply_few(j, outputs, is_preset, workspace);
    else
        mg_gemm(n_rows, n_out, j->in, 1, (mg_matrix){j->x + rows.begin * j->in, j->in, false}, weight(j, outputs.begin),
                is_preset, j->y + at, j->out);
    if (j->gelu) gelu_rows(n_rows, n_out, j->y + at, j->slope ? j->slope + at : NULL, j->out);
}

/* ---- Backward ----
 *
 * A tile is a group of rows: it makes their dx, and their share of dW and db while dy is still in the cache. The first
 * group adds its share where it belongs, the others have a buffer each, and a second loop adds those up, always in the
 * same order. Cutting dW itself into tiles instead would read dy and x from far away again, by narrow slices of their
 * rows. A wide W is taken a panel of outputs at a time, which bounds the buffers. With a single group of rows there is
 * nothing to add up, and dx and dW are cut along the inputs. */
enum { PANEL_ELEMENTS = 1 << 20, TILE_INPUTS = 64, /* at least */ ADDING_ELEMENTS = 1 << 14 };

/* dW as a plain matrix: (in,panel), tied (panel,in). */
typedef struct share {
    mg_real *dw, *db; /* NULL if not needed */
    ptrdiff_t stride; /* of dw */
    mg_real dw_beta, db_beta;
} share;

static ptrdiff_t panel_width(const job *j) {
    return j->panel.end - j->panel.begin;
}

static ptrdiff_t share_size(const job *j) {
    return (j->in + 1) * panel_width(j);
}

static share final_share(const job *j) {
    ptrdiff_t begin = j->panel.begin;
    mg_real *dw = j->dw ? j->dw + (j->tied ? begin * j->in : begin) : NULL;
    return (share){dw, j->db ? j->db + begin : NULL, j->tied ? j->in : j->out, j->dw_beta, j->db_beta};
}

static share share_of(const job *j, ptrdiff_t group) {
    if (group < j->first_share) return final_share(j);
    mg_real *buffer = j->shares + (group - j->first_share) * share_size(j);
    ptrdiff_t n_out = panel_width(j);
    return (share){j->dw ? buffer : NULL, j->db ? buffer + j->in * n_out : NULL, j->tied ? j->in : n_out, 0, 0};
}

/* to (rows,n) = dy · slope, both (rows,stride) */
MG_KERNEL static void multiply(ptrdiff_t rows, ptrdiff_t n, const mg_real *restrict dy, const mg_real *restrict slope,
                               ptrdiff_t stride, mg_real *restrict to) {
    for (ptrdiff_t i = 0; i < rows; i++)
#pragma omp simd
        for (ptrdiff_t k = 0; k < n; k++) to[i * n + k] = dy[i * stride + k] * slope[i * stride + k];
}

MG_KERNEL static void add(ptrdiff_t n, const mg_real *restrict from, mg_real *restrict to) {
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) to[i] += from[i];
}

/* dr = dy, of the tile's rows and, where the inputs are cut, of as many of the outputs: so that where r is x, too, the
 * tile touches only its own elements. */
static void backward_residual(const job *j, mg_range rows, ptrdiff_t part) {
    ptrdiff_t parts = mg_tile_count(j->in, j->tile_in);
    mg_range outputs = mg_tile_range(j->out, mg_tile_count(j->out, parts), part);
    for (ptrdiff_t i = rows.begin; i < rows.end && outputs.begin < outputs.end; i++) {
        ptrdiff_t at = i * j->out + outputs.begin, n = outputs.end - outputs.begin;
        if (j->dr_beta == 0)
            memcpy(j->dr + at, j->dy + at, (size_t)n * sizeof *j->dr);
        else
            add(n, j->dy + at, j->dr + at);
    }
}

static void backward_tile(void *context, ptrdiff_t tile, void *workspace) {
    const job *j = context;
    ptrdiff_t parts = mg_tile_count(j->in, j->tile_in), group = tile / parts, part = tile % parts;
    mg_range rows = mg_tile_range(j->n, j->tile_rows, group), in = mg_tile_range(j->in, j->tile_in, part);
    ptrdiff_t n_rows = rows.end - rows.begin, n_in = in.end - in.begin, n_out = panel_width(j);
    ptrdiff_t begin = j->panel.begin, dy_stride = j->out;
    const mg_real *x = j->x + rows.begin * j->in + in.begin, *dy = j->dy + rows.begin * j->out + begin;
    share to = share_of(j, group);
    if (j->slope) { /* dy is that of x W + b from here on */
        multiply(n_rows, n_out, dy, j->slope + rows.begin * j->out + begin, j->out, workspace);
        dy = workspace;
        dy_stride = n_out;
    }
    if (to.db && part == 0)
        mg_sum_rows(n_rows, n_out, dy, dy_stride, 1, to.db_beta == 0, to.db); /* which warms dy, too */
    else if (!j->slope)
        mg_gemm_warm(n_rows, n_out, dy, dy_stride);
    if (j->dr && begin == 0) backward_residual(j, rows, part);
    if (j->dx) {
        mg_matrix w = j->tied ? (mg_matrix){j->w + begin * j->in + in.begin, j->in, false}
                              : (mg_matrix){j->w + in.begin * j->out + begin, j->out, true};
        mg_gemm(n_rows, n_in, n_out, 1, (mg_matrix){dy, dy_stride, false}, w, begin > 0 ? 1 : j->dx_beta,
                j->dx + rows.begin * j->in + in.begin, j->in);
    }
    if (to.dw) {
        mg_gemm_warm(n_rows, n_in, x, j->in);
        if (j->tied)
            mg_gemm(n_out, n_in, n_rows, 1, (mg_matrix){dy, dy_stride, true}, (mg_matrix){x, j->in, false}, to.dw_beta,
                    to.dw + in.begin, to.stride);
        else
            mg_gemm(n_in, n_out, n_rows, 1, (mg_matrix){x, j->in, true}, (mg_matrix){dy, dy_stride, false}, to.dw_beta,
                    to.dw + in.begin * to.stride, to.stride);
    }
}

static ptrdiff_t adding_rows(const job *j) {
    return mg_tile_count(ADDING_ELEMENTS, j->tied ? j->in : panel_width(j));
}

/* Some rows of dW, and with the first ones db: the groups' shares lie share_size apart. */
static void add_shares(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const job *j = context;
    ptrdiff_t n_out = panel_width(j), length = j->tied ? j->in : n_out;
    ptrdiff_t groups = mg_tile_count(j->n, j->tile_rows) - j->first_share;
    mg_range rows = mg_tile_range(j->tied ? n_out : j->in, adding_rows(j), tile);
    share to = final_share(j), from = share_of(j, j->first_share);
    for (ptrdiff_t i = rows.begin; to.dw && i < rows.end; i++)
        if (groups == 1)
            add(length, from.dw + i * from.stride, to.dw + i * to.stride);
        else
            mg_sum_rows(groups, length, from.dw + i * from.stride, share_size(j), 1, false, to.dw + i * to.stride);
    if (to.db && tile == 0) mg_sum_rows(groups, n_out, from.db, share_size(j), 1, false, to.db);
}

static void backward_panel(job *j) {
    ptrdiff_t groups = mg_tile_count(j->n, j->tile_rows), n_out = panel_width(j);
    size_t workspace = j->slope ? (size_t)(j->tile_rows * n_out) * sizeof(mg_real) : 0;
    mg_parallel(groups * mg_tile_count(j->in, j->tile_in), backward_tile, j, workspace);
    if (!j->shares) return;
    ptrdiff_t rows = j->dw ? j->tied ? n_out : j->in : 1;
    mg_parallel(mg_tile_count(rows, adding_rows(j)), add_shares, j, 0);
}

/* How the work is cut, and the memory for the groups' shares. */
static void plan_backward(job *j, mg_tape *tape) {
    j->tile_rows = tile_rows(j->n, 2);
    ptrdiff_t groups = mg_tile_count(j->n, j->tile_rows), parts = 1;
    if (groups == 1) parts = j->in < TILE_INPUTS ? 1 : 2 * mg_tile_count(j->in, 4 * TILE_INPUTS);
    j->tile_in = mg_tile_count(j->in, parts);
    j->panel.end = j->in > PANEL_ELEMENTS / 64 ? 64 : PANEL_ELEMENTS / j->in;
    if (j->panel.end > j->out) j->panel.end = j->out;
    /* A tensor that comes in twice has one gradient: then no tile may write to it what another one does. */
    bool twice = (j->dw && (j->dw == j->dx || j->dw == j->dr)) || (j->db && (j->db == j->dx || j->db == j->dr));
    j->first_share = twice ? 0 : 1;
    if ((j->dw || j->db) && groups > j->first_share)
        j->shares = mg_tape_alloc(tape, (size_t)(groups - j->first_share), (size_t)share_size(j) * sizeof(mg_real),
                                  "the shares of a weight's gradient");
}

static void backward(mg_tape *tape, const mg_node *node, bool tied) {
    mg_tensor *x = node->in[0], *w = node->in[1], *bias = node->in[2], *residual = node->in[3];
    job j = {.in = x->dim[x->ndim - 1], .tied = tied, .x = x->data, .w = w->data, .dy = node->out->grad};
    j.n = mg_size(x) / j.in;
    j.out = mg_size(node->out) / j.n;
    j.slope = (mg_real *)node->saved;
    j.dr = residual ? mg_grad_beta(tape, residual, &j.dr_beta) : NULL; /* the first, for it is written first */
    j.dx = mg_grad_beta(tape, x, &j.dx_beta);
    j.dw = mg_grad_beta(tape, w, &j.dw_beta);
    j.db = bias ? mg_grad_beta(tape, bias, &j.db_beta) : NULL;
    mg_arena_mark mark = mg_tape_mark(tape);
    plan_backward(&j, tape);
    for (ptrdiff_t width = panel_width(&j); j.panel.begin < j.out; j.panel.begin = j.panel.end, j.panel.end += width) {
        if (j.panel.end > j.out) j.panel.end = j.out;
        backward_panel(&j);
    }
    mg_tape_rewind(tape, mark);
}

static void linear_backward(mg_tape *tape, const mg_node *node) {
    backward(tape, node, false);
}

static void linear_tied_backward(mg_tape *tape, const mg_node *node) {
    backward(tape, node, true);
}

static const mg_op linear_op = {"linear", linear_backward};
static const mg_op linear_tied_op = {"linear_tied", linear_tied_backward};
static const mg_op linear_add_op = {"linear_add", linear_backward};
static const mg_op linear_gelu_op = {"linear_gelu", linear_backward};

/* Some tokens of one text, or one token of each of some texts: decoding. Small batches of an evaluation stay with BLAS,
 * whose bits older checkpoints have; and in portable arithmetic every product is one sum in one order already. */
static bool is_few(const mg_tensor *x) {
#ifdef MG_PORTABLE
    return false;
#endif
    bool is_decoding = x->ndim < 3 || x->dim[0] == 1 || x->dim[1] == 1;
    return is_decoding && mg_size(x) / x->dim[x->ndim - 1] <= MG_FEW_ROWS;
}

static mg_tensor *linear(mg_tape *tape, const mg_op *op, mg_tensor *x, mg_tensor *w, mg_tensor *bias,
                         mg_tensor *residual) {
    bool tied = op == &linear_tied_op;
    MG_OP_CHECK(tape, op, x->ndim >= 1 && w->ndim == 2 && x->dim[x->ndim - 1] == w->dim[tied ? 1 : 0],
                "x is %s and W is %s; x's last dimension must equal W's %s", mg_shape(x).text, mg_shape(w).text,
                tied ? "second" : "first");
    job j = {.in = x->dim[x->ndim - 1], .out = w->dim[tied ? 0 : 1], .tied = tied, .x = x->data, .w = w->data};
    MG_OP_CHECK(tape, op, !bias || (bias->ndim == 1 && bias->dim[0] == j.out), "W is %s and the bias is %s, not (%td)",
                mg_shape(w).text, bias ? mg_shape(bias).text : "", j.out);
    j.n = mg_size(x) / j.in;
    j.bias = bias ? bias->data : NULL;
    j.residual = residual ? residual->data : NULL;
    j.gelu = op == &linear_gelu_op;
    ptrdiff_t dim[MG_MAX_DIM];
    memcpy(dim, x->dim, sizeof dim);
    dim[x->ndim - 1] = j.out;
    mg_tensor *y = mg_tape_output(tape, x->ndim, dim), *in[] = {x, w, bias, residual};
    MG_OP_CHECK(tape, op, !residual || mg_same_shape(residual, y), "the result is %s and what it is added to is %s",
                mg_shape(y).text, residual ? mg_shape(residual).text : "");
    j.y = y->data;
    bool backward_follows = mg_tape_wants(tape, 4, in);
    j.few = !backward_follows && is_few(x);
    if (j.gelu && backward_follows) j.slope = mg_tape_alloc(tape, (size_t)mg_size(y), sizeof(mg_real), "gelu's slopes");
    j.tile_rows = tile_rows(j.n, 4);
    mg_parallel(j.n > TILE_ROWS ? mg_tile_count(j.n, j.tile_rows) : mg_tile_count(j.out, tile_outputs(j.out)),
                forward_tile, &j, j.few && !tied ? few_rows()->plain_bytes(j.n, j.in) : 0);
    mg_tape_append(tape, op, y, 4, in, j.slope);
    return y;
}

mg_tensor *(mg_linear)(mg_tape *tape, mg_tensor *x, mg_tensor *w, mg_tensor *bias) {
    return linear(tape, &linear_op, x, w, bias, NULL);
}

mg_tensor *(mg_linear_tied)(mg_tape *tape, mg_tensor *x, mg_tensor *w) {
    return linear(tape, &linear_tied_op, x, w, NULL, NULL);
}

mg_tensor *(mg_linear_add)(mg_tape *tape, mg_tensor *residual, mg_tensor *x, mg_tensor *w, mg_tensor *bias) {
    return linear(tape, &linear_add_op, x, w, bias, residual);
}

mg_tensor *(mg_linear_gelu)(mg_tape *tape, mg_tensor *x, mg_tensor *w, mg_tensor *bias) {
    return linear(tape, &linear_gelu_op, x, w, bias, NULL);
}
