/* safetensors: eight bytes that hold N, little-endian; N bytes of JSON, {"name": {"dtype": "F32", "shape": [2, 3],
 * "data_offsets": [begin, end]}, ...}; and the data, without gaps. Everything the file says is checked against its
 * length before it is used. The format: https://huggingface.co/docs/safetensors. */
#include "file_limits.h"
#include "quote.h"
#include "weights.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

/* ---- Numbers. Bytes are copied, never cast: data in a file starts at any address. ---- */

static uint64_t little_endian(const unsigned char *bytes, unsigned n) {
    uint64_t value = 0;
    for (unsigned i = 0; i < n; i++) value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

static float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float float_of_half(uint32_t half) {
    uint32_t sign = (half & 0x8000) << 16, exponent = half >> 10 & 31, mantissa = half & 1023;
    if (exponent == 0) { /* zero and subnormal numbers: the mantissa times 2^-24 */
        float size = (float)mantissa * 0x1p-24f;
        return sign ? -size : size;
    }
    uint32_t wide = exponent == 31 ? 255 : exponent + 112; /* infinity and NaN; the bias is 127 instead of 15 */
    return float_of_bits(sign | wide << 23 | mantissa << 13);
}

static void from_f32(const unsigned char *bytes, ptrdiff_t n, mg_real *to) {
    for (ptrdiff_t i = 0; i < n; i++) to[i] = float_of_bits((uint32_t)little_endian(bytes + 4 * i, 4));
}

static void from_f16(const unsigned char *bytes, ptrdiff_t n, mg_real *to) {
    for (ptrdiff_t i = 0; i < n; i++) to[i] = float_of_half((uint32_t)little_endian(bytes + 2 * i, 2));
}

static void from_bf16(const unsigned char *bytes, ptrdiff_t n, mg_real *to) {
    for (ptrdiff_t i = 0; i < n; i++) to[i] = float_of_bits((uint32_t)little_endian(bytes + 2 * i, 2) << 16);
}

typedef struct type {
    const char *name;
    unsigned bytes;
    void (*convert)(const unsigned char *bytes, ptrdiff_t n, mg_real *to); /* NULL: such tensors can only be skipped */
} type;
static const type types[] = {
    {"F32", 4, from_f32}, {"F16", 2, from_f16}, {"BF16", 2, from_bf16}, {"F64", 8, NULL},
    {"BOOL", 1, NULL},    {"U8", 1, NULL},      {"I8", 1, NULL},        {"U16", 2, NULL},
    {"I16", 2, NULL},     {"U32", 4, NULL},     {"I32", 4, NULL},       {"U64", 8, NULL},
    {"I64", 8, NULL},     {"F8_E4M3", 1, NULL}, {"F8_E5M2", 1, NULL},   {NULL, 0, NULL},
};

static const type *find_type(const char *name) {
    for (const type *t = types; t->name; t++)
        if (strcmp(t->name, name) == 0) return t;
    return NULL;
}

/* ---- Bytes of the file ---- */

static mg_status read_at(const mg_weights *w, uint64_t offset, void *to, size_t n) {
    for (size_t got = 0; got < n;) {
        ssize_t more = pread(w->fd, (char *)to + got, n - got, (off_t)(offset + got));
        if (more < 0 && errno == EINTR) continue;
        if (more < 0) return mg_error_set(w->error, MG_ERR_IO, "'%s' cannot be read: %s", w->path, strerror(errno));
        if (more == 0) return mg_weights_error(w, "became shorter while it was read");
        got += (size_t)more;
    }
    return MG_OK;
}

static mg_status read_rows(const mg_weights *w, const mg_weight *weight, ptrdiff_t begin, ptrdiff_t end, mg_real *to) {
    enum { PIECE = 1 << 16 };
    const type *t = find_type(weight->type);
    MG_CHECK(t && t->convert && weight->ndim >= 1 && weight->ndim <= MG_MAX_DIM, "safetensors: %s of type %s",
             weight->name, weight->type);
    ptrdiff_t row = 1;
    for (int i = 1; i < weight->ndim; i++) row *= weight->dim[i];
    unsigned char *piece = mg_alloc(PIECE, t->bytes, "a part of a tensor", w->error);
    if (!piece) return MG_ERR_MEMORY;
    uint64_t from = w->start + weight->begin;
    mg_status status = MG_OK;
    for (ptrdiff_t i = begin * row, n; i < end * row && status == MG_OK; i += n) {
        n = end * row - i < PIECE ? end * row - i : PIECE;
        status = read_at(w, from + (uint64_t)i * t->bytes, piece, (size_t)n * t->bytes);
        if (status == MG_OK) t->convert(piece, n, to + (i - begin * row));
    }
    mg_free(piece);
    return status;
}

/* ---- The header ---- */

static mg_quoted quoted(const char *name) {
    return mg_quote((mg_token){name, strlen(name)});
}

/* A JSON integer of at least 0. */
static bool is_count(const json_t *value) {
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

/* dim and the number of elements of a shape. */
static mg_status read_shape(const mg_weights *w, mg_weight *weight, const json_t *shape, uint64_t *elements) {
    *elements = 1;
    if (!json_is_array(shape))
        return mg_weights_error(w, "the shape of the tensor %s is not a list", quoted(weight->name).text);
    if (json_array_size(shape) > INT16_MAX)
        return mg_weights_error(w, "the tensor %s has %s", quoted(weight->name).text,
                                mg_count((int64_t)json_array_size(shape), "dimension").text);
    weight->ndim = (int)json_array_size(shape);
    for (int i = 0; i < weight->ndim; i++) {
        const json_t *size = json_array_get(shape, (size_t)i);
        if (!is_count(size))
            return mg_weights_error(w, "the shape of the tensor %s does not consist of sizes",
                                    quoted(weight->name).text);
        json_int_t dim = json_integer_value(size);
        if (i < MG_MAX_DIM) weight->dim[i] = (ptrdiff_t)dim;
        if (dim > 0 && *elements > (uint64_t)PTRDIFF_MAX / 8 / (uint64_t)dim)
            return mg_weights_error(w, "the shape of the tensor %s overflows: no file holds that many numbers",
                                    quoted(weight->name).text);
        *elements *= (uint64_t)dim;
    }
    return MG_OK;
}

static mg_status read_offsets(const mg_weights *w, mg_weight *weight, const json_t *offsets) {
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !is_count(begin) || !is_count(end))
        return mg_weights_error(w, "data_offsets of the tensor %s is not [begin, end]", quoted(weight->name).text);
    weight->begin = (uint64_t)json_integer_value(begin);
    weight->end = (uint64_t)json_integer_value(end);
    if (weight->begin <= weight->end) return MG_OK;
    return mg_weights_error(w, "data_offsets of the tensor %s ends at %" PRIu64 " before it begins at %" PRIu64,
                            quoted(weight->name).text, weight->end, weight->begin);
}

static mg_status read_entry(const mg_weights *w, mg_weight *weight, const char *name, const json_t *entry) {
    weight->key = weight->name = mg_strdup(name, w->error);
    if (!weight->name) return MG_ERR_MEMORY;
    const json_t *type_name = json_object_get(entry, "dtype");
    if (!json_is_string(type_name)) return mg_weights_error(w, "the tensor %s has no dtype", quoted(name).text);
    const type *t = find_type(json_string_value(type_name));
    weight->type = t ? t->name : (weight->own_type = mg_strdup(json_string_value(type_name), w->error));
    if (!weight->type) return MG_ERR_MEMORY;
    weight->readable = t && t->convert;
    uint64_t elements;
    mg_status status = read_shape(w, weight, json_object_get(entry, "shape"), &elements);
    if (status == MG_OK) status = read_offsets(w, weight, json_object_get(entry, "data_offsets"));
    if (status != MG_OK) return status;
    /* How large the numbers of a type are that is newer than this program is not known. */
    if (!t || weight->end - weight->begin == elements * t->bytes) return MG_OK;
    return mg_weights_error(w,
                            "the tensor %s has the shape %s and the type %s, which is %" PRIu64
                            " bytes, but its data_offsets span %" PRIu64,
                            quoted(name).text, mg_weight_shape(weight).text, t->name, elements * t->bytes,
                            weight->end - weight->begin);
}

static int by_offset(const void *a, const void *b) {
    const mg_weight *s = a, *t = b;
    if (s->begin != t->begin) return s->begin < t->begin ? -1 : 1;
    return s->end < t->end ? -1 : s->end > t->end;
}

/* The data is tensors, one after another, and nothing else. */
static mg_status check_order(const mg_weights *w, uint64_t data_bytes) {
    uint64_t reached = 0;
    for (ptrdiff_t i = 0; i < w->n; i++) {
        const mg_weight *weight = &w->weight[i];
        if (weight->begin < reached)
            return mg_weights_error(w, "the tensors %s and %s overlap", quoted(w->weight[i - 1].name).text,
                                    quoted(weight->name).text);
        if (weight->begin > reached)
            return mg_weights_error(w, "there is a gap of %" PRIu64 " bytes before the tensor %s",
                                    weight->begin - reached, quoted(weight->name).text);
        reached = weight->end;
    }
    if (reached > data_bytes)
        return mg_weights_error(w, "is truncated: its tensors need %" PRIu64 " bytes, but %" PRIu64 " are there",
                                reached, data_bytes);
    if (reached < data_bytes)
        return mg_weights_error(w, "has %" PRIu64 " trailing bytes that belong to no tensor", data_bytes - reached);
    return MG_OK;
}

static mg_status read_entries(mg_weights *w, json_t *header) {
    w->weight = mg_alloc_zero(json_object_size(header), sizeof *w->weight, "the list of tensors", w->error);
    if (!w->weight) return MG_ERR_MEMORY;
    const char *name;
    json_t *entry;
    mg_status status = MG_OK;
    json_object_foreach(header, name, entry) {
        if (strcmp(name, "__metadata__") == 0) continue; /* texts about the file */
        status = read_entry(w, &w->weight[w->n++], name, entry);
        if (status != MG_OK) return status;
    }
    qsort(w->weight, (size_t)w->n, sizeof *w->weight, by_offset);
    return MG_OK;
}

static mg_status parse(mg_weights *w, const char *text, size_t length, uint64_t data_bytes) {
    if (text[0] != '{') return mg_weights_error(w, "is not a safetensors file: its header does not start with '{'");
    json_error_t why;
    json_t *header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
    if (!header) return mg_weights_error(w, "its header is not valid JSON: %s at byte %d", why.text, why.position);
    mg_status status = read_entries(w, header);
    json_decref(header);
    return status == MG_OK ? check_order(w, data_bytes) : status;
}

static mg_status read_header(mg_weights *w, uint64_t file_bytes) {
    unsigned char prefix[8];
    if (file_bytes < sizeof prefix)
        return mg_weights_error(w, "is not a safetensors file: it has %" PRIu64 " bytes, but needs at least 8",
                                file_bytes);
    mg_status status = read_at(w, 0, prefix, sizeof prefix);
    if (status != MG_OK) return status;
    uint64_t length = little_endian(prefix, sizeof prefix);
    if (length > MG_MOST_SAFETENSORS_HEADER)
        return mg_weights_error(
            w, "is not a safetensors file: by its first 8 bytes its header is %" PRIu64 " bytes long; the limit is %zu",
            length, MG_MOST_SAFETENSORS_HEADER);
    if (length > file_bytes - sizeof prefix)
        return mg_weights_error(w, "is truncated: its header should have %" PRIu64 " bytes, but %" PRIu64 " are there",
                                length, file_bytes - sizeof prefix);
    if (length == 0) return mg_weights_error(w, "is not a safetensors file: its header is empty");
    char *text = mg_alloc(length, 1, "the header of a safetensors file", w->error);
    if (!text) return MG_ERR_MEMORY;
    w->start = sizeof prefix + length;
    status = read_at(w, sizeof prefix, text, length);
    if (status == MG_OK) status = parse(w, text, length, file_bytes - w->start);
    mg_free(text);
    return status;
}

mg_status mg_safetensors_open(mg_weights *weights, const char *path, mg_error *error) {
    *weights = (mg_weights){.path = path, .error = error, .read = read_rows};
    mg_status status = mg_weights_open_file(weights);
    return status == MG_OK ? read_header(weights, weights->bytes) : status;
}
