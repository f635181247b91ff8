/* Portable arithmetic, whatever arithmetic this build has: its functions against libm, its Philox against Random123 (in
 * an OpenBLAS build), its products against one sum per element. */
#include "rng.h"
#include "tensor.h"

#include "check.h"

#include <stdlib.h>

/* In an OpenBLAS build, the names of gemm.c are taken; and gemm.h's macros are for callers. */
#define MG_LIBRARY
#define mg_gemm portable_gemm
#define mg_gemm_one_thread portable_gemm_one_thread
#define mg_gemm_warm portable_gemm_warm
#define mg_blas_name portable_blas_name
#define mg_portable_log portable_log
#define mg_portable_cos portable_cos
#define mg_portable_expm1 portable_expm1
#define mg_portable_tanh portable_tanh
#include "../../lib/core/portable/gemm.c"
#include "../../lib/core/portable/math.c"
#include "../../lib/core/portable/philox.h"

static double uniform(uint64_t index, double low, double high) {
    return low + (high - low) * mg_rng_uniform((mg_rng){4, MG_STREAM_TEST, 0}, index);
}

/* ---- Functions ---- */

enum { POINTS = 400000 };

typedef double function(double x);
typedef long double exact_function(long double x);

/* The greatest error in [low, high], in units of the last place of the exact result. */
static double worst_ulp(function *f, exact_function *exact, double low, double high) {
    double worst = 0;
    for (uint64_t i = 0; i < POINTS; i++) {
        double x = uniform(i, low, high);
        long double y = exact(x);
        int exponent;
        frexpl(y, &exponent);
        long double ulp = ldexpl(1, (exponent < -1021 ? -1021 : exponent) - 53);
        double error = (double)(fabsl((long double)f(x) - y) / ulp);
        if (!(error <= worst)) worst = error; /* NaN is the worst */
    }
    return worst;
}

static double worst_float_ulp(double low, double high) {
    double worst = 0;
    for (uint64_t i = 0; i < POINTS; i++) {
        float x = (float)uniform(i, low, high);
        double y = exp((double)x);
        int exponent;
        frexp(y, &exponent);
        double error = fabs((double)mg_portable_expf(x) - y) / ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
        if (!(error <= worst)) worst = error;
    }
    return worst;
}

static void functions_are_as_close_as_they_say(void **state) {
    (void)state;
    assert_less(worst_float_ulp(-87, 88.7), 1.1);
    assert_less(worst_float_ulp(-1, 1), 1.1);
    assert_less(worst_float_ulp(-103.9, -87), 1.1); /* below the normal numbers */
    assert_less(worst_ulp(mg_portable_exp, expl, -708, 709.7), 1);
    assert_less(worst_ulp(mg_portable_exp, expl, -1, 1), 1);
    assert_less(worst_ulp(mg_portable_exp, expl, -745, -708), 1);
    assert_less(worst_ulp(mg_portable_log, logl, 0, 1e-300), 1);
    assert_less(worst_ulp(mg_portable_log, logl, 0, 2), 1);
    assert_less(worst_ulp(mg_portable_log, logl, 0.99, 1.01), 1);
    assert_less(worst_ulp(mg_portable_log, logl, 1, 1e300), 1);
    assert_less(worst_ulp(mg_portable_cos, cosl, -7, 7), 2.5);
    assert_less(worst_ulp(mg_portable_cos, cosl, 1.5707963, 1.5707964), 2.5);
    assert_less(worst_ulp(mg_portable_cos, cosl, -0x1p20, 0x1p20), 2.5);
    assert_less(worst_ulp(mg_portable_expm1, expm1l, -3, 3), 3);
    assert_less(worst_ulp(mg_portable_expm1, expm1l, -1e-9, 1e-9), 3);
    assert_less(worst_ulp(mg_portable_expm1, expm1l, -700, 700), 3);
    assert_less(worst_ulp(mg_portable_tanh, tanhl, -3, 3), 4);
    assert_less(worst_ulp(mg_portable_tanh, tanhl, -1e-3, 1e-3), 4);
    assert_less(worst_ulp(mg_portable_tanh, tanhl, -25, 25), 4);
}

