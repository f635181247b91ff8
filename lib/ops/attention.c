/* o_i = Σ_j p_ij v_j,  p_i = softmax_j(s_ij),  s_ij = scale · q_i · k_j,  j over the keys that query i may see
 *
 * Vaswani et al. 2017, eq. 1, for each head. The mask is an interval: query i sees the keys mg_visible(i), and the
 * loops begin and end there. Forward keeps two numbers per query, m_i = max_j s_ij and Z_i = Σ_j exp(s_ij − m_i);
 * backward recomputes the weights from them, p_ij = exp(s_ij − m_i) / Z_i (Dao et al. 2022, algorithm 4), so that
 * memory grows with T and not with T²:
 *
 *     dv_j  = Σ_i p_ij do_i
 *     dp_ij = do_i · v_j
 *     ds_ij = p_ij (dp_ij − D_i),   D_i = Σ_j p_ij dp_ij = do_i · o_i
 *     dq_i  = scale Σ_j ds_ij k_j
 *     dk_j  = scale Σ_i ds_ij q_i
 *
 * With dropout, p_ij is multiplied by m_ij ∈ {0, 1/(1−rate)} where it meets v, and dp_ij by the same. */
#include "attention_heads.h"
#include "operation.h"
#include "ops.h"
#include "parallel.h"
#include "simd.h"

#include <string.h>

typedef mg_attention_job job;

typedef struct saved {
    mg_real *greatest, *inverse;
    mg_mask *mask;
    mg_interval *sequence;
    mg_real scale, dropout;
    mg_rng rng;
    int n_head;
} saved;

/* ---- The processor ---- */

const mg_attention_heads *const *mg_attention_heads_list(void) {
    static const mg_attention_heads *const all[] = {
#ifdef MG_CLONES
        &mg_attention_heads_v4, &mg_attention_heads_v3,
#endif
        &mg_attention_heads_baseline, NULL};
#ifdef MG_CLONES
    if (!__builtin_cpu_supports("x86-64-v3")) return all + 2;
    if (!__builtin_cpu_supports("x86-64-v4")) return all + 1;
#endif
    return all;
}

static const mg_attention_heads *chosen;

void mg_attention_heads_use(const mg_attention_heads *heads) {
    chosen = heads;
}

static const mg_attention_heads *heads(void) {
    return chosen ? chosen : mg_attention_heads_list()[0];
}

/* ---- The operation ---- */

/* n jobs of as many heads each. */
typedef struct work {
    const job *jobs;
    ptrdiff_t n, heads, heads_per_tile;
} work;

static void forward_tile(void *context, ptrdiff_t tile, void *workspace) {
    const work *w = context;
    mg_range r = mg_tile_range(w->n * w->heads, w->heads_per_tile, tile);
    for (ptrdiff_t index = r.begin; index < r.end; index++)
        heads()->forward(&w->jobs[index / w->heads], index % w->heads, workspace);
}

static void backward_tile(void *context, ptrdiff_t tile, void *workspace) {
    heads()->backward(context, tile, workspace);
}

static void attention_backward(mg_tape *tape, const mg_node *node) {
    mg_tensor *qkv = node->in[0];
    const saved *s = node->saved;
    job j = {.B = qkv->dim[0], .queries = qkv->dim[1], .keys = qkv->dim[1], .C = qkv->dim[2] / 3, .qkv = qkv->data};
    j.o = (mg_attention_options){.n_head = s->n_head,
                                 .mask = s->mask,
                                 .sequence = s->sequence,
                                 .scale = s->scale,
                                 .dropout = s->dropout,
                                 .dropout_rng = s->rng};
    j.width = j.C / j.o.n_head;
    j.key_stride = 3 * j.C;
    j.greatest = s->greatest;
    j.inverse = s->inverse;
    j.out = node->out->data;
    j.dout = node->out->grad;
    j.dqkv = mg_grad_beta(tape, qkv, &j.dqkv_beta);
    if (j.dqkv) mg_parallel(j.B * s->n_head, backward_tile, &j, heads()->backward_bytes(&j));
}

static const mg_op op = {"attention", attention_backward};

/* A copy on the tape; NULL of NULL. */
static void *keep(mg_tape *tape, const void *from, size_t n, size_t size) {
    if (!from) return NULL;
    return memcpy(mg_tape_alloc(tape, n, size, "attention's mask"), from, n * size);
}

static const saved *save(mg_tape *tape, const job *j) {
    saved *s = mg_tape_alloc(tape, 1, sizeof *s, "attention's state");
    *s = (saved){.greatest = j->greatest,
                 .inverse = j->inverse,
                 .scale = j->o.scale,
                 .dropout = j->o.dropout,
                 .rng = j->o.dropout_rng,
                 .n_head = j->o.n_head};
    s->mask = keep(tape, j->o.mask, (size_t)j->o.n_head, sizeof *s->mask);
    s->sequence = keep(tape, j->o.sequence, (size_t)(j->B * j->queries), sizeof *s->sequence);
    return s;
}

