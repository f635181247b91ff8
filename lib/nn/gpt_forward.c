/* The forward pass of a GPT: embeddings, blocks, head; with KV caches, documents, captures and ablations. */
#include "gpt_private.h"
#include "kv_cache.h"
#include "operation.h"

#include <math.h>
#include <string.h>

/* The state that a pass carries from layer to layer. */
typedef struct walk {
    mg_gpt *gpt;
    mg_tape *tape;
    const mg_gpt_pass *pass;
    ptrdiff_t B, T;
    ptrdiff_t *past;   /* B: how many tokens each sequence's cache holds; 0 without */
    uint32_t place;    /* of the next dropout */
    mg_cached *cached; /* B: what the layer that ran last has in the caches; NULL without */
    const mg_interval *sequence;
    const int *positions; /* both (B,T) or NULL, as in mg_gpt_pass */
} walk;

static mg_tensor *dropout(walk *w, mg_tensor *x) {
    const mg_gpt_config *c = &w->gpt->config;
    if (!w->pass->training || c->dropout == 0) return x;
    uint32_t places = 3 * (uint32_t)c->n_layer + 1;
    mg_rng rng = {w->pass->dropout_seed, MG_STREAM_DROPOUT, w->pass->dropout_step * places + w->place++};
    return mg_dropout(w->tape, x, (mg_real)c->dropout, rng);
}

static mg_attention_options attention_options(walk *w, int layer) {
    const mg_gpt_config *c = &w->gpt->config;
    const mg_gpt_pass *pass = w->pass;
    mg_attention_options o = {.n_head = c->n_head, .mask = w->gpt->mask + layer * c->n_head, .sequence = w->sequence};
    o.scale = c->no_scale; /* 0: 1/sqrt(d_k) */
    if (pass->training && c->dropout > 0) {
        o.dropout = (mg_real)c->dropout;
        o.dropout_rng = (mg_rng){~pass->dropout_seed, MG_STREAM_DROPOUT,
                                 pass->dropout_step * (uint32_t)c->n_layer + (uint32_t)layer};
    }
    for (ptrdiff_t b = 0; pass->cache && b < w->B; b++) {
        const mg_kv_cache *cache = pass->cache[b];
        ptrdiff_t at = layer * cache->capacity * cache->width;
        w->cached[b] = (mg_cached){.keys = cache->keys + at,
                                   .values = cache->values + at,
                                   .capacity = cache->capacity,
                                   .first = cache->first,
                                   .end = w->past[b]};
    }
    o.cache = w->cached;
    if (pass->capture) {
        ptrdiff_t at = layer * w->B * c->n_head * w->T * (w->past[0] + w->T);
        if (pass->capture->weights) o.weights = pass->capture->weights + at;
        if (pass->capture->scores) o.scores = pass->capture->scores + at;
    }
    return o;
}

/* Ablation: the heads that are off output 0. */
static mg_tensor *switch_off_heads(walk *w, int layer, mg_tensor *y) {
    const mg_gpt_config *c = &w->gpt->config;
    const unsigned char *off = w->pass->ablation ? w->pass->ablation->heads : NULL;
    if (!off) return y;
    mg_tensor *on = mg_constant(w->tape, 1, (ptrdiff_t[]){c->n_embd});
    for (int i = 0; i < c->n_embd; i++) on->data[i] = !off[layer * c->n_head + i / (c->n_embd / c->n_head)];
    return mg_mul(w->tape, y, on);
}

/* x + dropout(y W + b): adds a sublayer's output to the residual stream. */
static mg_tensor *project_onto(walk *w, mg_tensor *x, mg_tensor *y, mg_tensor *weight, mg_tensor *bias) {
    bool drops = w->pass->training && w->gpt->config.dropout > 0;
    if (!weight) return mg_add(w->tape, x, dropout(w, y));
    if (drops) return mg_add(w->tape, x, dropout(w, mg_linear(w->tape, y, weight, bias)));
    return mg_linear_add(w->tape, x, y, weight, bias);
}

/* The heads' outputs, concatenated: (B,T,C). */
static mg_tensor *attention(walk *w, int layer, mg_tensor *x) {
    const mg_gpt_block *h = &w->gpt->h[layer];
    mg_gpt_capture *capture = w->pass->capture;
    mg_attention_options options = attention_options(w, layer);
    mg_tensor *qkv = mg_linear(w->tape, x, h->c_attn_weight, h->c_attn_bias); /* (B,T,3C) */
    mg_tensor *y = mg_attention(w->tape, qkv, &options);                      /* (B,T,C) */
    y = switch_off_heads(w, layer, y);
    if (capture && capture->qkv) capture->qkv[layer] = qkv;
    if (capture && capture->heads) capture->heads[layer] = y;
    return y;
}

