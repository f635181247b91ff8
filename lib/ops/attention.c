/* o_i = Σ_j p_ij v_j,  p_i = softmax_j(s_ij),  s_ij = scale · q_i · k_j,  j over the keys that query i may see
 *
 * Vaswani et al. 2017, eq. 1, for each head. The mask is a length: query i sees the first mg_visible(i) keys, and the
 * loops end there. Forward keeps one number a query, L_i = log Σ_j exp(s_ij); backward makes the weights again from it,
 * p_ij = exp(s_ij − L_i) (Dao et al. 2022, algorithm 4), so that memory grows with T and not with T²:
 *
 *     dv_j  = Σ_i p_ij do_i
 *     dp_ij = do_i · v_j
 *     ds_ij = p_ij (dp_ij − D_i),   D_i = Σ_j p_ij dp_ij = do_i · o_i
 *     dq_i  = scale Σ_j ds_ij k_j
 *     dk_j  = scale Σ_i ds_ij q_i
 *
 * With dropout, p_ij is multiplied by m_ij ∈ {0, 1/(1−rate)} where it meets v, and dp_ij by the same. */
#include "attention_kernels.h"
#include "ops.h"
#include "parallel.h"

#include <string.h>

/* Queries that the backward treats together: their weights fit the first-level cache. */
enum { TILE_QUERIES = 32 };

typedef struct job {
    ptrdiff_t B, queries, keys, C, width; /* width: of a head, d_k */
    ptrdiff_t first;                      /* position of the first query: what the cache already held */
    ptrdiff_t key_stride;                 /* between a head's keys: 3C in qkv, C in a cache */
    const mg_real *qkv, *key, *value;     /* of batch 0, head 0 */
    mg_attention_options o;
    const int *lookahead;
    mg_real *out, *log_sum; /* (B,T,C), (B,H,T) */
    const mg_real *dout;
    mg_real *dqkv, dqkv_beta;
    ptrdiff_t heads_per_tile;
} job;

typedef struct saved {
    mg_real *log_sum;
    int *lookahead;
    mg_real scale, dropout;
    mg_rng rng;
    int n_head;
} saved;

/* One head of one sequence: where its parts are. */
typedef struct head {
    const mg_real *q, *k, *v;
    ptrdiff_t q_stride, k_stride, out_stride, index; /* index: b · n_head + h */
    int lookahead;
} head;

static ptrdiff_t pad(ptrdiff_t n) {
    return mg_tile_count(n, MG_LANES) * MG_LANES;
}

static head head_of(const job *j, ptrdiff_t index) {
    ptrdiff_t b = index / j->o.n_head, h = index % j->o.n_head;
    const mg_real *qkv = j->qkv + b * j->queries * 3 * j->C + h * j->width;
    head a = {.q = qkv, .k = qkv + j->C, .v = qkv + 2 * j->C};
    if (j->o.cached_keys) {
        a.k = j->key + h * j->width;
        a.v = j->value + h * j->width;
    }
    a.q_stride = 3 * j->C;
    a.k_stride = j->key_stride;
    a.out_stride = j->C;
    a.index = index;
    a.lookahead = j->lookahead ? j->lookahead[h] : 0;
    return a;
}

static ptrdiff_t visible(const job *j, const head *a, ptrdiff_t query) {
    return mg_visible(j->first + query, a->lookahead, j->keys);
}

/* to (width, pad(n)) = from (n, width) transposed, with zeros behind column n. */
static void transpose(ptrdiff_t n, ptrdiff_t width, const mg_real *from, ptrdiff_t stride, mg_real *restrict to) {
    ptrdiff_t padded = pad(n);
    for (ptrdiff_t d = 0; d < width; d++) {
        for (ptrdiff_t i = 0; i < n; i++) to[d * padded + i] = from[i * stride + d];
        for (ptrdiff_t i = n; i < padded; i++) to[d * padded + i] = 0;
    }
}

/* row[j] *= 0 or 1/(1−rate), a function of the rng and of (head, query, key) alone. */
static void drop(const job *j, const head *a, ptrdiff_t query, ptrdiff_t n, mg_real *row) {
    uint64_t base = (uint64_t)(a->index * j->queries + query) * (uint64_t)j->keys;
    for (ptrdiff_t i = 0; i < n; i++) {
        double u = mg_rng_uniform(j->o.dropout_rng, base + (uint64_t)i);
        row[i] = u < (double)j->o.dropout ? 0 : row[i] / (1 - j->o.dropout);
    }
}

