/* UTF-8 (RFC 3629): the next character of a byte string, and a stream that prints only whole ones. */
#ifndef MASKGRAD_UTF8_H
#define MASKGRAD_UTF8_H

#include "error.h"

#include <stddef.h>

/* What n >= 1 bytes start with:
 *    1 … 4    a character of that many bytes;
 *    0        the bytes end within a character that could still become whole;
 *   -1 … -3   that many bytes that begin no character: the "maximal subpart" of the Unicode Standard, section 3.9,
 *             which is replaced by one U+FFFD. */
int mg_utf8_next(const char *bytes, size_t n);
/* The code point of a character of n = 1 … 4 bytes, as mg_utf8_next counts them. */
uint32_t mg_utf8_decode(const char *bytes, int n);
/* MG_ERR_FORMAT with the offset and the value of the first byte that begins no whole character. */
mg_status mg_utf8_check(const char *bytes, size_t n, mg_error *error);
/* How many columns a terminal takes for the character that a 0-terminated text begins with: 2 for a wide one (East
 * Asian), 0 for a combining one, else 1, also for bytes that are not a character. Returns its number of bytes; 0 at the
 * end of the text. */
size_t mg_utf8_step(const char *text, int *columns);
/* The same for the whole text. */
int mg_utf8_columns(const char *text);
/* How many bytes of the text fit into `columns` columns. */
size_t mg_utf8_fitting(const char *text, int columns);

/* Tokens of a byte-level tokenizer can end anywhere, even within a character. A stream holds such bytes back until
 * the character is whole. Starts as {0}. */
typedef struct mg_utf8_stream {
    char held[4];
    int n_held;
} mg_utf8_stream;

/* How many bytes mg_utf8_push may write for a push of n: each byte may turn into a U+FFFD, which has three. */
#define MG_UTF8_ROOM(n) (3 * ((size_t)(n) + 3))

/* Take n more bytes; write to `printable` (MG_UTF8_ROOM(n) bytes) what is complete now, with U+FFFD for what is
 * invalid. Returns how many bytes were written; no 0 is added. */
size_t mg_utf8_push(mg_utf8_stream *stream, const char *bytes, size_t n, char *printable);
/* At the end: what is still held back becomes one U+FFFD. Writes at most 3 bytes and resets the stream. */
size_t mg_utf8_flush(mg_utf8_stream *stream, char *printable);

#endif
