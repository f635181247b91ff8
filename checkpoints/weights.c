#include "weights.h"
#include "refuse.h"
#include "regular_file.h"

#include <stdio.h>
#include <unistd.h>

mg_status mg_weights_error(const mg_weights *weights, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    mg_status status = mg_refuse_file(weights->error, weights->path, format, arguments);
    va_end(arguments);
    return status;
}

mg_shape_text mg_weight_shape(const mg_weight *weight) {
    mg_shape_text shape;
    if (weight->ndim <= MG_MAX_DIM) return mg_dims(weight->ndim, weight->dim);
    mg_snprintf(shape.text, sizeof shape.text, "of %s", mg_count(weight->ndim, "dimension").text);
    return shape;
}

void mg_weights_close(mg_weights *weights) {
    for (ptrdiff_t i = 0; i < weights->n; i++) {
        if (weights->weight[i].key != weights->weight[i].name) mg_free(weights->weight[i].key);
        mg_free(weights->weight[i].name);
        mg_free(weights->weight[i].own_type);
    }
    mg_free(weights->weight);
    if (weights->h5.path) mg_h5_close(&weights->h5);
    if (weights->fd >= 0) close(weights->fd);
    *weights = (mg_weights){.fd = -1};
}

mg_status mg_weights_open_file(mg_weights *weights) {
    mg_status status = mg_open_regular(weights->path, &weights->fd, &weights->bytes, weights->error);
    return status == MG_OK ? mg_refuse_lfs_pointer(weights->fd, weights->path, weights->error) : status;
}
