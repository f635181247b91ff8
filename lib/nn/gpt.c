#include "gpt.h"
#include "kv_cache.h"
#include "operation.h"
#include "parallel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Where a block's parameters are: their names follow "h.N.". */
typedef struct block {
    mg_tensor *ln_1_weight, *ln_1_bias, *c_attn_weight, *c_attn_bias, *attn_proj_weight, *attn_proj_bias;
    mg_tensor *ln_2_weight, *ln_2_bias, *c_fc_weight, *c_fc_bias, *mlp_proj_weight, *mlp_proj_bias;
} block;

struct mg_gpt {
    mg_gpt_config config;
    mg_params *params;
    mg_tensor *wte, *wpe, *ln_f_weight, *ln_f_bias;
    block *h;
    mg_mask *mask; /* (n_layer, n_head) */
};

/* ---- Parameters ---- */

/* The table of GPT-2's parameters: rows and columns in units of V, T (block_size) and C; columns 0 is a vector. */
typedef struct row {
    const char *name;
    char rows;
    int times, columns; /* rows is `times` units, columns is in units of C */
} row;

static const row first_rows[] = {{"wte", 'V', 1, 1}, {"wpe", 'T', 1, 1}};
static const row block_rows[] = {
    {"ln_1.weight", 'C', 1, 0},      {"ln_1.bias", 'C', 1, 0},          {"attn.c_attn.weight", 'C', 1, 3},
    {"attn.c_attn.bias", 'C', 3, 0}, {"attn.c_proj.weight", 'C', 1, 1}, {"attn.c_proj.bias", 'C', 1, 0},
    {"ln_2.weight", 'C', 1, 0},      {"ln_2.bias", 'C', 1, 0},          {"mlp.c_fc.weight", 'C', 1, 4},
    {"mlp.c_fc.bias", 'C', 4, 0},    {"mlp.c_proj.weight", 'C', 4, 1},  {"mlp.c_proj.bias", 'C', 1, 0},
};
static const row last_rows[] = {{"ln_f.weight", 'C', 1, 0}, {"ln_f.bias", 'C', 1, 0}};
#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

static bool has_row(const mg_gpt_config *c, const char *name) {
    return (!c->no_output_projection || strncmp(name, "attn.c_proj", 11) != 0) &&
           (!c->no_positions || strcmp(name, "wpe") != 0);
}

/* Append the rows that this configuration has; `prefix` goes in front of their names. */
static int add_rows(const mg_gpt_config *c, const row *rows, int n_rows, const char *prefix, int n,
                    mg_param_spec *specs) {
    for (int i = 0; i < n_rows; i++) {
        if (!has_row(c, rows[i].name)) continue;
        if (specs) {
            mg_param_spec *s = &specs[n];
            ptrdiff_t unit = rows[i].rows == 'V' ? c->vocab_size : rows[i].rows == 'T' ? c->block_size : c->n_embd;
            snprintf(s->name, sizeof s->name, "%s%s", prefix, rows[i].name);
            s->ndim = rows[i].columns ? 2 : 1;
            s->dim[0] = rows[i].times * unit;
            s->dim[1] = rows[i].columns * c->n_embd;
        }
        n++;
    }
    return n;
}

int mg_gpt_specs(const mg_gpt_config *c, mg_param_spec *specs) {
    int n = add_rows(c, first_rows, COUNT(first_rows), "", 0, specs);
    for (int layer = 0; layer < c->n_layer; layer++) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "h.%d.", layer);
        n = add_rows(c, block_rows, COUNT(block_rows), prefix, n, specs);
    }
    return add_rows(c, last_rows, COUNT(last_rows), "", n, specs);
}

static mg_tensor *find(const mg_gpt *gpt, int layer, const char *name) {
    char full[MG_PARAM_NAME];
    if (layer < 0)
        snprintf(full, sizeof full, "%s", name);
    else
        snprintf(full, sizeof full, "h.%d.%s", layer, name);
    mg_param *p = mg_params_find(gpt->params, full);
    return p ? &p->tensor : NULL;
}

static void find_all(mg_gpt *gpt) {
    gpt->wte = find(gpt, -1, "wte");
    gpt->wpe = find(gpt, -1, "wpe");
    gpt->ln_f_weight = find(gpt, -1, "ln_f.weight");
    gpt->ln_f_bias = find(gpt, -1, "ln_f.bias");
    for (int i = 0; i < gpt->config.n_layer; i++)
        gpt->h[i] = (block){
            find(gpt, i, "ln_1.weight"),      find(gpt, i, "ln_1.bias"),          find(gpt, i, "attn.c_attn.weight"),
            find(gpt, i, "attn.c_attn.bias"), find(gpt, i, "attn.c_proj.weight"), find(gpt, i, "attn.c_proj.bias"),
            find(gpt, i, "ln_2.weight"),      find(gpt, i, "ln_2.bias"),          find(gpt, i, "mlp.c_fc.weight"),
            find(gpt, i, "mlp.c_fc.bias"),    find(gpt, i, "mlp.c_proj.weight"),  find(gpt, i, "mlp.c_proj.bias")};
}

