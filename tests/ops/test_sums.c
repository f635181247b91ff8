/* Sums of many small numbers, everywhere that one is taken: 16 million times 0.1 is right to 1e-6, where adding floats
 * one by one is 28% off. And none depends on the number of threads. */
#include "operation.h"
#include "ops.h"
#include "parallel.h"

#include "check.h"

#include <stdlib.h>

#if defined MG_DOUBLE || defined MG_NO_CLONES /* under a sanitizer */
enum { MANY = 1 << 20 };
#else
enum { MANY = 1 << 24 };
#endif
static const double TOLERANCE = sizeof(mg_real) == sizeof(float) ? 1e-6 : 1e-10;
#define TENTH ((mg_real)0.1)
static const double EXACT = (double)TENTH;

static mg_tape *tape;

static int setup(void **state) {
    (void)state;
    tape = new_tape();
    mg_tape_recycle_gradients(tape, true);
    return tape ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    mg_set_threads(0);
    mg_tape_free(tape);
    return 0;
}

#define DIMS(...)                                                                                                      \
    (int)(sizeof((ptrdiff_t[]){__VA_ARGS__}) / sizeof(ptrdiff_t)), (ptrdiff_t[]) {                                     \
        __VA_ARGS__                                                                                                    \
    }

static void fill(mg_tensor *x, mg_real value) {
    for (ptrdiff_t i = 0; i < mg_size(x); i++) x->data[i] = value;
}

static mg_tensor *leaf(int ndim, const ptrdiff_t *dim, mg_real value) {
    mg_tensor *x = mg_leaf(tape, ndim, dim);
    fill(x, value);
    return x;
}

static mg_tensor *data(int ndim, const ptrdiff_t *dim, mg_real value) {
    mg_tensor *x = mg_constant(tape, ndim, dim);
    fill(x, value);
    return x;
}

/* Every element is this, but for TOLERANCE times as much. */
static void check_all(const mg_real *x, ptrdiff_t n, double expected, int line) {
    for (ptrdiff_t i = 0; i < n; i++)
        check_close((double)x[i] / expected, 1, TOLERANCE, "of what is right, it", __FILE__, line);
}
#define assert_all(x, n, expected) check_all(x, n, expected, __LINE__)
#define assert_values(y, expected) check_all((y)->data, mg_size(y), expected, __LINE__)

/* Backward from y with dL/dy = 0.1 everywhere. */
static void back(mg_tensor *y) {
    mg_backward(tape, mg_sum(tape, mg_scale(tape, y, TENTH), MG_ALL_AXES));
}

static void along_every_axis(void **state) {
    (void)state;
    const mg_tensor *flat = data(DIMS(MANY), TENTH);
    for (ptrdiff_t outer = 1; outer <= 2; outer++)
        for (ptrdiff_t inner = 1; inner <= 1024; inner = inner < 4 ? inner + 1 : inner * 8) {
            ptrdiff_t n = MANY / outer / inner;
            mg_tensor *x = mg_tape_view(tape, DIMS(outer, n, inner), flat->data);
            assert_values(mg_sum(tape, x, 1), EXACT * (double)n);
            assert_values(mg_mean(tape, x, 1), EXACT);
        }
    assert_values(mg_sum(tape, mg_tape_view(tape, DIMS(2, MANY / 2), flat->data), MG_ALL_AXES), EXACT * MANY);
}

/* The shapes of an operand that repeats over all of (2, rows, 2, width) or a part of it. */
static void where_an_operand_repeats(void **state) {
    (void)state;
    const ptrdiff_t width[] = {1, 3, 600};
    for (int w = 0; w < 3; w++)
        for (int kept = 0; kept < 16; kept++) {
            ptrdiff_t rows = MANY / 64 / width[w], dim[] = {2, rows, 2, width[w]}, own[4], repeats = 1;
            for (int d = 0; d < 4; d++) {
                own[d] = kept >> d & 1 ? dim[d] : 1;
                repeats *= dim[d] / own[d];
            }
            mg_tensor *a = leaf(4, own, 1), *b = leaf(4, own, 1), *all = data(4, dim, TENTH);
            back(mg_add(tape, all, a));
            assert_all(a->grad, mg_size(a), EXACT * (double)repeats);
            back(mg_mul(tape, b, all));
            assert_all(b->grad, mg_size(b), EXACT * EXACT * (double)repeats);
            mg_tape_reset(tape);
        }
}

