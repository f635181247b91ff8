#include "quote.h"

#include "utf8.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST = 64 };

static int quote_byte(char *out, size_t room, unsigned char byte) {
    if (byte == '\n') return snprintf(out, room, "\\n");
    if (byte == '\r') return snprintf(out, room, "\\r");
    if (byte == '\t') return snprintf(out, room, "\\t");
    return snprintf(out, room, "\\x%02X", byte);
}

mg_quoted mg_quote(mg_token token) {
    mg_quoted quoted = {"'"};
    char *out = quoted.text;
    size_t at = 1, i = 0;
    while (i < token.length && at < LONGEST) {
        unsigned char byte = (unsigned char)token.bytes[i];
        int length = mg_utf8_next(token.bytes + i, token.length - i);
        if (length <= 0 || byte < 0x20 || byte == 0x7F) {
            at += (size_t)quote_byte(out + at, sizeof quoted.text - at, byte);
            i++;
            continue;
        }
        memcpy(out + at, token.bytes + i, (size_t)length);
        at += (size_t)length;
        i += (size_t)length;
    }
    snprintf(out + at, sizeof quoted.text - at, i < token.length ? "…'" : "'");
    return quoted;
}