/* Copy a row to where the caller looks, with `hidden` for the keys that the query does not see. */
static void capture(mg_real *to, const job *j, const head *a, ptrdiff_t query, ptrdiff_t n, const mg_real *row,
                    mg_real hidden) {
    if (!to) return;
    to += (a->index * j->queries + query) * j->keys;
    memcpy(to, row, (size_t)n * sizeof *row);
    for (ptrdiff_t i = n; i < j->keys; i++) to[i] = hidden;
}

/* Workspace: transposed keys (width, pad(keys)), then a row of weights. Few queries do without the transposed keys. */
MG_KERNEL static void forward_head(const job *j, const head *a, mg_real *workspace) {
    ptrdiff_t padded = pad(j->keys), b = a->index / j->o.n_head, h = a->index % j->o.n_head;
    mg_real *keys_t = workspace, *row = workspace + j->width * padded;
    bool transposed = j->queries >= 4;
    if (transposed) transpose(j->keys, j->width, a->k, a->k_stride, keys_t);
    for (ptrdiff_t i = 0; i < j->queries; i++) {
        const mg_real *q = a->q + i * a->q_stride;
        ptrdiff_t n = visible(j, a, i);
        if (transposed)
            mg_row_times_columns(n, j->width, q, keys_t, padded, row);
        else
            for (ptrdiff_t k = 0; k < n; k++) row[k] = mg_dot(j->width, q, a->k + k * a->k_stride);
#pragma omp simd
        for (ptrdiff_t k = 0; k < n; k++) row[k] *= j->o.scale;
        capture(j->o.scores, j, a, i, n, row, -INFINITY);
        j->log_sum[a->index * j->queries + i] = mg_softmax_row(n, row);
        capture(j->o.weights, j, a, i, n, row, 0);
        if (j->o.dropout > 0) drop(j, a, i, n, row);
        mg_weighted_rows(n, j->width, row, 1, a->v, a->k_stride, false,
                         j->out + (b * j->queries + i) * j->C + h * j->width);
    }
}

/* The gradient's parts of one head in the workspace, (T, width) each, and what a tile of queries needs. */
typedef struct backward_space {
    mg_real *keys_t, *values_t; /* (width, pad(T)) */
    mg_real *dk, *dv;           /* (T, width) */
    mg_real *p, *ds;            /* (TILE_QUERIES, pad(T)) */
} backward_space;

static backward_space lay_out(const job *j, mg_real *memory) {
    ptrdiff_t padded = pad(j->keys), columns = j->width * padded;
    backward_space w = {.keys_t = memory, .values_t = memory + columns};
    w.dk = memory + 2 * columns;
    w.dv = w.dk + columns;
    w.p = w.dv + columns;
    w.ds = w.p + TILE_QUERIES * padded;
    return w;
}

static size_t backward_bytes(const job *j) {
    return (size_t)((4 * j->width + 2 * TILE_QUERIES) * pad(j->keys)) * sizeof(mg_real);
}

/* Weights and score gradients of one query: rows p and ds, already masked by their length n. */
MG_INLINE void backward_query(const job *j, const head *a, const backward_space *w, ptrdiff_t i, ptrdiff_t n,
                              const mg_real *dout, const mg_real *out, mg_real *restrict p, mg_real *restrict ds) {
    ptrdiff_t padded = pad(j->keys);
    mg_real scale = j->o.scale, log_sum = j->log_sum[a->index * j->queries + i], D = mg_dot(j->width, dout, out);
    mg_row_times_columns(n, j->width, a->q + i * a->q_stride, w->keys_t, padded, p);
    mg_row_times_columns(n, j->width, dout, w->values_t, padded, ds);
    if (j->o.dropout > 0) drop(j, a, i, n, ds);
#pragma omp simd
    for (ptrdiff_t k = 0; k < n; k++) {
        p[k] = mg_exp_real(p[k] * scale - log_sum);
        ds[k] = p[k] * (ds[k] - D) * scale;
    }
    if (j->o.dropout > 0) drop(j, a, i, n, p);
}

/* The first query of begin … that sees key k. */
static ptrdiff_t first_query(const job *j, const head *a, ptrdiff_t begin, ptrdiff_t k) {
    while (visible(j, a, begin) <= k) begin++;
    return begin;
}