static void of_one_factor_for_all(void **state) {
    (void)state;
    mg_tensor *factor = leaf(0, NULL, 1);
    back(mg_mul(tape, data(DIMS(MANY), TENTH), factor));
    assert_all(factor->grad, 1, EXACT * EXACT * MANY);
    mg_tape_reset(tape);
    mg_tensor *divisor = leaf(0, NULL, 1);
    back(mg_div(tape, data(DIMS(MANY), TENTH), divisor));
    assert_all(divisor->grad, 1, -EXACT * EXACT * MANY);
}

static void of_an_id_that_repeats(void **state) {
    (void)state;
    enum { WIDTH = 4, TOKENS = MANY / 8 };
    int *ids = calloc(TOKENS, sizeof *ids);
    assert_non_null(ids);
    for (int i = 0; i < TOKENS; i++) ids[i] = i % 3 == 0 ? 1 : 2;
    mg_tensor *table = leaf(DIMS(4, WIDTH), 1);
    back(mg_embedding(tape, table, ids, DIMS(TOKENS)));
    free(ids);
    int ones = (TOKENS + 2) / 3;
    assert_all(table->grad + WIDTH, WIDTH, EXACT * ones);
    assert_all(table->grad + 2 * WIDTH, WIDTH, EXACT * (TOKENS - ones));
    for (int k = 0; k < WIDTH; k++) assert_true(table->grad[k] == 0 && table->grad[3 * WIDTH + k] == 0);
}

/* A long inner dimension, by every kernel of BLAS's; and one matrix for many, whose gradient is a sum over them. What
 * is left is BLAS's own rounding. */
static void of_matrix_products(void **state) {
    (void)state;
    const double blas = 5 * TOLERANCE;
    for (int sides = 0; sides < 4; sides++)
        for (ptrdiff_t m = 1; m <= 3; m++)
            for (ptrdiff_t n = 1; n <= 3; n++) {
                ptrdiff_t k = MANY / 16 + 7;
                mg_tensor *a = sides & 1 ? data(DIMS(k, m), TENTH) : data(DIMS(m, k), TENTH);
                mg_tensor *b = sides & 2 ? data(DIMS(n, k), 1) : data(DIMS(k, n), 1);
                const mg_tensor *y = mg_matmul(tape, a, b, sides & 1, sides & 2);
                for (ptrdiff_t i = 0; i < m * n; i++) assert_close((double)y->data[i] / (EXACT * (double)k), 1, blas);
                mg_tape_reset(tape);
            }
    mg_tensor *one = leaf(DIMS(2, 2), 1);
    back(mg_matmul(tape, one, data(DIMS(1000, MANY / 16000, 2, 1), TENTH), false, false));
    for (int i = 0; i < 4; i++) assert_close((double)one->grad[i] / (EXACT * EXACT * 1000 * (MANY / 16000)), 1, blas);
    mg_tensor *right = leaf(DIMS(2, 2), 1);
    back(mg_matmul(tape, data(DIMS(1000, MANY / 16000, 2), TENTH), right, false, false));
    for (int i = 0; i < 4; i++) assert_close((double)right->grad[i] / (EXACT * EXACT * 1000 * (MANY / 16000)), 1, blas);
}

