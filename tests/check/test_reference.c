/* Every operation against PyTorch in float64: results and gradients, case by case (tests/reference/operations.h5). */
#include "operation.h"
#include "ops.h"
#include "reference.h"

#include "operations.h"

enum { MOST_INPUTS = 4, MOST_INTS = 80 };

/* A case as the file has it. */
typedef struct reference_case {
    int n_in, n_ints;
    mg_tensor *in[MOST_INPUTS];
    int ints[MOST_INTS];
    mg_real reals[2];
    uint32_t seed_high; /* of ints[0], where that is a seed */
} reference_case;

/* ---- How a case calls its operation ---- */

typedef mg_tensor *build_fn(mg_tape *tape, const reference_case *c);

#define BUILD(name, call)                                                                                              \
    static mg_tensor *build_##name(mg_tape *tape, const reference_case *c) {                                           \
        return call;                                                                                                   \
    }

BUILD(add, mg_add(tape, c->in[0], c->in[1]))
BUILD(sub, mg_sub(tape, c->in[0], c->in[1]))
BUILD(mul, mg_mul(tape, c->in[0], c->in[1]))
BUILD(div, mg_div(tape, c->in[0], c->in[1]))
BUILD(scale, mg_scale(tape, c->in[0], c->reals[0]))
BUILD(exp, mg_exp(tape, c->in[0]))
BUILD(log, mg_log(tape, c->in[0]))
BUILD(tanh, mg_tanh(tape, c->in[0]))
BUILD(relu, mg_relu(tape, c->in[0]))
BUILD(gelu, mg_gelu(tape, c->in[0]))
BUILD(sum, mg_sum(tape, c->in[0], c->ints[0]))
BUILD(mean, mg_mean(tape, c->in[0], c->ints[0]))
BUILD(max, mg_max(tape, c->in[0], c->ints[0]))
BUILD(transpose, mg_transpose(tape, c->in[0], c->ints[0], c->ints[1]))
BUILD(slice, mg_slice(tape, c->in[0], c->ints[0], c->ints[1], c->ints[2]))
BUILD(concat, mg_concat(tape, c->n_in, c->in, c->ints[0]))
BUILD(matmul, mg_matmul(tape, c->in[0], c->in[1], c->ints[0], c->ints[1]))
BUILD(linear, mg_linear(tape, c->in[0], c->in[1], c->in[2]))
BUILD(linear_tied, mg_linear_tied(tape, c->in[0], c->in[1]))
BUILD(linear_add, mg_linear_add(tape, c->in[0], c->in[1], c->in[2], c->in[3]))
BUILD(linear_gelu, mg_linear_gelu(tape, c->in[0], c->in[1], c->in[2]))
BUILD(softmax, mg_softmax(tape, c->in[0]))
BUILD(log_softmax, mg_log_softmax(tape, c->in[0]))
BUILD(masked_fill, mg_masked_fill(tape, c->in[0], c->in[1], c->reals[0]))
BUILD(layer_norm, mg_layer_norm(tape, c->in[0], c->in[1], c->in[2], c->reals[0]))
BUILD(cross_entropy, mg_cross_entropy(tape, c->in[0], c->ints + 1, c->ints[0], NULL))

static mg_tensor *build_reshape(mg_tape *tape, const reference_case *c) {
    ptrdiff_t dim[MG_MAX_DIM];
    for (int i = 0; i < c->n_ints; i++) dim[i] = c->ints[i];
    return mg_reshape(tape, c->in[0], c->n_ints, dim);
}

/* ints: how many dimensions, which, ids */
static mg_tensor *build_embedding(mg_tape *tape, const reference_case *c) {
    ptrdiff_t dim[MG_MAX_DIM];
    for (int i = 0; i < c->ints[0]; i++) dim[i] = c->ints[1 + i];
    return mg_embedding(tape, c->in[0], c->ints + 1 + c->ints[0], c->ints[0], dim);
}

/* ints: seed, step */
static mg_rng rng_of(const reference_case *c) {
    return (mg_rng){(uint64_t)c->seed_high << 32 | (uint32_t)c->ints[0], MG_STREAM_TEST, (uint32_t)c->ints[1]};
}

static mg_tensor *build_dropout(mg_tape *tape, const reference_case *c) {
    return mg_dropout(tape, c->in[0], c->reals[0], rng_of(c));
}

/* What each query sees at most, (B,T,2), as intervals. */
static const mg_interval *intervals(mg_tape *tape, const mg_tensor *limits) {
    ptrdiff_t n = mg_size(limits) / 2;
    mg_interval *all = mg_tape_alloc(tape, (size_t)n, sizeof *all, "intervals");
    for (ptrdiff_t i = 0; i < n; i++)
        all[i] = (mg_interval){(ptrdiff_t)limits->data[2 * i], (ptrdiff_t)limits->data[2 * i + 1]};
    return all;
}

