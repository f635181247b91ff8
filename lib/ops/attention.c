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

static void forward_tile(void *context, ptrdiff_t tile, void *workspace) {
    const job *j = context;
    mg_range r = mg_tile_range(j->B * j->o.n_head, j->heads_per_tile, tile);
    for (ptrdiff_t index = r.begin; index < r.end; index++) heads()->forward(j, index, workspace);
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

static void check_sequence(mg_tape *tape, const job *j) {
    for (ptrdiff_t row = 0; j->o.sequence && row < j->B * j->queries; row++) {
        ptrdiff_t i = row % j->queries, position = j->first + i;
        mg_interval at = j->o.sequence[row], before = i > 0 ? j->o.sequence[row - 1] : (mg_interval){0, 0};
        MG_OP_CHECK(
            tape, &op, at.first >= 0 && at.first <= position && position < at.end && at.end <= j->all_keys,
            "sequence %td, position %td: its interval %td to %td must hold the position, and end at %td or before",
            row / j->queries, position, at.first, at.end, j->all_keys);
        MG_OP_CHECK(tape, &op, at.first >= before.first && at.end >= before.end,
                    "sequence %td, position %td: its interval %td to %td goes back from %td to %td, the previous "
                    "position's",
                    row / j->queries, position, at.first, at.end, before.first, before.end);
    }
}

static void attend(job *j) {
    /* Heads that are so small that starting a thread costs more than computing them share a tile. */
    ptrdiff_t work = j->queries * j->keys * j->width, n_heads = j->B * j->o.n_head;
    j->heads_per_tile = work >= 16384 ? 1 : 16384 / work < n_heads ? 16384 / work : n_heads;
    mg_parallel(mg_tile_count(n_heads, j->heads_per_tile), forward_tile, j, heads()->forward_bytes(j));
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

static void attend_cached(const job *j) {
    for (ptrdiff_t done = 0; done < j->queries;) {
        job piece = next_piece(j, done);
        append(j->o.cache, &piece);
        attend(&piece);
        done += piece.queries;
    }
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
        MG_OP_CHECK(tape, &op, j.B == 1 && !mg_tape_wants(tape, 1, &qkv),
                    "a cache serves one sequence at a time and no backward; qkv is %s", mg_shape(qkv).text);
        j.first = options->cache->end;
    }
    j.all_queries = j.queries;
    j.all_keys = j.first + j.queries;
    check_sequence(tape, &j);
    if (options->cache) check_cache(tape, &j);
    mg_tensor *out = mg_tape_output(tape, 3, (ptrdiff_t[]){j.B, j.queries, j.C});
    j.out = out->data;
    size_t rows = (size_t)(j.B * options->n_head * j.queries);
    j.greatest = mg_tape_alloc(tape, rows, sizeof(mg_real), "attention's greatest scores");
    j.inverse = mg_tape_alloc(tape, rows, sizeof(mg_real), "attention's sums");
    if (options->cache)
        attend_cached(&j);
    else
        attend(&j);
    mg_tape_append(tape, &op, out, 1, &qkv, save(tape, &j));
    return out;
}
