/* The reading functions: each call is a question, which this process or its child answers. */
#include "h5_internal.h"

#include <stdio.h>
#include <string.h>

static mg_h5_question about(mg_status (*reply)(const mg_h5 *, const mg_h5_question *, mg_h5_answer *),
                            const char *object, const char *name) {
    mg_h5_question question = {.reply = reply};
    MG_CHECK(strlen(object) < sizeof question.object && strlen(name) < sizeof question.name,
             "a name too long for a question about HDF5: %s %s", object, name);
    strcpy(question.object, object);
    strcpy(question.name, name);
    return question;
}

static mg_h5_question about_data(mg_status (*reply)(const mg_h5 *, const mg_h5_question *, mg_h5_answer *),
                                 const char *object, mg_h5_type type, int ndim, const ptrdiff_t *dim) {
    MG_CHECK(ndim >= 0 && ndim <= MG_MAX_DIM, "a dataset of %d dimensions", ndim);
    mg_h5_question question = about(reply, object, "");
    question.type = type;
    question.ndim = ndim;
    for (int i = 0; i < ndim; i++) question.dim[i] = dim[i];
    return question;
}

static mg_status take_here(mg_h5_answer *answer, const void *bytes, size_t n) {
    MG_CHECK(n <= answer->room - answer->length, "an answer about HDF5 that is too long");
    if (n > 0) memcpy(answer->to + answer->length, bytes, n);
    answer->length += n;
    return MG_OK;
}

mg_status mg_h5_check_length(const mg_h5 *h5, const mg_h5_call *call, size_t length) {
    if (call->length) *call->length = length;
    if (call->length || length == call->size) return MG_OK;
    return mg_h5_error(h5, "is damaged: HDF5 answers with %zu bytes instead of %zu", length, call->size);
}

static mg_status ask_here(const mg_h5 *h5, const mg_h5_call *call) {
    mg_h5_answer answer = {take_here, call->to, call->size, 0};
    mg_status status = call->question.reply(h5, &call->question, &answer);
    return status == MG_OK ? mg_h5_check_length(h5, call, answer.length) : status;
}

static mg_status ask_all(const mg_h5 *h5, int n, const mg_h5_call *calls) {
    if (h5->child) return mg_h5_child_ask(h5, n, calls);
    mg_status status = MG_OK;
    for (int i = 0; i < n && status == MG_OK; i++) status = ask_here(h5, &calls[i]);
    return status;
}

static mg_status ask(const mg_h5 *h5, mg_h5_question question, void *to, size_t size) {
    return ask_all(h5, 1, &(mg_h5_call){question, to, size, NULL});
}

/* ---- Objects and attributes ---- */

static mg_status ask_yes(const mg_h5 *h5, mg_h5_question question, bool *yes) {
    unsigned char answer = 0;
    mg_status status = ask(h5, question, &answer, 1);
    *yes = status == MG_OK && answer == 1;
    return status;
}

mg_status mg_h5_has(const mg_h5 *h5, const char *object, bool *there) {
    return ask_yes(h5, about(mg_h5_reply_has, object, ""), there);
}

mg_status mg_h5_has_attribute(const mg_h5 *h5, const char *object, const char *name, bool *there) {
    return ask_yes(h5, about(mg_h5_reply_has_attribute, object, name), there);
}

mg_status mg_h5_count(const mg_h5 *h5, const char *group, int64_t *count) {
    return ask(h5, about(mg_h5_reply_count, group, ""), count, sizeof *count);
}

mg_status mg_h5_read_numbers(const mg_h5 *h5, const char *object, int n, const mg_h5_number *numbers) {
    MG_CHECK(n <= MG_H5_AT_ONCE, "%d numbers at once", n);
    mg_h5_call calls[MG_H5_AT_ONCE];
    for (int i = 0; i < n; i++) {
        mg_h5_question question = about(mg_h5_reply_number, object, numbers[i].name);
        question.number = numbers[i].type;
        calls[i] = (mg_h5_call){question, numbers[i].to, 8, NULL};
    }
    return ask_all(h5, n, calls);
}

