/* A safetensors file. Whatever it is: no crash, and if it is accepted, its tensors cover its data and can be read. */
#include "weights.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition) abort();
}

/* One file that is written again each time. */
static const char *write_input(const uint8_t *data, size_t size) {
    static char path[] = "/tmp/maskgrad-fuzz-XXXXXX";
    static int file = -1;
    if (file < 0) require((file = mkstemp(path)) >= 0);
    require(ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == (ssize_t)size);
    return path;
}

static void read_tensor(const mg_weights *weights, const mg_weight *weight) {
    ptrdiff_t elements = 1;
    for (int i = 0; i < weight->ndim && i < MG_MAX_DIM; i++) elements *= weight->dim[i];
    if (!weight->readable || weight->ndim < 1 || weight->ndim > MG_MAX_DIM || elements == 0) return;
    mg_real *numbers = mg_alloc((size_t)elements, sizeof *numbers, "numbers", NULL);
    require(numbers && mg_weights_read(weights, weight, 0, weight->dim[0], numbers) == MG_OK);
    mg_free(numbers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    mg_weights weights;
    mg_error error = {0};
    mg_status status = mg_safetensors_open(&weights, write_input(data, size), &error);
    uint64_t reached = 0;
    if (status != MG_OK) require(status == MG_ERR_FORMAT && error.message[0] != '\0');
    for (ptrdiff_t i = 0; i < weights.n && status == MG_OK; i++) {
        require(weights.weight[i].begin == reached);
        reached = weights.weight[i].end;
        read_tensor(&weights, &weights.weight[i]);
    }
    if (status == MG_OK) require(weights.start + reached == size);
    mg_weights_close(&weights);
    return 0;
}
