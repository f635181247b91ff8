/* The attention of a textbook from primitives, the readable one in four loops, and mg_attention: all three agree. */
#include "attention_heads.h"
#include "attention_readable.h"
#include "ops.h"

#include "check.h"

#ifdef MG_DOUBLE
static const double TOLERANCE = 1e-12;
#else
static const double TOLERANCE = 1e-5;
#endif

enum { ALL = MG_LOOKAHEAD_ALL, MOST_HEADS = 4 };

typedef struct shape {
    ptrdiff_t B, T, C;
    int n_head;
} shape;

static mg_tensor *random_leaf(mg_tape *tape, uint32_t which, int ndim, const ptrdiff_t *dim) {
    mg_tensor *x = mg_leaf(tape, ndim, dim);
    for (ptrdiff_t i = 0; i < mg_size(x); i++)
        x->data[i] = (mg_real)mg_rng_normal((mg_rng){9, MG_STREAM_TEST, which}, (uint64_t)i);
    return x;
}

/* 1 where a query must not look: (n_head, T, T). */
static mg_tensor *mask_of(mg_tape *tape, shape s, const int *lookahead) {
    mg_tensor *mask = mg_constant(tape, 3, (ptrdiff_t[]){s.n_head, s.T, s.T});
    for (ptrdiff_t h = 0; h < s.n_head; h++)
        for (ptrdiff_t i = 0; i < s.T; i++)
            for (ptrdiff_t j = 0; j < s.T; j++)
                mask->data[(h * s.T + i) * s.T + j] = lookahead[h] != ALL && j - i > lookahead[h];
    return mask;
}

/* One of the three parts of qkv (B,T,3C), as (B, n_head, T, C/n_head). */
static mg_tensor *heads(mg_tape *tape, mg_tensor *qkv, shape s, ptrdiff_t part) {
    mg_tensor *x = mg_slice(tape, qkv, -1, part * s.C, (part + 1) * s.C);
    x = mg_reshape(tape, x, 4, (ptrdiff_t[]){s.B, s.T, s.n_head, s.C / s.n_head});
    return mg_transpose(tape, x, 1, 2);
}

/* softmax(scale · Q Kᵀ, with −inf where the mask is) V: Vaswani et al. 2017, equation 1. */
static mg_tensor *textbook(mg_tape *tape, mg_tensor *qkv, shape s, const int *lookahead, mg_real scale) {
    mg_tensor *q = heads(tape, qkv, s, 0), *k = heads(tape, qkv, s, 1), *v = heads(tape, qkv, s, 2);
    mg_tensor *scores = mg_scale(tape, mg_matmul(tape, q, k, false, true), scale); /* (B, n_head, T, T) */
    scores = mg_masked_fill(tape, scores, mask_of(tape, s, lookahead), -(mg_real)INFINITY);
    mg_tensor *out = mg_matmul(tape, mg_softmax(tape, scores), v, false, false); /* (B, n_head, T, C/n_head) */
    return mg_reshape(tape, mg_transpose(tape, out, 1, 2), 3, (ptrdiff_t[]){s.B, s.T, s.C});
}

static mg_tensor *fused(mg_tape *tape, mg_tensor *qkv, shape s, const int *lookahead, mg_real scale) {
    mg_attention_options options = {.n_head = s.n_head, .lookahead = lookahead, .scale = scale};
    return mg_attention(tape, qkv, &options);
}

static void backward_weighted(mg_tape *tape, mg_tensor *y) {
    mg_backward(tape, mg_sum(tape, mg_mul(tape, y, random_leaf(tape, 1, y->ndim, y->dim)), MG_ALL_AXES));
}

static double largest(const mg_real *x, ptrdiff_t n) {
    double most = 0;
    for (ptrdiff_t i = 0; i < n; i++) most = fmax(most, fabs((double)x[i]));
    return most;
}