/* in: queries, keys and values; what each query sees at most, if there is a limit. ints: seed, step, each head's kind
 * of mask and its n; reals: scale, dropout */
static mg_tensor *build_attention(mg_tape *tape, const reference_case *c) {
    mg_mask mask[4];
    int n_head = (c->n_ints - 2) / 2;
    for (int h = 0; h < n_head; h++) mask[h] = (mg_mask){(mg_mask_kind)c->ints[2 + 2 * h], c->ints[3 + 2 * h]};
    mg_attention_options o = {.n_head = n_head, .mask = mask, .scale = c->reals[0]};
    o.dropout = c->reals[1];
    o.dropout_rng = rng_of(c);
    if (c->n_in > 1) o.sequence = intervals(tape, c->in[1]);
    return mg_attention(tape, c->in[0], &o);
}

static const struct {
    const char *op;
    build_fn *build;
} builders[] = {
#define ROW(name)                                                                                                      \
    { #name, build_##name }
    ROW(add),         ROW(sub),        ROW(mul),         ROW(div),         ROW(scale),      ROW(exp),
    ROW(log),         ROW(tanh),       ROW(relu),        ROW(gelu),        ROW(sum),        ROW(mean),
    ROW(max),         ROW(reshape),    ROW(transpose),   ROW(slice),       ROW(concat),     ROW(matmul),
    ROW(linear),      ROW(softmax),    ROW(log_softmax), ROW(masked_fill), ROW(layer_norm), ROW(embedding),
    ROW(linear_tied), ROW(linear_add), ROW(linear_gelu), ROW(dropout),     ROW(attention),  ROW(cross_entropy),
};
enum { N_BUILDERS = sizeof builders / sizeof *builders };

static build_fn *builder_of(const char *op) {
    for (int i = 0; i < N_BUILDERS; i++)
        if (strcmp(builders[i].op, op) == 0) return builders[i].build;
    fail_msg("%s has cases in operations.h5, but no row in %s", op, __FILE__);
    return NULL;
}

/* ---- Running a case ---- */

static mg_tensor *read_input(mg_tape *tape, hid_t group, int number) {
    char name[16], gradient[16];
    snprintf(name, sizeof name, "in%d", number);
    snprintf(gradient, sizeof gradient, "d%d", number);
    if (!has_dataset(group, name)) return NULL;
    reference r = read_reference(group, name);
    mg_tensor *x = has_dataset(group, gradient) ? mg_leaf(tape, r.ndim, r.dim) : mg_constant(tape, r.ndim, r.dim);
    for (ptrdiff_t i = 0; i < r.n; i++) x->data[i] = (mg_real)r.data[i];
    free(r.data);
    return x;
}

static reference_case read_case(mg_tape *tape, hid_t group) {
    reference_case c = {0};
    for (int i = 0; i < MOST_INPUTS; i++)
        if ((c.in[i] = read_input(tape, group, i))) c.n_in++;
    if (has_dataset(group, "int")) {
        reference r = read_reference(group, "int");
        assert_in_range(r.n, 1, MOST_INTS);
        for (int i = 0; i < r.n; i++) c.ints[i] = (int)(int64_t)fmod(r.data[i], 0x1p32);
        c.seed_high = (uint32_t)(r.data[0] / 0x1p32);
        c.n_ints = (int)r.n;
        free(r.data);
    }
    if (has_dataset(group, "real")) {
        reference r = read_reference(group, "real");
        assert_in_range(r.n, 1, 2);
        for (int i = 0; i < r.n; i++) c.reals[i] = (mg_real)r.data[i];
        free(r.data);
    }
    return c;
}

static double error_of(const mg_real *ours, hid_t group, const char *name, ptrdiff_t n) {
    reference theirs = read_reference(group, name);
    assert_int_equal(theirs.n, n);
    double error = relative_error(ours, theirs.data, n);
    free(theirs.data);
    return error;
}

typedef struct errors {
    double result, gradient; /* the worst of either */
} errors;

static errors run_case(hid_t group, build_fn *build) {
    mg_tape *tape = new_tape();
    reference_case c = read_case(tape, group);
    mg_tensor *y = build(tape, &c), *weights = mg_constant(tape, y->ndim, y->dim);
    errors worst = {error_of(y->data, group, "out", mg_size(y)), 0};
    reference weight = read_reference(group, "weight");
    assert_int_equal(weight.ndim, y->ndim);
    for (int i = 0; i < y->ndim; i++) assert_int_equal(weight.dim[i], y->dim[i]);
    for (ptrdiff_t i = 0; i < weight.n; i++) weights->data[i] = (mg_real)weight.data[i];
    free(weight.data);
    mg_backward(tape, mg_sum(tape, mg_mul(tape, y, weights), MG_ALL_AXES));
    for (int i = 0; i < c.n_in; i++) {
        char name[16];
        snprintf(name, sizeof name, "d%d", i);
        if (c.in[i]->requires_grad)
            worst.gradient = fmax(worst.gradient, error_of(c.in[i]->grad, group, name, mg_size(c.in[i])));
    }
    mg_tape_free(tape);
    return worst;
}

/* ---- Going through the file ---- */

typedef struct sweep {
    const char *op;
    build_fn *build;
    int cases, wrong;
    errors worst;
    bool quiet;
} sweep;

static herr_t each_case(hid_t op_group, const char *name, const H5L_info_t *info, void *user) {
    (void)info;
    sweep *s = user;
    hid_t group = H5Gopen2(op_group, name, H5P_DEFAULT);
    assert_true(group >= 0);
    errors e = run_case(group, s->build);
    H5Gclose(group);
    s->cases++;
    s->worst.result = fmax(s->worst.result, e.result);
    s->worst.gradient = fmax(s->worst.gradient, e.gradient);
    if (e.result <= TOLERANCE && e.gradient <= TOLERANCE) return 0;
    s->wrong++;
    if (!s->quiet) print_error("%s, %s: result %.2e, gradient %.2e\n", s->op, name, e.result, e.gradient);
    return 0;
}

static sweep sweep_operation(hid_t file, const char *op, bool quiet) {
    sweep s = {.op = op, .build = builder_of(op), .quiet = quiet};
    hid_t group = H5Gopen2(file, op, H5P_DEFAULT);
    assert_true(group >= 0);
    assert_true(H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, each_case, &s) >= 0);
    H5Gclose(group);
    return s;
}

