/* The primitive operations: values, edges, and what a wrong shape says. Their gradients are gradcheck's. */
#include "fixture.h"

#define DIMS(...)                                                                                                      \
    (int)(sizeof((ptrdiff_t[]){__VA_ARGS__}) / sizeof(ptrdiff_t)), (ptrdiff_t[]) {                                     \
        __VA_ARGS__                                                                                                    \
    }

/* 0, 1, 2, … */
static mg_tensor *counting(int ndim, const ptrdiff_t *dim) {
    mg_tensor *x = mg_leaf(tape, ndim, dim);
    for (ptrdiff_t i = 0; i < mg_size(x); i++) x->data[i] = (mg_real)i;
    return x;
}

static mg_tensor *vector(int n, const double *value) {
    mg_tensor *x = mg_leaf(tape, 1, (ptrdiff_t[]){n});
    for (int i = 0; i < n; i++) x->data[i] = (mg_real)value[i];
    return x;
}
#define VECTOR(...) vector((int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (double[]){__VA_ARGS__})

/* Equal within 1e-6, infinities and NaN included. */
static void check_values(const mg_tensor *x, ptrdiff_t n, const double *expected, int line) {
    assert_int_equal(mg_size(x), n);
    for (ptrdiff_t i = 0; i < n; i++) {
        double value = (double)x->data[i];
        if (value == expected[i] || (isnan(value) && isnan(expected[i]))) continue;
        check_close(value, expected[i], 1e-6, "a value", __FILE__, line);
    }
}
#define assert_values(x, ...)                                                                                          \
    check_values(x, (ptrdiff_t)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (double[]){__VA_ARGS__}, __LINE__)

static void shapes_broadcast_as_in_numpy(void **state) {
    (void)state;
    mg_tensor *row = counting(DIMS(3)), *column = counting(DIMS(2, 1)), *matrix = counting(DIMS(2, 3));
    assert_values(mg_add(tape, matrix, row), 0, 2, 4, 3, 5, 7);
    assert_values(mg_sub(tape, row, matrix), 0, 0, 0, -3, -3, -3);
    assert_values(mg_mul(tape, row, column), 0, 0, 0, 0, 1, 2);
    assert_values(mg_div(tape, matrix, counting(0, NULL)), NAN, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY);
    mg_tensor *four = mg_add(tape, counting(DIMS(2, 1, 3, 1)), counting(DIMS(5, 1, 7)));
    assert_string_equal(mg_shape(four).text, "(2, 5, 3, 7)");
    assert_close(four->data[((1 * 5 + 4) * 3 + 2) * 7 + 6], 5 + (4 * 7 + 6), 0);
}

/* Longer than a tile, so that stretches begin and end in the middle of rows. */
static void broadcasting_does_not_depend_on_tiles(void **state) {
    (void)state;
    mg_tensor *a = counting(DIMS(7, 1, 101)), *b = counting(DIMS(61, 1)), *y = mg_sub(tape, a, b);
    for (ptrdiff_t i = 0; i < 7; i++)
        for (ptrdiff_t j = 0; j < 61; j++)
            for (ptrdiff_t k = 0; k < 101; k++)
                assert_close(y->data[(i * 61 + j) * 101 + k], a->data[i * 101 + k] - b->data[j], 0);
    mg_backward(tape, mg_sum(tape, y, MG_ALL_AXES));
    for (ptrdiff_t i = 0; i < 7 * 101; i++) assert_close(a->grad[i], 61, 0);
    for (ptrdiff_t j = 0; j < 61; j++) assert_close(b->grad[j], -7 * 101, 0);
}

static void reductions(void **state) {
    (void)state;
    mg_tensor *x = counting(DIMS(2, 3, 2));
    assert_values(mg_sum(tape, x, 1), 6, 9, 24, 27);
    assert_values(mg_sum(tape, x, -1), 1, 5, 9, 13, 17, 21);
    assert_values(mg_mean(tape, x, 0), 3, 4, 5, 6, 7, 8);
    assert_values(mg_mean(tape, x, MG_ALL_AXES), 5.5);
    assert_values(mg_max(tape, x, -2), 4, 5, 10, 11);
    assert_values(mg_max(tape, x, MG_ALL_AXES), 11);
    assert_true(isnan(mg_max(tape, VECTOR(1, NAN, 3), 0)->data[0]));
    mg_tensor *equals = VECTOR(2, 7, 7, 1);
    mg_backward(tape, mg_max(tape, equals, 0));
    assert_close(equals->grad[1], 1, 0);
    assert_close(equals->grad[2], 0, 0);
}

