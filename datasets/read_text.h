/* A whole text file in memory. */
#ifndef MASKGRAD_READ_TEXT_H
#define MASKGRAD_READ_TEXT_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>

/* Reads a regular file of at most `most` bytes (file_limits.h). *text is allocated (mg_free) and 0-terminated. An error
 * in one sentence, with the offset if there is one: a file that is missing, unreadable, empty, too large, not a regular
 * file, has a 0 byte or is not UTF-8. */
mg_status mg_read_text(const char *path, size_t most, char **text, size_t *length, mg_error *error);
/* For tests, which need small limits, mg_read_data without encodings: what is not a regular file (a pipe, /dev/stdin)
 * is read to its end if it has at most `most_of_stream` bytes. Reading stops at the first 0 byte, so that /dev/zero is
 * refused at once. */
mg_status mg_read_text_or_stream(const char *path, size_t most, size_t most_of_stream, char **text, size_t *length,
                                 mg_error *error);
/* What --data names: the same with the limits of data, "-" being standard input, in another encoding than UTF-8 if one
 * is given (encoding.h). *text is UTF-8 either way. *doubt is true if the bytes are valid UTF-8 though another encoding
 * was asked for, which would read them differently. */
mg_status mg_read_data(const char *path, const char *encoding, char **text, size_t *length, bool *doubt,
                       mg_error *error);

#endif