static herr_t each_operation(hid_t file, const char *name, const H5L_info_t *info, void *user) {
    (void)info;
    sweep s = sweep_operation(file, name, false);
    print_message("%-14s%6d%12.2e%12.2e\n", name, s.cases, s.worst.result, s.worst.gradient);
    *(int *)user += s.wrong;
    return 0;
}

static void every_operation_agrees_with_pytorch(void **state) {
    (void)state;
    int wrong = 0;
    hid_t file = open_reference("operations.h5");
    print_message("%-14s%6s%12s%12s\n", "operation", "cases", "result", "gradient");
    assert_true(H5Literate(file, H5_INDEX_NAME, H5_ITER_INC, NULL, each_operation, &wrong) >= 0);
    H5Fclose(file);
    assert_int_equal(wrong, 0);
}

static bool has_case(const char *op, const void *user) {
    return has_dataset(*(const hid_t *)user, op);
}

static void every_operation_has_cases(void **state) {
    (void)state;
    hid_t file = open_reference("operations.h5");
    assert_int_equal(check_operations(has_case, &file, "tests/reference/make_reference.py"), N_BUILDERS);
    H5Fclose(file);
}

#ifdef MG_HOSTILE
static int inputs_with_gradient(hid_t file, const char *op) {
    static const char *const names[] = {"d0", "d1", "d2", "d3"};
    hid_t group = H5Gopen2(file, op, H5P_DEFAULT);
    char first[64];
    H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, 0, first, sizeof first, H5P_DEFAULT);
    hid_t example = H5Gopen2(group, first, H5P_DEFAULT);
    int n = 0;
    while (n < MOST_INPUTS && has_dataset(example, names[n])) n++;
    H5Gclose(example);
    H5Gclose(group);
    return n;
}
#endif

/* A gradient that is off by a thousandth is seen by the operation's own cases. */
static void a_wrong_backward_is_noticed(void **state) {
    (void)state;
#ifdef MG_HOSTILE
    hid_t file = open_reference("operations.h5");
    for (int i = 0; i < N_BUILDERS; i++) {
        int inputs = inputs_with_gradient(file, builders[i].op);
        assert_in_range(inputs, 1, MOST_INPUTS);
        for (int n = 0; n < inputs; n++) {
            mg_tape_break(builders[i].op, n, (mg_real)1.001);
            sweep s = sweep_operation(file, builders[i].op, true);
            mg_tape_break(NULL, 0, 0);
            if (s.wrong == 0) fail_msg("%s: a wrong gradient of input %d passes", builders[i].op, n);
        }
    }
    H5Fclose(file);
#else
    print_message("this build cannot break a backward: configure with MASKGRAD_HOSTILE\n");
    skip();
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_agrees_with_pytorch),
        cmocka_unit_test(every_operation_has_cases),
        cmocka_unit_test(a_wrong_backward_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
