/* Every operation where its argument is 0, tiny, huge, infinite or NaN: result and slope against the limits of the same
 * function in double, rounded. A row here is a function of one number x that the operation computes; an operation of
 * ops.h without one fails, and so does the table in docs/numerics.md when it says something else. */
#include "ops.h"

#include "operations.h"

static const double points[] = {0, 1e-40, -1e-40, 1e19, -1e19, 1e30, -1e30, INFINITY, -INFINITY, NAN};
enum { N_POINTS = sizeof points / sizeof *points };

typedef mg_tensor *build_fn(mg_tape *tape, mg_tensor *x); /* of x (1); f(x) is the result's first element */
typedef double limit_fn(double x);

typedef struct row {
    const char *op, *function;
    build_fn *build;
    limit_fn *value, *slope;
    double rounding; /* what the result may be off beside its own size: of a sum that cancels */
} row;

static mg_tensor *constant(mg_tape *tape, ptrdiff_t rows, ptrdiff_t columns, const double *value) {
    mg_tensor *x = rows ? mg_constant(tape, 2, (ptrdiff_t[]){rows, columns}) : mg_constant(tape, 1, &columns);
    for (ptrdiff_t i = 0; i < mg_size(x); i++) x->data[i] = (mg_real)value[i];
    return x;
}
#define VECTOR(...)                                                                                                    \
    constant(tape, 0, (ptrdiff_t)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (double[]){__VA_ARGS__})
#define MATRIX(rows, columns, ...) constant(tape, rows, columns, (double[]){__VA_ARGS__})

/* (x, 1, 2) */
static mg_tensor *vector(mg_tape *tape, mg_tensor *x) {
    return mg_concat(tape, 2, (mg_tensor *[]){x, VECTOR(1, 2)}, 0);
}

static mg_tensor *matrix(mg_tape *tape, mg_tensor *x) {
    return mg_reshape(tape, vector(tape, x), 2, (ptrdiff_t[]){1, 3});
}

/* ---- The functions, a block each: what is built, its value, its slope ---- */

#define ROW(name, built, value, slope)                                                                                 \
    static mg_tensor *build_##name(mg_tape *tape, mg_tensor *x) {                                                      \
        return built;                                                                                                  \
    }                                                                                                                  \
    static double value_##name(double x) {                                                                             \
        (void)x;                                                                                                       \
        return value;                                                                                                  \
    }                                                                                                                  \
    static double slope_##name(double x) {                                                                             \
        (void)x;                                                                                                       \
        return slope;                                                                                                  \
    }

static double logistic(double x) {
    return 1 / (1 + exp(-x));
}

/* u of gelu; x² would overflow, and from 100 on nothing changes. */
static double gelu_u(double x) {
    double near = fmax(-100, fmin(100, x));
    return isnan(x) ? x : sqrt(2 / acos(-1)) * (near + 0.044715 * near * near * near);
}
static double gelu(double x) {
    double s = logistic(2 * gelu_u(x));
    return s == 0 ? 0 : x * s;
}
static double gelu_slope(double x) {
    double s = logistic(2 * gelu_u(x)), near = fmax(-100, fmin(100, x));
    return s + near * s * (1 - s) * 2 * sqrt(2 / acos(-1)) * (1 + 3 * 0.044715 * near * near);
}

/* x's share in the softmax of (x, 1, 2), and −log of it. */
static double share(double x) {
    return logistic(x - log(exp(1) + exp(2)));
}
static double surprise(double x) {
    double below = log(exp(1) + exp(2)) - x; /* of the others */
    return below > 40 ? below : log1p(exp(below));
}

