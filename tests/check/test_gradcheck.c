/* Every operation's gradients against differences, at odd shapes too. A row here is one line; an operation of ops.h
 * that has none fails, and so does a gradcheck that would not notice a wrong backward. */
#include "gradcheck.h"
#include "operation.h"
#include "ops.h"

#include "operations.h"

#ifdef MG_DOUBLE
static const double TOLERANCE = 1e-7; /* the requirement */
#else
static const double TOLERANCE = 2e-3; /* all that differences of floats can promise; the double twin is the judge */
#endif

/* How the values of an input are chosen. */
typedef enum fill {
    NORMAL,   /* standard normal */
    POSITIVE, /* at least a half: where a logarithm or a quotient is smooth */
    APART     /* a shuffled lattice without 0: nothing is close to a kink or to another element */
} fill;

typedef struct input {
    int ndim; /* −1: there is no such input */
    ptrdiff_t dim[MG_MAX_DIM];
    fill fill;
} input;

typedef struct row {
    const char *op;
    mg_gradcheck_fn *build; /* gets the row */
    const char *note;
    input in[3];
    int number[4]; /* axes, bounds, flags: what the builder makes of them */
    const int *list;
} row;

#define IN(fill, ...)                                                                                                  \
    { (int)(sizeof((ptrdiff_t[]){__VA_ARGS__}) / sizeof(ptrdiff_t)), {__VA_ARGS__}, fill }
#define N(...) IN(NORMAL, __VA_ARGS__)
#define SCALAR                                                                                                         \
    { 0, {0}, NORMAL }
#define NONE                                                                                                           \
    { -1, {0}, NORMAL }

#define UNARY(name)                                                                                                    \
    static mg_tensor *build_##name(mg_tape *tape, mg_tensor *const *in, void *user) {                                  \
        (void)user;                                                                                                    \
        return mg_##name(tape, in[0]);                                                                                 \
    }
#define BINARY(name)                                                                                                   \
    static mg_tensor *build_##name(mg_tape *tape, mg_tensor *const *in, void *user) {                                  \
        (void)user;                                                                                                    \
        return mg_##name(tape, in[0], in[1]);                                                                          \
    }
#define REDUCTION(name)                                                                                                \
    static mg_tensor *build_##name(mg_tape *tape, mg_tensor *const *in, void *user) {                                  \
        const row *r = user;                                                                                           \
        return mg_##name(tape, in[0], r->number[0]);                                                                   \
    }
BINARY(add)
BINARY(sub)
BINARY(mul)
BINARY(div)
UNARY(exp)
UNARY(log)
UNARY(tanh)
UNARY(relu)
UNARY(gelu)
UNARY(softmax)
UNARY(log_softmax)
REDUCTION(sum)
REDUCTION(mean)
REDUCTION(max)
BINARY(linear_tied)

static mg_tensor *build_scale(mg_tape *tape, mg_tensor *const *in, void *user) {
    const row *r = user;
    return mg_scale(tape, in[0], (mg_real)r->number[0] / 4);
}

/* The same elements as a matrix with number[0] rows. */
static mg_tensor *build_reshape(mg_tape *tape, mg_tensor *const *in, void *user) {
    const row *r = user;
    return mg_reshape(tape, in[0], 2, (ptrdiff_t[]){r->number[0], mg_size(in[0]) / r->number[0]});
}

static mg_tensor *build_transpose(mg_tape *tape, mg_tensor *const *in, void *user) {
    const row *r = user;
    return mg_transpose(tape, in[0], r->number[0], r->number[1]);
}

static mg_tensor *build_slice(mg_tape *tape, mg_tensor *const *in, void *user) {
    const row *r = user;
    return mg_slice(tape, in[0], r->number[0], r->number[1], r->number[2]);
}

static mg_tensor *build_concat(mg_tape *tape, mg_tensor *const *in, void *user) {
    const row *r = user;
    int n = 0;
    while (n < 3 && r->in[n].ndim >= 0) n++;
    return mg_concat(tape, n, in, r->number[0]);
}

static mg_tensor *build_matmul(mg_tape *tape, mg_tensor *const *in, void *user) {
    const row *r = user;
    return mg_matmul(tape, in[0], in[1], r->number[0], r->number[1]);
}

static mg_tensor *build_linear(mg_tape *tape, mg_tensor *const *in, void *user) {
    const row *r = user;
    return mg_linear(tape, in[0], in[1], r->in[2].ndim < 0 ? NULL : in[2]);
}

