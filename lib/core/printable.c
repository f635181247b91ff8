#include "printable.h"

#include "utf8.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Inclusive, ascending. The direction marks are those of Unicode Standard Annex 9. */
static const struct {
    uint32_t first, last;
} hidden[] = {
    {0, 0x1F},        {0x7F, 0x9F},     /* control characters */
    {0x061C, 0x061C},                   /* Arabic letter mark */
    {0x200B, 0x200B},                   /* zero width space */
    {0x200E, 0x200F},                   /* left-to-right and right-to-left mark */
    {0x2028, 0x2029},                   /* line and paragraph separator */
    {0x202A, 0x202E}, {0x2066, 0x2069}, /* embeddings, overrides, isolates */
    {0xFEFF, 0xFEFF},                   /* zero width no-break space: a byte order mark */
};

static bool is_hidden(uint32_t c) {
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (c >= hidden[i].first && c <= hidden[i].last) return true;
    return false;
}

enum { LONGEST_ESCAPE = sizeof "\\u202E" };

/* The next character, or the next byte if it is not part of one, as it should be shown. Returns how many bytes it has.
 */
static size_t show_next(const char *bytes, size_t n, const char *kept, char shown[LONGEST_ESCAPE]) {
    int length = mg_utf8_next(bytes, n);
    if (length <= 0) {
        snprintf(shown, LONGEST_ESCAPE, "\\x%02X", (unsigned char)bytes[0]);
        return 1;
    }
    uint32_t c = mg_utf8_decode(bytes, length);
    if (!is_hidden(c) || (c > 0 && c < 0x80 && strchr(kept, (int)c))) {
        snprintf(shown, LONGEST_ESCAPE, "%.*s", length, bytes);
    } else if (c == '\n' || c == '\r' || c == '\t') {
        snprintf(shown, LONGEST_ESCAPE, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
    } else {
        snprintf(shown, LONGEST_ESCAPE, c < 0x80 ? "\\x%02X" : "\\u%04X", (unsigned)c);
    }
    return (size_t)length;
}

size_t mg_printable(char *out, size_t room, const char *bytes, size_t n, const char *kept) {
    static const char cut[] = "…";
    size_t at = 0, fits = 0; /* as far as `fits`, there is room for the mark of a cut */
    for (size_t i = 0; i < n;) {
        char shown[LONGEST_ESCAPE];
        i += show_next(bytes + i, n - i, kept, shown);
        size_t length = strlen(shown);
        if (at + length >= room) {
            memcpy(out + fits, cut, sizeof cut);
            return fits + sizeof cut - 1;
        }
        memcpy(out + at, shown, length);
        at += length;
        if (at + sizeof cut <= room) fits = at;
    }
    out[at] = '\0';
    return at;
}

mg_shown_text mg_shown(const char *text) {
    mg_shown_text shown;
    mg_printable(shown.text, sizeof shown.text, text, strlen(text), "");
    return shown;
}