/* x's place in the layer norm of (x, 1, 2). At ±inf it is inf − inf, as in double. */
static double normal(double x, double *r) {
    double mean = (x + 3) / 3, variance = (pow(x - mean, 2) + pow(1 - mean, 2) + pow(2 - mean, 2)) / 3;
    *r = 1 / sqrt(variance + 1e-5);
    return (x - mean) * *r;
}
static double normal_value(double x) {
    return normal(x, &(double){0});
}
static double normal_slope(double x) {
    double r, y = normal(x, &r);
    return fabs(x) >= 1e19 ? 0 * (x - x) : r * (1 - 1. / 3 - y * y / 3);
}

ROW(add, mg_add(tape, x, VECTOR(2)), x + 2, 1)
ROW(sub, mg_sub(tape, VECTOR(2), x), 2 - x, -1)
ROW(mul, mg_mul(tape, x, x), x *x, 2 * x)
ROW(div_of, mg_div(tape, x, VECTOR(4)), x / 4, 0.25)
ROW(div_by, mg_div(tape, VECTOR(1), x), 1 / x, -1 / (x * x))
ROW(scale, mg_scale(tape, x, -2), -2 * x, -2)
ROW(exp, mg_exp(tape, x), exp(x), exp(x))
ROW(log, mg_log(tape, x), log(x), 1 / x)
ROW(tanh, mg_tanh(tape, x), tanh(x), 1 - tanh(x) * tanh(x))
ROW(relu, mg_relu(tape, x), x < 0 ? 0 : x, x <= 0 ? 0 : 1)
ROW(gelu, mg_gelu(tape, x), gelu(x), isnan(x) ? x : gelu_slope(x))
ROW(sum, mg_sum(tape, vector(tape, x), 0), x + 3, 1)
ROW(mean, mg_mean(tape, vector(tape, x), 0), (x + 3) / 3, 1. / 3)
ROW(max, mg_max(tape, vector(tape, x), 0), x <= 2 ? 2 : x, x <= 2 ? 0 : 1)
ROW(reshape, matrix(tape, x), x, 1)
ROW(transpose, mg_transpose(tape, matrix(tape, x), 0, 1), x, 1)
ROW(slice, mg_slice(tape, vector(tape, x), 0, 0, 2), x, 1)
ROW(concat, vector(tape, x), x, 1)
ROW(matmul, mg_matmul(tape, matrix(tape, x), MATRIX(3, 1, 3, 1, 2), false, false), 3 * x + 5, 3)
ROW(linear, mg_linear(tape, matrix(tape, x), MATRIX(3, 2, 3, 1, 1, 1, 2, 1), VECTOR(4, 4)), 3 * x + 9, 3)
ROW(linear_tied, mg_linear_tied(tape, matrix(tape, x), MATRIX(2, 3, 3, 1, 2, 1, 1, 1)), 3 * x + 5, 3)
ROW(linear_add, mg_linear_add(tape, MATRIX(1, 1, 4), matrix(tape, x), MATRIX(3, 1, 3, 1, 2), NULL), 3 * x + 9, 3)
ROW(linear_gelu, mg_linear_gelu(tape, matrix(tape, x), MATRIX(3, 1, 2, 0, 0), NULL), gelu(2 * x),
    isnan(x) ? x : 2 * gelu_slope(2 * x))
ROW(softmax, mg_softmax(tape, vector(tape, x)), share(x), share(x) * share(-x + 2 * log(exp(1) + exp(2))))
ROW(log_softmax, mg_log_softmax(tape, vector(tape, x)), -surprise(x), 1 - share(x))
ROW(masked, mg_masked_fill(tape, x, VECTOR(1), 7), 7, 0)
ROW(unmasked, mg_masked_fill(tape, x, VECTOR(0), 7), x, 1)
ROW(layer_norm, mg_layer_norm(tape, vector(tape, x), VECTOR(1, 1, 1), VECTOR(0, 0, 0), (mg_real)1e-5), normal_value(x),
    normal_slope(x))
