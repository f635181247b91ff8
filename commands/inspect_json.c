#include "fields.h"
#include "inspect.h"
#include "printable.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>

/* Add the value to the object. NULL if memory ran out for it or for the value: an incomplete object is not printed. */
static json_t *with(json_t *object, const char *name, json_t *value) {
    if (json_object_set_new(object, name, value) == 0) return object;
    json_decref(object);
    return NULL;
}

static json_t *appended(json_t *array, json_t *value) {
    if (json_array_append_new(array, value) == 0) return array;
    json_decref(array);
    return NULL;
}

/* JSON has no NaN and no infinities. */
static json_t *real_or_null(double x) {
    return isfinite(x) ? json_real(x) : json_null();
}

/* Unsigned 64-bit numbers are strings: most readers of JSON would round them. */
static json_t *field_value(const mg_field *field, const void *from) {
    const void *member = (const char *)from + field->offset;
    char text[32];
    switch (field->type) {
    case MG_FIELD_DOUBLE: return real_or_null(*(const double *)member);
    case MG_FIELD_BOOL:
    case MG_FIELD_NOT: return json_boolean(mg_field_int(field, from));
    case MG_FIELD_UINT64: snprintf(text, sizeof text, "%" PRIu64, *(const uint64_t *)member); return json_string(text);
    case MG_FIELD_HASH: snprintf(text, sizeof text, "%016" PRIx64, *(const uint64_t *)member); return json_string(text);
    case MG_FIELD_INT:
    case MG_FIELD_LOOKAHEAD:
    case MG_FIELD_INT64: break;
    }
    return json_integer(mg_field_int(field, from));
}

static json_t *fields_object(const mg_field *fields, const void *from) {
    json_t *object = json_object();
    for (const mg_field *field = fields; field->name; field++)
        object = with(object, field->name, field_value(field, from));
    return object;
}

static json_t *parameter_object(const mg_param *p) {
    mg_parameter_summary summary = mg_parameter_summarize(p);
    json_t *shape = json_array();
    for (int i = 0; i < p->tensor.ndim; i++) shape = appended(shape, json_integer(p->tensor.dim[i]));
    json_t *object = with(json_object(), "name", json_string(p->name));
    object = with(object, "shape", shape);
    object = with(object, "size", json_integer(mg_size(&p->tensor)));
    object = with(object, "norm", real_or_null(summary.norm));
    return with(object, "not_finite", json_integer(summary.not_finite));
}

static json_t *parameters_array(mg_gpt *gpt) {
    const mg_params *params = mg_gpt_params(gpt);
    json_t *array = json_array();
    for (int i = 0; i < params->n; i++) array = appended(array, parameter_object(&params->param[i]));
    return array;
}

static json_t *tokenizer_object(const mg_tokenizer *tokenizer) {
    if (!tokenizer) return json_null();
    const char *kind = mg_tokenizer_kind_name(mg_tokenizer_get_kind(tokenizer));
    json_t *object = with(json_object(), "kind", json_string(kind));
    return with(object, "size", json_integer(mg_tokenizer_size(tokenizer)));
}

/* A file's name need not be UTF-8, and JSON must be. */
static json_t *text_or_escaped(const char *text) {
    json_t *string = json_string(text);
    return string ? string : json_string(mg_shown(text).text);
}

static json_t *root_object(const mg_inspection *inspection) {
    const mg_checkpoint_info *info = &inspection->info;
    mg_gpt *gpt = inspection->checkpoint.gpt;
    json_t *root = with(json_object(), "path", text_or_escaped(inspection->path));
    root = with(root, "creator", text_or_escaped(info->creator));
    root = with(root, "format_version", json_integer(info->format_version));
    root = with(root, "bytes", json_integer(info->bytes));
    root = with(root, "sealed", json_boolean(info->sealed));
    root = with(root, "verified", json_boolean(inspection->verified));
    root = with(root, "mask", json_string(mg_mask_in_words(&info->config).text));
    root = with(root, "config", fields_object(mg_config_fields, &info->config));
    root = with(root, "parameter_count", json_integer(mg_params_count(mg_gpt_params(gpt))));
    root = with(root, "parameters", parameters_array(gpt));
    root = with(root, "train", fields_object(mg_train_fields, &info->train));
    root = with(root, "optimizer",
                info->has_optimizer ? fields_object(mg_optimizer_fields, &info->optimizer) : json_null());
    return with(root, "tokenizer", tokenizer_object(inspection->checkpoint.tokenizer));
}

/* DEL is the one control character that jansson lets pass. */
static void print_json(const char *text) {
    for (const char *c = text; *c; c++)
        if (*c == 0x7F)
            fputs("\\u007F", stdout);
        else
            putchar(*c);
    putchar('\n');
}

/* All of it or nothing: half an object would look complete to a program that reads only the start. */
mg_status mg_inspect_print_json(mg_inspection *inspection, mg_error *error) {
    json_t *root = root_object(inspection);
    char *text = root ? json_dumps(root, JSON_INDENT(2) | JSON_ENSURE_ASCII) : NULL;
    json_decref(root);
    if (!text) return mg_error_set(error, MG_ERR_MEMORY, "out of memory for the JSON");
    print_json(text);
    json_free_t free_text;
    json_get_alloc_funcs(NULL, &free_text);
    free_text(text);
    return MG_OK;
}
