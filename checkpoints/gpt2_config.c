#include "gpt2_config.h"

#include "file_limits.h"
#include "json_file.h"
#include "quote.h"
#include "refuse.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

typedef struct reader {
    const char *path;
    const json_t *json;
    mg_error *error;
} reader;

static mg_status refuse(const reader *r, const char *format, ...) MG_PRINTF(2, 3);
static mg_status refuse(const reader *r, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    mg_status status = mg_refuse_file(r->error, r->path, format, arguments);
    va_end(arguments);
    return status;
}

/* NULL if the key is missing or null, which mean the same here. */
static const json_t *get(const reader *r, const char *key) {
    const json_t *value = json_object_get(r->json, key);
    return json_is_null(value) ? NULL : value;
}

static mg_status read_size(const reader *r, const char *key, int *size) {
    const json_t *value = get(r, key);
    if (!value) return refuse(r, "%s is missing", key);
    if (!json_is_integer(value)) return refuse(r, "%s is not an integer", key);
    json_int_t number = json_integer_value(value);
    if (number < 1 || number > INT_MAX)
        return refuse(r, "%s is %lld, which is not a possible size", key, (long long)number);
    *size = (int)number;
    return MG_OK;
}

static mg_status read_flag(const reader *r, const char *key, bool otherwise, bool *flag) {
    const json_t *value = get(r, key);
    *flag = value ? json_is_true(value) : otherwise;
    return !value || json_is_boolean(value) ? MG_OK : refuse(r, "%s is neither true nor false", key);
}

static mg_status check_text(const reader *r, const char *key, const char *value, const char *expected,
                            const char *other, const char *why) {
    if (strcmp(value, expected) == 0 || strcmp(value, other) == 0) return MG_OK;
    return refuse(r, "%s is %s, but %s", key, mg_quote((mg_token){value, strlen(value)}).text, why);
}

static mg_status check_kind(const reader *r) {
    const json_t *type = get(r, "model_type"), *activation = get(r, "activation_function");
    if (!json_is_string(type))
        return refuse(r, "model_type is %s: it should be \"gpt2\"", type ? "not a string" : "missing");
    mg_status status = check_text(r, "model_type", json_string_value(type), "gpt2", "gpt2",
                                  "only models of type 'gpt2' can be imported");
    if (status != MG_OK || !activation) return status;
    if (!json_is_string(activation)) return refuse(r, "activation_function is not a string");
    return check_text(r, "activation_function", json_string_value(activation), "gelu_new", "gelu_pytorch_tanh",
                      "this library only supports GPT-2's 'gelu_new', the tanh form of GELU");
}

static mg_status refuse_flag(const reader *r, const char *key, const char *why) {
    bool on = false;
    mg_status status = read_flag(r, key, false, &on);
    return status == MG_OK && on ? refuse(r, "%s is true, but %s", key, why) : status;
}

static mg_status check_inner(const reader *r, const mg_gpt_config *config) {
    if (!get(r, "n_inner")) return MG_OK;
    int inner = 0;
    mg_status status = read_size(r, "n_inner", &inner);
    if (status != MG_OK || inner == 4 * (int64_t)config->n_embd) return status;
    return refuse(r, "n_inner is %d, but only 4 times n_embd, which is %d here, can be imported", inner,
                  4 * config->n_embd);
}

static mg_status read_eps(const reader *r, double *eps) {
    const json_t *value = get(r, "layer_norm_epsilon");
    if (value && !json_is_number(value)) return refuse(r, "layer_norm_epsilon is not a number");
    *eps = value ? json_number_value(value) : 1e-5;
    return MG_OK;
}

static mg_status read_all(const reader *r, mg_gpt_config *config, bool *tied) {
    bool scale = true;
    *config = (mg_gpt_config){.leak_layer = -1, .init_std = 0.02};
    if (!json_is_object(r->json)) return refuse(r, "is not a JSON object");
    mg_status status = check_kind(r);
    if (status == MG_OK) status = read_size(r, "n_layer", &config->n_layer);
    if (status == MG_OK) status = read_size(r, "n_head", &config->n_head);
    if (status == MG_OK) status = read_size(r, "n_embd", &config->n_embd);
    if (status == MG_OK) status = read_size(r, "vocab_size", &config->vocab_size);
    /* n_ctx is its older name. */
    const char *context = !get(r, "n_positions") && get(r, "n_ctx") ? "n_ctx" : "n_positions";
    if (status == MG_OK) status = read_size(r, context, &config->block_size);
    if (status == MG_OK) status = read_eps(r, &config->eps);
    if (status == MG_OK) status = read_flag(r, "scale_attn_weights", true, &scale);
    config->no_scale = !scale;
    if (status == MG_OK) status = read_flag(r, "tie_word_embeddings", true, tied);
    if (status == MG_OK)
        status = refuse_flag(r, "scale_attn_by_inverse_layer_idx", "this library scales all layers' scores alike");
    if (status == MG_OK) status = refuse_flag(r, "add_cross_attention", "this library only supports decoders");
    mg_error why = {0};
    if (status == MG_OK && mg_gpt_config_check(config, &why) != MG_OK) status = refuse(r, "%s", why.message);
    return status == MG_OK ? check_inner(r, config) : status;
}

mg_status mg_gpt2_config_read(const char *path, mg_gpt_config *config, bool *tied, int *end_of_text, mg_error *error) {
    json_t *json;
    mg_status status = mg_json_file_read(path, MG_MOST_CONFIG, &json, error);
    if (status != MG_OK) return status;
    status = read_all(&(reader){path, json, error}, config, tied);
    const json_t *end = status == MG_OK ? json_object_get(json, "eos_token_id") : NULL;
    bool is_id = json_is_integer(end) && json_integer_value(end) >= 0 && json_integer_value(end) < config->vocab_size;
    *end_of_text = is_id ? (int)json_integer_value(end) : -1;
    json_decref(json);
    return status;
}

/* ---- Writing ---- */

static json_t *id_or_null(int id) {
    return id >= 0 ? json_integer(id) : json_null();
}

mg_status mg_gpt2_config_write(FILE *out, const mg_gpt_config *c, int end_of_text, mg_error *error) {
    json_t *json = json_pack(
        "{s:[s], s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:n, s:f, s:f, s:f, s:f, s:f, s:b, s:b, s:b, s:s, s:o, "
        "s:o}",
        "architectures", "GPT2LMHeadModel", "model_type", "gpt2", "activation_function", "gelu_new", "vocab_size",
        c->vocab_size, "n_positions", c->block_size, "n_embd", c->n_embd, "n_layer", c->n_layer, "n_head", c->n_head,
        "n_inner", "layer_norm_epsilon", c->eps, "initializer_range", c->init_std, "attn_pdrop", c->dropout,
        "embd_pdrop", c->dropout, "resid_pdrop", c->dropout, "scale_attn_weights", !c->no_scale,
        "scale_attn_by_inverse_layer_idx", 0, "tie_word_embeddings", 1, "torch_dtype", "float32", "bos_token_id",
        id_or_null(end_of_text), "eos_token_id", id_or_null(end_of_text));
    return mg_json_print(out, json, error);
}