ROW(embedding, mg_embedding(tape, matrix(tape, x), (const int[]){0, 0}, 1, (ptrdiff_t[]){2}), x, 1)
ROW(its_loss, mg_cross_entropy(tape, matrix(tape, x), (const int[]){0}, -1, NULL), surprise(x), share(x) - 1)
ROW(other_loss, mg_cross_entropy(tape, matrix(tape, x), (const int[]){2}, -1, NULL),
    (x > 40 ? x : log(exp(1) + exp(2) + exp(x))) - 2, share(x))
ROW(dropped, mg_dropout(tape, x, 1, (mg_rng){0, MG_STREAM_DROPOUT, 0}), 0, 0)
ROW(kept, mg_dropout(tape, x, 0, (mg_rng){0, MG_STREAM_DROPOUT, 0}), x, 1)

/* Two tokens, one head of width 1, from a table of x and 1 to 6. The second query's output, moved to the front. */
static mg_tensor *attend(mg_tape *tape, mg_tensor *x, const int (*which)[6]) {
    mg_tensor *table = mg_reshape(tape, mg_concat(tape, 2, (mg_tensor *[]){x, VECTOR(1, 2, 3, 4, 5)}, 0), 2,
                                  (ptrdiff_t[]){6, 1});
    mg_tensor *qkv = mg_reshape(tape, mg_embedding(tape, table, *which, 1, (ptrdiff_t[]){6}), 3,
                                (ptrdiff_t[]){1, 2, 3});
    const mg_attention_options options = {.n_head = 1};
    return mg_slice(tape, mg_attention(tape, qkv, &options), 1, 1, 2);
}
ROW(first_key, attend(tape, x, &(const int[6]){1, 0, 3, 1, 1, 5}), 3 * logistic(x - 1) + 5 * logistic(1 - x),
    -2 * logistic(x - 1) * logistic(1 - x))
ROW(first_value, attend(tape, x, &(const int[6]){1, 1, 0, 1, 1, 4}), (x + 4) / 2, 0.5)