MG_KERNEL static void backward_tile_of_queries(const job *j, const head *a, const backward_space *w, mg_range r,
                                               const mg_real *dout, const mg_real *out, mg_real *dq_rows) {
    ptrdiff_t padded = pad(j->keys), T = j->keys;
    mg_real dq[256];
    for (ptrdiff_t i = r.begin; i < r.end; i++) {
        mg_real *p = w->p + (i - r.begin) * padded, *ds = w->ds + (i - r.begin) * padded;
        ptrdiff_t n = visible(j, a, i);
        backward_query(j, a, w, i, n, dout + i * a->out_stride, out + i * a->out_stride, p, ds);
        for (ptrdiff_t d = 0; d < j->width; d += 256) { /* dq_i = Σ_j ds_ij k_j, the scale being in ds */
            ptrdiff_t part = j->width - d < 256 ? j->width - d : 256;
            mg_weighted_rows(n, part, ds, 1, a->k + d, a->k_stride, false, dq);
            mg_real *to = dq_rows + i * 3 * j->C + d;
            for (ptrdiff_t c = 0; c < part; c++) to[c] = j->dqkv_beta == 0 ? dq[c] : to[c] + dq[c];
        }
    }
    ptrdiff_t seen = visible(j, a, r.end - 1);
    for (ptrdiff_t k = 0; k < seen && k < T; k++) {
        ptrdiff_t i = first_query(j, a, r.begin, k), n = r.end - i, at = (i - r.begin) * padded + k;
        mg_weighted_rows(n, j->width, w->p + at, padded, dout + i * a->out_stride, a->out_stride, true,
                         w->dv + k * j->width);
        mg_weighted_rows(n, j->width, w->ds + at, padded, a->q + i * a->q_stride, a->q_stride, true,
                         w->dk + k * j->width);
    }
}

static void store_rows(const job *j, const mg_real *from, mg_real *to) {
    for (ptrdiff_t i = 0; i < j->keys; i++)
        for (ptrdiff_t d = 0; d < j->width; d++) {
            mg_real *x = to + i * 3 * j->C + d;
            *x = j->dqkv_beta == 0 ? from[i * j->width + d] : *x + from[i * j->width + d];
        }
}

static void backward_head(const job *j, const head *a, mg_real *workspace) {
    backward_space w = lay_out(j, workspace);
    ptrdiff_t b = a->index / j->o.n_head, h = a->index % j->o.n_head, corner = b * j->queries * j->C + h * j->width;
    mg_real *dqkv = j->dqkv + 3 * b * j->queries * j->C + h * j->width;
    transpose(j->keys, j->width, a->k, a->k_stride, w.keys_t);
    transpose(j->keys, j->width, a->v, a->k_stride, w.values_t);
    memset(w.dk, 0, (size_t)(j->keys * j->width) * sizeof(mg_real));
    memset(w.dv, 0, (size_t)(j->keys * j->width) * sizeof(mg_real));
    ptrdiff_t tiles = mg_tile_count(j->queries, TILE_QUERIES);
    for (ptrdiff_t tile = 0; tile < tiles; tile++)
        backward_tile_of_queries(j, a, &w, mg_tile_range(j->queries, TILE_QUERIES, tile), j->dout + corner,
                                 j->out + corner, dqkv);
    store_rows(j, w.dk, dqkv + j->C);
    store_rows(j, w.dv, dqkv + 2 * j->C);
}

static void forward_tile(void *context, ptrdiff_t tile, void *workspace) {
    const job *j = context;
    mg_range r = mg_tile_range(j->B * j->o.n_head, j->heads_per_tile, tile);
    for (ptrdiff_t index = r.begin; index < r.end; index++) {
        head a = head_of(j, index);
        forward_head(j, &a, workspace);
    }
}

static void backward_tile(void *context, ptrdiff_t tile, void *workspace) {
    const job *j = context;
    head a = head_of(j, tile);
    backward_head(j, &a, workspace);
}

