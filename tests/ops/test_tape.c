/* The tape under the operations: graphs that reuse, repeat and go deep, and what a step costs. */
#include "ops.h"
#include "parallel.h"

#include "check.h"

static mg_tensor *number(mg_tape *tape, double value) {
    mg_tensor *x = mg_leaf(tape, 0, NULL);
    x->data[0] = (mg_real)value;
    return x;
}

static void a_tensor_used_twice_gets_both_gradients(void **state) {
    (void)state;
    mg_tape *tape = new_tape();
    mg_tensor *a = number(tape, 1), *b = mg_add(tape, a, a), *c = mg_add(tape, b, b);
    mg_backward(tape, c);
    assert_close(a->grad[0], 4, 0);
    assert_close(b->grad[0], 2, 0);
    mg_tape_free(tape);
}

static void a_repeated_index_adds_up(void **state) {
    (void)state;
    mg_tape *tape = new_tape();
    mg_tensor *table = mg_leaf(tape, 2, (ptrdiff_t[]){3, 1}), *weights = mg_constant(tape, 2, (ptrdiff_t[]){2, 1});
    weights->data[0] = (mg_real)0.2;
    weights->data[1] = (mg_real)0.3;
    mg_tensor *rows = mg_embedding(tape, table, (int[]){1, 1}, 1, (ptrdiff_t[]){2});
    mg_backward(tape, mg_sum(tape, mg_mul(tape, rows, weights), MG_ALL_AXES));
    assert_close(table->grad[0], 0, 0);
    assert_close(table->grad[1], 0.5, 1e-7);
    assert_close(table->grad[2], 0, 0);
    mg_tape_free(tape);
}

static void depth_is_no_limit(void **state) {
    (void)state;
    enum { DEPTH = 200000 };
    mg_tape *tape = new_tape();
    for (int round = 0; round < 2; round++) {
        mg_tensor *x = number(tape, 1), *y = x;
        for (int i = 0; i < DEPTH; i++) y = mg_add(tape, y, x);
        assert_close(y->data[0], DEPTH + 1, 0);
        mg_backward(tape, y);
        assert_close(x->grad[0], DEPTH + 1, 0);
        mg_tape_reset(tape);
    }
    mg_tape_free(tape);
}

static void leaves_accumulate_and_interior_tensors_start_over(void **state) {
    (void)state;
    mg_tape *tape = new_tape();
    mg_tensor *x = number(tape, 3), *y = mg_mul(tape, x, x), *loss = mg_scale(tape, y, 2);
    for (int call = 1; call <= 3; call++) {
        mg_backward(tape, loss);
        assert_close(y->grad[0], 2, 0);
        assert_close(x->grad[0], 12 * call, 0);
    }
    mg_tape_free(tape);
}

static void only_what_the_loss_depends_on_gets_a_gradient(void **state) {
    (void)state;
    mg_tape *tape = new_tape();
    mg_tensor *x = number(tape, 3), *aside = mg_exp(tape, x), *data = mg_constant(tape, 0, NULL);
    mg_backward(tape, mg_add(tape, mg_mul(tape, x, data), x));
    assert_close(x->grad[0], 1, 0);
    assert_null(aside->grad);
    assert_null(data->grad);
    assert_fails(mg_backward(tape, mg_exp(tape, data)), "requires a gradient");
    assert_fails(mg_backward(tape, mg_leaf(tape, 1, (ptrdiff_t[]){2})), "(2)");
    mg_tape_record(tape, false);
    assert_false(mg_exp(tape, x)->requires_grad);
    mg_tape_free(tape);
}

/* A small network with most operations in it. */
static double step(mg_tape *tape) {
    enum { B = 4, T = 6, C = 12, V = 5 };
    int ids[B * T];
    for (int i = 0; i < B * T; i++) ids[i] = i % V;
    mg_tensor *table = mg_leaf(tape, 2, (ptrdiff_t[]){V, C}), *w = mg_leaf(tape, 2, (ptrdiff_t[]){C, 3 * C});
    mg_tensor *gain = mg_leaf(tape, 1, (ptrdiff_t[]){C}), *bias = mg_leaf(tape, 1, (ptrdiff_t[]){C});
    for (ptrdiff_t i = 0; i < V * C; i++)
        table->data[i] = (mg_real)mg_rng_normal((mg_rng){1, MG_STREAM_TEST, 0}, (uint64_t)i);
    for (ptrdiff_t i = 0; i < 3 * C * C; i++)
        w->data[i] = (mg_real)mg_rng_normal((mg_rng){1, MG_STREAM_TEST, 1}, (uint64_t)i);
    for (ptrdiff_t i = 0; i < C; i++) gain->data[i] = 1;
    mg_tensor *x = mg_embedding(tape, table, ids, 2, (ptrdiff_t[]){B, T});
    x = mg_layer_norm(tape, x, gain, bias, (mg_real)1e-5);
    x = mg_attention(tape, mg_linear(tape, x, w, NULL), &(mg_attention_options){.n_head = 2, .scale = 1});
    x = mg_dropout(tape, mg_gelu(tape, x), (mg_real)0.1, (mg_rng){2, MG_STREAM_DROPOUT, 0});
    mg_tensor *scores = mg_matmul(tape, x, mg_transpose(tape, x, 1, 2), false, false);
    mg_tensor *loss = mg_cross_entropy(tape, mg_linear_tied(tape, x, table), ids, -1, NULL);
    loss = mg_add(tape, loss, mg_mean(tape, mg_softmax(tape, scores), MG_ALL_AXES));
    mg_backward(tape, loss);
    double result = (double)loss->data[0] + (double)table->grad[3] + (double)w->grad[7];
    mg_tape_reset(tape);
    return result;
}

static void a_step_after_the_first_allocates_nothing(void **state) {
    (void)state;
    mg_tape *tape = new_tape();
    double first = step(tape);
    size_t requests = mg_allocation_count();
    for (int i = 0; i < 3; i++) assert_true(step(tape) == first); /* and is the same, bit for bit */
    assert_int_equal(mg_allocation_count(), requests);
    mg_tape_free(tape);
}

static void results_do_not_depend_on_the_number_of_threads(void **state) {
    (void)state;
    mg_tape *tape = new_tape();
    mg_set_threads(1);
    double one = step(tape);
    for (int threads = 2; threads <= 5; threads++) {
        mg_set_threads(threads);
        assert_true(step(tape) == one);
    }
    mg_set_threads(0);
    mg_tape_free(tape);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tensor_used_twice_gets_both_gradients),
        cmocka_unit_test(a_repeated_index_adds_up),
        cmocka_unit_test(depth_is_no_limit),
        cmocka_unit_test(leaves_accumulate_and_interior_tensors_start_over),
        cmocka_unit_test(only_what_the_loss_depends_on_gets_a_gradient),
        cmocka_unit_test(a_step_after_the_first_allocates_nothing),
        cmocka_unit_test(results_do_not_depend_on_the_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