static void check_masks(mg_tape *tape, const mg_attention_options *o) {
    for (int h = 0; o->mask && h < o->n_head; h++)
        MG_OP_CHECK(tape, &op, mg_mask_is_valid(o->mask[h]),
                    "head %d has a mask with n = %d; a lookahead and a prefix are at least 0, a window and a block 1",
                    h, o->mask[h].n);
}

/* Sequence b only. */
static job of_sequence(const job *j, ptrdiff_t b) {
    job one = *j;
    one.B = 1;
    one.qkv += b * j->queries * 3 * j->C;
    if (j->o.sequence) one.o.sequence += b * j->queries;
    if (j->out) one.out += b * j->queries * j->C;
    if (j->greatest) one.greatest += b * j->o.n_head * j->queries;
    if (j->inverse) one.inverse += b * j->o.n_head * j->queries;
    if (j->o.cache) {
        one.o.cache += b;
        one.first = one.o.cache->end;
    }
    one.all_queries = j->queries;
    one.all_keys = one.first + j->queries;
    return one;
}

static void check_sequence(mg_tape *tape, const job *j, ptrdiff_t b) {
    for (ptrdiff_t i = 0; j->o.sequence && i < j->queries; i++) {
        ptrdiff_t position = j->first + i;
        mg_interval at = j->o.sequence[i], before = i > 0 ? j->o.sequence[i - 1] : (mg_interval){0, 0};
        MG_OP_CHECK(
            tape, &op, at.first >= 0 && at.first <= position && position < at.end && at.end <= j->all_keys,
            "sequence %td, position %td: its interval %td to %td must hold the position, and end at %td or before", b,
            position, at.first, at.end, j->all_keys);
        MG_OP_CHECK(tape, &op, at.first >= before.first && at.end >= before.end,
                    "sequence %td, position %td: its interval %td to %td goes back from %td to %td, the previous "
                    "position's",
                    b, position, at.first, at.end, before.first, before.end);
    }
}

static void attend(const job *jobs, ptrdiff_t n) {
    ptrdiff_t keys = 0, n_heads = n * jobs->B * jobs->o.n_head;
    size_t bytes = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        size_t needed = heads()->forward_bytes(&jobs[i]);
        if (needed > bytes) bytes = needed;
        keys += jobs[i].queries * jobs[i].keys;
    }
    /* Heads that are so small that starting a thread costs more than computing them share a tile. */
    ptrdiff_t per_head = keys / n * jobs->width;
    work w = {jobs, n, jobs->B * jobs->o.n_head, 1};
    if (per_head < 16384) w.heads_per_tile = 16384 / per_head < n_heads ? 16384 / per_head : n_heads;
    mg_parallel(mg_tile_count(n_heads, w.heads_per_tile), forward_tile, &w, bytes);
}

/* ---- With a cache ---- */

/* The first position that some head of query i sees, and so the first that any later query does. */
static ptrdiff_t first_needed(const job *j, ptrdiff_t i) {
    const mg_attention_options *o = &j->o;
    ptrdiff_t position = j->first + i, first = position;
    for (int h = 0; h < o->n_head; h++) {
        mg_interval keys = mg_visible(o->mask ? o->mask[h] : mg_lookahead(0), position, position + 1);
        if (keys.first < first) first = keys.first;
    }
    return o->sequence && o->sequence[i].first > first ? o->sequence[i].first : first;
}

static void check_cache(mg_tape *tape, const job *j) {
    const mg_cached *c = j->o.cache;
    MG_OP_CHECK(tape, &op, c->keys && c->values, "the cache has no %s", c->keys ? "values" : "keys");
    MG_OP_CHECK(tape, &op, 0 <= c->first && c->first <= c->end && c->end - c->first <= c->capacity,
                "the cache of %td holds positions %td to %td", c->capacity, c->first, c->end);
    for (int h = 0; j->o.mask && h < j->o.n_head; h++)
        MG_OP_CHECK(tape, &op, !mg_looks_ahead(j->o.mask[h]), "head %d looks ahead, which a cache cannot serve", h);
    for (ptrdiff_t i = 0; i < j->queries; i++) {
        ptrdiff_t first = first_needed(j, i);
        MG_OP_CHECK(tape, &op, first >= c->first, "position %td sees position %td, which the cache has dropped",
                    j->first + i, first);
        MG_OP_CHECK(tape, &op, j->first + i + 1 - first <= c->capacity,
                    "%td tokens after %td do not fit a cache of %td", j->queries, c->end, c->capacity);
    }
}

static void drop_before(mg_cached *c, ptrdiff_t position, ptrdiff_t C) {
    ptrdiff_t from = (position - c->first) * C;
    size_t bytes = (size_t)((c->end - position) * C) * sizeof(mg_real);
    memmove(c->keys, c->keys + from, bytes);
    memmove(c->values, c->values + from, bytes);
    c->first = position;
}

