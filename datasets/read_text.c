#include "read_text.h"

#include "encoding.h"
#include "file_kind.h"
#include "file_limits.h"
#include "heap.h"
#include "regular_file.h"
#include "utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ONE_READ = 1 << 22, FIRST_ROOM = 1 << 16 };

typedef struct reader {
    const char *path;
    int fd;
    size_t most;
    bool is_data;         /* --encoding is a remedy */
    const char *encoding; /* NULL: UTF-8 */
    bool doubt;
    char *text;
    size_t length, room;
} reader;

/* A number of bytes in words: the limits are whole MiB. */
static const char *spell(size_t bytes, char text[32]) {
    bool in_gib = bytes % MG_GIB == 0;
    snprintf(text, 32, in_gib ? "%zu GiB" : "%zu MiB", bytes / (in_gib ? MG_GIB : MG_MIB));
    return text;
}

static mg_status too_large(const reader *r, mg_error *error) {
    char most[32];
    return mg_error_set(error, MG_ERR_FORMAT, "%s is larger than %s, the limit; use a part of it", r->path,
                        spell(r->most, most));
}

static mg_status reserve(reader *r, size_t room, mg_error *error) {
    char *text = mg_alloc_grow(r->text, r->length, room, 1, "the content of a file", error);
    if (!text) return MG_ERR_MEMORY;
    r->text = text;
    r->room = room;
    return MG_OK;
}

/* MG_OK: of no known kind. */
static mg_status refuse_kind(const reader *r, mg_error *error) {
    const mg_file_kind *kind = mg_file_kind_of(r->text, r->length);
    if (!kind || (kind->encoding && r->encoding)) return MG_OK;
    if (kind->encoding && r->is_data)
        return mg_error_set(error, MG_ERR_FORMAT, "%s is %s, not UTF-8 text: --encoding %s reads it", r->path,
                            kind->name, kind->encoding);
    return mg_error_set(error, MG_ERR_FORMAT, "%s is %s, not UTF-8 text: %s", r->path, kind->name, kind->remedy);
}

static mg_status refuse_zeros(const reader *r, size_t from, mg_error *error) {
    const char *zero = r->encoding ? NULL : memchr(r->text + from, '\0', r->length - from);
    if (!zero) return MG_OK;
    mg_status status = refuse_kind(r, error);
    if (status != MG_OK) return status;
    return mg_error_set(error, MG_ERR_FORMAT, "%s has a 0 byte at offset %td: it seems to be a binary file, not text",
                        r->path, zero - r->text);
}

/* To the end, whatever size the system reports. Two bytes more leave room to see the end of the file, and for the final
 * 0. */
static mg_status read_all(reader *r, size_t expected, mg_error *error) {
    mg_status status = reserve(r, expected + 2 > FIRST_ROOM ? expected + 2 : FIRST_ROOM, error);
    while (status == MG_OK) {
        size_t wanted = r->room - 1 - r->length;
        ssize_t n = read(r->fd, r->text + r->length, wanted < ONE_READ ? wanted : ONE_READ);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return mg_error_set(error, MG_ERR_IO, "cannot read %s: %s", r->path, strerror(errno));
        if (n == 0) break;
        r->length += (size_t)n;
        status = refuse_zeros(r, r->length - (size_t)n, error);
        if (status == MG_OK && r->length > r->most) status = too_large(r, error);
        if (status == MG_OK && r->length == r->room - 1)
            status = reserve(r, 2 * r->room < r->most + 2 ? 2 * r->room : r->most + 2, error);
    }
    if (status == MG_OK) r->text[r->length] = '\0';
    return status;
}

/* The text in place of the bytes. */
static mg_status convert(reader *r, mg_error *error) {
    mg_status status = refuse_kind(r, error);
    if (status != MG_OK || r->length == 0) return status;
    char *text;
    size_t length;
    r->doubt = mg_utf8_check(r->text, r->length, NULL) == MG_OK && !mg_is_ascii(r->text, r->length);
    status = mg_encoding_read(r->path, r->encoding, r->text, r->length, r->most, &text, &length, error);
    if (status != MG_OK) return status;
    mg_free(r->text);
    r->text = text;
    r->length = length;
    r->encoding = NULL;
    return refuse_zeros(r, 0, error);
}