/* number[0]: r, x and W; or x, W and b, added to x; or one matrix in the place of all three. */
static mg_tensor *build_linear_add(mg_tape *tape, mg_tensor *const *in, void *user) {
    const row *r = user;
    if (r->number[0] == 0) return mg_linear_add(tape, in[0], in[1], in[2], NULL);
    if (r->number[0] == 1) return mg_linear_add(tape, in[0], in[0], in[1], in[2]);
    return mg_linear_add(tape, in[0], in[0], in[0], NULL);
}

static mg_tensor *build_linear_gelu(mg_tape *tape, mg_tensor *const *in, void *user) {
    const row *r = user;
    return mg_linear_gelu(tape, in[0], in[1], r->in[2].ndim < 0 ? NULL : in[2]);
}

static mg_tensor *build_linear_itself(mg_tape *tape, mg_tensor *const *in, void *user) {
    (void)user;
    return mg_linear(tape, in[0], in[0], NULL);
}

static mg_tensor *build_layer_norm(mg_tape *tape, mg_tensor *const *in, void *user) {
    (void)user;
    return mg_layer_norm(tape, in[0], in[1], in[2], (mg_real)1e-2);
}

/* A mask with number[0] dimensions that hides every third element, or all of them if number[2]. */
static mg_tensor *build_masked_fill(mg_tape *tape, mg_tensor *const *in, void *user) {
    const row *r = user;
    ptrdiff_t dim[MG_MAX_DIM];
    for (int d = 0; d < r->number[0]; d++) dim[d] = in[0]->dim[in[0]->ndim - r->number[0] + d];
    if (r->number[1] >= 0) dim[r->number[1]] = 1;
    mg_tensor *mask = mg_constant(tape, r->number[0], dim);
    for (ptrdiff_t i = 0; i < mg_size(mask); i++) mask->data[i] = r->number[2] || i % 3 == 1;
    return mg_masked_fill(tape, in[0], mask, 7);
}

/* As many ids as number[0]·number[1] asks for. */
static mg_tensor *build_embedding(mg_tape *tape, mg_tensor *const *in, void *user) {
    const row *r = user;
    ptrdiff_t dim[2] = {r->number[0], r->number[1]};
    return mg_embedding(tape, in[0], r->list, r->number[1] ? 2 : 1, dim);
}

enum { IGNORE = -1 };

static mg_tensor *build_cross_entropy(mg_tape *tape, mg_tensor *const *in, void *user) {
    const row *r = user;
    int many[130];
    for (int i = 0; i < 130; i++) many[i] = i % 7 == 3 ? IGNORE : i % 3;
    return mg_cross_entropy(tape, in[0], r->list ? r->list : many, IGNORE, NULL);
}

static mg_tensor *build_dropout(mg_tape *tape, mg_tensor *const *in, void *user) {
    const row *r = user;
    return mg_dropout(tape, in[0], (mg_real)r->number[0] / 4, (mg_rng){3, MG_STREAM_DROPOUT, 1});
}

/* number: heads, dropout in quarters; list: kind and n of each head's mask. */
static mg_tensor *build_attention(mg_tape *tape, mg_tensor *const *in, void *user) {
    const row *r = user;
    ptrdiff_t width = in[0]->dim[2] / 3 / r->number[0];
    mg_mask mask[4];
    for (int h = 0; r->list && h < r->number[0]; h++)
        mask[h] = (mg_mask){(mg_mask_kind)r->list[2 * h], r->list[2 * h + 1]};
    mg_attention_options options = {.n_head = r->number[0],
                                    .mask = r->list ? mask : NULL,
                                    .scale = (mg_real)(1 / sqrt((double)width)),
                                    .dropout = (mg_real)r->number[1] / 4,
                                    .dropout_rng = {5, MG_STREAM_DROPOUT, 2}};
    return mg_attention(tape, in[0], &options);
}

/* Documents of 1, 2, 3 … tokens, packed. */
static mg_tensor *build_documents(mg_tape *tape, mg_tensor *const *in, void *user) {
    const row *r = user;
    ptrdiff_t B = in[0]->dim[0], T = in[0]->dim[1];
    mg_interval *sequence = mg_tape_alloc(tape, (size_t)(B * T), sizeof *sequence, "intervals");
    for (ptrdiff_t b = 0; b < B; b++)
        for (ptrdiff_t i = 0, first = 0, length = 1; i < T; i++) {
            if (i == first + length) first = i, length++;
            sequence[b * T + i] = (mg_interval){first, T};
        }
    return mg_attention(tape, in[0], &(mg_attention_options){.n_head = r->number[0], .sequence = sequence});
}