static void attention_backward(mg_tape *tape, const mg_node *node) {
    mg_tensor *qkv = node->in[0];
    const saved *s = node->saved;
    job j = {.B = qkv->dim[0], .queries = qkv->dim[1], .keys = qkv->dim[1], .C = qkv->dim[2] / 3, .qkv = qkv->data};
    j.o = (mg_attention_options){.n_head = s->n_head, .scale = s->scale, .dropout = s->dropout, .dropout_rng = s->rng};
    j.width = j.C / s->n_head;
    j.key_stride = 3 * j.C;
    j.lookahead = s->lookahead;
    j.log_sum = s->log_sum;
    j.out = node->out->data;
    j.dout = node->out->grad;
    j.dqkv = mg_grad_beta(tape, qkv, &j.dqkv_beta);
    if (j.dqkv) mg_parallel(j.B * s->n_head, backward_tile, &j, backward_bytes(&j));
}

static const mg_op op = {"attention", attention_backward};

/* The new keys and values go behind those the cache holds; the queries then look there. */
static void append_to_cache(job *j) {
    const mg_attention_options *o = &j->o;
    j->key = o->cached_keys;
    j->value = o->cached_values;
    j->first = o->cached;
    j->keys = o->cached + j->queries;
    j->key_stride = j->C;
    for (ptrdiff_t i = 0; i < j->queries; i++) {
        const mg_real *token = j->qkv + i * 3 * j->C;
        ptrdiff_t to = (o->cached + i) * j->C;
        memcpy(o->cached_keys + to, token + j->C, (size_t)j->C * sizeof(mg_real));
        memcpy(o->cached_values + to, token + 2 * j->C, (size_t)j->C * sizeof(mg_real));
    }
}

static const saved *save(mg_tape *tape, const job *j) {
    saved *s = mg_tape_alloc(tape, 1, sizeof *s, "attention's state");
    *s = (saved){j->log_sum, NULL, j->o.scale, j->o.dropout, j->o.dropout_rng, j->o.n_head};
    if (!j->o.lookahead) return s;
    s->lookahead = mg_tape_alloc(tape, (size_t)j->o.n_head, sizeof(int), "attention's state");
    memcpy(s->lookahead, j->o.lookahead, (size_t)j->o.n_head * sizeof(int));
    return s;
}

mg_tensor *(mg_attention)(mg_tape *tape, mg_tensor *qkv, const mg_attention_options *options) {
    MG_OP_CHECK(
        tape, &op, options->n_head >= 1 && qkv->ndim == 3 && qkv->dim[2] % (3 * (ptrdiff_t)options->n_head) == 0,
        "qkv is %s; it must be (B, T, 3C) with C a multiple of the %d heads", mg_shape(qkv).text, options->n_head);
    for (int h = 0; options->lookahead && h < options->n_head; h++)
        MG_OP_CHECK(tape, &op, options->lookahead[h] >= 0, "head %d looks %d positions ahead; that cannot be negative",
                    h, options->lookahead[h]);
    MG_OP_CHECK(tape, &op, options->dropout >= 0 && options->dropout < 1, "dropout is %g; it must be in [0, 1)",
                (double)options->dropout);
    job j = {.B = qkv->dim[0], .queries = qkv->dim[1], .keys = qkv->dim[1], .C = qkv->dim[2] / 3, .qkv = qkv->data};
    j.o = *options;
    j.lookahead = options->lookahead;
    j.width = j.C / options->n_head;
    j.key_stride = 3 * j.C;
    if (options->cached_keys) {
        MG_OP_CHECK(tape, &op, j.B == 1 && !mg_tape_wants(tape, 1, &qkv),
                    "a cache serves one sequence at a time and no backward; qkv is %s", mg_shape(qkv).text);
        append_to_cache(&j);
    }
    mg_tensor *out = mg_tape_output(tape, 3, (ptrdiff_t[]){j.B, j.queries, j.C});
    j.out = out->data;
    j.log_sum = mg_tape_alloc(tape, (size_t)(j.B * options->n_head * j.queries), sizeof(mg_real), "attention's sums");
    /* Heads so small that starting a thread costs more than they do go together. */
    ptrdiff_t work = j.queries * j.keys * j.width, heads = j.B * options->n_head;
    j.heads_per_tile = work >= 16384 ? 1 : 16384 / work < heads ? 16384 / work : heads;
    mg_parallel(mg_tile_count(heads, j.heads_per_tile), forward_tile, &j,
                (size_t)((j.width + 1) * pad(j.keys)) * sizeof(mg_real));
    mg_tape_append(tape, &op, out, 1, &qkv, save(tape, &j));
    return out;
}
