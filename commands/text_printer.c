#include "text_printer.h"
#include "printable.h"
#include "tokenizer_internal.h"

#include <string.h>

mg_text_printer mg_text_printer_begin(FILE *out, const mg_tokenizer *tokenizer, bool raw) {
    return (mg_text_printer){.out = out, .tokenizer = tokenizer, .previous = -1, .end_id = -1, .raw = raw};
}

void mg_text_printer_stop(mg_text_printer *p, const char *stop, bool at_end) {
    if (!p->tokenizer) return;
    p->stop = stop;
    if (at_end) p->end_id = mg_tokenizer_end_of_text(p->tokenizer);
}

/* Whole characters. A vocabulary may hold control characters, which a terminal would obey. */
static void print_characters(const mg_text_printer *p, const char *text, size_t length) {
    char shown[MG_PRINTABLE_ROOM(MG_UTF8_ROOM(256))];
    if (p->raw)
        fwrite(text, 1, length, p->out);
    else
        fwrite(shown, 1, mg_printable(shown, sizeof shown, text, length, "\n\t"), p->out);
}

static void print_bytes(mg_text_printer *p, const char *bytes, size_t length) {
    char printable[MG_UTF8_ROOM(256)];
    for (size_t done = 0; done < length;) {
        size_t n = length - done < 256 ? length - done : 256;
        print_characters(p, printable, mg_utf8_push(&p->stream, bytes + done, n, printable));
        done += n;
    }
}

/* Bytes that may begin the text that ends a sample are held back until it is clear. */
static void print_until_stop(mg_text_printer *p, const char *bytes, size_t length) {
    size_t n_stop = p->stop ? strlen(p->stop) : 0;
    if (n_stop == 0) print_bytes(p, bytes, length);
    for (size_t i = 0; n_stop > 0 && i < length && !p->done; i++) {
        p->held[p->n_held++] = bytes[i];
        while (p->n_held > 0 && memcmp(p->held, p->stop, p->n_held) != 0) {
            print_bytes(p, p->held, 1);
            memmove(p->held, p->held + 1, --p->n_held);
        }
        p->done = p->n_held == n_stop;
    }
    if (p->done) p->n_held = 0;
}

bool mg_text_printer_token(int id, void *printer) {
    mg_text_printer *p = printer;
    p->done = p->done || (id == p->end_id && id >= 0);
    if (p->done) return false;
    if (p->tokenizer) {
        const char *separator = mg_tokenizer_separator(p->tokenizer, p->previous, id);
        mg_token token = mg_tokenizer_token(p->tokenizer, id);
        print_until_stop(p, separator, strlen(separator));
        print_until_stop(p, token.bytes, token.length);
    } else {
        fprintf(p->out, p->previous < 0 ? "%d" : ",%d", id);
    }
    p->previous = id;
    return fflush(p->out) == 0 && !p->done; /* a reader that went away needs no more text */
}

void mg_text_printer_end(mg_text_printer *p) {
    char last[3];
    print_bytes(p, p->held, p->n_held);
    p->n_held = 0;
    fwrite(last, 1, mg_utf8_flush(&p->stream, last), p->out);
    fputc('\n', p->out);
}
