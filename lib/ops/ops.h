/* The operations. Each is one file of this folder, with its formula, its source, its forward and its backward side by
 * side. All take the tape first and return a new tensor on it; a wrong shape goes to the failure handler with the
 * operation, the shapes and the caller's line.
 *
 * Broadcasting is NumPy's: shapes are aligned at their last dimension, and a dimension of 1 or a missing one repeats.
 */
#ifndef MASKGRAD_OPS_H
#define MASKGRAD_OPS_H

#include "attention.h"
#include "rng.h"
#include "tape.h"

/* ---- Element by element, with broadcasting ---- */
MG_API mg_tensor *mg_add(mg_tape *tape, mg_tensor *a, mg_tensor *b); /* a + b */
MG_API mg_tensor *mg_sub(mg_tape *tape, mg_tensor *a, mg_tensor *b); /* a − b */
MG_API mg_tensor *mg_mul(mg_tape *tape, mg_tensor *a, mg_tensor *b); /* a · b */
MG_API mg_tensor *mg_div(mg_tape *tape, mg_tensor *a, mg_tensor *b); /* a / b */

/* ---- Element by element ---- */
MG_API mg_tensor *mg_scale(mg_tape *tape, mg_tensor *x, mg_real factor);
MG_API mg_tensor *mg_exp(mg_tape *tape, mg_tensor *x);
MG_API mg_tensor *mg_log(mg_tape *tape, mg_tensor *x);
MG_API mg_tensor *mg_tanh(mg_tape *tape, mg_tensor *x);
MG_API mg_tensor *mg_relu(mg_tape *tape, mg_tensor *x);
MG_API mg_tensor *mg_gelu(mg_tape *tape, mg_tensor *x); /* the tanh form, GPT-2's */

/* ---- Along an axis, which goes away. Negative axes count from the end; MG_ALL_AXES reduces to a scalar ---- */
enum { MG_ALL_AXES = 1000 };
MG_API mg_tensor *mg_sum(mg_tape *tape, mg_tensor *x, int axis);
MG_API mg_tensor *mg_mean(mg_tape *tape, mg_tensor *x, int axis);
MG_API mg_tensor *mg_max(mg_tape *tape, mg_tensor *x, int axis); /* the gradient goes to the first of equals */

/* ---- Shape ---- */
MG_API mg_tensor *mg_reshape(mg_tape *tape, mg_tensor *x, int ndim, const ptrdiff_t *dim);
MG_API mg_tensor *mg_transpose(mg_tape *tape, mg_tensor *x, int axis_a, int axis_b);
MG_API mg_tensor *mg_slice(mg_tape *tape, mg_tensor *x, int axis, ptrdiff_t begin, ptrdiff_t end);
MG_API mg_tensor *mg_concat(mg_tape *tape, int n, mg_tensor *const *x, int axis);

/* ---- Matrices ---- */
/* (…,m,k) · (…,k,n) = (…,m,n); with transpose_a, a is (…,k,m); with transpose_b, b is (…,n,k). The leading dimensions
 * broadcast. */
MG_API mg_tensor *mg_matmul(mg_tape *tape, mg_tensor *a, mg_tensor *b, bool transpose_a, bool transpose_b);
/* y = x W + bias: (…,in) · (in,out) + (out). bias may be NULL. */
MG_API mg_tensor *mg_linear(mg_tape *tape, mg_tensor *x, mg_tensor *w, mg_tensor *bias);
/* y = x Wᵀ: (…,in) · (out,in), the head that is tied to the embedding. */
MG_API mg_tensor *mg_linear_tied(mg_tape *tape, mg_tensor *x, mg_tensor *w);
/* r + x W + b, and gelu(x W + b): as mg_add and mg_gelu of mg_linear, a pass over memory less. r has the result's
 * shape. */
MG_API mg_tensor *mg_linear_add(mg_tape *tape, mg_tensor *r, mg_tensor *x, mg_tensor *w, mg_tensor *bias);
MG_API mg_tensor *mg_linear_gelu(mg_tape *tape, mg_tensor *x, mg_tensor *w, mg_tensor *bias);

/* ---- Rows: along the last dimension ---- */
MG_API mg_tensor *mg_softmax(mg_tape *tape, mg_tensor *x); /* -inf alone gives 0; several +inf share the weight */
MG_API mg_tensor *mg_log_softmax(mg_tape *tape, mg_tensor *x);
/* mask broadcasts to x's shape; where it is not 0, the result is `value` and no gradient passes. */
MG_API mg_tensor *mg_masked_fill(mg_tape *tape, mg_tensor *x, const mg_tensor *mask, mg_real value);
MG_API mg_tensor *mg_layer_norm(mg_tape *tape, mg_tensor *x, mg_tensor *gain, mg_tensor *bias, mg_real eps);

