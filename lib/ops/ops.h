/* The operations. Each is one file of this folder, with its formula, its source, its forward and its backward side by
 * side. All take the tape first and return a new tensor on it, which lives until mg_tape_reset. A wrong shape or a null
 * tensor goes to the failure handler with the operation, the shapes and the caller's line.
 *
 * Tensors that an operation takes are borrowed: until mg_backward is done they must stay where they are, and keep their
 * values. Everything else (dimensions, ids, targets, masks, options) is copied: the caller may free it at once.
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

/* ---- Rows: along the last dimension ---- */
/* A row of only -inf gives 0; several +inf share the weight. */
MG_API mg_tensor *mg_softmax(mg_tape *tape, mg_tensor *x);
MG_API mg_tensor *mg_log_softmax(mg_tape *tape, mg_tensor *x);
/* mask (copied) broadcasts to x's shape; where it is not 0, the result is `value` and no gradient passes. */
MG_API mg_tensor *mg_masked_fill(mg_tape *tape, mg_tensor *x, const mg_tensor *mask, mg_real value);
/* (x − mean) / sqrt(variance + eps) · gain + bias; gain and bias are (C). eps is 1e-5 in GPT-2. */
MG_API mg_tensor *mg_layer_norm(mg_tape *tape, mg_tensor *x, mg_tensor *gain, mg_tensor *bias, mg_real eps);

/* ---- Tokens ---- */
/* Rows of table (V,C) by n ids in [0, V): (n,C), or with dim that multiply to n, (dim…,C). Repeated ids add up. */
MG_API mg_tensor *mg_embedding(mg_tape *tape, mg_tensor *table, const int *ids, int ndim, const ptrdiff_t *dim);
/* The mean over rows of −log softmax(logits)[target], one element; rows with a target of `ignore` do not count. If all
 * are ignored the loss is 0. row_loss: NULL or one loss per row, 0 where ignored. */
MG_API mg_tensor *mg_cross_entropy(mg_tape *tape, mg_tensor *logits, const int *targets, int ignore, mg_real *row_loss);

/* ---- Regularization ---- */
/* Each element is 0 with probability p and x/(1−p) otherwise; which of the two is a function only of (rng, element). */
MG_API mg_tensor *mg_dropout(mg_tape *tape, mg_tensor *x, mg_real p, mg_rng rng);

/* ---- Attention: attention.h ---- */
MG_API mg_tensor *mg_attention(mg_tape *tape, mg_tensor *qkv, const mg_attention_options *options);

/* ---- Not installed: between maskgrad's own files ---- */
/* y = x Wᵀ: (…,in) · (out,in), the head that is tied to the embedding. */
mg_tensor *mg_linear_tied(mg_tape *tape, mg_tensor *x, mg_tensor *w);
/* r + x W + b, and gelu(x W + b): like mg_add and mg_gelu of mg_linear, with one pass over memory less. r has the
 * result's shape. */
mg_tensor *mg_linear_add(mg_tape *tape, mg_tensor *r, mg_tensor *x, mg_tensor *w, mg_tensor *bias);
mg_tensor *mg_linear_gelu(mg_tape *tape, mg_tensor *x, mg_tensor *w, mg_tensor *bias);

#ifndef MG_LIBRARY /* whose line a failure names: error.h */
#define MG_OPERATION(name, given, arguments, ...)                                                                      \
    MG_CALLED(mg_tensor *, name, (tape, MG_LIST given), (tape, MG_LIST arguments), mg_tape *tape, __VA_ARGS__)
MG_OPERATION(mg_add, (a, b), (a, b), mg_tensor *a, mg_tensor *b)
MG_OPERATION(mg_sub, (a, b), (a, b), mg_tensor *a, mg_tensor *b)
MG_OPERATION(mg_mul, (a, b), (a, b), mg_tensor *a, mg_tensor *b)
MG_OPERATION(mg_div, (a, b), (a, b), mg_tensor *a, mg_tensor *b)
MG_OPERATION(mg_scale, (x), (x, factor), mg_tensor *x, mg_real factor)
MG_OPERATION(mg_exp, (x), (x), mg_tensor *x)
MG_OPERATION(mg_log, (x), (x), mg_tensor *x)
MG_OPERATION(mg_tanh, (x), (x), mg_tensor *x)
MG_OPERATION(mg_relu, (x), (x), mg_tensor *x)
MG_OPERATION(mg_gelu, (x), (x), mg_tensor *x)
MG_OPERATION(mg_sum, (x), (x, axis), mg_tensor *x, int axis)
MG_OPERATION(mg_mean, (x), (x, axis), mg_tensor *x, int axis)
MG_OPERATION(mg_max, (x), (x, axis), mg_tensor *x, int axis)
MG_OPERATION(mg_reshape, (x), (x, ndim, dim), mg_tensor *x, int ndim, const ptrdiff_t *dim)
MG_OPERATION(mg_transpose, (x), (x, axis_a, axis_b), mg_tensor *x, int axis_a, int axis_b)
MG_OPERATION(mg_slice, (x), (x, axis, begin, end), mg_tensor *x, int axis, ptrdiff_t begin, ptrdiff_t end)
MG_OPERATION(mg_concat, (x), (n, x, axis), int n, mg_tensor *const *x, int axis)
MG_OPERATION(mg_matmul, (a, b), (a, b, transpose_a, transpose_b), mg_tensor *a, mg_tensor *b, bool transpose_a,
             bool transpose_b)
