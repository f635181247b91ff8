/* attention_heads.h, for the processor that this file is compiled for. attention.c has the formulas. */
#include "attention_heads.h"
#include "attention_kernels.h"
#include "parallel.h"

#include <string.h>

#ifndef MG_ATTENTION_HEADS
#define MG_ATTENTION_HEADS mg_attention_heads_baseline
#endif

typedef mg_attention_job job;

enum { TILE_QUERIES = 32 }; /* that are processed together, at most */

/* One head of one sequence: where its parts are. */
typedef struct head {
    const mg_real *q, *k, *v;
    ptrdiff_t q_stride, k_stride, index; /* index: b · n_head + h */
    mg_mask mask;
    const mg_interval *sequence; /* of its queries; NULL: none */
    bool is_stairs;              /* every query sees from key 0 on, each at most one key more than the one before it */
} head;

static head head_of(const job *j, ptrdiff_t index) {
    ptrdiff_t b = index / j->o.n_head, h = index % j->o.n_head;
    const mg_real *qkv = j->qkv + b * j->queries * 3 * j->C + h * j->width;
    head a = {.q = qkv, .k = qkv + j->C, .v = qkv + 2 * j->C};
    if (j->key) {
        a.k = j->key + h * j->width;
        a.v = j->value + h * j->width;
    }
    a.q_stride = 3 * j->C;
    a.k_stride = j->key_stride;
    a.index = index;
    if (j->o.mask) a.mask = j->o.mask[h];
    if (j->o.sequence) a.sequence = j->o.sequence + b * j->queries;
    a.is_stairs = a.mask.kind == MG_MASK_LOOKAHEAD && !a.sequence;
    return a;
}

__attribute__((noinline)) static mg_interval visible_if_ragged(const job *j, const head *a, ptrdiff_t query) {
    mg_interval keys = mg_visible(a->mask, j->first + query, j->first_key + j->keys);
    if (a->sequence) keys = mg_intersection(keys, a->sequence[query]);
    return (mg_interval){keys.first - j->first_key, keys.end - j->first_key};
}

/* The keys that a query sees, counted from the first that is at hand. The common case is inlined, its kind known. */
MG_INLINE mg_interval visible(const job *j, const head *a, ptrdiff_t query) {
    if (!a->is_stairs) return visible_if_ragged(j, a, query);
    return mg_visible(mg_lookahead(a->mask.n), j->first + query, j->keys);
}

/* A head's width, rounded up to whole vectors. */
static ptrdiff_t padded(const job *j) {
    return mg_pad(j->width);
}

/* Between two rows of weights. One vector more than the keys need: with a power of two, the same key's weight of many
 * queries would fall into a few lines of the cache and evict each other. */
static ptrdiff_t row_stride(const job *j) {
    return mg_pad(j->keys) + MG_LANES;
}

/* row[j] *= 0 or 1/(1−rate), a function only of the rng and of (head, query, key). */
static void drop(const job *j, const head *a, ptrdiff_t query, mg_interval keys, mg_real *row) {
    uint64_t base = (uint64_t)(a->index * j->queries + query) * (uint64_t)j->keys;
    for (ptrdiff_t i = keys.first; i < keys.end; i++) {
        double u = mg_rng_uniform(j->o.dropout_rng, base + (uint64_t)i);
        row[i] = u < (double)j->o.dropout ? 0 : row[i] / (1 - j->o.dropout);
    }
}

/* Give each array its part of `memory`, which may be NULL; returns the bytes that all need. */
static size_t lay_out(int n, mg_real **array[], const ptrdiff_t *size, mg_real *memory) {
    ptrdiff_t used = 0;
    for (int i = 0; i < n; used += size[i++]) *array[i] = memory ? memory + used : NULL;
    return (size_t)used * sizeof *memory;
}

/* Copy a row, times factor, to where the caller looks, with `hidden` for the keys that the query does not see. */
static void capture(mg_real *to, const job *j, const head *a, ptrdiff_t query, mg_interval keys, const mg_real *row,
                    mg_real factor, mg_real hidden) {
    if (!to) return;
    to += (a->index * j->all_queries + j->done + query) * j->all_keys;
    for (ptrdiff_t i = 0; i < j->all_keys; i++) to[i] = hidden;
    for (ptrdiff_t i = keys.first; i < keys.end; i++) to[j->first_key + i] = row[i] * factor;
}

