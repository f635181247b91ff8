#include "gpt2_import.h"

#include "bpe.h"
#include "gpt2_config.h"
#include "gpt2_folder.h"
#include "quote.h"
#include "tokenizer_internal.h"
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
    bool tied;       /* by config.json */
    int end_of_text; /* by config.json; -1: unknown */
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
    mg_vsnprintf(text, sizeof text, format, arguments);
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

/* Some writers put the name of the part first, and before it those of what the model was wrapped in: DataParallel,
 * torch.compile, a class of the author. */
static const char *const prefixes[] = {"module.", "_orig_mod.", "model.", MG_GPT2_PREFIX};
enum { N_PREFIXES = sizeof prefixes / sizeof *prefixes, N_WRAPPERS = N_PREFIXES - 1 };

static const char *bare_key(const mg_weight *weight) {
    const char *key = weight->key;
    for (int i = 0; i < N_PREFIXES; i++) {
        if (!starts_with(key, prefixes[i])) continue;
        key += strlen(prefixes[i]);
        i = -1;
    }
    return key;
}

/* The wrappers' names that keys begin with are said, once. */
static void tell_prefixes(const job *j) {
    char said[64] = "";
    for (int i = 0; i < N_WRAPPERS; i++) {
        ptrdiff_t n = 0;
        for (ptrdiff_t k = 0; k < j->weights.n; k++) {
            const mg_weight *w = &j->weights.weight[k];
            const char *found = strstr(w->key, prefixes[i]);
            n += found && found < bare_key(w);
        }
        size_t at = strlen(said);
        if (n > 0) snprintf(said + at, sizeof said - at, "%s%s", at > 0 ? " and " : "", prefixes[i]);
    }
    if (said[0]) notice(j, "names begin with %s, which a wrapper of the model adds: left out", said);
}

