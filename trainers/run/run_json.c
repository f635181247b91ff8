#include "run_json.h"
#include "atomic_file.h"
#include "gemm.h"
#include "parallel.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct mg_run_json {
    json_t *root;
};

/* The name in the file: "--block-size" is "block_size", and "--no-scale" clears "scale". */
static void key_of(const mg_setting *flag, char *key, size_t size) {
    snprintf(key, size, "%s", flag->kind == MG_SETTING_OFF ? flag->name + strlen("no-") : flag->name);
    for (char *c = key; *c; c++)
        if (*c == '-') *c = '_';
}

/* ---- Writing ---- */

static json_t *value_of(const mg_setting *flag, const void *values) {
    char text[4096];
    mg_setting_format(flag, values, text, sizeof text);
    switch (flag->kind) {
    case MG_SETTING_INT:
    case MG_SETTING_INT64: return json_integer(strtoll(text, NULL, 10));
    case MG_SETTING_REAL: return json_real(strtod(text, NULL));
    case MG_SETTING_ON:
    case MG_SETTING_OFF: return json_boolean(strcmp(text, "true") == 0);
    default: return text[0] ? json_string(text) : json_null();
    }
}

static mg_status put_settings(json_t *settings, const mg_run_options *options, mg_error *error) {
    char key[64];
    mg_setting_cursor at = {0};
    for (const mg_setting *s; (s = mg_setting_next(&at, mg_run_settings));) {
        key_of(s, key, sizeof key);
        if (json_object_set_new(settings, key, value_of(s, (const char *)options + at.base)) != 0)
            return mg_error_set(error, MG_ERR_INPUT, "--%s is not valid UTF-8, which run.json needs", s->name);
    }
    return MG_OK;
}

/* How many digits every real setting needs to read back as itself: 15 unless one is odd, so that 0.1 stays 0.1. */
static size_t digits_needed(const mg_run_options *options) {
    size_t digits = 15;
    char text[64];
    mg_setting_cursor at = {0};
    for (const mg_setting *s; (s = mg_setting_next(&at, mg_run_settings));) {
        if (s->kind != MG_SETTING_REAL) continue;
        mg_setting_format(s, (const char *)options + at.base, text, sizeof text);
        double value = strtod(text, NULL);
        for (; digits < 17; digits++) {
            snprintf(text, sizeof text, "%.*g", (int)digits, value);
            if (strtod(text, NULL) == value) break;
        }
    }
    return digits;
}

static json_t *facts_of(const mg_run_options *options, const mg_run_facts *facts) {
    char mask[128], hash[32];
    mg_mask_words(&options->train.model, mask, sizeof mask);
    snprintf(hash, sizeof hash, "%016" PRIx64, facts->data_hash);
    return json_pack("{s:s, s:s, s:{s:s, s:s, s:s, s:i, s:I, s:I, s:f}, s:{s:i, s:s, s:s}, s:I}", "creator",
                     "maskgrad " MASKGRAD_VERSION, "mask", mask, "data", "name", facts->data_name, "hash", hash,
                     "tokenizer", facts->tokenizer, "vocab_size", facts->vocab_size, "tokens",
                     (json_int_t)facts->n_tokens, "train_tokens", (json_int_t)facts->n_train, "characters_a_token",
                     facts->characters_per_token, "machine", "threads", mg_threads(), "blas", mg_blas_name(),
                     "compiler", __VERSION__, "parameters", (json_int_t)facts->n_parameters);
}

static mg_status write_text(const char *path, const char *text, mg_error *error) {
    mg_atomic_text file;
    mg_status status = mg_atomic_text_begin(&file, path, error);
    if (status != MG_OK) return status;
    fprintf(file.out, "%s\n", text);
    return mg_atomic_text_end(&file, error);
}