/* Rows of a head, `stride` apart, in whatever memory they are. */
typedef struct rows {
    mg_real *data;
    ptrdiff_t stride;
} rows;

/* Products of R rows, that of `query` being the first, with the keys in a panel up to the last that one of them sees.
 */
MG_INLINE void score_panel(const int R, const job *j, const head *a, ptrdiff_t query, ptrdiff_t panel, rows from,
                           const mg_real *panels, mg_real factor, mg_real *to) {
    ptrdiff_t n = visible(j, a, query + R - 1).end - panel * MG_PANEL;
    if (n <= 0 || visible(j, a, query).first >= (panel + 1) * MG_PANEL) return;
    mg_rows_times_panel(R, n < MG_PANEL ? n : MG_PANEL, j->width, from.data, from.stride,
                        panels + panel * MG_PANEL * j->width, factor, to + panel * MG_PANEL, row_stride(j));
}

/* to = factor · from · panels for a tile of queries, where one of a group sees; a panel serves all while it is near. */
MG_INLINE void score(const job *j, const head *a, mg_range tile, rows from, const mg_real *panels, mg_real factor,
                     mg_real *to) {
    ptrdiff_t n = tile.end - tile.begin, n_panels = mg_tile_count(visible(j, a, tile.end - 1).end, MG_PANEL);
    for (ptrdiff_t panel = visible(j, a, tile.begin).first / MG_PANEL; panel < n_panels; panel++) {
        ptrdiff_t i = 0;
        for (; i + MG_GROUP <= n; i += MG_GROUP)
            score_panel(MG_GROUP, j, a, tile.begin + i, panel, (rows){from.data + i * from.stride, from.stride}, panels,
                        factor, to + i * row_stride(j));
        for (; i < n; i++)
            score_panel(1, j, a, tile.begin + i, panel, (rows){from.data + i * from.stride, from.stride}, panels,
                        factor, to + i * row_stride(j));
    }
}

/* to (n, padded) = n rows of a head, padded with zeros, so that loops over a row end with a whole vector. */
static void copy_rows(const job *j, ptrdiff_t n, const mg_real *from, ptrdiff_t stride, mg_real *restrict to) {
    for (ptrdiff_t i = 0; i < n; i++, from += stride, to += padded(j)) {
        if (i + MG_AHEAD < n) mg_prefetch(j->width, from + MG_AHEAD * stride);
        memcpy(to, from, (size_t)j->width * sizeof *to);
        for (ptrdiff_t d = j->width; d < padded(j); d++) to[d] = 0;
    }
}

/* mg_ragged_rows, for a group or for one. Not inlined: beside it, the loops for stairs would be slower. */
__attribute__((noinline)) static void ragged_rows(int R, const mg_interval *interval, ptrdiff_t width,
                                                  const mg_real *weights, ptrdiff_t across, ptrdiff_t along, rows from,
                                                  const mg_real *factor, bool add, mg_real *out, ptrdiff_t out_stride) {
    if (R == MG_GROUP)
        mg_ragged_rows(MG_GROUP, interval, width, weights, across, along, from.data, from.stride, factor, add, out,
                       out_stride);
    else
        mg_ragged_rows(1, interval, width, weights, across, along, from.data, from.stride, factor, add, out,
                       out_stride);
}

/* out = factor · weights · values for R queries that see these keys, in `width` columns. */
MG_INLINE void mix(const int R, const job *j, const head *a, const mg_interval *keys, const mg_real *weights,
                   ptrdiff_t width, rows values, const mg_real *factor, mg_real *out) {
    if (a->is_stairs)
        mg_weighted_rows(R, keys[0].end, (int)(keys[R - 1].end - keys[0].end), width, weights, row_stride(j), 1,
                         values.data, values.stride, factor, false, out, padded(j));
    else
        ragged_rows(R, keys, width, weights, row_stride(j), 1, values, factor, false, out, padded(j));
}

