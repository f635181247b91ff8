#include "quote.h"

#include "printable.h"

#include <string.h>

enum { LONGEST = 64 };

mg_quoted mg_quote(mg_token token) {
    mg_quoted quoted = {"'"};
    size_t length = mg_printable(quoted.text + 1, LONGEST, token.bytes, token.length, "");
    memcpy(quoted.text + 1 + length, "'", 2);
    return quoted;
}
