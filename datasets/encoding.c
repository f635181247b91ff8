#include "encoding.h"
#include "file_limits.h"
#include "heap.h"

#include <errno.h>
#include <iconv.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

typedef struct conversion {
    const char *name, *encoding;
    iconv_t how;
    char *in;
    size_t left;       /* of the bytes */
    const char *begin; /* of the bytes */
    char *text;
    size_t length, room, most;
} conversion;

static mg_status grow(conversion *c, mg_error *error) {
    if (c->room > c->most)
        return mg_error_set(error, MG_ERR_FORMAT, "%s has more than %zu MiB as UTF-8, the limit; use a part of it",
                            c->name, c->most / MG_MIB);
    size_t room = c->room < c->most / 2 ? 2 * c->room : c->most + 8;
    char *text = mg_alloc_grow(c->text, c->length, room, 1, "a text in another encoding", error);
    if (!text) return MG_ERR_MEMORY;
    c->text = text;
    c->room = room;
    return MG_OK;
}

/* As far as the room reaches; one byte of it is left for the final 0. */
static mg_status convert(conversion *c, mg_error *error) {
    char *out = c->text + c->length;
    size_t room = c->room - 1 - c->length;
    size_t result = iconv(c->how, &c->in, &c->left, &out, &room);
    c->length = (size_t)(out - c->text);
    if (result != (size_t)-1 || errno == E2BIG) return MG_OK;
    return mg_error_set(error, MG_ERR_FORMAT, "%s is not %s: byte %td (0x%02X) %s in it", c->name, c->encoding,
                        c->in - c->begin, (unsigned char)*c->in,
                        errno == EINVAL ? "begins a character that is cut off" : "is no character");
}

static mg_status check_mark(const char *name, const char *encoding, const char *bytes, size_t n, mg_error *error) {
    bool is_16 = strcasecmp(encoding, "UTF-16") == 0 || strcasecmp(encoding, "UTF16") == 0;
    bool is_32 = strcasecmp(encoding, "UTF-32") == 0 || strcasecmp(encoding, "UTF32") == 0;
    bool marked_16 = n >= 2 && (memcmp(bytes, "\xFF\xFE", 2) == 0 || memcmp(bytes, "\xFE\xFF", 2) == 0);
    bool marked_32 = n >= 4 && (memcmp(bytes, "\xFF\xFE\0\0", 4) == 0 || memcmp(bytes, "\0\0\xFE\xFF", 4) == 0);
    if ((!is_16 || marked_16) && (!is_32 || marked_32)) return MG_OK;
    return mg_error_set(error, MG_ERR_FORMAT,
                        "%s has no byte order mark, so %s leaves open which byte comes first: --encoding %sLE, or %sBE",
                        name, encoding, encoding, encoding);
}

mg_status mg_encoding_read(const char *name, const char *encoding, const char *bytes, size_t n, size_t most,
                           char **text, size_t *length, mg_error *error) {
    conversion c = {.name = name, .encoding = encoding, .begin = bytes, .left = n, .most = most};
    *text = NULL;
    *length = 0;
    mg_status status = check_mark(name, encoding, bytes, n, error);
    if (status != MG_OK) return status;
    c.in = (char *)(uintptr_t)bytes; /* iconv(3) does not write to its input, whatever its prototype says */
    c.how = iconv_open("UTF-8", encoding);
    if (c.how == (iconv_t)-1)
        return mg_error_set(error, MG_ERR_INPUT,
                            "--encoding '%s' is unknown here: `iconv -l` lists the names, such as UTF-16 and "
                            "WINDOWS-1252",
                            encoding);
    c.room = n / 2 + 64;
    while (status == MG_OK && (c.left > 0 || !c.text)) {
        status = grow(&c, error);
        if (status == MG_OK) status = convert(&c, error);
    }
    iconv_close(c.how);
    if (status != MG_OK) {
        mg_free(c.text);
        return status;
    }
    c.text[c.length] = '\0';
    *text = c.text;
    *length = c.length;
    return MG_OK;
}

bool mg_is_ascii(const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)bytes[i] >= 0x80) return false;
    return true;
}