/* Scores become weights, and weights the output. */
MG_INLINE void forward_queries(const int R, const job *j, const head *a, ptrdiff_t query, mg_real *row, ptrdiff_t width,
                               rows values, mg_real *mixed) {
    ptrdiff_t b = a->index / j->o.n_head, h = a->index % j->o.n_head;
    mg_real *out = j->out + (b * j->queries + query) * j->C + h * j->width, factor[MG_GROUP];
    mg_interval keys[MG_GROUP];
    for (int r = 0; r < R; r++) {
        keys[r] = visible(j, a, query + r);
        capture(j->o.scores, j, a, query + r, keys[r], row + r * row_stride(j), 1, -INFINITY);
    }
    ptrdiff_t at = a->index * j->queries + query;
    mg_softmax_rows(R, keys, row, row_stride(j), factor, j->greatest + at);
    for (int r = 0; r < R; r++) {
        j->inverse[at + r] = factor[r];
        capture(j->o.weights, j, a, query + r, keys[r], row + r * row_stride(j), factor[r], 0);
        if (j->o.dropout > 0) drop(j, a, query + r, keys[r], row + r * row_stride(j));
    }
    mix(R, j, a, keys, row, width, values, factor, mixed);
    for (int r = 0; r < R; r++) memcpy(out + r * j->C, mixed + r * padded(j), (size_t)j->width * sizeof *out);
}

/* The workspace of one head's forward. */
typedef struct forward_space {
    mg_real *keys;   /* panels */
    mg_real *values; /* (T, padded), if a head's width is not a whole number of vectors */
    mg_real *out;    /* (MG_GROUP, padded) */
    mg_real *row;    /* (tile_queries, row_stride): scores, then weights */
} forward_space;

/* As many queries as have their weights in the first-level cache, in whole groups. */
static ptrdiff_t tile_queries(const job *j) {
    enum { ELEMENTS = 8192 };
    ptrdiff_t n = ELEMENTS / row_stride(j) / MG_GROUP * MG_GROUP;
    return n < MG_GROUP ? MG_GROUP : n > TILE_QUERIES ? TILE_QUERIES : n;
}

static size_t lay_out_forward(const job *j, mg_real *memory, forward_space *w) {
    mg_real **array[] = {&w->keys, &w->values, &w->out, &w->row};
    ptrdiff_t size[] = {mg_panels_size(j->keys, j->width), padded(j) == j->width ? 0 : j->keys * padded(j),
                        MG_GROUP * padded(j), tile_queries(j) * row_stride(j)};
    return lay_out(4, array, size, memory);
}

/* A few queries of a cache do without copies: they would read each key and value hardly more often than making them
 * does. Without a cache there may be a backward, which must meet the same scores, summed in the same order. */
static void forward_few(const job *j, const head *a, const forward_space *w) {
    for (ptrdiff_t i = 0; i < j->queries; i++) {
        const mg_real *q = a->q + i * a->q_stride;
        mg_interval keys = visible(j, a, i);
        for (ptrdiff_t k = keys.first; k < keys.end; k++) {
            if (k + MG_AHEAD < keys.end) mg_prefetch(j->width, a->k + (k + MG_AHEAD) * a->k_stride);
            mg_prefetch(j->width, a->v + k * a->k_stride);
            w->row[k] = mg_dot(j->width, q, a->k + k * a->k_stride) * j->o.scale;
        }
        forward_queries(1, j, a, i, w->row, j->width, (rows){(mg_real *)a->v, a->k_stride}, w->out);
    }
}

static void forward_queries_of_tile(const job *j, const head *a, const forward_space *w, mg_range tile) {
    rows values = {w->values, padded(j)};
    if (padded(j) == j->width) values = (rows){(mg_real *)a->v, a->k_stride};
    ptrdiff_t i = tile.begin;
    mg_real *row = w->row;
    score(j, a, tile, (rows){(mg_real *)a->q + i * a->q_stride, a->q_stride}, w->keys, j->o.scale, row);
    for (; i + MG_GROUP <= tile.end; i += MG_GROUP, row += MG_GROUP * row_stride(j))
        forward_queries(MG_GROUP, j, a, i, row, padded(j), values, w->out);
    for (; i < tile.end; i++, row += row_stride(j)) forward_queries(1, j, a, i, row, padded(j), values, w->out);
}

