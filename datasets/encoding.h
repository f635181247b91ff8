/* Texts in other encodings than UTF-8, by iconv(3). */
#ifndef MASKGRAD_ENCODING_H
#define MASKGRAD_ENCODING_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>

/* n bytes in the encoding that iconv(3) knows by this name ("UTF-16", "WINDOWS-1252") as UTF-8: *text is allocated,
 * 0-terminated, and has at most `most` bytes. Errors call the bytes `name`. MG_ERR_INPUT if the encoding is unknown;
 * MG_ERR_FORMAT with the offset of the first byte that is nothing in it, and for UTF-16 and UTF-32 without a byte order
 * mark, which leave open which byte comes first. */
mg_status mg_encoding_read(const char *name, const char *encoding, const char *bytes, size_t n, size_t most,
                           char **text, size_t *length, mg_error *error);
bool mg_is_ascii(const char *bytes, size_t n);

#endif
