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
    ptrdiff_t q_stride, k_stride, index; /* index: b · n_head + h */
    int lookahead;
} head;

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
    a.index = index;
    a.lookahead = j->lookahead ? j->lookahead[h] : 0;
    return a;
}

static ptrdiff_t visible(const job *j, const head *a, ptrdiff_t query) {
    return mg_visible(j->first + query, a->lookahead, j->keys);
}

/* to (width, mg_pad(n)) = from (n, width) transposed, with zeros behind column n. */
static void transpose(ptrdiff_t n, ptrdiff_t width, const mg_real *from, ptrdiff_t stride, mg_real *restrict to) {
    ptrdiff_t padded = mg_pad(n);
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

/* From here on, an array that belongs to a head is read as `rows of width`, whatever memory it stands in. */
typedef struct rows {
    mg_real *data;
    ptrdiff_t stride;
} rows;

/* Scores of R queries from `query` on, for all keys that the last of them sees. */
MG_INLINE void score(const int R, const job *j, const head *a, ptrdiff_t query, const mg_real *keys_t, mg_real *row) {
    const mg_real *q = a->q + query * a->q_stride;
    ptrdiff_t n = visible(j, a, query + R - 1), padded = mg_pad(j->keys);
    if (keys_t) {
        mg_rows_times_columns(R, n, j->width, q, a->q_stride, keys_t, padded, row, padded);
        return;
    }
    for (int r = 0; r < R; r++)
        for (ptrdiff_t k = 0; k < n; k++)
            row[r * padded + k] = mg_dot(j->width, q + r * a->q_stride, a->k + k * a->k_stride);
}

/* out = weights · values for R queries: together over the keys that all of them see, then each its own rest. */
MG_INLINE void mix(const int R, const job *j, const head *a, ptrdiff_t query, const mg_real *row, rows values,
                   rows out) {
    ptrdiff_t common = visible(j, a, query), padded = mg_pad(j->keys);
    mg_weighted_rows(R, common, j->width, row, padded, 1, values.data, values.stride, false, out.data, out.stride);
    for (int r = 1; r < R; r++)
        mg_weighted_rows(1, visible(j, a, query + r) - common, j->width, row + r * padded + common, 0, 1,
                         values.data + common * values.stride, values.stride, true, out.data + r * out.stride, 0);
}

MG_INLINE void forward_queries(const int R, const job *j, const head *a, ptrdiff_t query, const mg_real *keys_t,
                               mg_real *row) {
    ptrdiff_t b = a->index / j->o.n_head, h = a->index % j->o.n_head;
    score(R, j, a, query, keys_t, row);
    for (int r = 0; r < R; r++) {
        mg_real *weights = row + r * mg_pad(j->keys);
        ptrdiff_t n = visible(j, a, query + r);
#pragma omp simd
        for (ptrdiff_t k = 0; k < mg_pad(n); k++) weights[k] *= j->o.scale;
        capture(j->o.scores, j, a, query + r, n, weights, -INFINITY);
        j->log_sum[a->index * j->queries + query + r] = mg_softmax_row(n, weights);
        capture(j->o.weights, j, a, query + r, n, weights, 0);
        if (j->o.dropout > 0) drop(j, a, query + r, n, weights);
    }
    mix(R, j, a, query, row, (rows){(mg_real *)a->v, a->k_stride},
        (rows){j->out + (b * j->queries + query) * j->C + h * j->width, j->C});
}

/* Workspace: transposed keys (width, mg_pad(keys)), then a group's rows of weights. One query does without the
 * transposed keys: it would read each of them once. */
MG_KERNEL static void forward_head(const job *j, const head *a, mg_real *workspace) {
    mg_real *keys_t = j->queries >= MG_GROUP ? workspace : NULL, *row = workspace + j->width * mg_pad(j->keys);
    if (keys_t) transpose(j->keys, j->width, a->k, a->k_stride, keys_t);
    ptrdiff_t i = 0;
    for (; i + MG_GROUP <= j->queries; i += MG_GROUP) forward_queries(MG_GROUP, j, a, i, keys_t, row);
    for (; i < j->queries; i++) forward_queries(1, j, a, i, keys_t, row);
}

static size_t forward_bytes(const job *j) {
    return (size_t)((j->width + MG_GROUP) * mg_pad(j->keys)) * sizeof(mg_real);
}

/* The workspace of one head's backward. */
typedef struct backward_space {
    mg_real *keys_t, *values_t; /* (width, mg_pad(T)) */
    mg_real *k, *dk, *dv;       /* (T, width) */
    mg_real *q, *dout, *dq;     /* (TILE_QUERIES, width) */
    mg_real *p, *ds;            /* (TILE_QUERIES, mg_pad(T)) */
} backward_space;

static backward_space lay_out(const job *j, mg_real *memory) {
    ptrdiff_t padded = mg_pad(j->keys), columns = j->width * padded, tile = TILE_QUERIES * j->width;
    backward_space w = {.keys_t = memory, .values_t = memory + columns, .k = memory + 2 * columns};
    w.dk = w.k + columns;
    w.dv = w.dk + columns;
    w.q = w.dv + columns;
    w.dout = w.q + tile;
    w.dq = w.dout + tile;
    w.p = w.dq + tile;
    w.ds = w.p + TILE_QUERIES * padded;
    return w;
}

static size_t backward_bytes(const job *j) {
    ptrdiff_t padded = mg_pad(j->keys);
    return (size_t)(5 * j->width * padded + TILE_QUERIES * (3 * j->width + 2 * padded)) * sizeof(mg_real);
}

static void copy_rows(ptrdiff_t n, ptrdiff_t width, const mg_real *from, ptrdiff_t stride, mg_real *restrict to) {
    for (ptrdiff_t i = 0; i < n; i++) memcpy(to + i * width, from + i * stride, (size_t)width * sizeof(mg_real));
}

/* Weights and score gradients of a query whose greatest score, and so log_sum, is infinite: those of mg_softmax. D is
 * summed from the weights and not taken from the output: it is then exact where one key has all the weight, and what
 * makes a score infinite meets a gradient of 0, not a rounding error. */
static void backward_limit(ptrdiff_t n, mg_real scale, mg_real *p, mg_real *ds) {
    mg_real D = 0;
    for (ptrdiff_t k = 0; k < n; k++) p[k] *= scale;
    mg_softmax_limit(n, p, p);
    for (ptrdiff_t k = 0; k < n; k++) D += p[k] * ds[k];
    for (ptrdiff_t k = 0; k < n; k++) ds[k] = p[k] * (ds[k] - D) * scale;
}

/* Weights and score gradients of R queries, `query` being the first and `at` its place in the tile. */
MG_INLINE void backward_queries(const int R, const job *j, const head *a, const backward_space *w, ptrdiff_t query,
                                ptrdiff_t at, const mg_real *out) {
    ptrdiff_t padded = mg_pad(j->keys), n = visible(j, a, query + R - 1);
    mg_real *p = w->p + at * padded, *ds = w->ds + at * padded, scale = j->o.scale;
    const mg_real *dout = w->dout + at * j->width;
    mg_rows_times_columns(R, n, j->width, w->q + at * j->width, j->width, w->keys_t, padded, p, padded);
    mg_rows_times_columns(R, n, j->width, dout, j->width, w->values_t, padded, ds, padded);
    for (int r = 0; r < R; r++, p += padded, ds += padded, dout += j->width) {
        mg_real log_sum = j->log_sum[a->index * j->queries + query + r];
        mg_real D = mg_dot(j->width, dout, out + (query + r) * j->C);
        n = visible(j, a, query + r);
        if (j->o.dropout > 0) drop(j, a, query + r, n, ds);
        if (isinf(log_sum)) {
            backward_limit(n, scale, p, ds);
        } else {
#pragma omp simd
            for (ptrdiff_t k = 0; k < mg_pad(n); k++) {
                p[k] = mg_exp_real(p[k] * scale - log_sum);
                ds[k] = p[k] * (ds[k] - D) * scale;
            }
        }
        if (j->o.dropout > 0) drop(j, a, query + r, n, p);
    }
    mix(R, j, a, query, w->ds + at * padded, (rows){w->k, j->width}, (rows){w->dq + at * j->width, j->width});
}

/* The first query of the tile, counted from its beginning, that sees key k. */
static ptrdiff_t first_to_see(const job *j, const head *a, mg_range tile, ptrdiff_t k) {
    ptrdiff_t i = k - j->first - a->lookahead - tile.begin; /* mg_visible(i) > k, solved for i */
    if (a->lookahead >= j->keys || i < 0) return 0;
    return i < tile.end - tile.begin ? i : tile.end - tile.begin;
}

/* to[k] += Σ_i weights[i][k] · from[i] for R keys: together over the queries that see all of them, each its own rest.
 */
MG_INLINE void collect(const int R, const job *j, const head *a, mg_range tile, ptrdiff_t k, const mg_real *weights,
                       const mg_real *from, mg_real *to) {
    ptrdiff_t padded = mg_pad(j->keys), all = first_to_see(j, a, tile, k + R - 1), n = tile.end - tile.begin;
    mg_weighted_rows(R, n - all, j->width, weights + all * padded + k, 1, padded, from + all * j->width, j->width, true,
                     to + k * j->width, j->width);
    for (int r = 0; r + 1 < R; r++) {
        ptrdiff_t i = first_to_see(j, a, tile, k + r);
        mg_weighted_rows(1, all - i, j->width, weights + i * padded + k + r, 0, padded, from + i * j->width, j->width,
                         true, to + (k + r) * j->width, 0);
    }
}

/* rows of dqkv = or += rows of `from`, as dqkv_beta says. */
static void put_rows(const job *j, ptrdiff_t n, const mg_real *from, mg_real *to) {
    for (ptrdiff_t i = 0; i < n; i++, from += j->width, to += 3 * j->C) {
        if (j->dqkv_beta == 0)
            memcpy(to, from, (size_t)j->width * sizeof(mg_real));
        else
            for (ptrdiff_t d = 0; d < j->width; d++) to[d] += from[d];
    }
}

MG_KERNEL static void backward_queries_of_tile(const job *j, const head *a, const backward_space *w, mg_range tile,
                                               const mg_real *out) {
    ptrdiff_t n = tile.end - tile.begin, i = 0, k = 0, seen = visible(j, a, tile.end - 1);
    for (; i + MG_GROUP <= n; i += MG_GROUP) backward_queries(MG_GROUP, j, a, w, tile.begin + i, i, out);
    for (; i < n; i++) backward_queries(1, j, a, w, tile.begin + i, i, out);
    for (; k + MG_GROUP <= seen; k += MG_GROUP) {
        collect(MG_GROUP, j, a, tile, k, w->p, w->dout, w->dv);
        collect(MG_GROUP, j, a, tile, k, w->ds, w->q, w->dk);
    }
    for (; k < seen; k++) {
        collect(1, j, a, tile, k, w->p, w->dout, w->dv);
        collect(1, j, a, tile, k, w->ds, w->q, w->dk);
    }
}

static void backward_head(const job *j, const head *a, mg_real *workspace) {
    backward_space w = lay_out(j, workspace);
    ptrdiff_t b = a->index / j->o.n_head, h = a->index % j->o.n_head, corner = b * j->queries * j->C + h * j->width;
    mg_real *dqkv = j->dqkv + 3 * b * j->queries * j->C + h * j->width;
    transpose(j->keys, j->width, a->k, a->k_stride, w.keys_t);
    transpose(j->keys, j->width, a->v, a->k_stride, w.values_t);
    copy_rows(j->keys, j->width, a->k, a->k_stride, w.k);
    memset(w.dk, 0, (size_t)(j->keys * j->width) * sizeof(mg_real));
    memset(w.dv, 0, (size_t)(j->keys * j->width) * sizeof(mg_real));
    ptrdiff_t tiles = mg_tile_count(j->queries, TILE_QUERIES);
    for (ptrdiff_t t = 0; t < tiles; t++) {
        mg_range tile = mg_tile_range(j->queries, TILE_QUERIES, t);
        ptrdiff_t n = tile.end - tile.begin;
        copy_rows(n, j->width, a->q + tile.begin * a->q_stride, a->q_stride, w.q);
        copy_rows(n, j->width, j->dout + corner + tile.begin * j->C, j->C, w.dout);
        backward_queries_of_tile(j, a, &w, tile, j->out + corner);
        put_rows(j, n, w.dq, dqkv + tile.begin * 3 * j->C);
    }
    put_rows(j, j->keys, w.dk, dqkv + j->C);
    put_rows(j, j->keys, w.dv, dqkv + 2 * j->C);
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
    mg_parallel(mg_tile_count(heads, j.heads_per_tile), forward_tile, &j, forward_bytes(&j));
    mg_tape_append(tape, &op, out, 1, &qkv, save(tape, &j));
    return out;
}
