/* Layer norm where the mean is large compared with the spread, against the same in double. */
#include "fixture.h"

enum { MOST = 1000 };
static const double EPS = 1e-5;

static mg_tensor *constant(ptrdiff_t n, double value) {
    mg_tensor *x = mg_leaf(tape, 1, (ptrdiff_t[]){n});
    for (ptrdiff_t i = 0; i < n; i++) x->data[i] = (mg_real)value;
    return x;
}

static mg_tensor *normalized(mg_tensor *x) {
    ptrdiff_t n = x->dim[x->ndim - 1];
    return mg_layer_norm(tape, x, constant(n, 1), constant(n, 0), (mg_real)EPS);
}

static void equal_numbers_are_zero(void **state) {
    (void)state;
    const double value[] = {0, 1, 12345.678, -0.1, 1e7 + 1, 1e-40, 1e30, -3e38};
    const ptrdiff_t width[] = {1, 2, 7, 64, 333, MOST};
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 6; k++) {
            mg_tensor *x = constant(width[k], value[i]), *y = normalized(x);
            mg_backward(tape, mg_sum(tape, mg_mul(tape, y, y), 0));
            for (ptrdiff_t j = 0; j < width[k]; j++) assert_true(y->data[j] == 0 && x->grad[j] == 0);
        }
}

/* x = mean + spread · normal, in a row of n; and what dL/dx is for dL/dy = w. */
static void check_spread(ptrdiff_t n, double mean, double spread) {
    mg_tensor *x = constant(n, 0), *w = constant(n, 0);
    double x_mean = 0, variance = 0, sum = 0, dot = 0;
    for (ptrdiff_t j = 0; j < n; j++) {
        x->data[j] = (mg_real)(mean + spread * mg_rng_normal((mg_rng){2, MG_STREAM_TEST, 0}, (uint64_t)j));
        w->data[j] = (mg_real)mg_rng_normal((mg_rng){2, MG_STREAM_TEST, 1}, (uint64_t)j);
        x_mean += (double)x->data[j] / (double)n;
    }
    for (ptrdiff_t j = 0; j < n; j++) variance += pow((double)x->data[j] - x_mean, 2) / (double)n;
    double r = 1 / sqrt(variance + EPS);
    for (ptrdiff_t j = 0; j < n; j++) {
        sum += (double)w->data[j] / (double)n;
        dot += (double)w->data[j] * ((double)x->data[j] - x_mean) * r / (double)n;
    }
    mg_tensor *y = normalized(x);
    mg_backward(tape, mg_sum(tape, mg_mul(tape, y, w), 0));
    for (ptrdiff_t j = 0; j < n; j++) {
        double normal = ((double)x->data[j] - x_mean) * r;
        assert_close(y->data[j], normal, 1e-5);
        assert_close((double)x->grad[j] / r, (double)w->data[j] - sum - normal * dot, 1e-5);
    }
}

static void a_large_mean_leaves_a_small_spread(void **state) {
    (void)state;
    const double mean[] = {0, 1, -100, 1e5, 1e7, -1e7, 1e19, 1e30};
    for (int i = 0; i < 8; i++)
        for (ptrdiff_t n = 10; n <= MOST; n *= 10) {
            check_spread(n, mean[i], fmax(1, fabs(mean[i]) * 1e-6));
            check_spread(n, mean[i], fmax(1, fabs(mean[i])));
        }
}

/* A row whose first element, about which the sums run, is far from all others. */
static void the_first_element_may_be_any(void **state) {
    (void)state;
    const double first[] = {1e4, -1e8, 1e19, 1e30};
    for (int i = 0; i < 4; i++) {
        mg_tensor *x = constant(100, 1);
        x->data[0] = (mg_real)first[i];
        const mg_tensor *y = normalized(x);
        double sign = first[i] > 0 ? 1 : -1;
        assert_close(y->data[0], sign * sqrt(99), 1e-5);
        for (int j = 1; j < 100; j++) assert_close(y->data[j], -sign / sqrt(99), 1e-6);
    }
}

int main(void) {
#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        test(equal_numbers_are_zero),
        test(a_large_mean_leaves_a_small_spread),
        test(the_first_element_may_be_any),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