mg_status mg_h5_read_int(const mg_h5 *h5, const char *object, const char *name, int64_t *value) {
    return mg_h5_read_numbers(h5, object, 1, &(mg_h5_number){name, MG_H5_INT, value});
}

mg_status mg_h5_read_text(const mg_h5 *h5, const char *object, const char *name, char *text, size_t size) {
    mg_h5_question question = about(mg_h5_reply_text, object, name);
    question.end = (ptrdiff_t)size - 1;
    size_t length = 0;
    mg_status status = ask_all(h5, 1, &(mg_h5_call){question, text, size - 1, &length});
    memset(text + length, 0, size - length);
    return status;
}

/* ---- Datasets ---- */

mg_status mg_h5_read_length(const mg_h5 *h5, const char *object, mg_h5_type type, ptrdiff_t *length) {
    mg_status status = ask(h5, about_data(mg_h5_reply_length, object, type, 0, NULL), length, sizeof *length);
    if (status == MG_OK && *length < 1) status = mg_h5_error(h5, "is damaged: %s has no length", object);
    return status;
}

static size_t element_bytes(mg_h5_type type) {
    return type == MG_H5_FLOAT32 ? sizeof(mg_real) : type == MG_H5_UINT8 ? 1 : sizeof(int64_t);
}

static mg_h5_call call_for(const mg_h5_data *data) {
    mg_h5_question check = about_data(mg_h5_reply_check, data->object, data->type, data->ndim, data->dim);
    if (!data->to) return (mg_h5_call){check, NULL, 0, NULL};
    mg_h5_question rows = check;
    rows.reply = mg_h5_reply_rows;
    rows.end = data->dim[0];
    return (mg_h5_call){rows, data->to, (size_t)mg_shape_size(data->ndim, data->dim) * element_bytes(data->type), NULL};
}

mg_status mg_h5_read_data(const mg_h5 *h5, int n, const mg_h5_data *data) {
    mg_status status = MG_OK;
    mg_h5_call calls[MG_H5_AT_ONCE];
    for (int i = 0, m; i < n && status == MG_OK; i += m) {
        for (m = 0; m < MG_H5_AT_ONCE && i + m < n; m++) calls[m] = call_for(&data[i + m]);
        status = ask_all(h5, m, calls);
    }
    return status;
}

/* ---- Datasets of other programs ---- */

mg_status mg_h5_list_data(const mg_h5 *h5, char *paths, size_t size, size_t *length) {
    mg_h5_question question = about(mg_h5_reply_list, "/", "");
    question.end = (ptrdiff_t)size;
    *length = 0;
    mg_status status = ask_all(h5, 1, &(mg_h5_call){question, paths, size, length});
    if (status == MG_OK && *length > 0 && paths[*length - 1] != '\0')
        status = mg_h5_error(h5, "is damaged: the list of its datasets is not terminated");
    return status;
}

mg_status mg_h5_describe_data(const mg_h5 *h5, const char *object, const char **type, int *ndim, ptrdiff_t *dim) {
    mg_h5_description found = {0};
    mg_status status = ask(h5, about(mg_h5_reply_describe, object, ""), &found, sizeof found);
    if (status == MG_OK && (found.type < 0 || found.type >= MG_H5_TYPE_NAMES || found.ndim < 0))
        status = mg_h5_error(h5, "is damaged: %s has no type or no shape", object);
    if (status != MG_OK) return status;
    *type = mg_h5_type_names[found.type];
    *ndim = found.ndim;
    for (int i = 0; i < MG_MAX_DIM; i++) dim[i] = found.dim[i];
    return MG_OK;
}

mg_status mg_h5_read_rows(const mg_h5 *h5, const char *object, int ndim, const ptrdiff_t *dim, ptrdiff_t begin,
                          ptrdiff_t end, mg_real *to) {
    mg_h5_question question = about_data(mg_h5_reply_float_rows, object, MG_H5_FLOAT32, ndim, dim);
    question.begin = begin;
    question.end = end;
    size_t rows = (size_t)(end - begin), row = (size_t)(mg_shape_size(ndim, dim) / dim[0]);
    return ask(h5, question, to, rows * row * sizeof *to);
}
