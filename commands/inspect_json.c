#include "fields.h"
#include "inspect.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

/* json_real refuses NaN and infinities, for which JSON has no word: null. */
static json_t *real_or_null(double x) {
    json_t *real = json_real(x);
    return real ? real : json_null();
}

/* Unsigned 64-bit numbers are strings: most readers of JSON would round them. */
static json_t *field_value(const mg_field *field, const void *from) {
    const void *member = (const char *)from + field->offset;
    char text[32];
    switch (field->type) {
    case MG_FIELD_DOUBLE: return real_or_null(*(const double *)member);
    case MG_FIELD_BOOL: return json_boolean(*(const bool *)member);
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
        json_object_set_new(object, field->name, field_value(field, from));
    return object;
}

static json_t *parameter_object(const mg_param *p) {
    mg_parameter_summary summary = mg_parameter_summarise(p);
    json_t *shape = json_array();
    for (int i = 0; i < p->tensor.ndim; i++) json_array_append_new(shape, json_integer(p->tensor.dim[i]));
    json_t *object = json_object();
    json_object_set_new(object, "name", json_string(p->name));
    json_object_set_new(object, "shape", shape);
    json_object_set_new(object, "size", json_integer(mg_size(&p->tensor)));
    json_object_set_new(object, "norm", real_or_null(summary.norm));
    json_object_set_new(object, "not_finite", json_integer(summary.not_finite));
    return object;
}

static json_t *parameters_array(mg_gpt *gpt) {
    const mg_params *params = mg_gpt_params(gpt);
    json_t *array = json_array();
    for (int i = 0; i < params->n; i++) json_array_append_new(array, parameter_object(&params->param[i]));
    return array;
}

static json_t *tokenizer_object(const mg_tokenizer *tokenizer) {
    if (!tokenizer) return json_null();
    json_t *object = json_object();
    json_object_set_new(object, "kind", json_string(mg_tokenizer_kind_name(mg_tokenizer_get_kind(tokenizer))));
    json_object_set_new(object, "size", json_integer(mg_tokenizer_size(tokenizer)));
    return object;
}

mg_status mg_inspect_print_json(mg_inspection *inspection, mg_error *error) {
    const mg_checkpoint_info *info = &inspection->info;
    mg_gpt *gpt = inspection->checkpoint.gpt;
    json_t *root = json_object();
    json_object_set_new(root, "path", json_string(inspection->path));
    json_object_set_new(root, "creator", json_string(info->creator));
    json_object_set_new(root, "format_version", json_integer(info->format_version));
    json_object_set_new(root, "bytes", json_integer(info->bytes));
    json_object_set_new(root, "sealed", json_boolean(info->sealed));
    json_object_set_new(root, "verified", json_boolean(inspection->verified));
    json_object_set_new(root, "mask", json_string(mg_mask_in_words(&info->config).text));
    json_object_set_new(root, "config", fields_object(mg_config_fields, &info->config));
    json_object_set_new(root, "parameter_count", json_integer(mg_params_count(mg_gpt_params(gpt))));
    json_object_set_new(root, "parameters", parameters_array(gpt));
    json_object_set_new(root, "train", fields_object(mg_train_fields, &info->train));
    json_object_set_new(root, "optimizer",
                        info->has_optimizer ? fields_object(mg_optimizer_fields, &info->optimizer) : json_null());
    json_object_set_new(root, "tokenizer", tokenizer_object(inspection->checkpoint.tokenizer));
    int dumped = json_dumpf(root, stdout, JSON_INDENT(2));
    json_decref(root);
    if (dumped != 0 && !ferror(stdout)) return mg_error_set(error, MG_ERR_MEMORY, "out of memory for the JSON");
    putchar('\n');
    return MG_OK;
}