static void functions_at_their_edges(void **state) {
    (void)state;
    assert_true(mg_portable_expf(0) == 1 && mg_portable_exp(0) == 1 && mg_portable_cos(0) == 1);
    assert_true(mg_portable_expf(-INFINITY) == 0 && mg_portable_exp(-(double)INFINITY) == 0);
    assert_true(mg_portable_expf(-1e30f) == 0 && mg_portable_exp(-1e300) == 0);
    assert_true(isinf(mg_portable_expf(INFINITY)) && isinf(mg_portable_exp((double)INFINITY)));
    assert_true(isinf(mg_portable_expf(88.73f)) && isinf(mg_portable_exp(709.79)));
    assert_true(mg_portable_log(1) == 0 && mg_portable_log(0) == -(double)INFINITY);
    assert_true(isinf(mg_portable_log((double)INFINITY)) && isnan(mg_portable_log(-1)));
    assert_true(mg_portable_log(0x1p-1074) == log(0x1p-1074));
    assert_true(mg_portable_expm1(0) == 0 && mg_portable_expm1(-(double)INFINITY) == -1);
    assert_true(isinf(mg_portable_expm1((double)INFINITY)));
    assert_true(mg_portable_tanh((double)INFINITY) == 1 && mg_portable_tanh(-(double)INFINITY) == -1);
    assert_true(mg_portable_tanh(0) == 0 && signbit(mg_portable_tanh(-0.0)));
    assert_true(isnan(mg_portable_cos(1e9)) && isnan(mg_portable_cos((double)INFINITY)));
    assert_true(isnan(mg_portable_expf(NAN)) && isnan(mg_portable_exp((double)NAN)) &&
                isnan(mg_portable_log((double)NAN)));
    assert_true(isnan(mg_portable_cos((double)NAN)) && isnan(mg_portable_expm1((double)NAN)) &&
                isnan(mg_portable_tanh((double)NAN)));
}

/* ---- Random words ---- */

static void philox_is_random123s(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 10000; i++) {
        mg_rng rng = {i * 0x9e3779b97f4a7c15u, i * 77u, ~i};
        uint64_t index = (uint64_t)i << (i % 40);
        uint32_t theirs[4], ours[4] = {(uint32_t)index, (uint32_t)(index >> 32), rng.step, rng.stream};
        mg_rng_words(rng, index, theirs);
        mg_philox((uint32_t)rng.seed, (uint32_t)(rng.seed >> 32), ours);
        assert_memory_equal(ours, theirs, sizeof ours);
    }
}

/* ---- Products ---- */

static mg_real *random_reals(ptrdiff_t n) {
    mg_real *x = malloc((size_t)n * sizeof *x);
    for (ptrdiff_t i = 0; i < n; i++) x[i] = (mg_real)uniform((uint64_t)i, -1, 1);
    return x;
}

/* The compiler may neither fuse nor reorder it: each step is stored. */
static mg_real one_sum(ptrdiff_t k, const mg_real *a, ptrdiff_t a_step, const mg_real *b, ptrdiff_t b_step) {
    volatile mg_real sum = 0, product;
    for (ptrdiff_t d = 0; d < k; d++) {
        product = a[d * a_step] * b[d * b_step];
        sum = sum + product;
    }
    return sum;
}

static void compare_product(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, bool a_transposed, bool b_transposed) {
    mg_real *a = random_reals(m * k + 1), *b = random_reals(k * n + 1), *c = random_reals(m * n),
            *before = random_reals(m * n);
    mg_matrix left = {a, a_transposed ? m : k, a_transposed}, right = {b, b_transposed ? k : n, b_transposed};
    portable_gemm(m, n, k, 1, left, right, 1, c, n);
    for (ptrdiff_t i = 0; i < m; i++)
        for (ptrdiff_t j = 0; j < n; j++) {
            volatile mg_real sum = one_sum(k, a + (a_transposed ? i : i * k), a_transposed ? m : 1,
                                           b + (b_transposed ? j * k : j), b_transposed ? 1 : n);
            assert_true(c[i * n + j] == sum + before[i * n + j]);
        }
    free(a);
    free(b);
    free(c);
    free(before);
}

/* Sizes around those of blocks, tiles and packed pieces. */
static void an_element_is_one_sum(void **state) {
    (void)state;
    static const ptrdiff_t m[] = {1, 3, 4, 5, 130}, n[] = {1, 7, 8, 9, 33}, k[] = {0, 1, 64, 513, 1030};
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++)
            for (int t = 0; t < 4; t++) {
                compare_product(m[i], n[j], k[(i + j) % 5], t & 1, t & 2);
                compare_product(m[i], n[j], k[(i + j + 2) % 5], t & 1, t & 2);
            }
}

static void beta_of_0_does_not_read(void **state) {
    (void)state;
    mg_real a[2] = {1, 2}, b[2] = {3, 4}, c[1] = {(mg_real)NAN};
    portable_gemm(1, 1, 2, 2, (mg_matrix){a, 2, false}, (mg_matrix){b, 1, false}, 0, c, 1);
    assert_true(c[0] == 22);
    portable_gemm(1, 1, 2, 1, (mg_matrix){a, 2, false}, (mg_matrix){b, 1, false}, 2, c, 1);
    assert_true(c[0] == 55);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_as_close_as_they_say),
        cmocka_unit_test(functions_at_their_edges),
        cmocka_unit_test(philox_is_random123s),
        cmocka_unit_test(an_element_is_one_sum),
        cmocka_unit_test(beta_of_0_does_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