static void forward(const job *j, ptrdiff_t index, mg_real *workspace) {
    head of_index = head_of(j, index), *a = &of_index;
    forward_space w;
    lay_out_forward(j, workspace, &w);
    if (j->key && j->queries < MG_GROUP) {
        forward_few(j, a, &w);
        return;
    }
    mg_make_panels(j->keys, j->width, a->k, a->k_stride, w.keys);
    if (padded(j) != j->width) copy_rows(j, j->keys, a->v, a->k_stride, w.values);
    for (ptrdiff_t t = 0; t < mg_tile_count(j->queries, tile_queries(j)); t++)
        forward_queries_of_tile(j, a, &w, mg_tile_range(j->queries, tile_queries(j), t));
}

/* The workspace of one head's backward. */
typedef struct backward_space {
    mg_real *keys, *values; /* panels */
    mg_real *k, *dk, *dv;   /* (T, padded) */
    mg_real *q, *dout, *dq; /* (TILE_QUERIES, padded) */
    mg_real *p, *ds;        /* (TILE_QUERIES, row_stride): scores, then weights; products dp, then score gradients */
    mg_real *D;             /* (TILE_QUERIES) */
} backward_space;

static size_t lay_out_backward(const job *j, mg_real *memory, backward_space *w) {
    ptrdiff_t panels = mg_panels_size(j->keys, j->width), whole = j->keys * padded(j);
    ptrdiff_t tile = TILE_QUERIES * padded(j), weights = TILE_QUERIES * row_stride(j);
    mg_real **array[] = {&w->keys, &w->values, &w->k, &w->dk, &w->dv, &w->q, &w->dout, &w->dq, &w->p, &w->ds, &w->D};
    ptrdiff_t size[] = {panels, panels, whole, whole, whole, tile, tile, tile, weights, weights, TILE_QUERIES};
    return lay_out(11, array, size, memory);
}

/* Weights and score gradients of a query whose greatest score is infinite: those of mg_softmax. D is summed from the
 * weights and not taken from the output: it is then exact where one key has all the weight, and what makes a score
 * infinite meets a gradient of 0, not a rounding error. */
static void backward_limit(ptrdiff_t n, mg_real scale, mg_real *p, mg_real *ds) {
    mg_real D = 0;
    mg_softmax_limit(n, p, p);
    for (ptrdiff_t k = 0; k < n; k++) D += p[k] * ds[k];
    for (ptrdiff_t k = 0; k < n; k++) ds[k] = p[k] * (ds[k] - D) * scale;
}

/* Scores become weights p, their products dp with the values score gradients ds, and these dq, for R queries, `query`
 * being the first and `at` its place in the tile. */
MG_INLINE void backward_queries(const int R, const job *j, const head *a, const backward_space *w, ptrdiff_t query,
                                ptrdiff_t at) {
    mg_real scale = j->o.scale;
    mg_interval keys[MG_GROUP];
    for (int r = 0; r < R; r++) {
        ptrdiff_t of_query = a->index * j->queries + query + r;
        mg_real greatest = j->greatest[of_query], inverse = j->inverse[of_query], D = w->D[at + r];
        keys[r] = visible(j, a, query + r);
        if (j->o.dropout > 0) drop(j, a, query + r, keys[r], w->ds + (at + r) * row_stride(j));
        ptrdiff_t first = (at + r) * row_stride(j) + keys[r].first, n = keys[r].end - keys[r].first;
        mg_real *p = w->p + first, *ds = w->ds + first;
        if (isinf(greatest)) {
            backward_limit(n, scale, p, ds);
        } else {
#pragma omp simd
            for (ptrdiff_t k = 0; k < mg_pad(n); k++) {
                p[k] = mg_exp_real(p[k] - greatest) * inverse;
                ds[k] = p[k] * (ds[k] - D) * scale;
            }
        }
        if (j->o.dropout > 0) drop(j, a, query + r, keys[r], w->p + (at + r) * row_stride(j));
    }
    mix(R, j, a, keys, w->ds + at * row_stride(j), padded(j), (rows){w->k, padded(j)}, NULL, w->dq + at * padded(j));
}

