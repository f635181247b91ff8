#include "fields.h"
#include "h5.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

const mg_field mg_config_fields[] = {
    {"n_layer", MG_FIELD_INT, offsetof(mg_gpt_config, n_layer), 1},
    {"n_head", MG_FIELD_INT, offsetof(mg_gpt_config, n_head), 1},
    {"n_embd", MG_FIELD_INT, offsetof(mg_gpt_config, n_embd), 1},
    {"block_size", MG_FIELD_INT, offsetof(mg_gpt_config, block_size), 1},
    {"vocab_size", MG_FIELD_INT, offsetof(mg_gpt_config, vocab_size), 1},
    {"lookahead", MG_FIELD_LOOKAHEAD, offsetof(mg_gpt_config, mask.n), 1},
    {"leak_layer", MG_FIELD_INT, offsetof(mg_gpt_config, leak_layer), 1},
    {"leak_head", MG_FIELD_INT, offsetof(mg_gpt_config, leak_head), 1},
    {"leak_lookahead", MG_FIELD_LOOKAHEAD, offsetof(mg_gpt_config, leak_lookahead), 1},
    {"scale", MG_FIELD_NOT, offsetof(mg_gpt_config, no_scale), 1},
    {"output_projection", MG_FIELD_NOT, offsetof(mg_gpt_config, no_output_projection), 1},
    {"init_std", MG_FIELD_DOUBLE, offsetof(mg_gpt_config, init_std), 1},
    {"attn_init_std", MG_FIELD_DOUBLE, offsetof(mg_gpt_config, attn_init_std), 1},
    {"dropout", MG_FIELD_DOUBLE, offsetof(mg_gpt_config, dropout), 1},
    {"eps", MG_FIELD_DOUBLE, offsetof(mg_gpt_config, eps), 1},
    {"positions", MG_FIELD_NOT, offsetof(mg_gpt_config, no_positions), 2},
    {"mask_kind", MG_FIELD_INT, offsetof(mg_gpt_config, mask.kind), 2}, /* of which "lookahead" is the number */
    {"documents", MG_FIELD_BOOL, offsetof(mg_gpt_config, documents), 2},
    {"document_end", MG_FIELD_INT, offsetof(mg_gpt_config, document_end), 2},
    {"positions_run_on", MG_FIELD_BOOL, offsetof(mg_gpt_config, positions_run_on), 2},
    {0},
};

const mg_field mg_train_fields[] = {
    {"step", MG_FIELD_INT64, offsetof(mg_train_state, step), 1},
    {"tokens", MG_FIELD_INT64, offsetof(mg_train_state, tokens), 1},
    {"seed", MG_FIELD_UINT64, offsetof(mg_train_state, seed), 1},
    {"data_hash", MG_FIELD_HASH, offsetof(mg_train_state, data_hash), 1},
    {"best_loss", MG_FIELD_DOUBLE, offsetof(mg_train_state, best_loss), 1},
    {"lr", MG_FIELD_DOUBLE, offsetof(mg_train_state, schedule.lr), 1},
    {"min_lr", MG_FIELD_DOUBLE, offsetof(mg_train_state, schedule.min_lr), 1},
    {"warmup_iters", MG_FIELD_INT64, offsetof(mg_train_state, schedule.warmup_iters), 1},
    {"decay_iters", MG_FIELD_INT64, offsetof(mg_train_state, schedule.decay_iters), 1},
    {"grad_clip", MG_FIELD_DOUBLE, offsetof(mg_train_state, grad_clip), 1},
    {"batch_size", MG_FIELD_INT, offsetof(mg_train_state, batch_size), 1},
    {"grad_accum", MG_FIELD_INT, offsetof(mg_train_state, grad_accum), 1},
    {0},
};

const mg_field mg_optimizer_fields[] = {
    {"step", MG_FIELD_INT64, offsetof(mg_adamw, step), 1},
    {"beta1", MG_FIELD_DOUBLE, offsetof(mg_adamw, beta1), 1},
    {"beta2", MG_FIELD_DOUBLE, offsetof(mg_adamw, beta2), 1},
    {"eps", MG_FIELD_DOUBLE, offsetof(mg_adamw, eps), 1},
    {"weight_decay", MG_FIELD_DOUBLE, offsetof(mg_adamw, weight_decay), 1},
    {0},
};

enum { LOOKAHEAD_ALL_ON_DISK = -1 };