#undef ROW
#define ROW(op, function, name, rounding)                                                                              \
    { op, function, build_##name, value_##name, slope_##name, rounding }
static const row rows[] = {
    ROW("add", "x + 2", add, 0),
    ROW("sub", "2 - x", sub, 0),
    ROW("mul", "x · x", mul, 0),
    ROW("div", "x / 4", div_of, 0),
    ROW("div", "1 / x", div_by, 0),
    ROW("scale", "-2 x", scale, 0),
    ROW("exp", "e^x", exp, 0),
    ROW("log", "ln x", log, 0),
    ROW("tanh", "tanh x", tanh, 0),
    ROW("relu", "max(x, 0)", relu, 0),
    ROW("gelu", "gelu(x)", gelu, 0),
    ROW("sum", "of (x, 1, 2)", sum, 0),
    ROW("mean", "of (x, 1, 2)", mean, 0),
    ROW("max", "of (x, 1, 2)", max, 0),
    ROW("reshape", "x", reshape, 0),
    ROW("transpose", "x", transpose, 0),
    ROW("slice", "x", slice, 0),
    ROW("concat", "x", concat, 0),
    ROW("matmul", "3 x + 5", matmul, 0),
    ROW("linear", "3 x + 9", linear, 0),
    ROW("linear_tied", "3 x + 5", linear_tied, 0),
    ROW("linear_add", "3 x + 9", linear_add, 0),
    ROW("linear_gelu", "gelu(2 x)", linear_gelu, 0),
    ROW("softmax", "of (x, 1, 2)", softmax, 0),
    ROW("log_softmax", "of (x, 1, 2)", log_softmax, 0),
    ROW("masked_fill", "7, hidden", masked, 0),
    ROW("masked_fill", "x, not hidden", unmasked, 0),
    ROW("layer_norm", "of (x, 1, 2)", layer_norm, 1e-7),
    ROW("embedding", "x", embedding, 0),
    ROW("cross_entropy", "(x, 1, 2), target x", its_loss, 0),
    ROW("cross_entropy", "(x, 1, 2), target 2", other_loss, 0),
    ROW("dropout", "0, dropped", dropped, 0),
    ROW("dropout", "x, kept", kept, 0),
    ROW("attention", "keys x and 1, values 3 and 5", first_key, 0),
    ROW("attention", "equal keys, values x and 4", first_value, 0),
};
enum { N_ROWS = sizeof rows / sizeof *rows };

/* ---- The test ---- */

typedef struct result {
    double value, slope;
} result;

static result run(const row *r, double point) {
    mg_tape *tape = new_tape();
    mg_tensor *x = mg_leaf(tape, 1, (ptrdiff_t[]){1});
    x->data[0] = (mg_real)point;
    mg_tensor *y = r->build(tape, x);
    y = mg_slice(tape, mg_reshape(tape, y, 1, (ptrdiff_t[]){mg_size(y)}), 0, 0, 1);
    mg_backward(tape, y);
    result found = {(double)y->data[0], (double)x->grad[0]};
    mg_tape_free(tape);
    return found;
}

static bool right(double found, double limit, double rounding) {
    limit = (double)(mg_real)limit;
    if (found == limit || (isnan(found) && isnan(limit))) return true;
    const double tiniest = sizeof(mg_real) == sizeof(float) ? 3e-45 : 0; /* two steps of the smallest floats */
    return isfinite(limit) && fabs(found - limit) <= 1e-6 * fabs(limit) + rounding + tiniest;
}

static void every_operation_has_its_limits(void **state) {
    (void)state;
    int wrong = 0;
    for (int i = 0; i < N_ROWS; i++)
        for (int p = 0; p < N_POINTS; p++) {
            double x = (double)(mg_real)points[p], value = rows[i].value(x), slope = rows[i].slope(x);
            result found = run(&rows[i], x);
            if (right(found.value, value, rows[i].rounding) && right(found.slope, slope, rows[i].rounding)) continue;
            wrong++;
            print_error("%s (%s) at %g: %g, slope %g; expected %g, slope %g\n", rows[i].op, rows[i].function, x,
                        found.value, found.slope, value, slope);
        }
    assert_int_equal(wrong, 0);
}

EVERY_OPERATION_HAS_A_ROW

#ifndef MG_DOUBLE
/* "1e-40 |": one sign of 0 and of NaN is as good as the other, and so is what rounding leaves of 0. */
static void append_cell(char *line, size_t size, double x, double rounding) {
    size_t used = strlen(line);
    if (isnan(x))
        snprintf(line + used, size - used, " NaN |");
    else
        snprintf(line + used, size - used, " %.3g |", fabs(x) <= rounding ? 0 : x);
}

static void check_line(const char *page, const char *line, int *missing) {
    if (strstr(page, line)) return;
    print_error("docs/numerics.md lacks this line:\n%s", line);
    (*missing)++;
}
#endif

static void the_table_in_docs_is_this_one(void **state) {
    (void)state;
#ifdef MG_DOUBLE
    skip(); /* it is of floats */
#else
    char *page = read_source("docs/numerics.md");
    int missing = 0;
    for (int i = 0; i < N_ROWS; i++) {
        char value[512], slope[512];
        snprintf(value, sizeof value, "| %s | %s |", rows[i].op, rows[i].function);
        snprintf(slope, sizeof slope, "| | slope |");
        for (int p = 0; p < N_POINTS; p++) {
            result found = run(&rows[i], points[p]);
            append_cell(value, sizeof value, found.value, rows[i].rounding);
            append_cell(slope, sizeof slope, found.slope, rows[i].rounding);
        }
        char lines[1100];
        snprintf(lines, sizeof lines, "%s\n%s\n", value, slope);
        check_line(page, lines, &missing);
    }
    free(page);
    assert_int_equal(missing, 0);
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_has_its_limits),
        cmocka_unit_test(every_operation_has_a_row),
        cmocka_unit_test(the_table_in_docs_is_this_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