static void append(mg_cached *c, const job *j) {
    for (ptrdiff_t i = 0; i < j->queries; i++, c->end++) {
        const mg_real *token = j->qkv + i * 3 * j->C;
        ptrdiff_t to = (c->end - c->first) * j->C;
        memcpy(c->keys + to, token + j->C, (size_t)j->C * sizeof(mg_real));
        memcpy(c->values + to, token + 2 * j->C, (size_t)j->C * sizeof(mg_real));
    }
}

/* The queries after the `done` first ones, as many as there is room for. */
static job next_piece(const job *j, ptrdiff_t done) {
    mg_cached *c = j->o.cache;
    ptrdiff_t left = j->queries - done;
    if (c->end - c->first + left > c->capacity) drop_before(c, first_needed(j, done), j->C);
    ptrdiff_t room = c->capacity - (c->end - c->first);
    job piece = *j;
    piece.queries = left < room ? left : room;
    piece.done = done;
    piece.qkv += done * 3 * j->C;
    piece.out += done * j->C;
    if (j->o.sequence) piece.o.sequence += done;
    piece.first = c->end;
    piece.first_key = c->first;
    piece.keys = c->end + piece.queries - c->first;
    piece.key = c->keys;
    piece.value = c->values;
    piece.key_stride = j->C;
    return piece;
}

/* Each round takes the next piece of every sequence that has one left. */
static void attend_cached(mg_tape *tape, const job *j) {
    size_t B = (size_t)j->B;
    job *whole = mg_tape_alloc(tape, B, sizeof *whole, "attention with a cache");
    job *pieces = mg_tape_alloc(tape, B, sizeof *pieces, "attention with a cache");
    ptrdiff_t *done = mg_tape_alloc(tape, B, sizeof *done, "attention with a cache"), n;
    for (ptrdiff_t b = 0; b < j->B; b++) {
        whole[b] = of_sequence(j, b);
        done[b] = 0;
    }
    do {
        n = 0;
        for (ptrdiff_t b = 0; b < j->B; b++) {
            if (done[b] == j->queries) continue;
            pieces[n] = next_piece(&whole[b], done[b]);
            append(whole[b].o.cache, &pieces[n]);
            done[b] += pieces[n++].queries;
        }
        if (n > 0) attend(pieces, n);
    } while (n > 0);
}

mg_tensor *(mg_attention)(mg_tape *tape, mg_tensor *qkv, const mg_attention_options *options) {
    MG_OP_CHECK(
        tape, &op, options->n_head >= 1 && qkv->ndim == 3 && qkv->dim[2] % (3 * (ptrdiff_t)options->n_head) == 0,
        "qkv is %s; it must be (B, T, 3C) with C a multiple of the %d heads", mg_shape(qkv).text, options->n_head);
    check_masks(tape, options);
    MG_OP_CHECK(tape, &op, options->dropout >= 0 && options->dropout < 1, "dropout is %g; it must be in [0, 1)",
                (double)options->dropout);
    job j = {.B = qkv->dim[0], .queries = qkv->dim[1], .keys = qkv->dim[1], .C = qkv->dim[2] / 3, .qkv = qkv->data};
    MG_OP_CHECK(tape, &op, options->scale >= 0 && options->scale < (mg_real)INFINITY,
                "the scale is %g; it must be a positive number, or 0 for 1/sqrt(d_k)", (double)options->scale);
    j.o = *options;
    j.width = j.C / j.o.n_head;
    j.o.scale = mg_attention_scale(options, j.width);
    j.key_stride = 3 * j.C;
    if (options->cache) {
        MG_OP_CHECK(tape, &op, !mg_tape_wants(tape, 1, &qkv), "a cache serves no backward");
        MG_OP_CHECK(tape, &op, j.B == 1 || (!options->weights && !options->scores),
                    "with caches, weights and scores can be seen of one sequence at a time; qkv is %s",
                    mg_shape(qkv).text);
    }
    j.all_queries = j.all_keys = j.queries;
    for (ptrdiff_t b = 0; (options->cache || options->sequence) && b < j.B; b++) {
        job one = of_sequence(&j, b);
        check_sequence(tape, &one, b);
        if (options->cache) check_cache(tape, &one);
    }
    mg_tensor *out = mg_tape_output(tape, 3, (ptrdiff_t[]){j.B, j.queries, j.C});
    j.out = out->data;
    size_t rows = (size_t)(j.B * options->n_head * j.queries);
    j.greatest = mg_tape_alloc(tape, rows, sizeof(mg_real), "attention's greatest scores");
    j.inverse = mg_tape_alloc(tape, rows, sizeof(mg_real), "attention's sums");
    if (options->cache)
        attend_cached(tape, &j);
    else
        attend(&j, 1);
    mg_tape_append(tape, &op, out, 1, &qkv, save(tape, &j));
    return out;
}
