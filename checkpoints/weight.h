/* How a file that another program wrote describes one of its tensors. */
#ifndef MASKGRAD_WEIGHT_H
#define MASKGRAD_WEIGHT_H

#include "tensor.h"

typedef struct mg_weight {
    char *name;       /* as it is in the file */
    char *key;        /* in PyTorch's spelling, "transformer.h.0.attn.c_attn.weight"; may be `name` itself */
    const char *type; /* "F32" */
    char *own_type;   /* the same, if no table has it; else NULL */
    bool readable;    /* false: numbers of this type can only be skipped */
    int ndim;
    ptrdiff_t dim[MG_MAX_DIM]; /* the first MG_MAX_DIM of ndim */
    uint64_t begin, end;       /* safetensors: its bytes, counted from the start of all data */
} mg_weight;
mg_shape_text mg_weight_shape(const mg_weight *weight);

#endif
