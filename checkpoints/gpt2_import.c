#include "gpt2_import.h"

#include "bpe.h"
#include "gpt2_config.h"
#include "gpt2_folder.h"
#include "quote.h"
#include "vocab_json.h"
#include "weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
    const mg_import_options *options;
    mg_error *error;
    mg_gpt2_folder folder;
    mg_gpt_config config;
    bool tied; /* by config.json */
    mg_weights weights;
    int n_specs;
    mg_param_spec *specs;
    const mg_weight **match; /* per spec, or NULL */
    const mg_weight *head;   /* lm_head.weight, or NULL */
} job;

static void tell(const job *j, mg_import_event event) {
    if (j->options->tell) j->options->tell(&event, j->options->user);
}

static void notice(const job *j, const char *format, ...) MG_PRINTF(2, 3);
static void notice(const job *j, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tell(j, (mg_import_event){.fate = MG_IMPORT_NOTICE, .text = text});
}

static mg_quoted quoted(const char *name) {
    return mg_quote((mg_token){name, strlen(name)});
}

/* ---- Names ---- */

static bool starts_with(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* Some writers put the name of the part first. */
static const char *bare_key(const mg_weight *weight) {
    static const char part[] = "transformer.";
    return starts_with(weight->key, part) ? weight->key + strlen(part) : weight->key;
}

/* The embeddings are "wte" and "wpe" here, "wte.weight" and "wpe.weight" there. */
static bool is_parameter(const char *key, const char *parameter) {
    size_t n = strlen(parameter);
    return strncmp(key, parameter, n) == 0 && (key[n] == '\0' || (n == 3 && strcmp(key + n, ".weight") == 0));
}

static int find_parameter(const job *j, const char *key) {
    for (int i = 0; i < j->n_specs; i++)
        if (is_parameter(key, j->specs[i].name)) return i;
    return -1;
}

/* ---- Which tensor is what ---- */

static mg_status take(job *j, int i, const mg_weight *weight) {
    if (j->match[i])
        return mg_weights_error(&j->weights, "holds %s twice: as %s and as %s", j->specs[i].name,
                                quoted(j->match[i]->name).text, quoted(weight->name).text);
    j->match[i] = weight;
    return MG_OK;
}

static mg_status skip_or_refuse(job *j, const mg_weight *weight) {
    const char *key = bare_key(weight);
    if (starts_with(key, "h.") && (ends_with(key, ".attn.bias") || ends_with(key, ".attn.masked_bias"))) {
        tell(j, (mg_import_event){MG_IMPORT_SKIPPED, NULL, weight, "a buffer with the mask, which is computed"});
        return MG_OK;
    }
    if (starts_with(key, "h.") && strtol(key + 2, NULL, 10) >= j->config.n_layer)
        return mg_weights_error(&j->weights, "holds %s, but n_layer in config.json is %d", quoted(weight->name).text,
                                j->config.n_layer);
    static const char *const ours[] = {"h.", "lm_head.", "ln_f.", "wte.", "wpe."};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (starts_with(key, ours[i]))
            return mg_weights_error(&j->weights, "holds %s, which GPT-2 does not have: it is another architecture",
                                    quoted(weight->name).text);
    tell(j, (mg_import_event){MG_IMPORT_SKIPPED, NULL, weight, "not part of the language model"});
    return MG_OK;
}

static mg_status sort_out(job *j, const mg_weight *weight) {
    const char *key = bare_key(weight);
    int i = find_parameter(j, key);
    if (i >= 0) return take(j, i, weight);
    if (strcmp(key, "lm_head.weight") != 0) return skip_or_refuse(j, weight);
    if (j->head) return mg_weights_error(&j->weights, "holds lm_head.weight twice");
    j->head = weight;
    return MG_OK;
}

/* Keras gives a bias a first dimension of 1. */
static bool fits(const mg_weight *weight, const mg_param_spec *spec) {
    if (weight->ndim == spec->ndim) return memcmp(weight->dim, spec->dim, (size_t)spec->ndim * sizeof *spec->dim) == 0;
    return spec->ndim == 1 && weight->ndim == 2 && weight->dim[0] == 1 && weight->dim[1] == spec->dim[0];
}

static mg_status check_weight(const job *j, const mg_weight *weight, const mg_param_spec *spec) {
    if (!weight->readable)
        return mg_weights_error(&j->weights, "%s holds %s, but only F32, F16 and BF16 can be imported",
                                quoted(weight->name).text, weight->type);
    if (fits(weight, spec)) return MG_OK;
    return mg_weights_error(&j->weights, "%s has the shape %s, but according to config.json it should be %s",
                            quoted(weight->name).text, mg_weight_shape(weight).text,
                            mg_dims(spec->ndim, spec->dim).text);
}

static mg_status check_missing(const job *j) {
    int first = -1, missing = 0;
    for (int i = 0; i < j->n_specs; i++) {
        tell(j,
             (mg_import_event){j->match[i] ? MG_IMPORT_MATCHED : MG_IMPORT_MISSING, &j->specs[i], j->match[i], NULL});
        if (!j->match[i] && missing++ == 0) first = i;
    }
    if (missing == 1) return mg_weights_error(&j->weights, "the tensor %s is missing", j->specs[first].name);
    if (missing > 1)
        return mg_weights_error(&j->weights, "the tensor %s and %d more are missing", j->specs[first].name,
                                missing - 1);
    if (j->head || j->tied) return MG_OK;
    return mg_weights_error(&j->weights,
                            "according to config.json (tie_word_embeddings) the head is a separate matrix, but "
                            "lm_head.weight is missing");
}

static mg_status match(job *j) {
    j->n_specs = mg_gpt_specs(&j->config, NULL);
    j->specs = mg_alloc((size_t)j->n_specs, sizeof *j->specs, "the list of parameters", j->error);
    j->match = mg_alloc_zero((size_t)j->n_specs, sizeof *j->match, "the list of tensors", j->error);
    if (!j->specs || !j->match) return MG_ERR_MEMORY;
    mg_gpt_specs(&j->config, j->specs);
    mg_status status = MG_OK;
    for (ptrdiff_t i = 0; i < j->weights.n && status == MG_OK; i++) status = sort_out(j, &j->weights.weight[i]);
    if (status == MG_OK) status = check_missing(j);
    for (int i = 0; i < j->n_specs && status == MG_OK; i++) status = check_weight(j, j->match[i], &j->specs[i]);
    if (status == MG_OK && j->head) status = check_weight(j, j->head, &j->specs[0]); /* of the shape of wte */
    return status;
}

/* ---- Numbers ---- */

/* The head is the token embedding here, so a separate matrix must equal it; compared in parts, without a second copy.
 */
static mg_status check_head(const job *j, const mg_real *wte) {
    enum { PART = 1 << 18 };
    ptrdiff_t V = j->config.vocab_size, C = j->config.n_embd, rows = PART / C + 1;
    mg_real *part = mg_alloc((size_t)(rows * C), sizeof *part, "a part of the head", j->error);
    mg_status status = part ? MG_OK : MG_ERR_MEMORY;
    for (ptrdiff_t row = 0; row < V && status == MG_OK; row += rows) {
        ptrdiff_t end = V - row < rows ? V : row + rows;
        status = mg_weights_read(&j->weights, j->head, row, end, part);
        if (status == MG_OK && memcmp(part, wte + row * C, (size_t)((end - row) * C) * sizeof *part) != 0)
            status = mg_weights_error(&j->weights, "lm_head.weight differs from wte.weight: a model whose head is not "
                                                   "its token embedding cannot be imported");
    }
    mg_free(part);
    if (status == MG_OK)
        tell(j, (mg_import_event){MG_IMPORT_SKIPPED, NULL, j->head, "equal to wte, which is the head"});
    return status;
}

static mg_status check_finite(const job *j, const mg_params *params) {
    ptrdiff_t first_count = 0;
    int affected = 0;
    const char *first = "";
    for (int i = 0; i < params->n; i++) {
        const mg_tensor *x = &params->param[i].tensor;
        ptrdiff_t size = mg_size(x), count = 0;
        for (ptrdiff_t k = 0; k < size; k++) count += !isfinite(x->data[k]);
        if (count == 0) continue;
        if (affected++ == 0) first = params->param[i].name, first_count = count;
        if (j->options->allow_nan)
            notice(j, "%s holds %td numbers (of %td) that are NaN or infinite", params->param[i].name, count, size);
    }
    if (affected == 0 || j->options->allow_nan) return MG_OK;
    char more[64] = "";
    if (affected > 1) snprintf(more, sizeof more, ", and %d more tensors hold some", affected - 1);
    return mg_weights_error(&j->weights, "%s holds %td %s NaN or infinite%s: --allow-nan imports them anyway", first,
                            first_count, first_count == 1 ? "number that is" : "numbers that are", more);
}

static mg_status read_numbers(const job *j, mg_gpt *gpt) {
    const mg_params *params = mg_gpt_params(gpt);
    mg_status status = MG_OK;
    for (int i = 0; i < params->n && status == MG_OK; i++)
        status = mg_weights_read(&j->weights, j->match[i], 0, j->match[i]->dim[0], params->param[i].tensor.data);
    if (status == MG_OK && j->head) status = check_head(j, params->param[0].tensor.data);
    return status == MG_OK ? check_finite(j, params) : status;
}

/* ---- Tokens ---- */

static mg_status read_merges(const job *j, mg_tokenizer **tokenizer) {
    const mg_gpt2_folder *folder = &j->folder;
    mg_status status = mg_tokenizer_load_gpt2(tokenizer, folder->merges.text, j->error);
    if (status != MG_OK) return status;
    int size = mg_tokenizer_size(*tokenizer), V = j->config.vocab_size;
    if (size > V)
        return mg_error_set(j->error, MG_ERR_FORMAT,
                            "'%s' makes %d tokens, but vocab_size in config.json is %d: they belong to different "
                            "models",
                            folder->merges.text, size, V);
    if (size < V)
        notice(j, "vocab_size is %d, but the merges make %d tokens: ids from %d on have no text and are never drawn", V,
               size, size);
    return folder->vocab.text[0] ? mg_vocab_json_check(folder->vocab.text, *tokenizer, j->error) : MG_OK;
}

static mg_status read_tokenizer(const job *j, mg_tokenizer **tokenizer) {
    if (j->folder.merges.text[0]) return read_merges(j, tokenizer);
    notice(j, "there is no merges.txt: text can be neither encoded nor decoded, and prompts are ids (--ids)");
    return mg_tokenizer_new(tokenizer, MG_TOKENIZER_NONE, j->config.vocab_size, NULL, j->error);
}

/* ---- All of it ---- */

static mg_status open_weights(job *j) {
    return (j->folder.keras ? mg_keras_open : mg_safetensors_open)(&j->weights, j->folder.weights.text, j->error);
}

static mg_status import(job *j, mg_checkpoint *c) {
    mg_status status = mg_gpt2_config_read(j->folder.config.text, &j->config, &j->tied, j->error);
    if (status == MG_OK) status = open_weights(j);
    if (status == MG_OK) status = match(j);
    if (status == MG_OK) status = read_tokenizer(j, &c->tokenizer);
    if (status == MG_OK) status = mg_gpt_new_zeros(&c->gpt, &j->config, false, j->error);
    if (status == MG_OK) status = read_numbers(j, c->gpt);
    return status;
}

mg_status mg_gpt2_import(mg_checkpoint *checkpoint, const char *folder, const mg_import_options *options,
                         mg_error *error) {
    *checkpoint = (mg_checkpoint){.train.best_loss = NAN};
    job j = {.options = options, .error = error, .weights.fd = -1};
    mg_status status = mg_gpt2_folder_find(&j.folder, folder, error);
    if (status == MG_OK) status = import(&j, checkpoint);
    mg_weights_close(&j.weights);
    mg_free(j.match);
    mg_free(j.specs);
    if (status != MG_OK) mg_checkpoint_free(checkpoint);
    return status;
}