static void a_long_sum_is_accurate(void **state) {
    (void)state;
    mg_tensor *x = mg_leaf(tape, 1, (ptrdiff_t[]){10000000});
    for (ptrdiff_t i = 0; i < mg_size(x); i++) x->data[i] = (mg_real)0.1;
    double exact = (double)(mg_real)0.1 * 1e7;
    assert_close(mg_sum(tape, x, 0)->data[0], exact, exact * 1e-5); /* one by one it would be 9% off */
}

static void shapes_change(void **state) {
    (void)state;
    mg_tensor *x = counting(DIMS(2, 3));
    assert_values(mg_transpose(tape, x, 0, 1), 0, 3, 1, 4, 2, 5);
    assert_values(mg_transpose(tape, x, 1, -1), 0, 1, 2, 3, 4, 5);
    assert_values(mg_transpose(tape, counting(DIMS(2, 2, 2)), 0, 2), 0, 4, 2, 6, 1, 5, 3, 7);
    assert_values(mg_slice(tape, x, 1, 1, 3), 1, 2, 4, 5);
    assert_values(mg_slice(tape, x, 0, 1, 2), 3, 4, 5);
    assert_values(mg_concat(tape, 2, (mg_tensor *[]){x, counting(DIMS(2, 1))}, -1), 0, 1, 2, 0, 3, 4, 5, 1);
    mg_tensor *y = mg_reshape(tape, x, DIMS(3, 2));
    assert_ptr_equal(y->data, x->data);
    assert_values(y, 0, 1, 2, 3, 4, 5);
}

static void matmul_agrees_with_the_definition(void **state) {
    (void)state;
    for (int sides = 0; sides < 4; sides++) {
        bool ta = sides & 1, tb = sides & 2;
        mg_tensor *a = ta ? counting(DIMS(2, 1, 4, 3)) : counting(DIMS(2, 1, 3, 4));
        mg_tensor *b = tb ? counting(DIMS(3, 5, 4)) : counting(DIMS(3, 4, 5));
        mg_tensor *y = mg_matmul(tape, a, b, ta, tb);
        assert_string_equal(mg_shape(y).text, "(2, 3, 3, 5)");
        for (int s = 0; s < 2 * 3 * 3 * 5; s++) {
            int n = s % 5, m = s / 5 % 3, lead_b = s / 15 % 3, lead_a = s / 45;
            double sum = 0;
            for (int k = 0; k < 4; k++)
                sum += (double)a->data[lead_a * 12 + (ta ? k * 3 + m : m * 4 + k)] *
                       (double)b->data[lead_b * 20 + (tb ? n * 4 + k : k * 5 + n)];
            assert_close(y->data[s], sum, 1e-3);
        }
    }
}

static void the_edges_of_softmax(void **state) {
    (void)state;
    const double inf = INFINITY;
    assert_values(mg_softmax(tape, VECTOR(1000, 1000)), 0.5, 0.5);
    assert_values(mg_softmax(tape, VECTOR(-inf, 3, -inf)), 0, 1, 0);
    assert_values(mg_softmax(tape, VECTOR(inf, 3, inf, -inf)), 0.5, 0, 0.5, 0);
    assert_values(mg_log_softmax(tape, VECTOR(inf, 3, inf, -inf)), -log(2), -inf, -log(2), -inf);
    assert_values(mg_log_softmax(tape, VECTOR(-inf, -inf)), -inf, -inf);
    mg_tensor *poisoned = mg_softmax(tape, VECTOR(1, NAN, inf));
    for (int i = 0; i < 3; i++) assert_true(isnan(poisoned->data[i]));

    mg_tensor *empty = VECTOR(-inf, -inf, -inf), *y = mg_softmax(tape, empty);
    assert_values(y, 0, 0, 0);
    mg_backward(tape, mg_sum(tape, mg_mul(tape, y, VECTOR(1, 2, 3)), 0));
    for (int i = 0; i < 3; i++) assert_true(empty->grad[i] == 0);
}

