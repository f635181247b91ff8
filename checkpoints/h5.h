/* The little of HDF5 that a checkpoint needs, with our errors. Objects are named by their path in the file, so that no
 * identifier outlives a call. Nothing that a file says about itself is believed: type, rank and sizes are compared with
 * what the caller expects before anything is read. */
#ifndef MASKGRAD_H5_H
#define MASKGRAD_H5_H

#include "tensor.h"

#include <hdf5.h>

/* Where a new file goes. HDF5 1.10 crashes when the disk fills up under a file it writes: this driver of ours takes
 * everything without complaint and remembers the first failure. */
typedef struct mg_h5_sink {
    H5FD_t driver; /* first: HDF5 knows only this */
    int fd;
    int failure; /* errno of the first write that failed; nothing is written after it */
    haddr_t allocated, end;
} mg_h5_sink;

typedef struct mg_h5 {
    hid_t file;
    const char *path; /* for messages */
    mg_error *error;
    const mg_h5_sink *sink; /* NULL: read only */
    H5E_auto2_t report;     /* what HDF5 did with its diagnostics before it was told to be quiet */
    void *report_to;
} mg_h5;

/* What a dataset holds; on disk always little-endian. */
typedef enum mg_h5_type {
    MG_H5_FLOAT32, /* mg_real in memory, whichever that is */
    MG_H5_UINT8,
    MG_H5_INT64
} mg_h5_type;

/* A new file, written to `fd` (empty, open for reading and writing, and the caller's) as it grows; HDF5 leaves the
 * first `user_block` bytes (512, 1024, ...) alone. `path` only serves messages. *sink must outlive *h5. */
mg_status mg_h5_create(mg_h5 *h5, const char *path, mg_h5_sink *sink, int fd, size_t user_block, mg_error *error);
/* Close it. MG_ERR_IO with the system's reason if any write failed. */
mg_status mg_h5_finish(mg_h5 *h5);
/* MG_ERR_IO if a write failed so far. */
mg_status mg_h5_sink_check(const mg_h5 *h5);
/* Open for reading. MG_ERR_FORMAT for what is not HDF5 or cut short, MG_ERR_IO for what another program writes to. */
mg_status mg_h5_open(mg_h5 *h5, const char *path, mg_error *error);
void mg_h5_close(mg_h5 *h5); /* also after a failure of the calls above, and more than once */

/* Fill the error, as mg_refuse_file does, and return MG_ERR_FORMAT. */
mg_status mg_h5_error(const mg_h5 *h5, const char *format, ...) MG_PRINTF(2, 3);

mg_status mg_h5_write_group(const mg_h5 *h5, const char *object);
mg_status mg_h5_write_int(const mg_h5 *h5, const char *object, const char *name, int64_t value);
mg_status mg_h5_write_uint(const mg_h5 *h5, const char *object, const char *name, uint64_t value);
mg_status mg_h5_write_double(const mg_h5 *h5, const char *object, const char *name, double value);
mg_status mg_h5_write_text(const mg_h5 *h5, const char *object, const char *name, const char *text); /* UTF-8 */
/* Chunked by whole rows of at most 1 MB where that is possible, each chunk with its Fletcher32 checksum. */
mg_status mg_h5_write_data(const mg_h5 *h5, const char *object, mg_h5_type type, int ndim, const ptrdiff_t *dim,
                           const void *data);

/* Whether an object, at any depth, is there. A link that leads out of the file does not count. */
bool mg_h5_has(const mg_h5 *h5, const char *object);
bool mg_h5_has_attribute(const mg_h5 *h5, const char *object, const char *name);
/* How many objects a group holds; -1 if there is no such group. */
int64_t mg_h5_count(const mg_h5 *h5, const char *group);
mg_status mg_h5_read_int(const mg_h5 *h5, const char *object, const char *name, int64_t *value);
mg_status mg_h5_read_uint(const mg_h5 *h5, const char *object, const char *name, uint64_t *value);
mg_status mg_h5_read_double(const mg_h5 *h5, const char *object, const char *name, double *value);
/* Cut to size − 1 bytes if longer. */
mg_status mg_h5_read_text(const mg_h5 *h5, const char *object, const char *name, char *text, size_t size);
/* The elements of a dataset of one dimension. */
mg_status mg_h5_read_length(const mg_h5 *h5, const char *object, mg_h5_type type, ptrdiff_t *length);
/* Whether it is there with this type and shape and all of it stored; and then, its content. */
mg_status mg_h5_check_data(const mg_h5 *h5, const char *object, mg_h5_type type, int ndim, const ptrdiff_t *dim);
mg_status mg_h5_read_data(const mg_h5 *h5, const char *object, mg_h5_type type, int ndim, const ptrdiff_t *dim,
                          void *data);

/* Of a dataset that another program wrote: what it holds ("F32", "F16", "F64", or words for a message), its rank and
 * the first MG_MAX_DIM of its dimensions, without reading it. */
mg_status mg_h5_describe_data(const mg_h5 *h5, const char *object, const char **type, int *ndim, ptrdiff_t *dim);
/* Rows begin to end - 1 of a dataset of floating-point numbers, counted along its first dimension. */
mg_status mg_h5_read_rows(const mg_h5 *h5, const char *object, ptrdiff_t begin, ptrdiff_t end, mg_real *to);

/* Between the files of this wrapper: the types, and why the last call of HDF5's failed. */
hid_t mg_h5_disk_type(mg_h5_type type);
hid_t mg_h5_memory_type(mg_h5_type type);
typedef struct mg_h5_reason {
    char text[256];
} mg_h5_reason;
mg_h5_reason mg_h5_why(void);

#endif