mg_status mg_run_json_write(const char *path, const mg_run_options *options, const mg_run_facts *facts,
                            mg_error *error) {
    json_t *root = facts_of(options, facts), *settings = json_object();
    mg_status status = put_settings(settings, options, error);
    if (!root || json_object_set_new(root, "settings", settings) != 0)
        status = mg_error_set(error, MG_ERR_INPUT, "the name of the data is not valid UTF-8, which run.json needs");
    size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION((size_t)digits_needed(options));
    char *text = status == MG_OK ? json_dumps(root, flags) : NULL;
    if (status == MG_OK && !text) status = mg_error_set(error, MG_ERR_MEMORY, "out of memory for %s", path);
    if (status == MG_OK) status = write_text(path, text, error);
    free(text);
    json_decref(root);
    return status;
}

/* ---- Reading ---- */

static mg_status take_setting(const mg_setting *flag, const json_t *value, void *values, mg_error *error) {
    char text[64] = "";
    bool is_text = flag->kind == MG_SETTING_TEXT || flag->kind == MG_SETTING_CUSTOM;
    if (is_text && json_is_null(value)) return MG_OK;
    if (json_is_string(value)) return mg_setting_set(flag, values, json_string_value(value), error);
    if (json_is_integer(value)) snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    if (json_is_real(value)) snprintf(text, sizeof text, "%.17g", json_real_value(value));
    if (json_is_boolean(value)) snprintf(text, sizeof text, "%s", json_is_true(value) ? "true" : "false");
    if (is_text) return mg_error_set(error, MG_ERR_FORMAT, "--%s is not a text", flag->name);
    return mg_setting_set(flag, values, text, error);
}

static mg_status take_settings(const json_t *settings, const char *path, mg_run_options *options, mg_error *error) {
    char key[64];
    mg_error reason;
    mg_setting_cursor at = {0};
    for (const mg_setting *s; (s = mg_setting_next(&at, mg_run_settings));) {
        key_of(s, key, sizeof key);
        const json_t *value = json_object_get(settings, key);
        if (!value) return mg_error_set(error, MG_ERR_FORMAT, "%s: the setting '%s' is missing", path, key);
        if (take_setting(s, value, (char *)options + at.base, &reason) != MG_OK)
            return mg_error_set(error, MG_ERR_FORMAT, "%s: '%s': %s", path, key, reason.message);
    }
    return MG_OK;
}

mg_status mg_run_json_read(mg_run_json **json, const char *path, mg_run_options *options, mg_error *error) {
    *json = NULL;
    if (access(path, R_OK) != 0) return mg_error_set(error, MG_ERR_IO, "cannot read %s: %s", path, strerror(errno));
    json_error_t reason;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &reason);
    if (!root) return mg_error_set(error, MG_ERR_FORMAT, "%s, line %d: %s", path, reason.line, reason.text);
    mg_run_options read = mg_run_defaults();
    const json_t *settings = json_object_get(root, "settings");
    mg_status status = json_is_object(settings)
                           ? take_settings(settings, path, &read, error)
                           : mg_error_set(error, MG_ERR_FORMAT, "%s has no 'settings': it is not a run's", path);
    mg_run_json *made = status == MG_OK ? mg_alloc(1, sizeof *made, "run.json", error) : NULL;
    if (!made) {
        json_decref(root);
        return status == MG_OK ? MG_ERR_MEMORY : status;
    }
    mg_run_options_resolve(&read);
    made->root = root;
    *json = made;
    *options = read;
    return MG_OK;
}

static const json_t *data_of(const mg_run_json *json, const char *key) {
    return json_object_get(json_object_get(json->root, "data"), key);
}

const char *mg_run_json_tokenizer(const mg_run_json *json) {
    return json_string_value(data_of(json, "tokenizer"));
}

int mg_run_json_vocab_size(const mg_run_json *json) {
    return (int)json_integer_value(data_of(json, "vocab_size"));
}

double mg_run_json_characters_per_token(const mg_run_json *json) {
    return json_number_value(data_of(json, "characters_a_token"));
}

uint64_t mg_run_json_data_hash(const mg_run_json *json) {
    const char *hash = json_string_value(data_of(json, "hash"));
    return hash ? strtoull(hash, NULL, 16) : 0;
}

void mg_run_json_free(mg_run_json *json) {
    if (!json) return;
    json_decref(json->root);
    mg_free(json);
}
