/* Whose line a failure names: that of the call, however calls nest and whatever order a compiler evaluates them in. And
 * that no operation follows a null pointer. */
#include "gradcheck.h"
#include "operation.h"
#include "ops.h"

#include "check.h"

#include <stdlib.h>

static mg_tape *tape;
static mg_tensor *x; /* (2,3) */

static int make(void **state) {
    (void)state;
    tape = new_tape();
    x = mg_leaf(tape, 2, (ptrdiff_t[]){2, 3});
    return 0;
}

static int drop(void **state) {
    (void)state;
    mg_tape_free(tape);
    return 0;
}

/* The line that the failure named, in this file. */
static int line_of_failure(void) {
    assert_says(check_message, __FILE__ ":");
    return atoi(strstr(check_message, __FILE__ ":") + strlen(__FILE__ ":"));
}

/* `call` fails, in `operation`; its lines are first … first + lines − 1. Compilers differ in which of them they call
 * its line. */
#define assert_named(call, operation, first, lines)                                                                    \
    do {                                                                                                               \
        assert_fails(call, ": " operation ": ");                                                                       \
        assert_in_range(line_of_failure(), first, (first) + (lines)-1);                                                \
    } while (0)

/* clang-format off */
static mg_tensor *outer_fails(void) {
    return mg_add(tape, x, /* line + 1 */
                  mg_transpose(tape,
                               mg_exp(tape, x),
                               0, 1)); /* line + 4: (3,2) does not fit (2,3) */
}
enum { OUTER = __LINE__ - 5 };

static mg_tensor *inner_fails(void) {
    return mg_add(tape,
                  mg_exp(tape, x),
                  mg_slice(tape, x, /* line + 3 */
                           1, 0, 4)); /* line + 4 */
}
enum { INNER = __LINE__ - 3 };

static mg_tensor *one_line_each(void) {
    mg_tensor *a = mg_matmul(tape, mg_exp(tape, mg_log(tape, x)), mg_tanh(tape, mg_relu(tape, x)), false, true); mg_tensor *b = mg_exp(tape, x);
    return mg_add(tape, mg_exp(tape, mg_exp(tape, a)), mg_scale(tape, b, 2));
}
enum { ONE_LINE = __LINE__ - 2 };
/* clang-format on */

static void nested_calls_name_their_own_lines(void **state) {
    (void)state;
    assert_named(outer_fails(), "add", OUTER, 4);
    assert_named(inner_fails(), "slice", INNER, 2);
    assert_named(one_line_each(), "add", ONE_LINE, 1);
}

static void what_is_no_operation_names_the_caller_too(void **state) {
    (void)state;
    assert_operation_fails(mg_backward(tape, mg_exp(tape, x)), "backward", "(2, 3)");
    mg_tensor *data = mg_constant(tape, 0, NULL); /* calls on one line: of several, compilers choose */
    assert_operation_fails(mg_backward(tape, mg_exp(tape, data)), "backward", "requires a gradient");
    assert_fails(mg_leaf(tape, 5, x->dim), __FILE__ ":" CHECK_TEXT(__LINE__) ": a tensor has 0 to 4");
    assert_fails(mg_constant(tape, 1, (ptrdiff_t[]){0}), __FILE__ ":" CHECK_TEXT(__LINE__) ": dimension 0");
    assert_fails(mg_reshape(tape, x, 1, NULL), __FILE__ ":" CHECK_TEXT(__LINE__) ": the dimensions of a tensor are");
    assert_fails(mg_tape_rewind(tape, mg_tape_mark(tape)), ": tape: ");
}

/* In the middle of a library's function that calls back, the innermost call of the user's is meant. */
static mg_tensor *fails_within(mg_tape *inner, mg_tensor *const *in, void *user) {
    (void)user;
    return mg_slice(inner, in[0], 5, 0, 1);
}
enum { WITHIN = __LINE__ - 2 };

/* A jump out of mg_gradcheck leaves its memory behind: nothing for the leak sanitizer. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#else
#define __lsan_disable() (void)0
#define __lsan_enable() (void)0
#endif

static void a_failure_in_a_callback_names_the_callbacks_line(void **state) {
    (void)state;
    mg_gradcheck_result result;
    __lsan_disable();
    assert_named(mg_gradcheck(&result, fails_within, NULL, 1, &x, NULL), "slice", WITHIN, 1);
    __lsan_enable();
    /* And after a jump out of it nothing of that call is left. */
    assert_fails(MG_CHECK(false, "mine"), __FILE__ ":" CHECK_TEXT(__LINE__) ": mine");
    assert_fails((void)(mg_slice)(tape, x, 5, 0, 1), "lib/ops/"); /* the function itself, in no call: its own line */
}

