#include "audit_protocol.h"
#include "heap.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LINE = 1 << 20, MOST_NUMBERS_LINE = 1 << 26 };

/* ---- The greeting ---- */

static mg_status bad_greeting(mg_error *error, const char *what) {
    return mg_error_set(error, MG_ERR_FORMAT,
                        "the program's greeting %s; it should be like {\"maskgrad-audit\":1,\"vocab\":65,"
                        "\"context\":64,\"can\":[\"logits\"]}",
                        what);
}

static mg_status read_object(audit_pipe *pipe, json_t **object, mg_error *error) {
    const char *line;
    mg_status status = audit_pipe_line(pipe, MOST_LINE, &line, error);
    if (status) return status;
    json_error_t where;
    *object = json_loads(line, JSON_REJECT_DUPLICATES, &where);
    if (json_is_object(*object)) return MG_OK;
    json_decref(*object);
    return mg_error_set(error, MG_ERR_FORMAT,
                        "the program wrote '%.80s' where a JSON object was expected%s: what else it prints "
                        "belongs on its standard error",
                        line, audit_pipe_when(pipe).text);
}

static bool read_count(const json_t *greeting, const char *key, int most, int *to) {
    const json_t *value = json_object_get(greeting, key);
    json_int_t n = json_is_integer(value) ? json_integer_value(value) : 0;
    *to = n > 0 && n <= most ? (int)n : 0;
    return *to > 0;
}

static mg_status step(void *user, const int *ids, int n, bool reset, int n_columns, const int *columns, double *logits,
                      mg_error *error);
static mg_status loss(void *user, const int *ids, int length, double *to, mg_error *error);

static bool read_ability(const char *name, bool *can_logits, mg_audit_model *model) {
    if (strcmp(name, "logits") == 0)
        *can_logits = true;
    else if (strcmp(name, "step") == 0)
        model->step = step;
    else if (strcmp(name, "loss") == 0)
        model->loss = loss;
    else if (strcmp(name, "padded") == 0)
        model->can_pad = true;
    else if (strcmp(name, "segments") == 0)
        model->can_segment = true;
    else if (strcmp(name, "train") == 0)
        model->can_train = true;
    else
        return false;
    return true;
}

static mg_status read_abilities(const json_t *can, mg_audit_model *model, mg_error *error) {
    bool can_logits = false;
    size_t i;
    json_t *ability;
    json_array_foreach(can, i, ability) {
        const char *name = json_string_value(ability);
        if (!name || !read_ability(name, &can_logits, model))
            return mg_error_set(error, MG_ERR_FORMAT,
                                "the program's greeting offers '%.40s'; protocol %d knows logits, step, padded, loss, "
                                "segments and train",
                                name ? name : "what is no text", AUDIT_PROTOCOL);
    }
    return can_logits ? MG_OK : bad_greeting(error, "does not offer \"logits\" in \"can\"");
}

static mg_status read_dtype(const json_t *greeting, mg_audit_model *model, mg_error *error) {
    const json_t *value = json_object_get(greeting, "dtype");
    const char *name = value ? json_string_value(value) : "f32";
    for (mg_audit_dtype d = 0; name && d < MG_AUDIT_N_DTYPES; d++) {
        if (strcmp(name, mg_audit_dtype_name(d)) != 0) continue;
        model->dtype = d;
        return MG_OK;
    }
    return mg_error_set(error, MG_ERR_FORMAT,
                        "the program's greeting has the dtype '%.40s'; f32, f64, f16 and bf16 are "
                        "known",
                        name ? name : "that is no text");
}

static mg_status read_greeting(const json_t *greeting, mg_audit_model *model, mg_error *error) {
    const json_t *version = json_object_get(greeting, "maskgrad-audit"), *rows = json_object_get(greeting, "rows");
    if (!json_is_integer(version)) return bad_greeting(error, "has no number \"maskgrad-audit\"");
    if (json_integer_value(version) != AUDIT_PROTOCOL)
        return mg_error_set(error, MG_ERR_FORMAT, "the program speaks protocol %lld, and this maskgrad protocol %d",
                            (long long)json_integer_value(version), AUDIT_PROTOCOL);
    if (!read_count(greeting, "vocab", 1 << 24, &model->vocab))
        return bad_greeting(error, "has no \"vocab\" of 1 to 16777216");
    if (!read_count(greeting, "context", 1 << 20, &model->context))
        return bad_greeting(error, "has no \"context\" of 1 to 1048576");
    if (rows && !read_count(greeting, "rows", 1 << 20, &model->most_rows))
        return bad_greeting(error, "has \"rows\" that are no number from 1 on");
    mg_status status = read_dtype(greeting, model, error);
    return status ? status : read_abilities(json_object_get(greeting, "can"), model, error);
}

