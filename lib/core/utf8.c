#define _XOPEN_SOURCE 700 /* wcwidth */
#include "utf8.h"

#include <locale.h>
#include <stdbool.h>
#include <string.h>
#include <wchar.h>

static const char replacement[3] = {'\xEF', '\xBF', '\xBD'}; /* U+FFFD */

/* How many bytes a lead byte announces (0: it leads nothing) and what its second byte may be: narrower than 80 … BF
 * where that keeps out overlong forms, surrogates, and what lies above U+10FFFF. The Unicode Standard, table 3-7. */
static int lead_length(unsigned char lead, unsigned char *low, unsigned char *high) {
    *low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    *high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (lead < 0x80) return 1;
    if (lead < 0xC2 || lead > 0xF4) return 0;
    return lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

int mg_utf8_next(const char *bytes, size_t n) {
    unsigned char low, high;
    int length = lead_length((unsigned char)bytes[0], &low, &high);
    if (length == 0) return -1;
    for (int i = 1; i < length; i++) {
        if ((size_t)i == n) return 0;
        unsigned char byte = (unsigned char)bytes[i];
        if (byte < low || byte > high) return -i;
        low = 0x80;
        high = 0xBF;
    }
    return length;
}

uint32_t mg_utf8_decode(const char *bytes, int n) {
    static const unsigned char first[] = {0, 0x7F, 0x1F, 0x0F, 0x07}; /* the bits of a lead byte that count */
    uint32_t character = (unsigned char)bytes[0] & first[n];
    for (int i = 1; i < n; i++) character = character << 6 | ((unsigned char)bytes[i] & 0x3F);
    return character;
}

/* wcwidth knows widths only in a UTF-8 locale, so it is called in one, whatever the program's locale is. */
static int width_of(wchar_t character) {
    static locale_t utf8;
    if (!utf8) utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (!utf8) return 1;
    locale_t before = uselocale(utf8);
    int width = wcwidth(character);
    uselocale(before);
    return width < 0 ? 1 : width; /* a control character: how it is shown is unknown */
}

size_t mg_utf8_step(const char *text, int *columns) {
    *columns = 1;
    if (!*text) return 0;
    int n = mg_utf8_next(text, strlen(text));
    if (n == 0) return strlen(text);
    if (n < 2) return n < 0 ? (size_t)-n : 1;
    *columns = width_of((wchar_t)mg_utf8_decode(text, n));
    return (size_t)n;
}

int mg_utf8_columns(const char *text) {
    int columns = 0, width;
    for (size_t n; (n = mg_utf8_step(text, &width)) > 0; text += n) columns += width;
    return columns;
}

size_t mg_utf8_fitting(const char *text, int columns) {
    size_t fitting = 0;
    int width;
    for (size_t n; (n = mg_utf8_step(text + fitting, &width)) > 0; fitting += n)
        if ((columns -= width) < 0) break;
    return fitting;
}

mg_status mg_utf8_check(const char *bytes, size_t n, mg_error *error) {
    for (size_t at = 0; at < n;) {
        int length = (unsigned char)bytes[at] < 0x80 ? 1 : mg_utf8_next(bytes + at, n - at);
        if (length <= 0)
            return mg_error_set(error, MG_ERR_FORMAT, "invalid UTF-8 at byte %zu (0x%02X); the text must be UTF-8", at,
                                (unsigned char)bytes[at]);
        at += (size_t)length;
    }
    return MG_OK;
}

static size_t put(char *printable, size_t at, const char *bytes, size_t n) {
    memcpy(printable + at, bytes, n);
    return at + n;
}

/* One byte more for what is held. It may complete a character, or show that what was held began none and begin
 * something itself. */
static size_t take(mg_utf8_stream *stream, char byte, char *printable, size_t at) {
    stream->held[stream->n_held++] = byte;
    int length = mg_utf8_next(stream->held, (size_t)stream->n_held);
    if (length == 0) return at;
    if (length > 0) {
        stream->n_held = 0;
        return put(printable, at, stream->held, (size_t)length);
    }
    at = put(printable, at, replacement, sizeof replacement);
    bool is_byte_left = stream->n_held > -length;
    stream->n_held = 0;
    return is_byte_left ? take(stream, byte, printable, at) : at;
}

size_t mg_utf8_push(mg_utf8_stream *stream, const char *bytes, size_t n, char *printable) {
    size_t at = 0;
    for (size_t i = 0; i < n; i++) at = take(stream, bytes[i], printable, at);
    return at;
}

size_t mg_utf8_flush(mg_utf8_stream *stream, char *printable) {
    if (stream->n_held == 0) return 0;
    stream->n_held = 0;
    return put(printable, 0, replacement, sizeof replacement);
}
