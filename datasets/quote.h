/* Bytes of unknown content, in quotes. */
#ifndef MASKGRAD_QUOTE_H
#define MASKGRAD_QUOTE_H

#include "tokenizer.h"

typedef struct mg_quoted {
    char text[96];
} mg_quoted;
/* 'text', printable as in printable.h, and cut with … after some 60 bytes.
 * mg_quote(x).text lives to the end of the full expression. */
mg_quoted mg_quote(mg_token token);

#endif
