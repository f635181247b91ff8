/* The one way to open what must be a regular file: a pipe in its place would keep a reader waiting forever. */
#ifndef MASKGRAD_REGULAR_FILE_H
#define MASKGRAD_REGULAR_FILE_H

#include "error.h"

#include <stddef.h>

/* Open `path` for reading, without waiting for anything. The caller closes *fd; *bytes is the file's current size.
 * MG_ERR_IO with the system's reason, or naming the folder, pipe, device or socket; *fd is -1 then. */
mg_status mg_open_regular(const char *path, int *fd, size_t *bytes, mg_error *error);

#endif
