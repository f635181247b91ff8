#include "json_file.h"

#include "heap.h"
#include "refuse.h"
#include "regular_file.h"

#include <errno.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* All `bytes`, unless the file became shorter: then *length of them. */
static mg_status read_all(int fd, const char *path, char *text, size_t bytes, size_t *length, mg_error *error) {
    *length = 0;
    while (*length < bytes) {
        ssize_t n = pread(fd, text + *length, bytes - *length, (off_t)*length);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return mg_error_set(error, MG_ERR_IO, "'%s' cannot be read: %s", path, strerror(errno));
        if (n == 0) break;
        *length += (size_t)n;
    }
    return MG_OK;
}

static mg_status parse(const char *path, const char *text, size_t length, json_t **json, mg_error *error) {
    json_error_t why;
    *json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
    if (*json) return MG_OK;
    if (json_error_code(&why) == json_error_out_of_memory)
        return mg_error_set(error, MG_ERR_MEMORY, "'%s': not enough memory for its JSON", path);
    return mg_error_set(error, MG_ERR_FORMAT, "'%s': line %d, column %d: %s", path, why.line, why.column, why.text);
}

static mg_status read_open(int fd, size_t bytes, const char *path, size_t most, json_t **json, mg_error *error) {
    mg_status status = mg_refuse_lfs_pointer(fd, path, error);
    if (status != MG_OK) return status;
    if (bytes == 0) return mg_error_set(error, MG_ERR_FORMAT, "'%s' is empty", path);
    if (bytes > most)
        return mg_error_set(error, MG_ERR_FORMAT, "'%s' has %zu bytes; the limit is %zu", path, bytes, most);
    char *text = mg_alloc(bytes, 1, "the content of a file", error);
    if (!text) return MG_ERR_MEMORY;
    size_t length = 0;
    status = read_all(fd, path, text, bytes, &length, error);
    if (status == MG_OK) status = parse(path, text, length, json, error);
    mg_free(text);
    return status;
}

mg_status mg_json_file_read(const char *path, size_t most, json_t **json, mg_error *error) {
    int fd;
    size_t bytes;
    *json = NULL;
    mg_status status = mg_open_regular(path, &fd, &bytes, error);
    if (status == MG_OK) status = read_open(fd, bytes, path, most, json, error);
    if (fd >= 0) close(fd);
    return status;
}

/* ---- Printing ---- */

/* As few digits as give every number back: 1e-05, and not 1.0000000000000001e-05. */
static int digits_needed(const json_t *value, int digits) {
    char text[64];
    const char *key;
    json_t *member;
    json_object_foreach((json_t *)value, key, member) digits = digits_needed(member, digits);
    if (!json_is_real(value)) return digits;
    for (; digits < DBL_DECIMAL_DIG; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, json_real_value(value));
        if (strtod(text, NULL) == json_real_value(value)) break;
    }
    return digits;
}

mg_status mg_json_print(FILE *out, json_t *json, mg_error *error) {
    size_t precision = JSON_REAL_PRECISION((size_t)digits_needed(json, 1));
    char *text = json ? json_dumps(json, JSON_INDENT(2) | precision) : NULL;
    json_decref(json);
    if (!text) return mg_error_set(error, MG_ERR_MEMORY, "out of memory for a JSON file");
    fprintf(out, "%s\n", text);
    free(text);
    return MG_OK;
}