static void null_is_caught(void **state) {
    (void)state;
    mg_tensor *vector = mg_leaf(tape, 1, (ptrdiff_t[]){3});
    const int ids[] = {0, 1};
    mg_rng rng = {0};
    assert_operation_fails(mg_add(tape, x, NULL), "mg_add", "b is NULL");
    assert_operation_fails(mg_add(tape, NULL, x), "mg_add", "a is NULL");
    assert_operation_fails(mg_add(NULL, x, x), "mg_add", "tape is NULL");
    assert_operation_fails(mg_sub(tape, x, NULL), "mg_sub", "b is NULL");
    assert_operation_fails(mg_mul(tape, NULL, x), "mg_mul", "a is NULL");
    assert_operation_fails(mg_div(tape, x, NULL), "mg_div", "b is NULL");
    assert_operation_fails(mg_scale(tape, NULL, 2), "mg_scale", "x is NULL");
    assert_operation_fails(mg_exp(tape, NULL), "mg_exp", "x is NULL");
    assert_operation_fails(mg_log(tape, NULL), "mg_log", "x is NULL");
    assert_operation_fails(mg_tanh(tape, NULL), "mg_tanh", "x is NULL");
    assert_operation_fails(mg_relu(tape, NULL), "mg_relu", "x is NULL");
    assert_operation_fails(mg_gelu(tape, NULL), "mg_gelu", "x is NULL");
    assert_operation_fails(mg_sum(tape, NULL, 0), "mg_sum", "x is NULL");
    assert_operation_fails(mg_mean(tape, NULL, 0), "mg_mean", "x is NULL");
    assert_operation_fails(mg_max(tape, NULL, 0), "mg_max", "x is NULL");
    assert_operation_fails(mg_reshape(tape, NULL, 0, NULL), "mg_reshape", "x is NULL");
    assert_operation_fails(mg_transpose(tape, NULL, 0, 1), "mg_transpose", "x is NULL");
    assert_operation_fails(mg_slice(tape, NULL, 0, 0, 1), "mg_slice", "x is NULL");
    assert_operation_fails(mg_concat(tape, 1, NULL, 0), "mg_concat", "x is NULL");
    assert_operation_fails(mg_concat(tape, 2, ((mg_tensor *[]){x, NULL}), 0), "concat", "tensor 1 is NULL");
    assert_operation_fails(mg_matmul(tape, x, NULL, false, false), "mg_matmul", "b is NULL");
    assert_operation_fails(mg_linear(tape, NULL, x, NULL), "mg_linear", "x is NULL");
    assert_operation_fails(mg_linear(tape, x, NULL, vector), "mg_linear", "w is NULL");
    assert_operation_fails(mg_softmax(tape, NULL), "mg_softmax", "x is NULL");
    assert_operation_fails(mg_log_softmax(tape, NULL), "mg_log_softmax", "x is NULL");
    assert_operation_fails(mg_masked_fill(tape, x, NULL, 0), "mg_masked_fill", "mask is NULL");
    assert_operation_fails(mg_layer_norm(tape, x, vector, NULL, (mg_real)1e-5), "mg_layer_norm", "bias is NULL");
    assert_operation_fails(mg_layer_norm(tape, x, NULL, vector, (mg_real)1e-5), "mg_layer_norm", "gain is NULL");
    assert_operation_fails(mg_embedding(tape, NULL, ids, 1, (ptrdiff_t[]){2}), "mg_embedding", "table is NULL");
    assert_operation_fails(mg_embedding(tape, x, NULL, 1, (ptrdiff_t[]){2}), "mg_embedding", "ids is NULL");
    assert_operation_fails(mg_cross_entropy(tape, x, NULL, -1, NULL), "mg_cross_entropy", "targets is NULL");
    assert_operation_fails(mg_dropout(tape, NULL, 0, rng), "mg_dropout", "x is NULL");
    assert_operation_fails(mg_attention(tape, x, NULL), "mg_attention", "options is NULL");
    assert_operation_fails(mg_backward(tape, NULL), "mg_backward", "loss is NULL");
    assert_operation_fails(mg_leaf(NULL, 0, NULL), "mg_leaf", "tape is NULL");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_calls_name_their_own_lines),
        cmocka_unit_test(what_is_no_operation_names_the_caller_too),
        cmocka_unit_test(a_failure_in_a_callback_names_the_callbacks_line),
        cmocka_unit_test(null_is_caught),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