static mg_tensor *norm(walk *w, mg_tensor *x, mg_tensor *weight, mg_tensor *bias) {
    return mg_layer_norm(w->tape, x, weight, bias, (mg_real)w->gpt->config.eps);
}

static mg_tensor *block_forward(walk *w, int layer, mg_tensor *x) {
    const mg_gpt_block *h = &w->gpt->h[layer];
    mg_tensor *y = attention(w, layer, norm(w, x, h->ln_1_weight, h->ln_1_bias)); /* (B,T,C) */
    x = project_onto(w, x, y, h->attn_proj_weight, h->attn_proj_bias);
    y = norm(w, x, h->ln_2_weight, h->ln_2_bias);
    y = mg_linear_gelu(w->tape, y, h->c_fc_weight, h->c_fc_bias); /* (B,T,4C) */
    return project_onto(w, x, y, h->mlp_proj_weight, h->mlp_proj_bias);
}

/* Where each token's document begins, and, of a cached text, the next token's. */
static int *document_starts(walk *w, const int *ids) {
    int *start = mg_tape_alloc(w->tape, (size_t)(w->B * w->T), sizeof *start, "documents");
    for (ptrdiff_t b = 0; b < w->B; b++) {
        ptrdiff_t past = w->past[b];
        int *document = w->pass->cache ? w->pass->cache[b]->document : NULL, at = past > 0 ? document[past] : 0;
        for (ptrdiff_t t = 0; t < w->T; t++) {
            start[b * w->T + t] = at;
            if (document) document[past + t] = at;
            if (ids[b * w->T + t] == w->gpt->config.document_end) at = (int)(past + t + 1);
        }
        if (document) document[past + w->T] = at;
    }
    return start;
}

/* A position sees its own document; both only where the pass does not say otherwise. */
static void find_documents(walk *w, const int *ids) {
    const int *start = document_starts(w, ids);
    size_t n = (size_t)(w->B * w->T);
    mg_interval *sequence = mg_tape_alloc(w->tape, n, sizeof *sequence, "documents");
    int *positions = mg_tape_alloc(w->tape, n, sizeof *positions, "positions");
    for (ptrdiff_t i = 0; i < w->B * w->T; i++) {
        ptrdiff_t past = w->past[i / w->T];
        sequence[i] = (mg_interval){start[i], past + w->T};
        positions[i] = (int)(past + i % w->T) - start[i];
    }
    if (!w->sequence) w->sequence = sequence;
    if (!w->positions && !w->gpt->config.positions_run_on) w->positions = positions;
}

/* The embeddings of the positions: (B,T,C), with B = 1 where all sequences have the same. */
static mg_tensor *places(walk *w) {
    if (w->positions) return mg_embedding(w->tape, w->gpt->wpe, w->positions, 2, (ptrdiff_t[]){w->B, w->T});
    ptrdiff_t B = w->pass->cache ? w->B : 1;
    int *positions = mg_tape_alloc(w->tape, (size_t)(B * w->T), sizeof *positions, "positions");
    for (ptrdiff_t i = 0; i < B * w->T; i++) positions[i] = (int)(w->past[i / w->T] + i % w->T);
    return mg_embedding(w->tape, w->gpt->wpe, positions, 2, (ptrdiff_t[]){B, w->T});
}

static mg_tensor *embed(walk *w, const int *ids) {
    mg_tensor *x = mg_embedding(w->tape, w->gpt->wte, ids, 2, (ptrdiff_t[]){w->B, w->T}); /* (B,T,C) */
    if (!w->gpt->config.no_positions) x = mg_add(w->tape, x, places(w));
    if (w->pass->shift) x = mg_add(w->tape, x, w->pass->shift);
    return dropout(w, x);
}

/* Without gradients, nothing inside a block is needed after it: its output replaces its input. */
static mg_tensor *block_in_place(walk *w, int layer, mg_tensor *x) {
    mg_arena_mark mark = mg_tape_mark(w->tape);
    const mg_tensor *y = block_forward(w, layer, x);
    memcpy(x->data, y->data, (size_t)mg_size(x) * sizeof *x->data);
    mg_tape_rewind(w->tape, mark);
    return x;
}

static bool is_skipped(const walk *w, int layer) {
    const mg_gpt_ablation *ablation = w->pass->ablation;
    return ablation && ablation->blocks && ablation->blocks[layer];
}

