/* The seal: the first 512 bytes of a checkpoint, which HDF5 leaves to us. They hold the file's length and the CRC-32 of
 * everything after them, and are compared before HDF5 sees the file: a flipped byte, in an attribute as well as in
 * data, or a missing end is noticed, and HDF5 1.10, which can crash on damaged files, never meets one. */
#ifndef MASKGRAD_SEAL_H
#define MASKGRAD_SEAL_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MG_SEAL_BYTES = 512 };

/* Fill the first MG_SEAL_BYTES of the file open as `fd`, which is finished except for them. MG_ERR_IO; `path` is only
 * for messages. */
mg_status mg_seal_write(int fd, const char *path, mg_error *error);

typedef struct mg_seal_report {
    bool sealed;    /* false: another program rewrote the file without the seal */
    int64_t length; /* of the file, bytes */
} mg_seal_report;
/* Whether the open file of `bytes` is what was sealed. MG_ERR_IO if it cannot be read, MG_ERR_FORMAT if it is empty,
 * truncated or changed. A file without a seal is MG_OK. */
mg_status mg_seal_check(int fd, size_t bytes, const char *path, mg_seal_report *report, mg_error *error);

#endif