static void fill_masks(mg_gpt *gpt) {
    const mg_gpt_config *c = &gpt->config;
    for (int layer = 0; layer < c->n_layer; layer++)
        for (int h = 0; h < c->n_head; h++) gpt->mask[layer * c->n_head + h] = mg_gpt_mask(c, layer, h);
}

static mg_status build(mg_gpt *gpt, bool trainable, mg_error *error) {
    const mg_gpt_config *c = &gpt->config;
    int n = mg_gpt_specs(c, NULL);
    mg_param_spec *specs = mg_alloc((size_t)n, sizeof *specs, "a model's parameter table", error);
    gpt->h = mg_alloc((size_t)c->n_layer, sizeof *gpt->h, "a model's layers", error);
    gpt->mask = mg_alloc((size_t)(c->n_layer * c->n_head), sizeof *gpt->mask, "a model's mask", error);
    mg_status status = specs && gpt->h && gpt->mask ? MG_OK : MG_ERR_MEMORY;
    if (status == MG_OK) {
        mg_gpt_specs(c, specs);
        status = mg_params_new(&gpt->params, n, specs, trainable, error);
    }
    mg_free(specs);
    if (status) return status;
    find_all(gpt);
    fill_masks(gpt);
    return MG_OK;
}

mg_status mg_gpt_new_zeros(mg_gpt **out, const mg_gpt_config *config, bool trainable, mg_error *error) {
    *out = NULL;
    mg_gpt_config filled = *config;
    mg_gpt_config_fill(&filled);
    mg_status status = mg_gpt_config_check(&filled, error);
    if (status) return status;
    mg_gpt *gpt = mg_alloc_zero(1, sizeof *gpt, "a model", error);
    if (!gpt) return MG_ERR_MEMORY;
    gpt->config = filled;
    status = build(gpt, trainable, error);
    if (status)
        mg_gpt_free(gpt);
    else
        *out = gpt;
    return status;
}

void mg_gpt_free(mg_gpt *gpt) {
    if (!gpt) return;
    mg_params_free(gpt->params);
    mg_free(gpt->h);
    mg_free(gpt->mask);
    mg_free(gpt);
}

const mg_gpt_config *mg_gpt_get_config(const mg_gpt *gpt) {
    return &gpt->config;
}

mg_params *mg_gpt_params(mg_gpt *gpt) {
    return gpt->params;
}

void mg_gpt_set_mask(mg_gpt *gpt, mg_mask mask) {
    mg_error error;
    MG_CHECK(mg_mask_check(mask, &error) == MG_OK, "gpt: %s", error.message);
    gpt->config.mask = mask;
    gpt->config.leak_layer = -1;
    gpt->config.documents = false;
    fill_masks(gpt);
}

void mg_gpt_set_documents(mg_gpt *gpt, const mg_gpt_config *config) {
    MG_CHECK(!config->documents || (config->document_end >= 0 && config->document_end < gpt->config.vocab_size),
             "gpt: document_end is %d; it must be a token below %d", config->document_end, gpt->config.vocab_size);
    gpt->config.documents = config->documents;
    gpt->config.document_end = config->document_end;
    gpt->config.positions_run_on = config->positions_run_on;
}

/* ---- Initial weights ---- */

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* The stream of a parameter's draws depends on its name (FNV-1a), so that leaving one out changes no other. */
static uint32_t name_hash(const char *name) {
    uint32_t hash = 2166136261u;
    for (; *name; name++) hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash;
}

typedef struct init_job {
    mg_param *param;
    const mg_gpt_config *config;
    uint64_t seed;
} init_job;

static double init_std(const mg_gpt_config *c, const char *name) {
    if (ends_with(name, "c_attn.weight") && c->attn_init_std > 0) return c->attn_init_std;
    if (ends_with(name, "c_proj.weight")) return c->init_std / sqrt(2.0 * c->n_layer);
    return c->init_std;
}

static void init_param(void *context, ptrdiff_t i, void *workspace) {
    (void)workspace;
    const init_job *j = context;
    mg_param *p = &j->param[i];
    mg_real *data = p->tensor.data;
    ptrdiff_t size = mg_size(&p->tensor);
    if (p->tensor.ndim == 1) {
        for (ptrdiff_t k = 0; k < size; k++) data[k] = ends_with(p->name, ".weight"); /* gains 1, biases 0 */
        return;
    }
    double std = init_std(j->config, p->name);
    mg_rng rng = {j->seed, MG_STREAM_INIT, name_hash(p->name)};
    for (ptrdiff_t k = 0; k < size; k++) data[k] = (mg_real)(std * mg_rng_normal(rng, (uint64_t)k));
}

void mg_gpt_randomize(mg_gpt *gpt, uint64_t seed) {
    mg_parallel(gpt->params->n, init_param, &(init_job){gpt->params->param, &gpt->config, seed}, 0);
}

mg_status mg_gpt_new(mg_gpt **gpt, const mg_gpt_config *config, uint64_t seed, mg_error *error) {
    mg_status status = mg_gpt_new_zeros(gpt, config, true, error);
    if (status == MG_OK) mg_gpt_randomize(*gpt, seed);
    return status;
}

/* ---- The model ---- */

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
    const block *h = &w->gpt->h[layer];
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
    const block *h = &w->gpt->h[layer];
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