static mg_status check(const reader *r, mg_error *error) {
    if (r->length == 0) return mg_error_set(error, MG_ERR_FORMAT, "%s is empty; it must contain text", r->path);
    mg_error inner;
    bool is_utf8 = mg_utf8_check(r->text, r->length, &inner) == MG_OK;
    if (is_utf8 && strncmp(r->text, "%PDF-", 5) != 0) return MG_OK; /* a PDF can be all ASCII */
    mg_status status = refuse_kind(r, error);
    if (status != MG_OK) return status;
    if (r->is_data)
        return mg_error_set(error, MG_ERR_FORMAT,
                            "%s: %s; Windows-1252 or Latin-1, as older programs write it, is read with --encoding "
                            "WINDOWS-1252",
                            r->path, inner.message);
    return mg_error_set(error, MG_ERR_FORMAT, "%s: %s (Latin-1, say, is converted with iconv -f ISO-8859-1 -t UTF-8)",
                        r->path, inner.message);
}

static mg_status read_and_check(reader *r, size_t expected, char **text, size_t *length, mg_error *error) {
    mg_status status = expected > r->most ? too_large(r, error) : read_all(r, expected, error);
    close(r->fd);
    if (status == MG_OK && r->encoding) status = convert(r, error);
    if (status == MG_OK) status = check(r, error);
    if (status != MG_OK) {
        mg_free(r->text);
        r->text = NULL;
    }
    *text = r->text;
    *length = r->length;
    return status;
}

mg_status mg_read_text(const char *path, size_t most, char **text, size_t *length, mg_error *error) {
    reader r = {.path = path, .most = most};
    size_t expected;
    *text = NULL;
    mg_status status = mg_open_regular(path, &r.fd, &expected, error);
    return status == MG_OK ? read_and_check(&r, expected, text, length, error) : status;
}

static mg_status open_stream(reader *r, mg_error *error) {
    r->fd = open(r->path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
    return r->fd >= 0 ? MG_OK : mg_error_set(error, MG_ERR_IO, "cannot open %s: %s", r->path, strerror(errno));
}

static bool is_stream(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode);
}

/* r->path is opened, its limits are set, and it is read. */
static mg_status read_any(reader *r, size_t most, size_t most_of_stream, char **text, size_t *length, mg_error *error) {
    bool stream = is_stream(r->path);
    size_t expected = 0;
    *text = NULL;
    r->most = stream ? most_of_stream : most;
    mg_status status = stream ? open_stream(r, error) : mg_open_regular(r->path, &r->fd, &expected, error);
    return status == MG_OK ? read_and_check(r, expected, text, length, error) : status;
}

mg_status mg_read_text_or_stream(const char *path, size_t most, size_t most_of_stream, char **text, size_t *length,
                                 mg_error *error) {
    return read_any(&(reader){.path = path}, most, most_of_stream, text, length, error);
}

mg_status mg_read_data(const char *path, const char *encoding, char **text, size_t *length, bool *doubt,
                       mg_error *error) {
    reader r = {.path = path, .is_data = true, .encoding = encoding};
    mg_status status;
    *text = NULL;
    if (strcmp(path, "-") == 0) {
        r.path = "standard input";
        r.most = MG_MOST_STREAM;
        r.fd = dup(STDIN_FILENO);
        if (r.fd < 0) return mg_error_set(error, MG_ERR_IO, "standard input cannot be read: %s", strerror(errno));
        status = read_and_check(&r, 0, text, length, error);
    } else {
        status = read_any(&r, MG_MOST_TEXT, MG_MOST_STREAM, text, length, error);
    }
    *doubt = r.doubt;
    return status;
}
