/* A whole text file in memory. */
#ifndef MASKGRAD_READ_TEXT_H
#define MASKGRAD_READ_TEXT_H

#include "error.h"

#include <stddef.h>

/* Read it to its end, whatever the system says of its size (pipes work). *text is allocated (mg_free) and 0-terminated.
 * A file that is missing, a directory, unreadable, empty, over 2 GiB, holds a 0 byte or is not UTF-8 is refused in one
 * sentence, with the offset where there is one. */
mg_status mg_read_text(const char *path, char **text, size_t *length, mg_error *error);

#endif