static void check_cache(const mg_gpt_config *c, const mg_kv_cache *cache) {
    MG_CHECK(mg_gpt_is_causal(c), "gpt: a KV cache serves a causal model; this one looks ahead");
    MG_CHECK(cache->n_layer == c->n_layer && cache->capacity == mg_kv_cache_capacity(c) && cache->width == c->n_embd,
             "gpt: the KV cache is for %d layers, %td tokens and width %td; the model needs %d, %td and %d",
             cache->n_layer, cache->capacity, cache->width, c->n_layer, mg_kv_cache_capacity(c), c->n_embd);
    MG_CHECK((cache->document != NULL) == (c->documents), "gpt: the KV cache is for a model %s documents",
             cache->document ? "with" : "without");
    MG_CHECK(cache->first >= 0 && cache->first <= cache->length && cache->length - cache->first <= cache->capacity,
             "gpt: the KV cache of %td tokens holds those from %td to %td", cache->capacity, cache->first,
             cache->length);
}

/* Each sequence's cache, and how many tokens it holds. */
static void open_caches(walk *w) {
    mg_kv_cache *const *cache = w->pass->cache;
    w->past = mg_tape_alloc(w->tape, (size_t)w->B, sizeof *w->past, "the lengths of the caches");
    memset(w->past, 0, (size_t)w->B * sizeof *w->past);
    if (!cache) return;
    MG_CHECK(!w->pass->sequence && !w->pass->positions,
             "gpt: with a KV cache, intervals and positions follow from what it holds");
    MG_CHECK(!w->pass->capture || w->B == 1, "gpt: with KV caches, one sequence can be captured, not %td", w->B);
    w->cached = mg_tape_alloc(w->tape, (size_t)w->B, sizeof *w->cached, "the caches of a layer");
    for (ptrdiff_t b = 0; b < w->B; b++) {
        check_cache(&w->gpt->config, cache[b]);
        for (ptrdiff_t i = 0; i < b; i++)
            MG_CHECK(cache[i] != cache[b], "gpt: sequences %td and %td have the same KV cache", i, b);
        w->past[b] = cache[b]->length;
        w->cached[b].first = cache[b]->first;
    }
}

static void close_caches(const walk *w) {
    for (ptrdiff_t b = 0; w->cached && b < w->B; b++) {
        w->pass->cache[b]->first = w->cached[b].first;
        w->pass->cache[b]->length += w->T;
    }
}

mg_tensor *mg_gpt_forward(mg_gpt *gpt, mg_tape *tape, const int *ids, ptrdiff_t B, ptrdiff_t T,
                          const mg_gpt_pass *pass) {
    static const mg_gpt_pass plain;
    walk w = {.gpt = gpt, .tape = tape, .pass = pass ? pass : &plain, .B = B, .T = T};
    mg_gpt_capture *capture = w.pass->capture;
    w.sequence = w.pass->sequence;
    w.positions = w.pass->positions;
    MG_CHECK(B >= 1, "gpt: a batch of %td sequences; it must have at least 1", B);
    open_caches(&w);
    for (ptrdiff_t b = 0; b < B; b++)
        MG_CHECK(T >= 1 && T <= gpt->config.block_size - w.past[b],
                 "gpt: %td tokens after %td do not fit the context of %d", T, w.past[b], gpt->config.block_size);
    if (gpt->config.documents) find_documents(&w, ids);
    mg_tensor *x = embed(&w, ids);
    if (capture) capture->embedding = x;
    bool in_place = !capture && !mg_tape_is_recording(tape);
    for (int layer = 0; layer < gpt->config.n_layer; layer++) {
        if (!is_skipped(&w, layer)) x = in_place ? block_in_place(&w, layer, x) : block_forward(&w, layer, x);
        if (capture && capture->block) capture->block[layer] = x;
    }
    close_caches(&w);
    if (w.pass->cache_only) return NULL;
    if (w.pass->last_only) x = mg_slice(tape, x, 1, T - 1, T);
    x = norm(&w, x, gpt->ln_f_weight, gpt->ln_f_bias);
    return mg_linear_tied(tape, x, gpt->wte); /* (B,T,V) */
}

mg_tensor *mg_gpt_loss(mg_gpt *gpt, mg_tape *tape, const int *ids, const int *targets, ptrdiff_t B, ptrdiff_t T,
                       const mg_gpt_pass *pass, mg_real *row_loss) {
    mg_tensor *logits = mg_gpt_forward(gpt, tape, ids, B, T, pass);
    return mg_cross_entropy(tape, logits, targets, -1, row_loss);
}

mg_status mg_gpt_check_logits(const mg_gpt *gpt, const mg_real *logits, ptrdiff_t n, mg_error *error) {
    ptrdiff_t i = 0;
    while (i < n && isfinite(logits[i])) i++;
    if (i == n) return MG_OK;
    const mg_param *culprit = mg_params_find_not_finite(gpt->params);
    if (culprit)
        return mg_error_set(error, MG_ERR_STATE,
                            "the model's logits are not finite, since its '%s' holds NaN or infinity", culprit->name);
    return mg_error_set(error, MG_ERR_STATE,
                        "the model's logits are not finite: its weights are too large to compute with");
}