/* Relative to the largest value. */
static void assert_all_close(const mg_real *a, const mg_real *b, ptrdiff_t n) {
    double allowed = TOLERANCE * fmax(1, largest(a, n));
    for (ptrdiff_t i = 0; i < n; i++) assert_close(a[i], b[i], allowed);
}

static void agree(shape s, const int *lookahead) {
    mg_tape *tape = new_tape();
    ptrdiff_t dim[3] = {s.B, s.T, 3 * s.C};
    mg_tensor *a = random_leaf(tape, 0, 3, dim), *b = random_leaf(tape, 0, 3, dim), *c = random_leaf(tape, 0, 3, dim);
    mg_real scale = (mg_real)(1 / sqrt((double)s.C / s.n_head));
    mg_attention_options options = {.n_head = s.n_head, .lookahead = lookahead};
    mg_tensor *expected = textbook(tape, a, s, lookahead, scale), *y = mg_attention(tape, b, &options);
    mg_tensor *readable = mg_attention_readable(tape, c, &options);
    assert_all_close(expected->data, readable->data, mg_size(y));
    assert_all_close(readable->data, y->data, mg_size(y));
    backward_weighted(tape, expected);
    backward_weighted(tape, y);
    backward_weighted(tape, readable);
    assert_all_close(a->grad, c->grad, mg_size(a));
    assert_all_close(c->grad, b->grad, mg_size(a));
    mg_tape_free(tape);
}