static void nan_stays_where_it_is(void **state) {
    (void)state;
    mg_tensor *x = VECTOR(NAN, -1, 2);
    mg_tensor *relu = mg_relu(tape, x);
    assert_true(isnan(relu->data[0]));
    assert_true(relu->data[1] == 0 && relu->data[2] == 2);
    mg_tensor *filled = mg_masked_fill(tape, x, VECTOR(1, 0, 0), -5);
    assert_values(filled, -5, -1, 2);
    mg_backward(tape, mg_sum(tape, filled, 0));
    assert_true(x->grad[0] == 0 && x->grad[1] == 1);
}

static void dropout_drops_its_share(void **state) {
    (void)state;
    mg_rng rng = {7, MG_STREAM_DROPOUT, 1};
    mg_tensor *x = mg_leaf(tape, 1, (ptrdiff_t[]){100000});
    for (ptrdiff_t i = 0; i < mg_size(x); i++) x->data[i] = 1;
    mg_tensor *y = mg_dropout(tape, x, (mg_real)0.2, rng);
    ptrdiff_t dropped = 0;
    for (ptrdiff_t i = 0; i < mg_size(x); i++) {
        if (y->data[i] == 0)
            dropped++;
        else
            assert_close(y->data[i], 1.25, 1e-6);
    }
    assert_close((double)dropped, 20000, 500); /* four standard errors */
    mg_backward(tape, mg_sum(tape, y, 0));
    for (ptrdiff_t i = 0; i < mg_size(x); i++) assert_true(x->grad[i] == y->data[i]);
    assert_values(mg_dropout(tape, VECTOR(1, 2), 0, rng), 1, 2);
    assert_values(mg_dropout(tape, VECTOR(1, INFINITY), 1, rng), 0, 0);
}

static void wrong_shapes_name_operation_shapes_and_line(void **state) {
    (void)state;
    mg_tensor *x = counting(DIMS(2, 3)), *y = counting(DIMS(2, 4));
    assert_operation_fails(mg_add(tape, x, y), "add", "(2, 3) and (2, 4)");
    assert_operation_fails(mg_sub(tape, x, y), "sub", "(2, 3) and (2, 4)");
    assert_operation_fails(mg_mul(tape, x, y), "mul", "(2, 3) and (2, 4)");
    assert_operation_fails(mg_div(tape, x, y), "div", "(2, 3) and (2, 4)");
    assert_operation_fails(mg_matmul(tape, x, y, false, false), "matmul",
                           "(2, 3) and (2, 4) do not fit: 3 columns meet 2 rows");
    assert_operation_fails(mg_matmul(tape, x, y, true, true), "matmul", "(2, 3) transposed and (2, 4) transposed");
    assert_operation_fails(mg_sum(tape, x, 2), "sum", "(2, 3) has no axis 2");
    assert_operation_fails(mg_mean(tape, x, -3), "mean", "(2, 3) has no axis -3");
    assert_operation_fails(mg_max(tape, x, 5), "max", "(2, 3) has no axis 5");
    assert_operation_fails(mg_transpose(tape, x, 0, 2), "transpose", "(2, 3) has no axis 2");
    assert_operation_fails(mg_reshape(tape, x, DIMS(4, 2)), "reshape", "(2, 3) has 6 elements, and (4, 2) has 8");
    assert_operation_fails(mg_slice(tape, x, 1, 1, 4), "slice", "shape (2, 3)");
    assert_operation_fails(mg_concat(tape, 2, (mg_tensor *[]){x, y}, 0), "concat", "(2, 3) and (2, 4)");
    assert_operation_fails(mg_masked_fill(tape, x, y, 0), "masked_fill", "(2, 3) and (2, 4)");
    assert_operation_fails(mg_masked_fill(tape, counting(DIMS(3)), x, 0), "masked_fill",
                           "(2, 3) does not fit into shape (3)");
    assert_operation_fails(mg_softmax(tape, counting(0, NULL)), "softmax", "()");
    assert_operation_fails(mg_dropout(tape, x, 2, (mg_rng){0, 0, 0}), "dropout", "2");
}

int main(void) {
#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        test(shapes_broadcast_as_in_numpy),
        test(broadcasting_does_not_depend_on_tiles),
        test(reductions),
        test(a_long_sum_is_accurate),
        test(shapes_change),
        test(matmul_agrees_with_the_definition),
        test(the_edges_of_softmax),
        test(nan_stays_where_it_is),
        test(dropout_drops_its_share),
        test(wrong_shapes_name_operation_shapes_and_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
