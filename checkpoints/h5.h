/* The part of HDF5 that a checkpoint needs, with our errors. Objects are named by their path in the file, so that no
 * identifier outlives a call. Nothing that a file says about itself is trusted: type, rank and sizes are compared with
 * what the caller expects before anything is read. With mg_set_file_guard, HDF5 reads in a child process. */
#ifndef MASKGRAD_H5_H
#define MASKGRAD_H5_H

#include "h5_driver.h"
#include "tensor.h"

#include <hdf5.h>

typedef struct mg_h5_child mg_h5_child;

/* Do not copy it while it is open. */
typedef struct mg_h5 {
    const char *path; /* for messages */
    mg_error *error;
    mg_h5_driver driver;
    hid_t file;
    mg_h5_child *child; /* reads the file; NULL: this process does */
    bool is_quiet;      /* the next three hold what the caller had */
    unsigned plugins;
    H5E_auto2_t report;
    void *report_to;
} mg_h5;

/* What a dataset holds; on disk always little-endian. */
typedef enum mg_h5_type {
    MG_H5_FLOAT32, /* mg_real in memory, whichever that is */
    MG_H5_UINT8,
    MG_H5_INT64
} mg_h5_type;

/* A new file, written to the caller's `fd` (empty, open for reading and writing) as it grows; HDF5 does not touch the
 * first `user_block` bytes (512, 1024, ...). `path` is only for messages. */
mg_status mg_h5_create(mg_h5 *h5, const char *path, int fd, size_t user_block, mg_error *error);
/* Close it. MG_ERR_IO with the system's reason if any write failed. */
mg_status mg_h5_finish(mg_h5 *h5);
/* MG_ERR_IO if a write failed so far. */
mg_status mg_h5_check_written(const mg_h5 *h5);
/* Open the `bytes` that the caller's `fd` holds now for reading. MG_ERR_FORMAT if it is not HDF5 or is truncated,
 * MG_ERR_IO if another program is writing to it. */
mg_status mg_h5_open(mg_h5 *h5, const char *path, int fd, size_t bytes, mg_error *error);
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
mg_status mg_h5_has(const mg_h5 *h5, const char *object, bool *there);
mg_status mg_h5_has_attribute(const mg_h5 *h5, const char *object, const char *name, bool *there);
/* How many objects a group holds; -1 if there is no such group. */
mg_status mg_h5_count(const mg_h5 *h5, const char *group, int64_t *count);
typedef enum mg_h5_number_type { MG_H5_INT, MG_H5_UINT, MG_H5_DOUBLE } mg_h5_number_type;
typedef struct mg_h5_number {
    const char *name; /* of an attribute */
    mg_h5_number_type type;
    void *to; /* an int64_t, uint64_t or double */
} mg_h5_number;
enum { MG_H5_AT_ONCE = 32 }; /* what is asked for together costs one switch between processes */
/* n is at most MG_H5_AT_ONCE. */
mg_status mg_h5_read_numbers(const mg_h5 *h5, const char *object, int n, const mg_h5_number *numbers);
mg_status mg_h5_read_int(const mg_h5 *h5, const char *object, const char *name, int64_t *value);
/* Cut to size − 1 bytes if longer. */
mg_status mg_h5_read_text(const mg_h5 *h5, const char *object, const char *name, char *text, size_t size);
/* The elements of a dataset of one dimension. */
mg_status mg_h5_read_length(const mg_h5 *h5, const char *object, mg_h5_type type, ptrdiff_t *length);
typedef struct mg_h5_data {
    const char *object;
    mg_h5_type type;
    int ndim;
    const ptrdiff_t *dim;
    void *to; /* NULL: only check that it is there with this type and shape, and all of it stored */
} mg_h5_data;
mg_status mg_h5_read_data(const mg_h5 *h5, int n, const mg_h5_data *data);

/* In a file that another program wrote: the paths of all datasets that hard links reach, each ending in a 0, in `paths`
 * of `size` bytes; *length is how many of these are used. */
mg_status mg_h5_list_data(const mg_h5 *h5, char *paths, size_t size, size_t *length);
/* What such a dataset holds ("F32", "F16", "F64", or words for a message), its rank and the first MG_MAX_DIM of its
 * dimensions, without reading it. */
mg_status mg_h5_describe_data(const mg_h5 *h5, const char *object, const char **type, int *ndim, ptrdiff_t *dim);
/* Rows begin to end - 1 of a dataset of floating-point numbers with this shape, counted along its first dimension. */
mg_status mg_h5_read_rows(const mg_h5 *h5, const char *object, int ndim, const ptrdiff_t *dim, ptrdiff_t begin,
                          ptrdiff_t end, mg_real *to);

#endif
