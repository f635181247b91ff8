/* What a model writes, token by token: whole characters, nothing that a terminal would obey, up to a text or token that
 * ends it. */
#ifndef MASKGRAD_TEXT_PRINTER_H
#define MASKGRAD_TEXT_PRINTER_H

#include "tokenizer.h"
#include "utf8.h"

#include <stdio.h>

enum { MG_LONGEST_STOP = 256 };

typedef struct mg_text_printer {
    FILE *out;
    const mg_tokenizer *tokenizer; /* NULL: ids */
    mg_utf8_stream stream;
    int previous;               /* -1: nothing was printed yet */
    bool raw;                   /* control characters too */
    int end_id;                 /* ends the text; -1: none does */
    const char *stop;           /* ends it, too; NULL: none does */
    char held[MG_LONGEST_STOP]; /* the beginning of `stop`, if that is what was written last */
    size_t n_held;
    bool done;
} mg_text_printer;

/* Text to `out`, or ids, comma-separated, without a tokenizer. */
mg_text_printer mg_text_printer_begin(FILE *out, const mg_tokenizer *tokenizer, bool raw);
/* From here on `stop` (or NULL), of less than MG_LONGEST_STOP bytes, ends the text and is not printed; so does
 * <|endoftext|> with `at_end` and a tokenizer that has it. Ids end at neither. */
void mg_text_printer_stop(mg_text_printer *printer, const char *stop, bool at_end);
/* An mg_token_fn whose `user` is the printer. False when no more text is needed: it is done, or `out` takes no more. */
bool mg_text_printer_token(int id, void *printer);
/* What was held back, and a newline. */
void mg_text_printer_end(mg_text_printer *printer);

#endif
