/* A GPT's parameters: their table, their initial weights, and the masks of its heads. */
#include "gpt_private.h"
#include "parallel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
        gpt->h[i] = (mg_gpt_block){
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

void mg_gpt_see_as(mg_gpt *gpt, const mg_gpt_config *config) {
    mg_gpt_config *own = &gpt->config;
    MG_CHECK(!config->documents || (config->document_end >= 0 && config->document_end < own->vocab_size),
             "gpt: document_end is %d; it must be a token below %d", config->document_end, own->vocab_size);
    mg_gpt_set_mask(gpt, config->mask);
    if (config->leak_layer >= 0 && config->leak_lookahead > 0) {
        own->leak_layer = config->leak_layer;
        own->leak_head = config->leak_head;
        own->leak_lookahead = config->leak_lookahead;
        fill_masks(gpt);
    }
    own->documents = config->documents;
    own->document_end = config->document_end;
    own->positions_run_on = config->positions_run_on;
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
