/* The linear operations at the sizes where they are cut into tiles, groups of rows and panels, against the same product
 * written with mg_matmul, mg_add and mg_gelu; and their bits, which no number of threads may change. */
#include "ops.h"
#include "parallel.h"

#include "check.h"

#include <string.h>

#ifdef MG_DOUBLE
static const double TOLERANCE = 1e-13;
#else
static const double TOLERANCE = 2e-5;
#endif

typedef struct size {
    ptrdiff_t n, in, out;
} size;

/* One row; fewer rows than a tile, with the inputs cut; groups of rows; a W of more than one panel, in groups and in
 * one. */
static const size sizes[] = {{1, 1, 1},     {1, 300, 5},    {7, 300, 300},    {129, 3, 2},
                             {300, 64, 64}, {1100, 40, 30}, {300, 520, 2100}, {5, 520, 2100}};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

typedef enum kind { PLAIN, TIED, GELU, ADD, ADD_TO_X, N_KINDS } kind;

typedef struct inputs {
    mg_tensor *x, *w, *bias, *r, *weight;
} inputs;

static mg_tensor *leaf(mg_tape *tape, uint32_t number, ptrdiff_t rows, ptrdiff_t columns) {
    mg_tensor *x = mg_leaf(tape, columns ? 2 : 1, (ptrdiff_t[]){rows, columns});
    for (ptrdiff_t i = 0; i < mg_size(x); i++)
        x->data[i] = (mg_real)(mg_rng_normal((mg_rng){3, MG_STREAM_TEST, number}, (uint64_t)i) / 4);
    return x;
}

static inputs make_inputs(mg_tape *tape, size s, kind k) {
    return (inputs){leaf(tape, 0, s.n, s.in), k == TIED ? leaf(tape, 1, s.out, s.in) : leaf(tape, 1, s.in, s.out),
                    leaf(tape, 2, s.out, 0), leaf(tape, 3, s.n, s.out), leaf(tape, 4, s.n, s.out)};
}

static mg_tensor *fused(mg_tape *tape, inputs in, kind k) {
    if (k == TIED) return mg_linear_tied(tape, in.x, in.w);
    if (k == GELU) return mg_linear_gelu(tape, in.x, in.w, in.bias);
    if (k == ADD) return mg_linear_add(tape, in.r, in.x, in.w, in.bias);
    if (k == ADD_TO_X) return mg_linear_add(tape, in.x, in.x, in.w, NULL);
    return mg_linear(tape, in.x, in.w, in.bias);
}

static mg_tensor *composed(mg_tape *tape, inputs in, kind k) {
    mg_tensor *y = mg_matmul(tape, in.x, in.w, false, k == TIED);
    if (k == TIED) return y;
    if (k == ADD_TO_X) return mg_add(tape, in.x, y);
    y = mg_add(tape, y, in.bias);
    return k == GELU ? mg_gelu(tape, y) : k == ADD ? mg_add(tape, in.r, y) : y;
}

static mg_tensor *run(mg_tape *tape, size s, kind k, inputs *in, mg_tensor *(*function)(mg_tape *, inputs, kind)) {
    *in = make_inputs(tape, s, k);
    mg_tensor *y = function(tape, *in, k);
    mg_backward(tape, mg_sum(tape, mg_mul(tape, y, in->weight), MG_ALL_AXES));
    return y;
}

/* Rounding grows with how much is added up, of terms of size about 1/16. */
static void assert_same(const mg_real *a, const mg_real *b, ptrdiff_t n, double terms) {
    for (ptrdiff_t i = 0; i < n; i++) assert_close((double)a[i], (double)b[i], TOLERANCE * (1 + sqrt(terms)));
}

static void like_the_composed_ones(void **state) {
    (void)state;
    mg_tape *tape = new_tape();
    for (int i = 0; i < N_SIZES; i++) {
        for (kind k = PLAIN; k < N_KINDS; k++) {
            size s = sizes[i];
            if (k == ADD_TO_X && s.in != s.out) continue;
            inputs ours, theirs;
            const mg_tensor *a = run(tape, s, k, &ours, fused), *b = run(tape, s, k, &theirs, composed);
            assert_same(a->data, b->data, s.n * s.out, (double)s.in);
            assert_same(ours.x->grad, theirs.x->grad, s.n * s.in, (double)s.out);
            assert_same(ours.w->grad, theirs.w->grad, s.in * s.out, (double)s.n);
            assert_same(ours.bias->grad, theirs.bias->grad, s.out, (double)s.n);
            assert_same(ours.r->grad, theirs.r->grad, s.n * s.out, 1);
            mg_tape_reset(tape);
        }
    }
    mg_tape_free(tape);
}

/* What a gradient's memory is used for again must not show. */
static void recycling_changes_no_bit(void **state) {
    (void)state;
    mg_tape *tape = new_tape(), *recycling = new_tape();
    mg_tape_recycle_gradients(recycling, true);
    for (kind k = PLAIN; k < N_KINDS; k++) {
        inputs kept, recycled;
        run(tape, (size){300, 64, 64}, k, &kept, composed);
        run(recycling, (size){300, 64, 64}, k, &recycled, composed);
        assert_memory_equal(kept.x->grad, recycled.x->grad, sizeof(mg_real) * 300 * 64);
        assert_memory_equal(kept.w->grad, recycled.w->grad, sizeof(mg_real) * 64 * 64);
    }
    assert_less((double)mg_tape_bytes(recycling), (double)mg_tape_bytes(tape));
    mg_tape_free(tape);
    mg_tape_free(recycling);
}

static void same_bits_for_any_threads(void **state) {
    (void)state;
    mg_tape *tape = new_tape();
    for (kind k = PLAIN; k < N_KINDS; k++) {
        size s = {1100, 64, 64};
        inputs first, in;
        mg_set_threads(1);
        const mg_tensor *y = run(tape, s, k, &first, fused);
        for (int threads = 2; threads <= 5; threads++) {
            mg_set_threads(threads);
            const mg_tensor *again = run(tape, s, k, &in, fused);
            assert_memory_equal(again->data, y->data, sizeof(mg_real) * (size_t)(s.n * s.out));
            assert_memory_equal(in.x->grad, first.x->grad, sizeof(mg_real) * (size_t)(s.n * s.in));
            assert_memory_equal(in.w->grad, first.w->grad, sizeof(mg_real) * (size_t)(s.in * s.out));
            assert_memory_equal(in.bias->grad, first.bias->grad, sizeof(mg_real) * (size_t)s.out);
        }
        mg_tape_reset(tape);
    }
    mg_set_threads(0);
    mg_tape_free(tape);
}

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    mg_tape *tape = new_tape();
    mg_tensor *x = leaf(tape, 0, 2, 3), *w = leaf(tape, 1, 3, 4), *r = leaf(tape, 2, 3, 4);
    assert_fails(mg_linear_add(tape, r, x, w, NULL), "the result is (2, 4) and what it is added to is (3, 4)");
    mg_tape_free(tape);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(like_the_composed_ones),
        cmocka_unit_test(recycling_changes_no_bit),
        cmocka_unit_test(same_bits_for_any_threads),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
