/* The loss of logits of any size, and its gradient: no size of the logits rounds the logarithm of the sum away. */
#include "fixture.h"

#ifdef MG_DOUBLE
static const double TOLERANCE = 1e-14;
#else
static const double TOLERANCE = 2e-7;
#endif
enum { IGNORE = -1 };

static mg_tensor *logits_of(ptrdiff_t rows, ptrdiff_t columns, const double *value) {
    mg_tensor *x = mg_leaf(tape, 2, (ptrdiff_t[]){rows, columns});
    for (ptrdiff_t i = 0; i < rows * columns; i++) x->data[i] = (mg_real)value[i];
    return x;
}
#define ROW(...) logits_of(1, (ptrdiff_t)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (double[]){__VA_ARGS__})

static bool same(double a, double b, double tolerance) {
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance * fmax(1, fabs(b));
}

/* The loss of one row, as the mean, as the row's own, and as −log_softmax; and its gradient, by both ways. */
static void check_row(mg_tensor *logits, int target, double loss, const double *gradient, int line) {
    mg_real row_loss = 0;
    mg_tensor *mean = mg_cross_entropy(tape, logits, &target, IGNORE, &row_loss);
    mg_backward(tape, mean);
    mg_tensor *again = mg_leaf(tape, 2, logits->dim);
    memcpy(again->data, logits->data, (size_t)mg_size(logits) * sizeof(mg_real));
    mg_tensor *picked = mg_slice(tape, mg_log_softmax(tape, again), 1, target, target + 1);
    mg_backward(tape, mg_scale(tape, picked, -1));
    bool right = same((double)mean->data[0], loss, TOLERANCE) && same((double)row_loss, loss, TOLERANCE) &&
                 same(-(double)picked->data[0], loss, TOLERANCE);
    for (ptrdiff_t i = 0; i < mg_size(logits); i++)
        right = right && same((double)logits->grad[i], gradient[i], TOLERANCE) &&
                same((double)again->grad[i], gradient[i], TOLERANCE);
    if (right) return;
    print_error("loss %.9g, of the row %.9g, by log_softmax %.9g; expected %.9g\n", (double)mean->data[0],
                (double)row_loss, -(double)picked->data[0], loss);
    for (ptrdiff_t i = 0; i < mg_size(logits); i++)
        print_error("gradient %td: %.9g, by log_softmax %.9g; expected %.9g\n", i, (double)logits->grad[i],
                    (double)again->grad[i], gradient[i]);
    _fail(__FILE__, line);
}
#define assert_row(logits, target, loss, ...) check_row(logits, target, loss, (double[]){__VA_ARGS__}, __LINE__)

static void logits_of_any_size(void **state) {
    (void)state;
    const double size[] = {0, 1, 800, 1e5, 1e8, 1e19, 1e30, 3e38};
    for (int i = 0; i < 8; i++)
        for (int sign = -1; sign <= 1; sign += 2) {
            double x = sign * size[i];
            assert_row(ROW(x, x), 0, log(2), -0.5, 0.5);
            assert_row(ROW(x, x, x, x), 3, log(4), 0.25, 0.25, 0.25, -0.75);
            assert_row(ROW(x), 0, 0, 0);
        }
    /* Differences that a float of this size still has. */
    assert_row(ROW(800, 799), 0, log1p(exp(-1)), -1 / (1 + exp(1)), 1 / (1 + exp(1)));
    assert_row(ROW(1e6, 1e6 - 2), 1, 2 + log1p(exp(-2)), 1 / (1 + exp(-2)), -1 / (1 + exp(-2)));
    /* The loss of what has no chance is its distance. */
    assert_row(ROW(1e30, -1e30), 1, (double)(mg_real)2e30, 1, -1);
    assert_row(ROW(0, 1e-40), 0, log(2), -0.5, 0.5);
}

static void infinite_logits_are_limits(void **state) {
    (void)state;
    const double inf = INFINITY;
    assert_row(ROW(inf, 3, inf, -inf), 0, log(2), -0.5, 0, 0.5, 0);
    assert_row(ROW(inf, 3), 1, inf, 1, -1);
    assert_row(ROW(-inf, 0, 0), 0, inf, -1, 0.5, 0.5);
    assert_row(ROW(-inf, 0, 0), 1, log(2), 0, -0.5, 0.5);
    assert_row(ROW(-inf, -inf), 0, inf, 0, 0);
}

static void nan_stays(void **state) {
    (void)state;
    const double inf = INFINITY;
    assert_row(ROW(NAN, 1), 0, NAN, NAN, NAN);
    assert_row(ROW(NAN, inf), 1, NAN, NAN, NAN);
    assert_row(ROW(NAN, -inf), 0, NAN, NAN, NAN);
    assert_row(ROW(NAN, NAN), 0, NAN, NAN, NAN);
    /* … in its row, and out of rows that do not count. */
    mg_tensor *x = logits_of(3, 2, (double[]){NAN, 1, 5, 5, 7, 7});
    mg_real row_loss[3];
    mg_tensor *loss = mg_cross_entropy(tape, x, (int[]){IGNORE, 1, 0}, IGNORE, row_loss);
    mg_backward(tape, loss);
    const double gradient[] = {0, 0, 0.25, -0.25, -0.25, 0.25};
    assert_close(loss->data[0], log(2), 1e-7);
    assert_true(row_loss[0] == 0);
    for (int i = 0; i < 6; i++) assert_close(x->grad[i], gradient[i], 1e-7);
}

/* Gradients of a row add up to 0 whatever the logits: 0.0027 at 1e5 is what a rounded normalizer gives. */
static void a_gradient_sums_to_zero(void **state) {
    (void)state;
    for (double size = 1; size < 1e9; size *= 10) {
        mg_tensor *x = mg_leaf(tape, 2, (ptrdiff_t[]){1, 27});
        for (int i = 0; i < 27; i++)
            x->data[i] = (mg_real)(size + mg_rng_normal((mg_rng){1, MG_STREAM_TEST, 0}, (uint64_t)i));
        mg_backward(tape, mg_cross_entropy(tape, x, (int[]){13}, IGNORE, NULL));
        double sum = 0;
        for (int i = 0; i < 27; i++) sum += (double)x->grad[i];
        assert_close(sum, 0, 3e-7);
    }
}

int main(void) {
#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        test(logits_of_any_size),
        test(infinite_logits_are_limits),
        test(nan_stays),
        test(a_gradient_sums_to_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
