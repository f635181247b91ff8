/* Writing a safetensors file: what safetensors.c reads. */
#ifndef MASKGRAD_SAFETENSORS_WRITE_H
#define MASKGRAD_SAFETENSORS_WRITE_H

#include "params.h"

#include <stdio.h>

/* One tensor: its name and shape, and its numbers, row by row. */
typedef struct mg_safetensor {
    mg_param_spec spec;
    const mg_real *data;
} mg_safetensor;

/* Print n tensors as float32, in their order. The same tensors give the same bytes. Names need no escapes in JSON. */
void mg_safetensors_write(FILE *out, int n, const mg_safetensor *tensors);

#endif
