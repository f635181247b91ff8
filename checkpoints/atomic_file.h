/* A file is replaced whole or not at all. */
#ifndef MASKGRAD_ATOMIC_FILE_H
#define MASKGRAD_ATOMIC_FILE_H

#include "error.h"

#include <stddef.h>

/* Whether something that is not a regular file stands at `path`: MG_ERR_IO then. Renaming over a device would remove
 * it. */
mg_status mg_atomic_file_check(const char *path, mg_error *error);
/* Write to PATH.tmp.PID, sync, rename to PATH, sync the folder. MG_ERR_IO with the system's reason; then the old file
 * is as it was and the temporary one is gone. */
mg_status mg_atomic_file_write(const char *path, const void *bytes, size_t length, mg_error *error);

#endif