enum { ALL = MG_LOOKAHEAD_ALL };
#define LIST(...) ((const int[]){__VA_ARGS__})
#define MASKS(...) (&((const int[][2]){__VA_ARGS__})[0][0])

static const row rows[] = {
    {"add", build_add, "same shape", {N(2, 3), N(2, 3), NONE}, {0}, NULL},
    {"add", build_add, "row", {N(4, 3), N(3), NONE}, {0}, NULL},
    {"add", build_add, "both repeat", {N(2, 1, 3, 1), N(5, 1, 2), NONE}, {0}, NULL},
    {"add", build_add, "scalar left", {SCALAR, N(2, 2), NONE}, {0}, NULL},
    {"sub", build_sub, "column", {N(3, 4), N(3, 1), NONE}, {0}, NULL},
    {"sub", build_sub, "left repeats", {N(1, 4), N(3, 4), NONE}, {0}, NULL},
    {"sub", build_sub, "ones", {N(1, 1), N(1), NONE}, {0}, NULL},
    {"mul", build_mul, "same shape", {N(7), N(7), NONE}, {0}, NULL},
    {"mul", build_mul, "middle", {N(2, 3, 4), N(2, 1, 4), NONE}, {0}, NULL},
    {"mul", build_mul, "ends", {N(3, 1), N(2, 3, 4), NONE}, {0}, NULL},
    {"mul", build_mul, "long rows", {N(3, 40), N(40), NONE}, {0}, NULL},
    {"div", build_div, "same shape", {N(3, 2), IN(POSITIVE, 3, 2), NONE}, {0}, NULL},
    {"div", build_div, "by a row", {N(3, 5), IN(POSITIVE, 5), NONE}, {0}, NULL},
    {"div", build_div, "by a column", {N(3, 5), IN(POSITIVE, 3, 1), NONE}, {0}, NULL},
    {"div", build_div, "of a scalar", {SCALAR, IN(POSITIVE, 2, 3), NONE}, {0}, NULL},
    {"scale", build_scale, "-0.75", {N(3, 3), NONE, NONE}, {-3}, NULL},
    {"scale", build_scale, "0", {N(2), NONE, NONE}, {0}, NULL},
    {"exp", build_exp, "", {N(2, 9), NONE, NONE}, {0}, NULL},
    {"exp", build_exp, "a vector and a tail", {N(37), NONE, NONE}, {0}, NULL},
    {"log", build_log, "", {IN(POSITIVE, 37), NONE, NONE}, {0}, NULL},
    {"tanh", build_tanh, "", {N(2, 3, 2, 3), NONE, NONE}, {0}, NULL},
    {"relu", build_relu, "", {IN(APART, 4, 5), NONE, NONE}, {0}, NULL},
    {"gelu", build_gelu, "", {N(37), NONE, NONE}, {0}, NULL},
    {"gelu", build_gelu, "one", {N(1, 1), NONE, NONE}, {0}, NULL},
    {"sum", build_sum, "all", {N(2, 3), NONE, NONE}, {MG_ALL_AXES}, NULL},
    {"sum", build_sum, "first", {N(3, 2, 4), NONE, NONE}, {0}, NULL},
    {"sum", build_sum, "middle", {N(3, 2, 4), NONE, NONE}, {-2}, NULL},
    {"sum", build_sum, "last", {N(3, 2, 4), NONE, NONE}, {-1}, NULL},
    {"mean", build_mean, "all", {N(5, 1), NONE, NONE}, {MG_ALL_AXES}, NULL},
    {"mean", build_mean, "middle", {N(2, 3, 4), NONE, NONE}, {1}, NULL},
    {"mean", build_mean, "of one", {N(3, 1), NONE, NONE}, {1}, NULL},
    {"max", build_max, "all", {IN(APART, 3, 4), NONE, NONE}, {MG_ALL_AXES}, NULL},
    {"max", build_max, "first", {IN(APART, 4, 3), NONE, NONE}, {0}, NULL},
    {"max", build_max, "last", {IN(APART, 2, 2, 5), NONE, NONE}, {-1}, NULL},
    {"reshape", build_reshape, "", {N(2, 3, 2), NONE, NONE}, {4}, NULL},
    {"reshape", build_reshape, "of one", {SCALAR, NONE, NONE}, {1}, NULL},
    {"transpose", build_transpose, "matrix", {N(3, 4), NONE, NONE}, {0, 1}, NULL},
    {"transpose", build_transpose, "heads", {N(2, 3, 2, 4), NONE, NONE}, {1, 2}, NULL},
    {"transpose", build_transpose, "ends", {N(2, 3, 1, 4), NONE, NONE}, {-1, 0}, NULL},
    {"transpose", build_transpose, "with itself", {N(2, 3), NONE, NONE}, {1, 1}, NULL},
    {"slice", build_slice, "last", {N(3, 5), NONE, NONE}, {1, 2, 4}, NULL},
    {"slice", build_slice, "first", {N(4, 2, 2), NONE, NONE}, {-3, 3, 4}, NULL},
    {"slice", build_slice, "everything", {N(3), NONE, NONE}, {0, 0, 3}, NULL},
    {"concat", build_concat, "last", {N(2, 3), N(2, 1), N(2, 4)}, {-1}, NULL},
    {"concat", build_concat, "first", {N(1, 2, 2), N(3, 2, 2), NONE}, {0}, NULL},
    {"concat", build_concat, "one", {N(2, 2), NONE, NONE}, {1}, NULL},
    {"matmul", build_matmul, "A B", {N(3, 4), N(4, 2), NONE}, {0, 0}, NULL},
    {"matmul", build_matmul, "A^T B", {N(4, 3), N(4, 2), NONE}, {1, 0}, NULL},
    {"matmul", build_matmul, "A B^T", {N(3, 4), N(2, 4), NONE}, {0, 1}, NULL},
    {"matmul", build_matmul, "A^T B^T", {N(4, 3), N(2, 4), NONE}, {1, 1}, NULL},
    {"matmul", build_matmul, "batched", {N(2, 3, 2, 4), N(2, 3, 4, 3), NONE}, {0, 0}, NULL},
    {"matmul", build_matmul, "one B for all", {N(2, 3, 4), N(4, 2), NONE}, {0, 0}, NULL},
    {"matmul", build_matmul, "one B^T for all", {N(2, 3, 4), N(2, 4), NONE}, {0, 1}, NULL},
    {"matmul", build_matmul, "one A for all", {N(3, 4), N(2, 2, 4, 2), NONE}, {0, 0}, NULL},
    {"matmul", build_matmul, "both repeat", {N(2, 1, 4, 3), N(3, 2, 4), NONE}, {1, 1}, NULL},
    {"matmul", build_matmul, "one row", {N(1, 5), N(5, 3), NONE}, {0, 0}, NULL},
    {"matmul", build_matmul, "ones", {N(1, 1), N(1, 1), NONE}, {0, 0}, NULL},
    {"linear", build_linear, "", {N(2, 3, 4), N(4, 5), N(5)}, {0}, NULL},
    {"linear", build_linear, "no bias", {N(3, 4), N(4, 2), NONE}, {0}, NULL},
    {"linear", build_linear, "one row", {N(4), N(4, 3), N(3)}, {0}, NULL},
    {"linear", build_linear, "ones", {N(1, 1), N(1, 1), N(1)}, {0}, NULL},
    {"linear", build_linear, "many rows", {N(150, 2), N(2, 2), N(2)}, {0}, NULL},
    {"linear", build_linear_itself, "x is W", {N(3, 3), NONE, NONE}, {0}, NULL},
    {"linear_add", build_linear_add, "", {N(2, 3, 5), N(2, 3, 4), N(4, 5)}, {0}, NULL},
    {"linear_add", build_linear_add, "many rows", {N(150, 3), N(150, 2), N(2, 3)}, {0}, NULL},
    {"linear_add", build_linear_add, "to x", {N(3, 4), N(4, 4), N(4)}, {1}, NULL},
    {"linear_add", build_linear_add, "one row, to x", {N(4), N(4, 4), N(4)}, {1}, NULL},
    {"linear_add", build_linear_add, "r is x is W", {N(3, 3), NONE, NONE}, {2}, NULL},
    {"linear_gelu", build_linear_gelu, "", {N(2, 3, 4), N(4, 5), N(5)}, {0}, NULL},
    {"linear_gelu", build_linear_gelu, "no bias", {N(3, 4), N(4, 2), NONE}, {0}, NULL},
    {"linear_gelu", build_linear_gelu, "one row", {N(4), N(4, 3), N(3)}, {0}, NULL},
    {"linear_gelu", build_linear_gelu, "many rows", {N(150, 2), N(2, 2), N(2)}, {0}, NULL},
    {"linear_tied", build_linear_tied, "", {N(2, 2, 3), N(5, 3), NONE}, {0}, NULL},
    {"linear_tied", build_linear_tied, "one row", {N(1, 3), N(4, 3), NONE}, {0}, NULL},
    {"linear_tied", build_linear_tied, "many rows", {N(150, 2), N(3, 2), NONE}, {0}, NULL},
    {"softmax", build_softmax, "", {N(2, 3, 5), NONE, NONE}, {0}, NULL},
    {"softmax", build_softmax, "of one", {N(3, 1), NONE, NONE}, {0}, NULL},
    {"softmax", build_softmax, "a vector and a tail", {N(37), NONE, NONE}, {0}, NULL},
    {"log_softmax", build_log_softmax, "", {N(3, 5), NONE, NONE}, {0}, NULL},
    {"log_softmax", build_log_softmax, "a vector and a tail", {N(37), NONE, NONE}, {0}, NULL},
    {"masked_fill", build_masked_fill, "same shape", {N(3, 4), NONE, NONE}, {2, -1, 0}, NULL},
    {"masked_fill", build_masked_fill, "row", {N(2, 3, 4), NONE, NONE}, {1, -1, 0}, NULL},
    {"masked_fill", build_masked_fill, "column", {N(2, 4, 3), NONE, NONE}, {2, 1, 0}, NULL},
    {"masked_fill", build_masked_fill, "everything", {N(2, 2), NONE, NONE}, {2, -1, 1}, NULL},
    {"layer_norm", build_layer_norm, "", {N(2, 3, 5), N(5), N(5)}, {0}, NULL},
    {"layer_norm", build_layer_norm, "many rows", {N(130, 3), N(3), N(3)}, {0}, NULL},
    {"layer_norm", build_layer_norm, "width 1", {N(3, 1), N(1), N(1)}, {0}, NULL},
    {"layer_norm", build_layer_norm, "a vector and a tail", {N(37), N(37), N(37)}, {0}, NULL},
    {"embedding", build_embedding, "repeated ids", {N(5, 3), NONE, NONE}, {4, 0}, LIST(2, 2, 0, 2)},
    {"embedding", build_embedding, "(2,3) ids", {N(4, 2), NONE, NONE}, {2, 3}, LIST(3, 1, 1, 0, 3, 3)},
    {"embedding", build_embedding, "wide", {N(2, 130), NONE, NONE}, {3, 0}, LIST(1, 0, 1)},
    {"embedding", build_embedding, "one of one", {N(1, 1), NONE, NONE}, {1, 0}, LIST(0)},
    {"cross_entropy", build_cross_entropy, "", {N(3, 5), NONE, NONE}, {0}, LIST(4, 0, 2)},
    {"cross_entropy", build_cross_entropy, "some ignored", {N(2, 2, 3), NONE, NONE}, {0}, LIST(IGNORE, 2, 0, IGNORE)},
    {"cross_entropy", build_cross_entropy, "all ignored", {N(2, 3), NONE, NONE}, {0}, LIST(IGNORE, IGNORE)},
    {"cross_entropy", build_cross_entropy, "one of one", {N(1, 1), NONE, NONE}, {0}, LIST(0)},
    {"cross_entropy", build_cross_entropy, "many rows", {N(130, 3), NONE, NONE}, {0}, NULL},
    {"dropout", build_dropout, "0.25", {N(4, 9), NONE, NONE}, {1}, NULL},
    {"dropout", build_dropout, "0", {N(3), NONE, NONE}, {0}, NULL},
    {"dropout", build_dropout, "1", {N(3), NONE, NONE}, {4}, NULL},
    {"attention", build_attention, "causal", {N(2, 4, 12), NONE, NONE}, {2, 0}, NULL},
    {"attention",
     build_attention,
     "no mask",
     {N(2, 4, 12), NONE, NONE},
     {2, 0},
     MASKS({MG_MASK_LOOKAHEAD, ALL}, {MG_MASK_LOOKAHEAD, ALL})},
    {"attention", build_attention, "lookahead 1", {N(1, 5, 6), NONE, NONE}, {1, 0}, MASKS({MG_MASK_LOOKAHEAD, 1})},
    {"attention", build_attention, "lookahead 3", {N(1, 5, 6), NONE, NONE}, {1, 0}, MASKS({MG_MASK_LOOKAHEAD, 3})},
    {"attention",
     build_attention,
     "one leaky head",
     {N(1, 4, 18), NONE, NONE},
     {3, 0},
     MASKS({MG_MASK_LOOKAHEAD, 0}, {MG_MASK_LOOKAHEAD, 1}, {MG_MASK_LOOKAHEAD, 0})},
    {"attention",
     build_attention,
     "window",
     {N(2, 7, 12), NONE, NONE},
     {2, 0},
     MASKS({MG_MASK_WINDOW, 1}, {MG_MASK_WINDOW, 3})},
    {"attention",
     build_attention,
     "window, more than a tile",
     {N(1, 37, 6), NONE, NONE},
     {1, 0},
     MASKS({MG_MASK_WINDOW, 5})},
    {"attention",
     build_attention,
     "window, dropout",
     {N(1, 7, 12), NONE, NONE},
     {2, 1},
     MASKS({MG_MASK_WINDOW, 2}, {MG_MASK_WINDOW, 4})},
    {"attention",
     build_attention,
     "prefix",
     {N(1, 6, 12), NONE, NONE},
     {2, 0},
     MASKS({MG_MASK_PREFIX, 3}, {MG_MASK_PREFIX, 9})},
    {"attention",
     build_attention,
     "block",
     {N(1, 7, 12), NONE, NONE},
     {2, 0},
     MASKS({MG_MASK_BLOCK, 3}, {MG_MASK_BLOCK, 9})},
    {"attention", build_documents, "documents", {N(2, 7, 12), NONE, NONE}, {2, 0}, NULL},
    {"attention", build_attention, "width 1", {N(1, 3, 6), NONE, NONE}, {2, 0}, NULL},
    {"attention", build_attention, "T = 1", {N(2, 1, 6), NONE, NONE}, {1, 0}, NULL},
    {"attention", build_attention, "more than a tile", {N(1, 35, 6), NONE, NONE}, {1, 0}, NULL},
    {"attention", build_attention, "dropout", {N(1, 5, 12), NONE, NONE}, {2, 1}, NULL},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static void fill_input(mg_tensor *x, fill how, uint32_t which) {
    mg_rng rng = {11, MG_STREAM_TEST, which};
    ptrdiff_t n = mg_size(x);
    for (ptrdiff_t i = 0; i < n; i++) {
        double value = mg_rng_normal(rng, (uint64_t)i);
        if (how == POSITIVE) value = 0.5 + fabs(value);
        if (how == APART) value = ((double)(i * 7 % n) - (double)(n / 2) + 0.5) * 0.2; /* n is no multiple of 7 */
        x->data[i] = (mg_real)value;
    }
}

/* The row's function, of interior tensors that are each used twice: backward first meets gradients that hold nothing
 * yet, then some that it must add to. */
static mg_tensor *twice(mg_tape *tape, mg_tensor *const *in, void *user) {
    const row *r = user;
    mg_tensor *inside[3] = {0};
    for (int i = 0; i < 3 && r->in[i].ndim >= 0; i++) inside[i] = mg_scale(tape, in[i], 1);
    mg_tensor *once = r->build(tape, inside, user);
    return mg_add(tape, once, mg_scale(tape, r->build(tape, inside, user), (mg_real)0.5));
}

static mg_gradcheck_result check_row(row r, mg_gradcheck_fn *function) {
    mg_error error;
    mg_tape *tape;
    mg_tape_new(&tape, &error);
    mg_tensor *in[3];
    int n_in = 0;
    for (; n_in < 3 && r.in[n_in].ndim >= 0; n_in++) {
        in[n_in] = mg_leaf(tape, r.in[n_in].ndim, r.in[n_in].dim);
        fill_input(in[n_in], r.in[n_in].fill, (uint32_t)n_in);
    }
    mg_gradcheck_result result;
    assert_int_equal(mg_gradcheck(&result, function, &r, n_in, in, &error), MG_OK);
    mg_tape_free(tape);
    return result;
}

/* On the inputs themselves and inside a larger graph; the worse of the two. */
static mg_gradcheck_result worst_of_row(const row *r) {
    mg_gradcheck_result alone = check_row(*r, r->build), inside = check_row(*r, twice);
    return alone.worst > inside.worst ? alone : inside;
}

static void print_row(const row *r, const mg_gradcheck_result *result) {
    char shapes[128] = "";
    for (int i = 0; i < 3 && r->in[i].ndim >= 0; i++) {
        mg_tensor x = {.ndim = r->in[i].ndim};
        memcpy(x.dim, r->in[i].dim, sizeof x.dim);
        size_t used = strlen(shapes);
        snprintf(shapes + used, sizeof shapes - used, "%s%s", i ? " " : "", mg_shape(&x).text);
    }
    printf("%-14s%-30s%-22s%10.2e\n", r->op, shapes, r->note, result->worst);
}

static void gradients_equal_differences(void **state) {
    (void)state;
    int wrong = 0;
    printf("%-14s%-30s%-22s%10s\n", "operation", "shapes", "", "worst");
    for (int i = 0; i < N_ROWS; i++) {
        mg_gradcheck_result result = worst_of_row(&rows[i]);
        print_row(&rows[i], &result);
        if (result.worst <= TOLERANCE) continue;
        wrong++;
        print_error("%s (%s): input %d, element %td: %.17g, but the difference is %.17g\n", rows[i].op, rows[i].note,
                    result.input, result.index, result.analytic, result.numeric);
    }
    assert_int_equal(wrong, 0);
}

EVERY_OPERATION_HAS_A_ROW

#ifdef MG_HOSTILE
/* The largest error over all rows of an operation while the gradient of one of its inputs is 1% off. */
static double worst_when_broken(const char *op, int number) {
    double worst = 0;
    mg_tape_break(op, number, (mg_real)1.01);
    for (int i = 0; i < N_ROWS; i++)
        if (strcmp(rows[i].op, op) == 0) worst = fmax(worst, check_row(rows[i], rows[i].build).worst);
    mg_tape_break(NULL, 0, 0);
    return worst;
}

static int inputs_of(const char *op) {
    int most = 0;
    for (int i = 0; i < N_ROWS; i++)
        for (int n = 0; n < 3; n++)
            if (strcmp(rows[i].op, op) == 0 && rows[i].in[n].ndim >= 0 && n + 1 > most) most = n + 1;
    return most;
}
#endif

static void a_wrong_backward_is_noticed(void **state) {
    (void)state;
#ifdef MG_HOSTILE
    for (int i = 0; i < N_ROWS; i++) {
        if (i > 0 && strcmp(rows[i].op, rows[i - 1].op) == 0) continue;
        for (int n = 0; n < inputs_of(rows[i].op); n++) {
            double worst = worst_when_broken(rows[i].op, n);
            if (worst > 2 * TOLERANCE) continue;
            fail_msg("%s: a wrong gradient of input %d passes, with an error of %g", rows[i].op, n, worst);
        }
    }
#else
    print_message("this build cannot break a backward: configure with MASKGRAD_HOSTILE\n");
    skip();
#endif
}

/* The checker itself: a function whose gradient is known, and values that are put back. */
static mg_tensor *cube(mg_tape *tape, mg_tensor *const *in, void *user) {
    (void)user;
    return mg_mul(tape, in[0], mg_mul(tape, in[0], in[0]));
}

static void the_values_are_put_back(void **state) {
    (void)state;
    mg_tape *tape = new_tape();
    mg_tensor *x = mg_leaf(tape, 0, NULL);
    x->data[0] = (mg_real)1.1;
    mg_gradcheck_result result;
    assert_int_equal(mg_gradcheck(&result, cube, NULL, 1, &x, NULL), MG_OK);
    assert_true(x->data[0] == (mg_real)1.1);
    assert_close(result.analytic, 3.63, 1e-5);
    assert_close(result.numeric, 3.63, 1e-4);
    x->data[0] = NAN;
    assert_int_equal(mg_gradcheck(&result, cube, NULL, 1, &x, NULL), MG_OK);
    assert_true(result.worst > 1);
    assert_fails(mg_gradcheck(&result, cube, NULL, 1, (mg_tensor *[]){mg_constant(tape, 0, NULL)}, NULL), "input 0");
    mg_tape_free(tape);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_equal_differences),
        cmocka_unit_test(every_operation_has_a_row),
        cmocka_unit_test(a_wrong_backward_is_noticed),
        cmocka_unit_test(the_values_are_put_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
