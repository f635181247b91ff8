#include "read_text.h"

#include "heap.h"
#include "utf8.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { FIRST_ROOM = 1 << 16, LARGEST = 0x7fffffff };

static mg_status read_all(FILE *file, const char *path, char **text, size_t *length, mg_error *error) {
    size_t room = FIRST_ROOM;
    *length = 0;
    *text = mg_alloc(room, 1, "the content of a file", error);
    if (!*text) return MG_ERR_MEMORY;
    for (;;) {
        size_t n = fread(*text + *length, 1, room - 1 - *length, file);
        *length += n;
        if (n == 0) break;
        if (*length < room - 1) continue;
        if (room > LARGEST)
            return mg_error_set(error, MG_ERR_FORMAT, "%s is larger than 2 GiB; use a part of it", path);
        char *grown = mg_alloc_grow(*text, *length, 2 * room, 1, "the content of a file", error);
        if (!grown) return MG_ERR_MEMORY;
        *text = grown;
        room *= 2;
    }
    if (ferror(file)) return mg_error_set(error, MG_ERR_IO, "cannot read %s: %s", path, strerror(errno));
    (*text)[*length] = '\0';
    return MG_OK;
}

static mg_status check(const char *path, const char *text, size_t length, mg_error *error) {
    if (length == 0) return mg_error_set(error, MG_ERR_FORMAT, "%s is empty; a file with text is needed", path);
    const char *zero = memchr(text, '\0', length);
    if (zero)
        return mg_error_set(error, MG_ERR_FORMAT,
                            "%s has a 0 byte at offset %td: it seems to be a binary file, not text", path, zero - text);
    mg_error inner;
    if (mg_utf8_check(text, length, &inner) != MG_OK)
        return mg_error_set(error, MG_ERR_FORMAT, "%s: %s", path, inner.message);
    return MG_OK;
}

mg_status mg_read_text(const char *path, char **text, size_t *length, mg_error *error) {
    *text = NULL;
    FILE *file = fopen(path, "rb");
    if (!file) return mg_error_set(error, MG_ERR_IO, "cannot open %s: %s", path, strerror(errno));
    struct stat about;
    if (fstat(fileno(file), &about) == 0 && S_ISDIR(about.st_mode)) {
        fclose(file);
        return mg_error_set(error, MG_ERR_IO, "%s is a directory; a file is needed", path);
    }
    mg_status status = read_all(file, path, text, length, error);
    fclose(file);
    if (status == MG_OK) status = check(path, *text, *length, error);
    if (status != MG_OK) {
        mg_free(*text);
        *text = NULL;
    }
    return status;
}