static mg_status logits(void *user, const mg_audit_batch *batch, double *to, mg_error *error);

mg_status audit_protocol_greet(audit_pipe *pipe, mg_audit_model *model, mg_error *error) {
    json_t *greeting;
    mg_status status = read_object(pipe, &greeting, error);
    if (status) return status;
    *model = (mg_audit_model){.user = pipe, .logits = logits};
    status = read_greeting(greeting, model, error);
    json_decref(greeting);
    return status;
}

/* ---- Asking ---- */

static json_t *array_of(int n, const int *values) {
    json_t *array = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(array, json_integer(values[i]));
    return array;
}

static json_t *rows_of(int rows, int length, const int *values) {
    json_t *array = json_array();
    for (int r = 0; r < rows; r++) json_array_append_new(array, array_of(length, values + (ptrdiff_t)r * length));
    return array;
}

static mg_status send(audit_pipe *pipe, json_t *request, mg_error *error) {
    char *text = json_dumps(request, JSON_COMPACT);
    json_decref(request);
    if (!text) return mg_error_set(error, MG_ERR_MEMORY, "out of memory for a request");
    size_t n = strlen(text);
    text[n] = '\n'; /* in place of the 0 */
    mg_status status = audit_pipe_ask(pipe, text, n + 1, error);
    free(text);
    return status;
}

/* ---- The answer ---- */

typedef struct shape {
    int n, dim[3];
} shape;

typedef struct shape_text {
    char text[64];
} shape_text;

static shape_text shape_in_words(shape s) {
    shape_text words = {"[]"};
    int used = 0;
    for (int i = 0; i < s.n; i++)
        used += snprintf(words.text + used, sizeof words.text - (size_t)used, "%s%d%s", i ? ", " : "[", s.dim[i],
                         i == s.n - 1 ? "]" : "");
    return words;
}

static bool is_shape(const json_t *array, shape expected) {
    if (!json_is_array(array) || json_array_size(array) != (size_t)expected.n) return false;
    for (int i = 0; i < expected.n; i++)
        if (json_integer_value(json_array_get(array, (size_t)i)) != expected.dim[i]) return false;
    return true;
}

static mg_status check_answer(const audit_pipe *pipe, const json_t *answer, shape expected, mg_error *error) {
    const char *refusal = json_string_value(json_object_get(answer, "error"));
    if (refusal) return mg_error_set(error, MG_ERR_INPUT, "%.600s", refusal);
    const json_t *given = json_object_get(answer, "shape");
    if (is_shape(given, expected)) return MG_OK;
    char *text = given ? json_dumps(given, JSON_ENCODE_ANY) : NULL;
    mg_status status = mg_error_set(error, MG_ERR_FORMAT, "the program answered %s%.60s%s: it has to be %s",
                                    text ? "the shape " : "no shape", text ? text : "", audit_pipe_when(pipe).text,
                                    shape_in_words(expected).text);
    free(text);
    return status;
}