static int find_parameter(const job *j, const char *key) {
    for (int i = 0; i < j->n_specs; i++)
        if (mg_gpt2_is_parameter(key, j->specs[i].name)) return i;
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

static bool is_linear(const mg_param_spec *spec) {
    return spec->ndim == 2 && starts_with(spec->name, "h.");
}

/* The shape that the file should have. */
static mg_param_spec stored_spec(const job *j, const mg_param_spec *spec) {
    mg_param_spec stored = *spec;
    if (!j->options->transposed || !is_linear(spec)) return stored;
    stored.dim[0] = spec->dim[1];
    stored.dim[1] = spec->dim[0];
    return stored;
}

static mg_status check_weight(const job *j, const mg_weight *weight, const mg_param_spec *model) {
    mg_param_spec own = stored_spec(j, model), *spec = &own;
    if (!weight->readable)
        return mg_weights_error(&j->weights, "%s holds %s, but only F32, F16 and BF16 can be imported",
                                quoted(weight->name).text, weight->type);
    if (fits(weight, spec)) return MG_OK;
    if (is_linear(spec) && weight->ndim == 2 && weight->dim[0] == spec->dim[1] && weight->dim[1] == spec->dim[0])
        return mg_weights_error(&j->weights, "%s has the shape %s, and GPT-2's is %s: %s", quoted(weight->name).text,
                                mg_weight_shape(weight).text, mg_dims(spec->ndim, spec->dim).text,
                                j->options->transposed
                                    ? "it is not transposed, leave out --transposed"
                                    : "this is the transposed layout of PyTorch's nn.Linear, which --transposed takes");
    return mg_weights_error(&j->weights, "%s has the shape %s, but according to config.json it should be %s",
                            quoted(weight->name).text, mg_weight_shape(weight).text,
                            mg_dims(spec->ndim, spec->dim).text);
}

/* Of two names of one tied matrix, safetensors keeps the first by alphabet. */
static void take_tied_head(job *j) {
    if (j->match[0] || !j->head || !j->tied) return;
    j->match[0] = j->head;
    j->head = NULL;
    notice(j, "%s is taken as the token embedding wte, to which the head is tied", quoted(j->match[0]->name).text);
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
    if (status == MG_OK) tell_prefixes(j);
    if (status == MG_OK) take_tied_head(j);
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
    if (affected > 1) mg_snprintf(more, sizeof more, ", and %d more tensors hold some", affected - 1);
    return mg_weights_error(&j->weights, "%s holds %td %s NaN or infinite%s: --allow-nan imports them anyway", first,
                            first_count, first_count == 1 ? "number that is" : "numbers that are", more);
}

/* (out, in) in the file, (in, out) here. */
static mg_status read_transposed(const job *j, int i, mg_real *to) {
    ptrdiff_t in = j->specs[i].dim[0], out = j->specs[i].dim[1];
    mg_real *file = mg_alloc((size_t)(in * out), sizeof *file, "a transposed matrix", j->error);
    if (!file) return MG_ERR_MEMORY;
    mg_status status = mg_weights_read(&j->weights, j->match[i], 0, out, file);
    for (ptrdiff_t r = 0; r < in && status == MG_OK; r++)
        for (ptrdiff_t c = 0; c < out; c++) to[r * out + c] = file[c * in + r];
    mg_free(file);
    return status;
}

static mg_status read_parameter(const job *j, int i, mg_real *to) {
    if (j->options->transposed && is_linear(&j->specs[i])) return read_transposed(j, i, to);
    return mg_weights_read(&j->weights, j->match[i], 0, j->match[i]->dim[0], to);
}

static mg_status read_numbers(const job *j, mg_gpt *gpt) {
    const mg_params *params = mg_gpt_params(gpt);
    mg_status status = MG_OK;
    for (int i = 0; i < params->n && status == MG_OK; i++) status = read_parameter(j, i, params->param[i].tensor.data);
    if (status == MG_OK && j->head) status = check_head(j, params->param[0].tensor.data);
    return status == MG_OK ? check_finite(j, params) : status;
}

/* ---- Tokens ---- */

/* vocab.json numbers the tokens. Where it does so as the merges do, nothing is to be taken from it. */
static mg_status number_tokens(const job *j, mg_tokenizer **tokenizer) {
    const char *path = j->folder.vocab.text;
    mg_error inner;
    mg_tokenizer *as;
    mg_status status = mg_vocab_json_check(path, *tokenizer, j->error);
    if (status == MG_OK || mg_vocab_json_read(path, *tokenizer, &as, &inner) != MG_OK) return status;
    notice(j, "ids are those of '%s', which numbers other tokens among those of the merges", path);
    mg_tokenizer_free(*tokenizer);
    *tokenizer = as;
    return MG_OK;
}

/* Where special tokens have the first ids, all ids that the merges make would be wrong. */
static mg_status check_end_of_text(const job *j, const mg_tokenizer *tokenizer) {
    int ours = mg_tokenizer_end_of_text(tokenizer);
    if (j->end_of_text < 0 || j->end_of_text == ours) return MG_OK;
    return mg_error_set(j->error, MG_ERR_FORMAT,
                        "'%s' has no vocab.json beside it, and eos_token_id in config.json is %d, but the merges make "
                        "%d: only vocab.json says which ids the tokens have",
                        j->folder.merges.text, j->end_of_text, ours);
}

static mg_status too_many_tokens(const job *j, int n) {
    return mg_error_set(j->error, MG_ERR_FORMAT,
                        "'%s' makes %d tokens, but vocab_size in config.json is %d: they belong to different models",
                        j->folder.merges.text, n, j->config.vocab_size);
}

static mg_status read_merges(const job *j, mg_tokenizer **tokenizer) {
    const mg_gpt2_folder *folder = &j->folder;
    mg_status status = mg_tokenizer_load_gpt2(tokenizer, folder->merges.text, j->error);
    if (status != MG_OK) return status;
    int V = j->config.vocab_size, n = mg_tokenizer_size(*tokenizer);
    status = folder->vocab.text[0] ? number_tokens(j, tokenizer) : check_end_of_text(j, *tokenizer);
    if (status != MG_OK) return n > V ? too_many_tokens(j, n) : status;
    int size = mg_tokenizer_size(*tokenizer);
    if (size > V) return too_many_tokens(j, size);
    if (size < V)
        notice(j, "vocab_size is %d, but there are %d tokens: ids from %d on have no text and are never drawn", V, size,
               size);
    return MG_OK;
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
    mg_status status = mg_gpt2_config_read(j->folder.config.text, &j->config, &j->tied, &j->end_of_text, j->error);
    if (status == MG_OK) status = open_weights(j);
    if (status == MG_OK) status = match(j);
    if (status == MG_OK) status = read_tokenizer(j, &c->tokenizer);
    if (status == MG_OK) status = mg_gpt_new_zeros(&c->gpt, &j->config, false, j->error);
    if (status == MG_OK) status = read_numbers(j, c->gpt);
    if (status == MG_OK && j->folder.rest.text[0])
        notice(j, "'%s' says what GPT-2's files cannot, such as another mask or vocabulary: it is not read",
               j->folder.rest.text);
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
