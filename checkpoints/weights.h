/* The tensors of a file that another program wrote. Opening it reads and checks their description; their numbers are
 * read when requested, into the caller's memory, so that a model is in memory only once. */
#ifndef MASKGRAD_WEIGHTS_H
#define MASKGRAD_WEIGHTS_H

#include "h5.h"
#include "weight.h"

typedef struct mg_weights mg_weights;
struct mg_weights {
    const char *path; /* for messages */
    mg_error *error;
    ptrdiff_t n;
    mg_weight *weight;
    mg_status (*read)(const mg_weights *, const mg_weight *, ptrdiff_t begin, ptrdiff_t end, mg_real *to);
    int fd;
    size_t bytes;   /* of the file */
    uint64_t start; /* safetensors: of all data in the file */
    mg_h5 h5;       /* Keras */
};

/* Open a file of one kind. *weights keeps `path` and `error`. A file that is not what it should be is MG_ERR_FORMAT
 * with one sentence, which also recognizes a git-lfs pointer. Close it in any case. */
mg_status mg_safetensors_open(mg_weights *weights, const char *path, mg_error *error);
mg_status mg_keras_open(mg_weights *weights, const char *path, mg_error *error);
void mg_weights_close(mg_weights *weights);

/* Rows begin to end − 1, counted along the first dimension. */
static inline mg_status mg_weights_read(const mg_weights *weights, const mg_weight *weight, ptrdiff_t begin,
                                        ptrdiff_t end, mg_real *to) {
    return weights->read(weights, weight, begin, end, to);
}
/* Fill the error, as mg_refuse_file does, and return MG_ERR_FORMAT. */
mg_status mg_weights_error(const mg_weights *weights, const char *format, ...) MG_PRINTF(2, 3);

/* For the openers: fd and bytes, of the path. */
mg_status mg_weights_open_file(mg_weights *weights);

#endif