/* Little-endian, whatever this machine is. */
static double number_at(const unsigned char *bytes, int width) {
    uint64_t bits = 0;
    for (int i = width - 1; i >= 0; i--) bits = bits << 8 | bytes[i];
    if (width == 8) {
        double value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    uint32_t half = (uint32_t)bits;
    float value;
    memcpy(&value, &half, sizeof value);
    return (double)value;
}

static mg_status read_binary(audit_pipe *pipe, int width, size_t n, double *to, mg_error *error) {
    enum { PIECE = 1 << 16 };
    for (size_t done = 0; done < n;) {
        size_t here = n - done < PIECE ? n - done : PIECE;
        const char *bytes;
        mg_status status = audit_pipe_bytes(pipe, here * (size_t)width, &bytes, error);
        if (status) return status;
        for (size_t i = 0; i < here; i++)
            to[done + i] = number_at((const unsigned char *)bytes + i * (size_t)width, width);
        done += here;
    }
    return MG_OK;
}

static mg_status read_text_row(const audit_pipe *pipe, const char *line, size_t row, size_t n, double *to,
                               mg_error *error) {
    for (size_t k = 0;; k++) {
        line += strspn(line, " \t,\r");
        if (!*line && k == n) return MG_OK;
        char *end;
        double value = strtod(line, &end);
        if (!*line || k == n || end == line || !strchr(" \t,\r", *end))
            return mg_error_set(
                error, MG_ERR_FORMAT,
                "line %zu of the program's answer has %s number %zu ('%.20s'); it has to be %zu numbers%s", row + 1,
                *line && k < n ? "a bad"
                : !*line       ? "no"
                               : "a superfluous",
                k + 1, line, n, audit_pipe_when(pipe).text);
        to[k] = value;
        line = end;
    }
}

static mg_status read_text(audit_pipe *pipe, size_t rows, size_t n, double *to, mg_error *error) {
    for (size_t r = 0; r < rows; r++) {
        const char *line;
        mg_status status = audit_pipe_line(pipe, MOST_NUMBERS_LINE, &line, error);
        if (!status) status = read_text_row(pipe, line, r, n, to + r * n, error);
        if (status) return status;
    }
    return MG_OK;
}

/* Numbers of this shape: 4 bytes each, or 8 if "f64" is said, or text with a line per last dimension. */
static mg_status read_answer(audit_pipe *pipe, shape expected, double *to, mg_error *error) {
    json_t *answer;
    mg_status status = read_object(pipe, &answer, error);
    if (status) return status;
    status = check_answer(pipe, answer, expected, error);
    bool text = json_is_true(json_object_get(answer, "text")), wide = json_is_true(json_object_get(answer, "f64"));
    json_decref(answer);
    if (status) return status;
    size_t last = (size_t)expected.dim[expected.n - 1], rows = 1;
    for (int i = 0; i < expected.n - 1; i++) rows *= (size_t)expected.dim[i];
    return text ? read_text(pipe, rows, last, to, error) : read_binary(pipe, wide ? 8 : 4, rows * last, to, error);
}

/* ---- The calls ---- */

static mg_status logits(void *user, const mg_audit_batch *b, double *to, mg_error *error) {
    audit_pipe *pipe = user;
    const char *call = b->mask ? "padded" : b->segments ? "segments" : "logits";
    snprintf(pipe->asked, sizeof pipe->asked, "%s of %d x %d tokens%s", call, b->rows, b->length,
             b->train ? " in training mode" : "");
    json_t *request = json_object();
    json_object_set_new(request, "call", json_string(call));
    json_object_set_new(request, "ids", rows_of(b->rows, b->length, b->ids));
    if (b->mask) json_object_set_new(request, "mask", rows_of(b->rows, b->length, b->mask));
    if (b->segments) json_object_set_new(request, "segments", rows_of(b->rows, b->length, b->segments));
    if (b->columns) json_object_set_new(request, "columns", array_of(b->n_columns, b->columns));
    if (b->train) {
        json_object_set_new(request, "train", json_true());
        json_object_set_new(request, "seed", json_integer((json_int_t)(b->seed & 0x7fffffff)));
    }
    mg_status status = send(pipe, request, error);
    return status ? status : read_answer(pipe, (shape){3, {b->rows, b->length, b->n_columns}}, to, error);
}

static mg_status step(void *user, const int *ids, int n, bool reset, int n_columns, const int *columns, double *to,
                      mg_error *error) {
    audit_pipe *pipe = user;
    snprintf(pipe->asked, sizeof pipe->asked, "a step of %d tokens", n);
    json_t *request = json_object();
    json_object_set_new(request, "call", json_string("step"));
    json_object_set_new(request, "ids", array_of(n, ids));
    json_object_set_new(request, "reset", json_boolean(reset));
    if (columns) json_object_set_new(request, "columns", array_of(n_columns, columns));
    mg_status status = send(pipe, request, error);
    return status ? status : read_answer(pipe, (shape){2, {n, n_columns}}, to, error);
}

static mg_status loss(void *user, const int *ids, int length, double *to, mg_error *error) {
    audit_pipe *pipe = user;
    snprintf(pipe->asked, sizeof pipe->asked, "the loss of %d tokens", length);
    json_t *request = json_object();
    json_object_set_new(request, "call", json_string("loss"));
    json_object_set_new(request, "ids", rows_of(1, length, ids));
    mg_status status = send(pipe, request, error);
    return status ? status : read_answer(pipe, (shape){1, {1}}, to, error);
}

mg_status audit_protocol_end(audit_pipe *pipe, const char *report, mg_error *error) {
    static const char before[] = "{\"call\":\"end\",\"report\":", after[] = "}\n";
    size_t room = strlen(before) + strlen(report) + sizeof after;
    char *text = mg_alloc(room, 1, "the report", error);
    if (!text) return MG_ERR_MEMORY;
    snprintf(pipe->asked, sizeof pipe->asked, "nothing more");
    snprintf(text, room, "%s%s%s", before, report, after);
    mg_status status = audit_pipe_ask(pipe, text, room - 1, error);
    mg_free(text);
    return status;
}