static const shape shapes[] = {{1, 1, 1, 1},   {1, 2, 1, 1},    {2, 1, 6, 2},   {2, 3, 4, 4},  {1, 7, 10, 2},
                               {3, 5, 12, 3},  {2, 16, 8, 2},   {1, 17, 8, 1},  {1, 32, 4, 2}, {2, 33, 24, 3},
                               {1, 65, 68, 2}, {1, 130, 32, 4}, {1, 70, 224, 2}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static void the_fused_path_equals_the_readable_and_the_textbook(void **state) {
    (void)state;
    static const int masks[][MOST_HEADS] = {{0, 0, 0, 0}, {ALL, ALL, ALL, ALL}, {1, 1, 1, 1},  {3, 3, 3, 3},
                                            {0, 1, 0, 0}, {ALL, 0, 2, 1},       {40, 5, 0, 31}};
    for (int i = 0; i < N_SHAPES; i++)
        for (size_t m = 0; m < sizeof masks / sizeof *masks; m++) agree(shapes[i], masks[m]);
}

static void without_a_list_every_head_is_causal(void **state) {
    (void)state;
    mg_tape *tape = new_tape();
    shape s = {2, 9, 12, 3};
    mg_tensor *qkv = random_leaf(tape, 0, 3, (ptrdiff_t[]){s.B, s.T, 3 * s.C});
    mg_tensor *a = fused(tape, qkv, s, NULL, 1), *b = fused(tape, qkv, s, (int[]){0, 0, 0}, 1);
    assert_memory_equal(a->data, b->data, (size_t)mg_size(a) * sizeof(mg_real));
    mg_tape_free(tape);
}

/* With NaN in everything from position `cut` on, each row that does not look there keeps its bits. */
static void poison(shape s, int lookahead, ptrdiff_t cut) {
    mg_tape *tape = new_tape();
    const int ahead[MOST_HEADS] = {lookahead, lookahead, lookahead, lookahead};
    ptrdiff_t dim[3] = {1, s.T, 3 * s.C}, past = cut - lookahead;
    mg_tensor *clean = random_leaf(tape, 0, 3, dim), *dirty = random_leaf(tape, 0, 3, dim);
    for (ptrdiff_t i = cut * 3 * s.C; i < s.T * 3 * s.C; i++) dirty->data[i] = NAN;
    mg_tensor *a = fused(tape, clean, s, ahead, 1), *b = fused(tape, dirty, s, ahead, 1);
    if (past > 0) assert_memory_equal(a->data, b->data, (size_t)(past * s.C) * sizeof(mg_real));
    assert_true(isnan(b->data[s.T * s.C - 1])); /* the control: the last row does look */
    mg_tape_free(tape);
}

static void nan_in_the_future_changes_no_bit_of_the_past(void **state) {
    (void)state;
    for (int i = 0; i < N_SHAPES; i++)
        for (int lookahead = 0; lookahead <= 3; lookahead++)
            for (ptrdiff_t cut = 0; cut<shapes[i].T; cut += shapes[i].T> 20 ? 13 : 1) poison(shapes[i], lookahead, cut);
}

/* Scores that overflow, +inf for two keys of token 3 and -inf for the only key of token 0, weigh as mg_softmax says,
 * with finite gradients. The rows that meet no infinity keep their bits. */
static void infinite_scores_take_the_limit(void **state) {
    (void)state;
    const mg_real huge = sizeof huge == sizeof(float) ? (mg_real)1e30 : (mg_real)1e200;
    shape s = {1, 6, 4, 2};
    mg_tape *tape = new_tape();
    mg_tensor *tame = random_leaf(tape, 0, 3, (ptrdiff_t[]){1, s.T, 3 * s.C});
    for (ptrdiff_t t = 0; t < s.T; t++) tame->data[t * 3 * s.C] = 0; /* what is huge in a key then adds 0 */
    mg_tensor *inputs[2], *outputs[2], *rows = mg_constant(tape, 3, (ptrdiff_t[]){1, s.T, s.C});
    for (int i = 0; i < 2; i++) {
        mg_tensor *x = inputs[i] = mg_leaf(tape, 3, tame->dim);
        memcpy(x->data, tame->data, (size_t)mg_size(x) * sizeof(mg_real));
        x->data[0] = x->data[3 * 3 * s.C] = huge;
        x->data[s.C] = -huge;
        x->data[3 * s.C + s.C] = x->data[2 * 3 * s.C + s.C] = huge;
        outputs[i] = i == 0 ? fused(tape, x, s, (int[]){0, 0}, 1) : textbook(tape, x, s, (int[]){0, 0}, 1);
    }
    mg_tensor *y = outputs[0], *clean = fused(tape, tame, s, (int[]){0, 0}, 1);
    for (ptrdiff_t i = 0; i < mg_size(y); i++) {
        assert_close(y->data[i], outputs[1]->data[i], TOLERANCE);
        ptrdiff_t t = i / s.C;
        bool infinite = i % s.C < s.C / 2 && (t == 0 || t == 3);
        if (!infinite) assert_true(y->data[i] == clean->data[i]);
        rows->data[i] = infinite ? (mg_real)(i + 1) : 0;
    }
    const mg_real *v = tame->data + 2 * s.C;
    for (ptrdiff_t d = 0; d < s.C / 2; d++) {
        assert_true(y->data[d] == 0);
        assert_close(y->data[3 * s.C + d], (v[3 * s.C + d] + v[2 * 3 * s.C + d]) / 2, TOLERANCE);
    }
    for (int i = 0; i < 2; i++) mg_backward(tape, mg_sum(tape, mg_mul(tape, outputs[i], rows), MG_ALL_AXES));
    for (ptrdiff_t i = 0; i < mg_size(tame); i++) {
        bool times_huge = i % (3 * s.C) == 0 || i % (3 * s.C) == s.C; /* a rounding error, too */
        assert_close(inputs[0]->grad[i], inputs[1]->grad[i], TOLERANCE * (times_huge ? (double)huge : 1));
    }
    mg_tape_free(tape);
}

/* A loss of the first rows gives exactly no gradient to what they must not see, and some to all they may. */
static void the_gradient_stops_at_the_mask(void **state) {
    (void)state;
    enum { T = 6, C = 4 };
    mg_tape *tape = new_tape();
    for (int lookahead = 0; lookahead < 3; lookahead++)
        for (ptrdiff_t rows = 1; rows <= T; rows++) {
            mg_tensor *qkv = random_leaf(tape, 0, 3, (ptrdiff_t[]){1, T, 3 * C});
            mg_tensor *y = fused(tape, qkv, (shape){1, T, C, 2}, (int[]){lookahead, lookahead}, 1);
            backward_weighted(tape, mg_slice(tape, y, 1, 0, rows));
            for (ptrdiff_t t = 0; t < T; t++) {
                double value_gradient = largest(qkv->grad + (t * 3 + 2) * C, C);
                if (t < rows + lookahead)
                    assert_true(value_gradient > 0);
                else
                    assert_true(largest(qkv->grad + t * 3 * C, 3 * C) == 0);
            }
            mg_tape_reset(tape);
        }
    mg_tape_free(tape);
}

static void assert_masked(const mg_tensor *weights, const mg_tensor *scores, const int *lookahead) {
    ptrdiff_t H = weights->dim[1], T = weights->dim[2];
    for (ptrdiff_t i = 0; i < mg_size(weights); i++) {
        ptrdiff_t key = i % T, query = i / T % T, h = i / T / T % H;
        bool visible = key < mg_visible(query, lookahead[h], T);
        if (visible)
            assert_true(weights->data[i] > 0 && isfinite(scores->data[i]));
        else
            assert_true(weights->data[i] == 0 && scores->data[i] == -(mg_real)INFINITY);
    }
    for (ptrdiff_t row = 0; row < mg_size(weights) / T; row++) {
        double sum = 0;
        for (ptrdiff_t key = 0; key < T; key++) sum += (double)weights->data[row * T + key];
        assert_close(sum, 1, 1e-6);
    }
}

static void capturing_is_exact_and_harmless(void **state) {
    (void)state;
    static const int masks[][MOST_HEADS] = {{0, 0, 0, 0}, {0, 2, ALL, 1}};
    mg_tape *tape = new_tape();
    for (int i = 0; i < N_SHAPES * 2; i++) {
        shape s = shapes[i / 2];
        mg_tensor *qkv = random_leaf(tape, 0, 3, (ptrdiff_t[]){s.B, s.T, 3 * s.C});
        mg_tensor *weights = mg_constant(tape, 4, (ptrdiff_t[]){s.B, s.n_head, s.T, s.T});
        mg_tensor *scores = mg_constant(tape, 4, weights->dim);
        mg_attention_options options = {.n_head = s.n_head, .lookahead = masks[i % 2], .scale = (mg_real)0.5};
        mg_tensor *plain = mg_attention(tape, qkv, &options);
        options.weights = weights->data;
        options.scores = scores->data;
        mg_tensor *watched = mg_attention(tape, qkv, &options);
        assert_memory_equal(plain->data, watched->data, (size_t)mg_size(plain) * sizeof(mg_real));
        assert_masked(weights, scores, masks[i % 2]);
        mg_tape_reset(tape);
    }
    mg_tape_free(tape);
}

/* Tokens `cached` … of a sequence, after the others went into the cache; the weights of head 0 go to `weights`. */
static mg_tensor *decode(mg_tape *tape, const mg_tensor *qkv, shape s, ptrdiff_t cached, mg_real *keys, mg_real *values,
                         mg_real *weights) {
    mg_tensor *chunk = mg_constant(tape, 3, (ptrdiff_t[]){1, s.T - cached, 3 * s.C});
    memcpy(chunk->data, qkv->data + cached * 3 * s.C, (size_t)mg_size(chunk) * sizeof(mg_real));
    mg_attention_options options = {.n_head = s.n_head,
                                    .scale = (mg_real)0.5,
                                    .cached_keys = keys,
                                    .cached_values = values,
                                    .cached = cached,
                                    .cache_capacity = s.T,
                                    .weights = weights};
    return mg_attention(tape, chunk, &options);
}

static void cached_queries(ptrdiff_t T, ptrdiff_t C, ptrdiff_t step) {
    mg_tape *tape = new_tape();
    mg_tensor *qkv = random_leaf(tape, 0, 3, (ptrdiff_t[]){1, T, 3 * C});
    mg_tensor *whole = fused(tape, qkv, (shape){1, T, C, 1}, NULL, (mg_real)0.5);
    mg_real *keys = mg_constant(tape, 2, (ptrdiff_t[]){T, C})->data,
            *values = mg_constant(tape, 2, whole->dim + 1)->data;
    mg_real *weights = mg_constant(tape, 2, (ptrdiff_t[]){T, T})->data;
    for (ptrdiff_t cached = 0; cached < T; cached += step) {
        decode(tape, qkv, (shape){1, cached > 0 ? cached : 1, C, 1}, 0, keys, values, NULL);
        mg_tensor *y = decode(tape, qkv, (shape){1, T, C, 1}, cached, keys, values, weights);
        for (ptrdiff_t i = 0; i < mg_size(y); i++) assert_close(y->data[i], whole->data[cached * C + i], 1e-5);
        for (ptrdiff_t i = 0; i < (T - cached) * T; i++) assert_int_equal(weights[i] > 0, i % T <= cached + i / T);
    }
    mg_tape_free(tape);
}

static void cached_queries_see_their_whole_past(void **state) {
    (void)state;
    cached_queries(5, 4, 1);
    cached_queries(140, 20, 9);
}

static void wrong_shapes_name_operation_shapes_and_line(void **state) {
    (void)state;
    mg_tape *tape = new_tape();
    mg_tensor *x = mg_leaf(tape, 2, (ptrdiff_t[]){2, 3}), *w = mg_leaf(tape, 2, (ptrdiff_t[]){4, 5});
    mg_tensor *qkv = mg_leaf(tape, 3, (ptrdiff_t[]){1, 2, 10});
    assert_operation_fails(mg_linear(tape, x, w, NULL), "linear", "x is (2, 3) and W is (4, 5)");
    assert_operation_fails(mg_linear_tied(tape, x, w), "linear_tied", "x is (2, 3) and W is (4, 5)");
    assert_operation_fails(mg_layer_norm(tape, x, w, w, 0), "layer_norm", "x is (2, 3), the gain is (4, 5)");
    assert_operation_fails(mg_embedding(tape, x, (int[]){2}, 1, (ptrdiff_t[]){1}), "embedding", "id 2 at place 0");
    assert_operation_fails(mg_embedding(tape, qkv, (int[]){0}, 1, (ptrdiff_t[]){1}), "embedding", "(1, 2, 10)");
    assert_operation_fails(mg_cross_entropy(tape, x, ((int[]){0, 3}), -1, NULL), "cross_entropy", "target 3 at row 1");
    mg_attention_options options = {.n_head = 2};
    assert_operation_fails(mg_attention(tape, qkv, &options), "attention", "(1, 2, 10)");
    mg_tape_free(tape);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fused_path_equals_the_readable_and_the_textbook),
        cmocka_unit_test(without_a_list_every_head_is_causal),
        cmocka_unit_test(nan_in_the_future_changes_no_bit_of_the_past),
        cmocka_unit_test(infinite_scores_take_the_limit),
        cmocka_unit_test(the_gradient_stops_at_the_mask),
        cmocka_unit_test(capturing_is_exact_and_harmless),
        cmocka_unit_test(cached_queries_see_their_whole_past),
        cmocka_unit_test(wrong_shapes_name_operation_shapes_and_line),
    };
    int failed = 0; /* on each kind of processor that this one can stand for */
    for (const mg_attention_heads *const *heads = mg_attention_heads_list(); *heads; heads++) {
        mg_attention_heads_use(*heads);
        failed += cmocka_run_group_tests(tests, NULL, NULL);
    }
    return failed;
}
