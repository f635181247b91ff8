/* A model's parameters: one block of values and one of gradients, so that the optimizer, the norm, a checkpoint and a
 * fingerprint are each one pass. Names and shapes are GPT-2's. */
#ifndef MASKGRAD_PARAMS_H
#define MASKGRAD_PARAMS_H

#include "tensor.h"

enum { MG_PARAM_NAME = 64 };

typedef struct mg_param {
    char name[MG_PARAM_NAME]; /* "h.0.attn.c_attn.weight" */
    mg_tensor tensor;         /* a leaf; data and grad point into the blocks */
    bool decay;               /* weight decay applies: matrices, not biases and gains */
    ptrdiff_t offset;         /* of its first element in the blocks */
} mg_param;

typedef struct mg_params {
    int n;
    mg_param *param;
    ptrdiff_t size; /* elements in a block; each parameter starts at a multiple of 64 bytes, the gaps hold 0 */
    mg_real *values, *grads;
} mg_params;

typedef struct mg_param_spec {
    char name[MG_PARAM_NAME];
    int ndim;
    ptrdiff_t dim[MG_MAX_DIM];
} mg_param_spec;

/* All zeros. `trainable` false leaves out the gradients (grads is NULL, requires_grad false). The specs are copied.
 * MG_ERR_MEMORY, and *params is NULL. */
MG_API mg_status mg_params_new(mg_params **params, int n, const mg_param_spec *specs, bool trainable, mg_error *error);
MG_API void mg_params_free(mg_params *params);
MG_API mg_param *mg_params_find(const mg_params *params, const char *name); /* NULL if there is none */
MG_API void mg_params_zero_grad(mg_params *params);
/* The global L2 norm of all gradients, summed in double in a fixed order. */
MG_API double mg_params_grad_norm(const mg_params *params);

/* ---- Not installed: between maskgrad's own files ---- */
/* Take `grads`, a block from mg_alloc of the same size, for the gradients. Returns the block before it, which is now
 * the caller's. */
mg_real *mg_params_exchange_grads(mg_params *params, mg_real *grads);
ptrdiff_t mg_params_count(const mg_params *params); /* how many numbers are learned: without the gaps */
/* The first parameter with a value that is NaN or infinite; NULL if all are finite. */
const mg_param *mg_params_find_not_finite(const mg_params *params);
/* The same of the gradients. */
const mg_param *mg_params_find_not_finite_grad(const mg_params *params);

#ifndef MG_LIBRARY /* whose line a failure names: error.h */
MG_CALLED(mg_status, mg_params_new, (params, specs), (params, n, specs, trainable, error), mg_params **params, int n,
          const mg_param_spec *specs, bool trainable, mg_error *error)
MG_CALLED(mg_param *, mg_params_find, (params, name), (params, name), const mg_params *params, const char *name)
MG_CALLED_VOID(mg_params_zero_grad, (params), (params), mg_params *params)
MG_CALLED(double, mg_params_grad_norm, (params), (params), const mg_params *params)
#define mg_params_new(...) MG_AT(mg_params_new, __VA_ARGS__)
#define mg_params_find(...) MG_AT(mg_params_find, __VA_ARGS__)
#define mg_params_zero_grad(...) MG_AT(mg_params_zero_grad, __VA_ARGS__)
#define mg_params_grad_norm(...) MG_AT(mg_params_grad_norm, __VA_ARGS__)
#endif

#endif