int64_t mg_field_int(const mg_field *field, const void *from) {
    const void *member = (const char *)from + field->offset;
    switch (field->type) {
    case MG_FIELD_INT: return *(const int *)member;
    case MG_FIELD_LOOKAHEAD:
        return *(const int *)member == MG_LOOKAHEAD_ALL ? LOOKAHEAD_ALL_ON_DISK : *(const int *)member;
    case MG_FIELD_BOOL: return *(const bool *)member;
    case MG_FIELD_NOT: return !*(const bool *)member;
    case MG_FIELD_INT64: return *(const int64_t *)member;
    case MG_FIELD_UINT64:
    case MG_FIELD_HASH:
    case MG_FIELD_DOUBLE: break;
    }
    mg_fail(MG_FAILURE_BUG, __FILE__, __LINE__, "the field %s is not an integer", field->name);
}

int mg_fields_version(const mg_field *fields, const void *values, const void *defaults) {
    int version = 1;
    for (const mg_field *field = fields; field->name; field++)
        if (field->since > version && mg_field_int(field, values) != mg_field_int(field, defaults))
            version = field->since;
    return version;
}

mg_status mg_fields_write(const mg_h5 *h5, const char *object, const mg_field *fields, int version, const void *from) {
    mg_status status = MG_OK;
    for (const mg_field *field = fields; field->name && status == MG_OK; field++) {
        if (field->since > version) continue;
        const void *member = (const char *)from + field->offset;
        if (field->type == MG_FIELD_UINT64 || field->type == MG_FIELD_HASH)
            status = mg_h5_write_uint(h5, object, field->name, *(const uint64_t *)member);
        else if (field->type == MG_FIELD_DOUBLE)
            status = mg_h5_write_double(h5, object, field->name, *(const double *)member);
        else
            status = mg_h5_write_int(h5, object, field->name, mg_field_int(field, from));
    }
    return status;
}

/* Store a number from the file in its member, if that can hold it. */
static mg_status take_int(const mg_h5 *h5, const char *object, const mg_field *field, int64_t value, void *member) {
    if (field->type == MG_FIELD_INT64) {
        *(int64_t *)member = value;
        return MG_OK;
    }
    bool is_bool = field->type == MG_FIELD_BOOL || field->type == MG_FIELD_NOT;
    int64_t low = field->type == MG_FIELD_INT ? INT_MIN : is_bool ? 0 : LOOKAHEAD_ALL_ON_DISK;
    int64_t high = is_bool ? 1 : INT_MAX;
    if (value < low || value > high)
        return mg_h5_error(h5, "the attribute '%s' of %s is %" PRId64 ", which is not between %" PRId64 " and %" PRId64,
                           field->name, object, value, low, high);
    if (is_bool)
        *(bool *)member = value == (field->type == MG_FIELD_BOOL);
    else if (field->type == MG_FIELD_LOOKAHEAD && value == LOOKAHEAD_ALL_ON_DISK)
        *(int *)member = MG_LOOKAHEAD_ALL;
    else
        *(int *)member = (int)value;
    return MG_OK;
}

static bool is_int(const mg_field *field) {
    return field->type != MG_FIELD_UINT64 && field->type != MG_FIELD_HASH && field->type != MG_FIELD_DOUBLE;
}

mg_status mg_fields_read(const mg_h5 *h5, const char *object, const mg_field *fields, int version, void *to) {
    enum { MOST = 32 };
    mg_h5_number numbers[MOST] = {0};
    const mg_field *read[MOST];
    int64_t ints[MOST];
    int n = 0;
    for (const mg_field *field = fields; field->name; field++) {
        if (field->since > version) continue;
        MG_CHECK(n < MOST, "more than %d fields", MOST);
        void *member = (char *)to + field->offset;
        mg_h5_number_type type = is_int(field) ? MG_H5_INT : field->type == MG_FIELD_DOUBLE ? MG_H5_DOUBLE : MG_H5_UINT;
        numbers[n] = (mg_h5_number){field->name, type, is_int(field) ? &ints[n] : member};
        read[n++] = field;
    }
    mg_status status = mg_h5_read_numbers(h5, object, n, numbers);
    for (int i = 0; i < n && status == MG_OK; i++)
        if (is_int(read[i])) status = take_int(h5, object, read[i], ints[i], (char *)to + read[i]->offset);
    return status;
}