/* ---- Tokens ---- */
/* Rows of table (V,C) by n ids in [0, V): (n,C), or with dim that multiply to n, (dim…,C). Repeated ids add up. */
MG_API mg_tensor *mg_embedding(mg_tape *tape, mg_tensor *table, const int *ids, int ndim, const ptrdiff_t *dim);
/* The mean over rows of −log softmax(logits)[target], one element; rows with a target of `ignore` do not count. If all
 * are ignored the loss is 0. row_loss: NULL or a place a row, 0 where ignored. */
MG_API mg_tensor *mg_cross_entropy(mg_tape *tape, mg_tensor *logits, const int *targets, int ignore, mg_real *row_loss);

/* ---- Regularisation ---- */
/* Each element is 0 with probability p and x/(1−p) otherwise; which, is a function of (rng, element) alone. */
MG_API mg_tensor *mg_dropout(mg_tape *tape, mg_tensor *x, mg_real p, mg_rng rng);

/* ---- Attention: attention.h ---- */
MG_API mg_tensor *mg_attention(mg_tape *tape, mg_tensor *qkv, const mg_attention_options *options);

#ifndef MG_OPS_NO_HERE
#define mg_add(tape, ...) mg_add(MG_HERE(tape), __VA_ARGS__)
#define mg_sub(tape, ...) mg_sub(MG_HERE(tape), __VA_ARGS__)
#define mg_mul(tape, ...) mg_mul(MG_HERE(tape), __VA_ARGS__)
#define mg_div(tape, ...) mg_div(MG_HERE(tape), __VA_ARGS__)
#define mg_scale(tape, ...) mg_scale(MG_HERE(tape), __VA_ARGS__)
#define mg_exp(tape, ...) mg_exp(MG_HERE(tape), __VA_ARGS__)
#define mg_log(tape, ...) mg_log(MG_HERE(tape), __VA_ARGS__)
#define mg_tanh(tape, ...) mg_tanh(MG_HERE(tape), __VA_ARGS__)
#define mg_relu(tape, ...) mg_relu(MG_HERE(tape), __VA_ARGS__)
#define mg_gelu(tape, ...) mg_gelu(MG_HERE(tape), __VA_ARGS__)
#define mg_sum(tape, ...) mg_sum(MG_HERE(tape), __VA_ARGS__)
#define mg_mean(tape, ...) mg_mean(MG_HERE(tape), __VA_ARGS__)
#define mg_max(tape, ...) mg_max(MG_HERE(tape), __VA_ARGS__)
#define mg_reshape(tape, ...) mg_reshape(MG_HERE(tape), __VA_ARGS__)
#define mg_transpose(tape, ...) mg_transpose(MG_HERE(tape), __VA_ARGS__)
#define mg_slice(tape, ...) mg_slice(MG_HERE(tape), __VA_ARGS__)
#define mg_concat(tape, ...) mg_concat(MG_HERE(tape), __VA_ARGS__)
#define mg_matmul(tape, ...) mg_matmul(MG_HERE(tape), __VA_ARGS__)
#define mg_linear(tape, ...) mg_linear(MG_HERE(tape), __VA_ARGS__)
#define mg_linear_tied(tape, ...) mg_linear_tied(MG_HERE(tape), __VA_ARGS__)
#define mg_linear_add(tape, ...) mg_linear_add(MG_HERE(tape), __VA_ARGS__)
#define mg_linear_gelu(tape, ...) mg_linear_gelu(MG_HERE(tape), __VA_ARGS__)
#define mg_softmax(tape, ...) mg_softmax(MG_HERE(tape), __VA_ARGS__)
#define mg_log_softmax(tape, ...) mg_log_softmax(MG_HERE(tape), __VA_ARGS__)
#define mg_masked_fill(tape, ...) mg_masked_fill(MG_HERE(tape), __VA_ARGS__)
#define mg_layer_norm(tape, ...) mg_layer_norm(MG_HERE(tape), __VA_ARGS__)
#define mg_embedding(tape, ...) mg_embedding(MG_HERE(tape), __VA_ARGS__)
#define mg_cross_entropy(tape, ...) mg_cross_entropy(MG_HERE(tape), __VA_ARGS__)
#define mg_dropout(tape, ...) mg_dropout(MG_HERE(tape), __VA_ARGS__)
#define mg_attention(tape, ...) mg_attention(MG_HERE(tape), __VA_ARGS__)
#endif

#endif