MG_OPERATION(mg_linear, (x, w), (x, w, bias), mg_tensor *x, mg_tensor *w, mg_tensor *bias)
MG_OPERATION(mg_softmax, (x), (x), mg_tensor *x)
MG_OPERATION(mg_log_softmax, (x), (x), mg_tensor *x)
MG_OPERATION(mg_masked_fill, (x, mask), (x, mask, value), mg_tensor *x, const mg_tensor *mask, mg_real value)
MG_OPERATION(mg_layer_norm, (x, gain, bias), (x, gain, bias, eps), mg_tensor *x, mg_tensor *gain, mg_tensor *bias,
             mg_real eps)
MG_OPERATION(mg_embedding, (table, ids), (table, ids, ndim, dim), mg_tensor *table, const int *ids, int ndim,
             const ptrdiff_t *dim)
MG_OPERATION(mg_cross_entropy, (logits, targets), (logits, targets, ignore, row_loss), mg_tensor *logits,
             const int *targets, int ignore, mg_real *row_loss)
MG_OPERATION(mg_dropout, (x), (x, p, rng), mg_tensor *x, mg_real p, mg_rng rng)
MG_OPERATION(mg_attention, (qkv, options), (qkv, options), mg_tensor *qkv, const mg_attention_options *options)
#define mg_add(...) MG_AT(mg_add, __VA_ARGS__)
#define mg_sub(...) MG_AT(mg_sub, __VA_ARGS__)
#define mg_mul(...) MG_AT(mg_mul, __VA_ARGS__)
#define mg_div(...) MG_AT(mg_div, __VA_ARGS__)
#define mg_scale(...) MG_AT(mg_scale, __VA_ARGS__)
#define mg_exp(...) MG_AT(mg_exp, __VA_ARGS__)
#define mg_log(...) MG_AT(mg_log, __VA_ARGS__)
#define mg_tanh(...) MG_AT(mg_tanh, __VA_ARGS__)
#define mg_relu(...) MG_AT(mg_relu, __VA_ARGS__)
#define mg_gelu(...) MG_AT(mg_gelu, __VA_ARGS__)
#define mg_sum(...) MG_AT(mg_sum, __VA_ARGS__)
#define mg_mean(...) MG_AT(mg_mean, __VA_ARGS__)
#define mg_max(...) MG_AT(mg_max, __VA_ARGS__)
#define mg_reshape(...) MG_AT(mg_reshape, __VA_ARGS__)
#define mg_transpose(...) MG_AT(mg_transpose, __VA_ARGS__)
#define mg_slice(...) MG_AT(mg_slice, __VA_ARGS__)
#define mg_concat(...) MG_AT(mg_concat, __VA_ARGS__)
#define mg_matmul(...) MG_AT(mg_matmul, __VA_ARGS__)
#define mg_linear(...) MG_AT(mg_linear, __VA_ARGS__)
#define mg_softmax(...) MG_AT(mg_softmax, __VA_ARGS__)
#define mg_log_softmax(...) MG_AT(mg_log_softmax, __VA_ARGS__)
#define mg_masked_fill(...) MG_AT(mg_masked_fill, __VA_ARGS__)
#define mg_layer_norm(...) MG_AT(mg_layer_norm, __VA_ARGS__)
#define mg_embedding(...) MG_AT(mg_embedding, __VA_ARGS__)
#define mg_cross_entropy(...) MG_AT(mg_cross_entropy, __VA_ARGS__)
#define mg_dropout(...) MG_AT(mg_dropout, __VA_ARGS__)
#define mg_attention(...) MG_AT(mg_attention, __VA_ARGS__)
#endif

#endif
