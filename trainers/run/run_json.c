#include "run_json.h"
#include "arithmetic.h"
#include "atomic_file.h"
#include "gemm.h"
#include "parallel.h"
#include "printable.h"
#include "regular_file.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct mg_run_json {
    json_t *root;
};

/* The name in the file: "--block-size" is "block_size", and "--no-scale" is "scale": false. */
static void key_of(const mg_setting *flag, char *key, size_t size) {
    snprintf(key, size, "%s", flag->kind == MG_SETTING_OFF ? flag->name + strlen("no-") : flag->name);
    for (char *c = key; *c; c++)
        if (*c == '-') *c = '_';
}

/* ---- Writing ---- */

/* A list of one item is written as the item: most runs read one file. */
static json_t *list_of(const char *text) {
    if (!strchr(text, '\n')) return text[0] ? json_string(text) : json_null();
    json_t *list = json_array();
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        if (json_array_append_new(list, json_stringn(text, n)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *value_of(const mg_setting *flag, const void *values) {
    char text[MG_SETTING_ROOM];
    mg_setting_format(flag, values, text, sizeof text);
    switch (flag->kind) {
    case MG_SETTING_INT:
    case MG_SETTING_INT64: return json_integer(strtoll(text, NULL, 10));
    case MG_SETTING_REAL: return json_real(strtod(text, NULL));
    case MG_SETTING_ON:
    case MG_SETTING_OFF: return json_boolean(strcmp(text, "true") == 0);
    case MG_SETTING_LIST: return list_of(text);
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

/* How many digits the real settings need to read back exactly: 15 unless one is odd, so that 0.1 stays 0.1. */
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

/* ---- Machines ----
 *
 * The bits of a run depend on these, not on its threads; in portable arithmetic, only on the first two. */

static const char *const machine_keys[] = {"arithmetic", "precision", "blas", "compiler"};
enum { N_MACHINE_KEYS = sizeof machine_keys / sizeof *machine_keys };

static void this_machine(const char *value[N_MACHINE_KEYS]) {
    value[0] = MG_ARITHMETIC;
    value[1] = sizeof(mg_real) == sizeof(float) ? "float32" : "float64";
    value[2] = mg_blas_name();
    value[3] = __VERSION__;
}

static bool was_portable(const json_t *machine) {
    const char *arithmetic = json_string_value(json_object_get(machine, machine_keys[0]));
    return arithmetic && strcmp(arithmetic, "portable") == 0;
}

const char *mg_run_json_other_machine(const mg_run_json *json, char *text, size_t size) {
    const char *now[N_MACHINE_KEYS];
    const json_t *machine = json_object_get(json->root, "machine");
    this_machine(now);
    for (int i = 0; i < N_MACHINE_KEYS; i++) {
        const char *then = json_string_value(json_object_get(machine, machine_keys[i]));
        if (!then || strcmp(then, now[i]) == 0) continue; /* an older version did not write them all */
        if (i > 1 && strcmp(MG_ARITHMETIC, "portable") == 0 && was_portable(machine)) continue;
        snprintf(text, size, "%s is '%s', and was '%s'", machine_keys[i], now[i], mg_shown(then).text);
        return text;
    }
    return NULL;
}

/* This machine, and before it those on which the run was trained so far. */
static int put_machines(json_t *root, const mg_run_facts *facts) {
    const char *now[N_MACHINE_KEYS];
    char difference[1024];
    this_machine(now);
    json_t *machine = json_pack("{s:i, s:I}", "threads", mg_threads(), "from_step", (json_int_t)facts->step);
    if (facts->ranks > 1) json_object_set_new(machine, "ranks", json_integer(facts->ranks));
    for (int i = 0; i < N_MACHINE_KEYS && machine; i++)
        json_object_set_new(machine, machine_keys[i], json_string(now[i]));
    if (!facts->before) return json_object_set_new(root, "machine", machine);
    json_t *last = json_object_get(facts->before->root, "machine");
    json_t *earlier = json_object_get(facts->before->root, "earlier_machines");
    json_t *list = earlier ? json_copy(earlier) : json_array();
    if (mg_run_json_other_machine(facts->before, difference, sizeof difference))
        json_array_append(list, last);
    else
        json_object_set(machine, "from_step", json_object_get(last, "from_step"));
    int status = json_object_set_new(root, "machine", machine);
    if (json_array_size(list) > 0) status |= json_object_set(root, "earlier_machines", list);
    json_decref(list);
    return status;
}

static json_t *facts_of(const mg_run_options *options, const mg_run_facts *facts) {
    char mask[128], hash[32];
    mg_mask_words(&options->train.model, mask, sizeof mask);
    snprintf(hash, sizeof hash, "%016" PRIx64, facts->data_hash);
    json_t *root = json_pack(
        "{s:s, s:s, s:{s:s, s:s, s:s, s:i, s:I, s:I, s:f}, s:I}", "creator", "maskgrad " MASKGRAD_VERSION, "mask", mask,
        "data", "name", facts->data_name, "hash", hash, "tokenizer", facts->tokenizer, "vocab_size", facts->vocab_size,
        "tokens", (json_int_t)facts->n_tokens, "train_tokens", (json_int_t)facts->n_train, "characters_a_token",
        facts->characters_per_token, "parameters", (json_int_t)facts->n_parameters);
    if (root && put_machines(root, facts) == 0) return root;
    json_decref(root);
    return NULL;
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

static mg_status take_setting(const mg_setting *setting, const json_t *value, void *values, mg_error *error) {
    char text[64] = "", unset[16];
    bool is_switch = mg_setting_is_switch(setting);
    bool is_count = setting->kind == MG_SETTING_INT || setting->kind == MG_SETTING_INT64;
    bool is_real = setting->kind == MG_SETTING_REAL;
    const char *kind = is_switch ? "true or false" : is_count ? "a whole number" : is_real ? "a number" : "a text";
    bool fits = is_switch  ? json_is_boolean(value)
                : is_count ? json_is_integer(value)
                : is_real  ? json_is_number(value)
                           : json_is_string(value);
    mg_setting_format(setting, values, unset, sizeof unset);
    if (!is_switch && !is_count && !is_real && !unset[0] && json_is_null(value))
        return MG_OK; /* not given, as is the default */
    if (!fits) return mg_error_set(error, MG_ERR_FORMAT, "it should be %s", kind);
    if (json_is_string(value)) return mg_setting_set(setting, values, json_string_value(value), error);
    if (json_is_integer(value)) snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    if (json_is_real(value)) snprintf(text, sizeof text, "%.17g", json_real_value(value));
    if (is_switch) snprintf(text, sizeof text, "%s", json_is_true(value) ? "true" : "false");
    return mg_setting_set(setting, values, text, error);
}

/* A list becomes one text, one item per line, which the settings keep in its place. */
static mg_status join_list(json_t *settings, const char *key, const json_t **value, mg_error *error) {
    char text[MG_SETTING_ROOM] = "";
    size_t at = 0;
    for (size_t i = 0; i < json_array_size(*value); i++) {
        const char *item = json_string_value(json_array_get(*value, i));
        if (!item || !item[0] || strchr(item, '\n'))
            return mg_error_set(error, MG_ERR_FORMAT, "it should be a list of texts of one line");
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i > 0 ? "\n" : "", item);
        if (at >= sizeof text)
            return mg_error_set(error, MG_ERR_FORMAT, "it should have less than %zu bytes", sizeof text);
    }
    json_t *joined = json_string(text);
    if (json_object_set_new(settings, key, joined) != 0)
        return mg_error_set(error, MG_ERR_MEMORY, "out of memory for a list");
    *value = joined;
    return MG_OK;
}

static const mg_setting *setting_of(const char *wanted) {
    char key[64];
    mg_setting_cursor at = {0};
    for (const mg_setting *s; (s = mg_setting_next(&at, mg_run_settings));) {
        key_of(s, key, sizeof key);
        if (strcmp(key, wanted) == 0) return s;
    }
    return NULL;
}

static mg_status take_settings(json_t *settings, const char *path, mg_run_options *options, mg_error *error) {
    char key[64];
    mg_error reason;
    mg_setting_cursor at = {0};
    for (const mg_setting *s; (s = mg_setting_next(&at, mg_run_settings));) {
        key_of(s, key, sizeof key);
        const json_t *value = json_object_get(settings, key);
        if (!value && s->added) continue;
        if (!value) return mg_error_set(error, MG_ERR_FORMAT, "%s: the setting '%s' is missing", path, key);
        bool is_list = s->kind == MG_SETTING_LIST && json_is_array(value);
        if (is_list && join_list(settings, key, &value, &reason) != MG_OK)
            return mg_error_set(error, MG_ERR_FORMAT, "%s: '%s': %s", path, key, reason.message);
        if (take_setting(s, value, (char *)options + at.base, &reason) != MG_OK)
            return mg_error_set(error, MG_ERR_FORMAT, "%s: '%s': %s", path, key, reason.message);
    }
    const char *name;
    json_t *value;
    json_object_foreach(settings, name, value) if (!setting_of(name)) return mg_error_set(
        error, MG_ERR_FORMAT, "%s: '%s' is not a setting of this version", path, name);
    if (!options->data.path || !options->data.path[0])
        return mg_error_set(error, MG_ERR_FORMAT, "%s: 'data' should be the path of a file", path);
    return MG_OK;
}

/* ---- Facts ---- */

typedef enum fact_kind { FACT_TEXT, FACT_HASH, FACT_COUNT, FACT_NUMBER, FACT_OBJECT, FACT_LIST } fact_kind;

typedef struct fact {
    const char *key;
    fact_kind kind;
    bool needed; /* the others were not written by every version */
} fact;

static const fact root_facts[] = {{"creator", FACT_TEXT, true},     {"mask", FACT_TEXT, true},
                                  {"data", FACT_OBJECT, true},      {"machine", FACT_OBJECT, true},
                                  {"settings", FACT_OBJECT, true},  {"earlier_machines", FACT_LIST, false},
                                  {"parameters", FACT_COUNT, true}, {0}};
static const fact data_facts[] = {{"name", FACT_TEXT, true},
                                  {"hash", FACT_HASH, true},
                                  {"tokenizer", FACT_TEXT, false},
                                  {"vocab_size", FACT_COUNT, true},
                                  {"tokens", FACT_COUNT, true},
                                  {"train_tokens", FACT_COUNT, true},
                                  {"characters_a_token", FACT_NUMBER, false},
                                  {0}};
static const fact machine_facts[] = {{"threads", FACT_COUNT, true},    {"blas", FACT_TEXT, true},
                                     {"compiler", FACT_TEXT, true},    {"precision", FACT_TEXT, false},
                                     {"arithmetic", FACT_TEXT, false}, {"from_step", FACT_COUNT, false},
                                     {"ranks", FACT_COUNT, false},     {0}};

static bool is_hash(const char *text) {
    return text && strlen(text) == 16 && text[strspn(text, "0123456789abcdef")] == '\0';
}

static bool fact_fits(fact_kind kind, const json_t *value) {
    switch (kind) {
    case FACT_TEXT: return json_is_string(value);
    case FACT_HASH: return is_hash(json_string_value(value));
    case FACT_COUNT:
        return json_is_integer(value) && json_integer_value(value) >= 0 && json_integer_value(value) < INT64_C(1) << 53;
    case FACT_NUMBER: return json_is_number(value) && json_number_value(value) >= 0;
    case FACT_OBJECT: return json_is_object(value);
    case FACT_LIST: return json_is_array(value);
    }
    return false;
}

static mg_status check_facts(json_t *object, const fact *facts, const char *in, const char *path, mg_error *error) {
    static const char *const kinds[] = {[FACT_TEXT] = "a text",      [FACT_HASH] = "16 hexadecimal digits",
                                        [FACT_COUNT] = "a count",    [FACT_NUMBER] = "a number from 0 up",
                                        [FACT_OBJECT] = "an object", [FACT_LIST] = "a list"};
    if (!json_is_object(object)) return mg_error_set(error, MG_ERR_FORMAT, "%s: %s is not an object", path, in);
    for (const fact *f = facts; f->key; f++) {
        const json_t *value = json_object_get(object, f->key);
        if (!value && f->needed)
            return mg_error_set(error, MG_ERR_FORMAT, "%s has no '%s' in %s: it is not a run.json", path, f->key, in);
        if (value && !fact_fits(f->kind, value))
            return mg_error_set(error, MG_ERR_FORMAT, "%s: '%s' in %s should be %s", path, f->key, in, kinds[f->kind]);
    }
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        const fact *f = facts;
        while (f->key && strcmp(f->key, key) != 0) f++;
        if (!f->key)
            return mg_error_set(error, MG_ERR_FORMAT, "%s: '%s' in %s is unknown to this version", path, key, in);
    }
    return MG_OK;
}

static mg_status check_all_facts(json_t *root, const char *path, mg_error *error) {
    mg_status status = check_facts(root, root_facts, "the file", path, error);
    if (status == MG_OK) status = check_facts(json_object_get(root, "data"), data_facts, "'data'", path, error);
    if (status == MG_OK)
        status = check_facts(json_object_get(root, "machine"), machine_facts, "'machine'", path, error);
    const json_t *earlier = json_object_get(root, "earlier_machines");
    for (size_t i = 0; status == MG_OK && i < json_array_size(earlier); i++)
        status = check_facts(json_array_get(earlier, i), machine_facts, "'earlier_machines'", path, error);
    return status;
}

/* ---- The file ---- */

static mg_status load(const char *path, json_t **root, mg_error *error) {
    enum { MOST_BYTES = 1 << 20 };
    int file;
    size_t bytes;
    json_error_t reason;
    mg_status status = mg_open_regular(path, &file, &bytes, error);
    if (status != MG_OK) return status;
    bool sane = bytes <= MOST_BYTES;
    *root = sane ? json_loadfd(file, JSON_REJECT_DUPLICATES, &reason) : NULL;
    close(file);
    if (!sane)
        return mg_error_set(error, MG_ERR_FORMAT, "%s has %zu bytes: a run.json has at most %d", path, bytes,
                            MOST_BYTES);
    if (!*root) return mg_error_set(error, MG_ERR_FORMAT, "%s, line %d: %s", path, reason.line, reason.text);
    return MG_OK;
}

mg_status mg_run_json_read(mg_run_json **json, const char *path, mg_run_options *options, mg_error *error) {
    *json = NULL;
    json_t *root;
    mg_status status = load(path, &root, error);
    if (status != MG_OK) return status;
    mg_run_options read = mg_run_defaults();
    status = check_all_facts(root, path, error);
    if (status == MG_OK) status = take_settings(json_object_get(root, "settings"), path, &read, error);
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