static void of_a_bias_and_a_gain(void **state) {
    (void)state;
    enum { OUT = 4, ROWS = MANY / 8 };
    mg_tensor *x = data(DIMS(ROWS, 2), TENTH), *w = leaf(DIMS(2, OUT), 0), *bias = leaf(DIMS(OUT), 0);
    back(mg_linear(tape, x, w, bias));
    assert_all(bias->grad, OUT, EXACT * ROWS);
    for (int i = 0; i < 2 * OUT; i++) assert_close((double)w->grad[i] / (EXACT * EXACT * ROWS), 1, 5e-6); /* BLAS's */
    mg_tape_reset(tape);
    mg_tensor *rows = data(DIMS(ROWS, 2), 0), *gain = leaf(DIMS(2), 1), *shift = leaf(DIMS(2), 0);
    for (ptrdiff_t i = 0; i < ROWS; i++) rows->data[2 * i] = 1;
    back(mg_layer_norm(tape, rows, gain, shift, 0));
    assert_all(shift->grad, 2, EXACT * ROWS);
    assert_all(gain->grad, 1, EXACT * ROWS); /* x̂ = 1, −1 */
    assert_all(gain->grad + 1, 1, -EXACT * ROWS);
}

static void of_a_row_and_of_a_loss(void **state) {
    (void)state;
    assert_values(mg_softmax(tape, data(DIMS(1, MANY), TENTH)), 1.0 / MANY);
    mg_tape_reset(tape);
    assert_values(mg_log_softmax(tape, data(DIMS(1, MANY), TENTH)), -log(MANY));
    mg_tape_reset(tape);
    assert_values(mg_cross_entropy(tape, data(DIMS(1, MANY), TENTH), (int[]){5}, -1, NULL), log(MANY));
    mg_tape_reset(tape);
    enum { ROWS = MANY / 4 };
    int *targets = calloc(ROWS, sizeof *targets);
    assert_non_null(targets);
    assert_values(mg_cross_entropy(tape, data(DIMS(ROWS, 4), TENTH), targets, -1, NULL), log(4));
    free(targets);
}

/* ---- The order of every sum is fixed ---- */

static mg_tensor *normal(int ndim, const ptrdiff_t *dim, uint32_t which) {
    mg_tensor *x = mg_leaf(tape, ndim, dim);
    for (ptrdiff_t i = 0; i < mg_size(x); i++)
        x->data[i] = (mg_real)mg_rng_normal((mg_rng){6, MG_STREAM_TEST, which}, (uint64_t)i);
    return x;
}

enum { N = 700, C = 130, LEAVES = 6 };

static void run_all(mg_tensor *leaf_of[LEAVES]) {
    int ids[N];
    for (int i = 0; i < N; i++) ids[i] = i * i % 11;
    mg_tensor *table = normal(DIMS(11, C), 0), *row = normal(DIMS(C), 1), *column = normal(DIMS(N, 1), 2);
    mg_tensor *scalar = normal(0, NULL, 3), *gain = normal(DIMS(C), 4), *bias = normal(DIMS(C), 5);
    mg_tensor *x = mg_embedding(tape, table, ids, DIMS(N));
    x = mg_add(tape, mg_mul(tape, mg_mul(tape, x, row), scalar), column);
    x = mg_softmax(tape, mg_layer_norm(tape, x, gain, bias, (mg_real)1e-5));
    x = mg_sum(tape, mg_mul(tape, x, normal(DIMS(N, C), 6)), 0);
    mg_backward(tape, mg_mean(tape, mg_mul(tape, x, x), 0));
    mg_tensor *leaves[LEAVES] = {table, row, column, scalar, gain, bias};
    memcpy(leaf_of, leaves, sizeof leaves);
}

static void the_same_bits_for_any_threads(void **state) {
    (void)state;
    mg_tensor *one[LEAVES], *more[LEAVES];
    mg_set_threads(1);
    run_all(one);
    for (int threads = 2; threads <= 5; threads++) {
        mg_set_threads(threads);
        run_all(more);
        for (int i = 0; i < LEAVES; i++)
            assert_memory_equal(one[i]->grad, more[i]->grad, sizeof(mg_real) * (size_t)mg_size(one[i]));
    }
}

int main(void) {
#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        test(along_every_axis),       test(where_an_operand_repeats),
        test(of_one_factor_for_all),  test(of_an_id_that_repeats),
        test(of_matrix_products),     test(of_a_bias_and_a_gain),
        test(of_a_row_and_of_a_loss), test(the_same_bits_for_any_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
