#include "weights.h"
#include "refuse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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
    snprintf(shape.text, sizeof shape.text, "of %s", mg_count(weight->ndim, "dimension").text);
    return shape;
}

void mg_weights_close(mg_weights *weights) {
    for (ptrdiff_t i = 0; i < weights->n; i++) {
        if (weights->weight[i].key != weights->weight[i].name) mg_free(weights->weight[i].key);
        mg_free(weights->weight[i].name);
    }
    mg_free(weights->weight);
    if (weights->fd >= 0) close(weights->fd);
    if (weights->h5.path) mg_h5_close(&weights->h5);
    *weights = (mg_weights){.fd = -1};
}

mg_status mg_refuse_lfs_pointer(const char *path, mg_error *error) {
    static const char pointer[] = "version https://git-lfs";
    char start[sizeof pointer] = "";
    struct stat about;
    FILE *file = fopen(path, "rb");
    if (!file) return mg_error_set(error, MG_ERR_IO, "'%s' cannot be read: %s", path, strerror(errno));
    bool is_regular = fstat(fileno(file), &about) == 0 && S_ISREG(about.st_mode);
    size_t n = is_regular ? fread(start, 1, sizeof pointer - 1, file) : 0;
    fclose(file);
    if (!is_regular) return mg_error_set(error, MG_ERR_IO, "'%s' is not a regular file", path);
    if (n < sizeof pointer - 1 || strcmp(start, pointer) != 0) return MG_OK;
    return mg_error_set(error, MG_ERR_FORMAT,
                        "'%s' is a git-lfs pointer, which stands for the file itself: `git lfs pull` in that folder "
                        "fetches it",
                        path);
}