/* On stairs, the first query of the tile, counted from its beginning, that sees key k; all later ones do. */
static ptrdiff_t first_to_see(const job *j, const head *a, mg_range tile, ptrdiff_t k) {
    ptrdiff_t i = k - j->first - a->mask.n - tile.begin; /* mg_visible(i) ends after k, solved for i */
    if (a->mask.n >= j->keys || i < 0) return 0;
    return i < tile.end - tile.begin ? i : tile.end - tile.begin;
}

/* to[k] += Σ_i weights[i][k] · from[i] for R keys, over the queries that see them: from the last query and the last key
 * backwards, for the keys before it are seen by one query more each. `all` see the last key, `stairs` more the first.
 */
MG_INLINE void collect(const int R, const job *j, ptrdiff_t n, ptrdiff_t k, ptrdiff_t all, ptrdiff_t stairs,
                       const mg_real *weights, const mg_real *from, mg_real *to) {
    ptrdiff_t last = n - 1, last_key = k + R - 1;
    mg_weighted_rows(R, n - all, (int)stairs, padded(j), weights + last * row_stride(j) + last_key, -1, -row_stride(j),
                     from + last * padded(j), -padded(j), NULL, true, to + last_key * padded(j), -padded(j));
}

/* The gradients of R keys and values from a tile of queries. */
MG_INLINE void collect_keys(const int R, const job *j, const head *a, const backward_space *w, mg_range tile,
                            ptrdiff_t k) {
    ptrdiff_t n = tile.end - tile.begin, all = first_to_see(j, a, tile, k + R - 1);
    ptrdiff_t stairs = all - first_to_see(j, a, tile, k);
    collect(R, j, n, k, all, stairs, w->p, w->dout, w->dv);
    collect(R, j, n, k, all, stairs, w->ds, w->q, w->dk);
}

static void collect_stairs(const job *j, const head *a, const backward_space *w, mg_range tile) {
    ptrdiff_t k = 0, end = visible(j, a, tile.end - 1).end;
    for (; k + MG_GROUP <= end; k += MG_GROUP) collect_keys(MG_GROUP, j, a, w, tile, k);
    for (; k < end; k++) collect_keys(1, j, a, w, tile, k);
}

/* The queries of the tile that see key k. Those that see the key before it are where to begin: neither end goes back
 * from one key to the next. */
static mg_interval seen_by(const job *j, const head *a, mg_range tile, ptrdiff_t k, mg_interval before) {
    ptrdiff_t n = tile.end - tile.begin;
    while (before.first < n && visible(j, a, tile.begin + before.first).end <= k) before.first++;
    while (before.end < n && visible(j, a, tile.begin + before.end).first <= k) before.end++;
    return before;
}

static void collect_ragged(const job *j, const head *a, const backward_space *w, mg_range tile) {
    ptrdiff_t end = visible(j, a, tile.end - 1).end;
    mg_interval queries[MG_GROUP], before = {0, 0};
    rows dout = {w->dout, padded(j)}, q = {w->q, padded(j)};
    int R = MG_GROUP;
    for (ptrdiff_t k = visible(j, a, tile.begin).first; k < end; k += R) {
        if (k + R > end) R = 1;
        for (int r = 0; r < R; r++) before = queries[r] = seen_by(j, a, tile, k + r, before);
        ragged_rows(R, queries, padded(j), w->p + k, 1, row_stride(j), dout, NULL, true, w->dv + k * padded(j),
                    padded(j));
        ragged_rows(R, queries, padded(j), w->ds + k, 1, row_stride(j), q, NULL, true, w->dk + k * padded(j),
                    padded(j));
    }
}

/* rows of dqkv = or += rows of `from`, as dqkv_beta says. */
static void put_rows(const job *j, ptrdiff_t n, const mg_real *from, mg_real *to) {
    for (ptrdiff_t i = 0; i < n; i++, from += padded(j), to += 3 * j->C) {
        if (j->dqkv_beta == 0)
            memcpy(to, from, (size_t)j->width * sizeof(mg_real));
        else
            for (ptrdiff_t d = 0; d < j->width; d++) to[d] += from[d];
    }
}

static void backward_queries_of_tile(const job *j, const head *a, const backward_space *w, mg_range tile,
                                     const mg_real *out) {
    ptrdiff_t n = tile.end - tile.begin, i = 0;
    for (ptrdiff_t r = 0; r < n; r++)
        w->D[r] = mg_dot(j->width, w->dout + r * padded(j), out + (tile.begin + r) * j->C);
    score(j, a, tile, (rows){w->q, padded(j)}, w->keys, j->o.scale, w->p);
    score(j, a, tile, (rows){w->dout, padded(j)}, w->values, 1, w->ds);
    for (; i + MG_GROUP <= n; i += MG_GROUP) backward_queries(MG_GROUP, j, a, w, tile.begin + i, i);
    for (; i < n; i++) backward_queries(1, j, a, w, tile.begin + i, i);
    if (a->is_stairs)
        collect_stairs(j, a, w, tile);
    else
        collect_ragged(j, a, w, tile);
}

/* What a tile of queries reads from main memory. */
static void prefetch_tile(const job *j, const head *a, ptrdiff_t tile, ptrdiff_t corner) {
    mg_range r = mg_tile_range(j->queries, TILE_QUERIES, tile);
    for (ptrdiff_t i = r.begin; i < r.end; i++) {
        mg_prefetch(j->width, a->q + i * a->q_stride);
        mg_prefetch(j->width, j->dout + corner + i * j->C);
        mg_prefetch(j->width, j->out + corner + i * j->C);
    }
}

static void backward(const job *j, ptrdiff_t index, mg_real *workspace) {
    head of_index = head_of(j, index), *a = &of_index;
    backward_space w;
    lay_out_backward(j, workspace, &w);
    ptrdiff_t b = a->index / j->o.n_head, h = a->index % j->o.n_head, corner = b * j->queries * j->C + h * j->width;
    mg_real *dqkv = j->dqkv + 3 * b * j->queries * j->C + h * j->width;
    prefetch_tile(j, a, 0, corner);
    mg_make_panels(j->keys, j->width, a->k, a->k_stride, w.keys);
    mg_make_panels(j->keys, j->width, a->v, a->k_stride, w.values);
    copy_rows(j, j->keys, a->k, a->k_stride, w.k);
    memset(w.dk, 0, (size_t)(j->keys * padded(j)) * sizeof(mg_real));
    memset(w.dv, 0, (size_t)(j->keys * padded(j)) * sizeof(mg_real));
    ptrdiff_t tiles = mg_tile_count(j->queries, TILE_QUERIES);
    for (ptrdiff_t t = 0; t < tiles; t++) {
        mg_range tile = mg_tile_range(j->queries, TILE_QUERIES, t);
        ptrdiff_t n = tile.end - tile.begin;
        copy_rows(j, n, a->q + tile.begin * a->q_stride, a->q_stride, w.q);
        copy_rows(j, n, j->dout + corner + tile.begin * j->C, j->C, w.dout);
        prefetch_tile(j, a, t + 1, corner);
        backward_queries_of_tile(j, a, &w, tile, j->out + corner);
        put_rows(j, n, w.dq, dqkv + tile.begin * 3 * j->C);
    }
    put_rows(j, j->keys, w.dk, dqkv + j->C);
    put_rows(j, j->keys, w.dv, dqkv + 2 * j->C);
}

static size_t forward_bytes(const job *j) {
    return lay_out_forward(j, NULL, &(forward_space){0});
}

static size_t backward_bytes(const job *j) {
    return lay_out_backward(j, NULL, &(backward_space){0});
}

const mg_attention_heads MG_ATTENTION_HEADS = {forward, backward, forward_bytes, backward_bytes};
