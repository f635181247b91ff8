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
    const mg_interval *sequence; /* (B,T), or NULL */
} shape;

#define AHEAD(n)                                                                                                       \
    { MG_MASK_LOOKAHEAD, n }
#define WINDOW(n)                                                                                                      \
    { MG_MASK_WINDOW, n }
#define PREFIX(n)                                                                                                      \
    { MG_MASK_PREFIX, n }
#define BLOCK(n)                                                                                                       \
    { MG_MASK_BLOCK, n }

static mg_tensor *random_leaf(mg_tape *tape, uint32_t which, int ndim, const ptrdiff_t *dim) {
    mg_tensor *x = mg_leaf(tape, ndim, dim);
    for (ptrdiff_t i = 0; i < mg_size(x); i++)
        x->data[i] = (mg_real)mg_rng_normal((mg_rng){9, MG_STREAM_TEST, which}, (uint64_t)i);
    return x;
}

/* Each kind of mask in the words of its paper, pair by pair. */
static bool sees(mg_mask mask, ptrdiff_t query, ptrdiff_t key) {
    switch (mask.kind) {
    case MG_MASK_LOOKAHEAD: return mask.n == ALL || key - query <= mask.n;
    case MG_MASK_WINDOW: return key <= query && query - key < mask.n;
    case MG_MASK_PREFIX: return key <= query || (query < mask.n && key < mask.n);
    case MG_MASK_BLOCK: return key / mask.n <= query / mask.n;
    }
    return false;
}

/* What its head's mask and its sequence let a query see. */
static bool looks(shape s, mg_mask mask, ptrdiff_t b, ptrdiff_t query, ptrdiff_t key) {
    if (!sees(mask, query, key)) return false;
    if (!s.sequence) return true;
    mg_interval may = s.sequence[b * s.T + query];
    return may.first <= key && key < may.end;
}

/* 1 where a query must not look: (B, n_head, T, T). */
static mg_tensor *mask_of(mg_tape *tape, shape s, const mg_mask *mask) {
    mg_tensor *hidden = mg_constant(tape, 4, (ptrdiff_t[]){s.B, s.n_head, s.T, s.T});
    for (ptrdiff_t at = 0; at < mg_size(hidden); at++) {
        ptrdiff_t key = at % s.T, query = at / s.T % s.T, h = at / s.T / s.T % s.n_head, b = at / s.T / s.T / s.n_head;
        hidden->data[at] = !looks(s, mask[h], b, query, key);
    }
    return hidden;
}

/* One of the three parts of qkv (B,T,3C), as (B, n_head, T, C/n_head). */
static mg_tensor *heads(mg_tape *tape, mg_tensor *qkv, shape s, ptrdiff_t part) {
    mg_tensor *x = mg_slice(tape, qkv, -1, part * s.C, (part + 1) * s.C);
    x = mg_reshape(tape, x, 4, (ptrdiff_t[]){s.B, s.T, s.n_head, s.C / s.n_head});
    return mg_transpose(tape, x, 1, 2);
}

/* softmax(scale · Q Kᵀ, with −inf where the mask is) V: Vaswani et al. 2017, equation 1. */
static mg_tensor *textbook(mg_tape *tape, mg_tensor *qkv, shape s, const mg_mask *mask, mg_real scale) {
    mg_tensor *q = heads(tape, qkv, s, 0), *k = heads(tape, qkv, s, 1), *v = heads(tape, qkv, s, 2);
    mg_tensor *scores = mg_scale(tape, mg_matmul(tape, q, k, false, true), scale); /* (B, n_head, T, T) */
    scores = mg_masked_fill(tape, scores, mask_of(tape, s, mask), -(mg_real)INFINITY);
    mg_tensor *out = mg_matmul(tape, mg_softmax(tape, scores), v, false, false); /* (B, n_head, T, C/n_head) */
    return mg_reshape(tape, mg_transpose(tape, out, 1, 2), 3, (ptrdiff_t[]){s.B, s.T, s.C});
}

static mg_tensor *fused(mg_tape *tape, mg_tensor *qkv, shape s, const mg_mask *mask, mg_real scale) {
    mg_attention_options options = {.n_head = s.n_head, .mask = mask, .sequence = s.sequence, .scale = scale};
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

static void agree(shape s, const mg_mask *mask) {
    mg_tape *tape = new_tape();
    ptrdiff_t dim[3] = {s.B, s.T, 3 * s.C};
    mg_tensor *a = random_leaf(tape, 0, 3, dim), *b = random_leaf(tape, 0, 3, dim), *c = random_leaf(tape, 0, 3, dim);
    mg_real scale = (mg_real)(1 / sqrt((double)s.C / s.n_head));
    mg_attention_options options = {.n_head = s.n_head, .mask = mask, .sequence = s.sequence};
    mg_tensor *expected = textbook(tape, a, s, mask, scale), *y = mg_attention(tape, b, &options);
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

static const shape shapes[] = {{.B = 1, .T = 1, .C = 1, .n_head = 1},   {.B = 1, .T = 2, .C = 1, .n_head = 1},
                               {.B = 2, .T = 1, .C = 6, .n_head = 2},   {.B = 2, .T = 3, .C = 4, .n_head = 4},
                               {.B = 1, .T = 7, .C = 10, .n_head = 2},  {.B = 3, .T = 5, .C = 12, .n_head = 3},
                               {.B = 2, .T = 16, .C = 8, .n_head = 2},  {.B = 1, .T = 17, .C = 8, .n_head = 1},
                               {.B = 1, .T = 32, .C = 4, .n_head = 2},  {.B = 2, .T = 33, .C = 24, .n_head = 3},
                               {.B = 1, .T = 65, .C = 68, .n_head = 2}, {.B = 1, .T = 130, .C = 32, .n_head = 4},
                               {.B = 1, .T = 70, .C = 224, .n_head = 2}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static const mg_mask masks[][MOST_HEADS] = {
    {AHEAD(0), AHEAD(0), AHEAD(0), AHEAD(0)},          {AHEAD(ALL), AHEAD(ALL), AHEAD(ALL), AHEAD(ALL)},
    {AHEAD(1), AHEAD(1), AHEAD(1), AHEAD(1)},          {AHEAD(3), AHEAD(3), AHEAD(3), AHEAD(3)},
    {AHEAD(0), AHEAD(1), AHEAD(0), AHEAD(0)},          {AHEAD(ALL), AHEAD(0), AHEAD(2), AHEAD(1)},
    {AHEAD(40), AHEAD(5), AHEAD(0), AHEAD(31)},        {WINDOW(1), WINDOW(2), WINDOW(3), WINDOW(17)},
    {WINDOW(40), WINDOW(5), WINDOW(64), WINDOW(1000)}, {PREFIX(0), PREFIX(1), PREFIX(2), PREFIX(1000)},
    {PREFIX(7), PREFIX(35), PREFIX(64), PREFIX(3)},    {BLOCK(1), BLOCK(2), BLOCK(3), BLOCK(1000)},
    {BLOCK(5), BLOCK(8), BLOCK(33), BLOCK(INT_MAX)},   {AHEAD(0), WINDOW(4), PREFIX(6), BLOCK(7)},
};
enum { N_MASKS = sizeof masks / sizeof *masks };

static void the_fused_path_equals_the_readable_and_the_textbook(void **state) {
    (void)state;
    for (int i = 0; i < N_SHAPES; i++)
        for (int m = 0; m < N_MASKS; m++) agree(shapes[i], masks[m]);
}

/* Documents of every length from a token each to one for all; an end a token or two ahead, drawn per position; both
 * ends moving at will. */
enum { MOST_ROWS = 256, LIMITS = 7 };
static void limit(shape s, int which, mg_interval *sequence) {
    for (ptrdiff_t row = 0; row < s.B * s.T; row++) {
        ptrdiff_t i = row % s.T, draw = (ptrdiff_t)mg_rng_below((mg_rng){8, MG_STREAM_TEST, 3}, (uint64_t)row, 100);
        mg_interval before = i > 0 ? sequence[row - 1] : (mg_interval){0, 0}, *at = &sequence[row];
        ptrdiff_t length = (ptrdiff_t[]){1, 3, 8, s.T}[which % 4];
        *at = (mg_interval){i / length * length, s.T};
        if (which == 4) *at = (mg_interval){draw < 20 ? i : before.first, s.T};
        if (which == 5) *at = (mg_interval){0, i + 1 + (draw < 50)};
        if (which == 6) *at = (mg_interval){before.first + draw % 3, i + 1 + draw % 5};
        if (at->first > i) at->first = i;
        if (at->end < before.end) at->end = before.end;
        if (at->end > s.T) at->end = s.T;
    }
}

static void what_a_sequence_may_see_is_met_with_its_heads_masks(void **state) {
    (void)state;
    mg_interval sequence[MOST_ROWS];
    for (int i = 0; i < N_SHAPES; i++)
        for (int which = 0; which < LIMITS; which++)
            for (int m = 0; m < N_MASKS; m += 3) {
                shape s = shapes[i];
                limit(s, which, sequence);
                s.sequence = sequence;
                agree(s, masks[m]);
            }
}

static void without_a_list_every_head_is_causal(void **state) {
    (void)state;
    mg_tape *tape = new_tape();
    shape s = {.B = 2, .T = 9, .C = 12, .n_head = 3};
    mg_tensor *qkv = random_leaf(tape, 0, 3, (ptrdiff_t[]){s.B, s.T, 3 * s.C});
    mg_tensor *a = fused(tape, qkv, s, NULL, 1), *b = fused(tape, qkv, s, (mg_mask[]){AHEAD(0), AHEAD(0), AHEAD(0)}, 1);
    assert_memory_equal(a->data, b->data, (size_t)mg_size(a) * sizeof(mg_real));
    mg_tape_free(tape);
}

static void assert_same_or_poisoned(const mg_real *clean, const mg_real *dirty, ptrdiff_t n, bool same) {
    if (same) assert_memory_equal(clean, dirty, (size_t)n * sizeof(mg_real));
    for (ptrdiff_t i = 0; i < n && !same; i++) assert_true(isnan(dirty[i])); /* the control: who looks, meets it */
}

/* With NaN in everything at one position, each head's row that does not look there keeps its bits. */
static void poison(shape s, const mg_mask *mask, ptrdiff_t at) {
    mg_tape *tape = new_tape();
    ptrdiff_t dim[3] = {1, s.T, 3 * s.C}, width = s.C / s.n_head;
    mg_tensor *clean = random_leaf(tape, 0, 3, dim), *dirty = random_leaf(tape, 0, 3, dim);
    for (ptrdiff_t i = 0; i < 3 * s.C; i++) dirty->data[at * 3 * s.C + i] = NAN;
    mg_tensor *a = fused(tape, clean, s, mask, 1), *b = fused(tape, dirty, s, mask, 1);
    for (ptrdiff_t t = 0; t < s.T; t++)
        for (ptrdiff_t h = 0; h < s.n_head; h++) {
            ptrdiff_t from = t * s.C + h * width;
            assert_same_or_poisoned(a->data + from, b->data + from, width, t != at && !looks(s, mask[h], 0, t, at));
        }
    mg_tape_free(tape);
}

static void nan_where_none_looks_changes_no_bit(void **state) {
    (void)state;
    mg_interval sequence[MOST_ROWS];
    for (int i = 0; i < N_SHAPES; i++)
        for (int m = 0; m < N_MASKS; m++)
            for (int which = -1; which < LIMITS; which += m % 7 ? LIMITS + 1 : 1) { /* -1: no limit */
                shape s = shapes[i];
                s.B = 1;
                if (which >= 0) limit(s, which, sequence), s.sequence = sequence;
                for (ptrdiff_t at = 0; at<s.T; at += s.T> 20 ? 13 : 1) poison(s, masks[m], at);
            }
}

/* Scores that overflow, +inf for two keys of token 3 and -inf for the only key of token 0, weigh as mg_softmax says,
 * with finite gradients. The rows that meet no infinity keep their bits. */
static void infinite_scores_take_the_limit(void **state) {
    (void)state;
    const mg_real huge = sizeof huge == sizeof(float) ? (mg_real)1e30 : (mg_real)1e200;
    shape s = {.B = 1, .T = 6, .C = 4, .n_head = 2};
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
        outputs[i] = i == 0 ? fused(tape, x, s, (mg_mask[]){AHEAD(0), AHEAD(0)}, 1)
                            : textbook(tape, x, s, (mg_mask[]){AHEAD(0), AHEAD(0)}, 1);
    }
    mg_tensor *y = outputs[0], *clean = fused(tape, tame, s, (mg_mask[]){AHEAD(0), AHEAD(0)}, 1);
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
            shape s = {.B = 1, .T = T, .C = C, .n_head = 2};
            mg_tensor *y = fused(tape, qkv, s, (mg_mask[]){AHEAD(lookahead), AHEAD(lookahead)}, 1);
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

static void assert_masked(const mg_tensor *weights, const mg_tensor *scores, const mg_mask *mask) {
    ptrdiff_t H = weights->dim[1], T = weights->dim[2];
    for (ptrdiff_t i = 0; i < mg_size(weights); i++) {
        ptrdiff_t key = i % T, query = i / T % T, h = i / T / T % H;
        if (sees(mask[h], query, key))
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
    mg_tape *tape = new_tape();
    for (int i = 0; i < N_SHAPES * N_MASKS; i++) {
        shape s = shapes[i / N_MASKS];
        const mg_mask *mask = masks[i % N_MASKS];
        mg_tensor *qkv = random_leaf(tape, 0, 3, (ptrdiff_t[]){s.B, s.T, 3 * s.C});
        mg_tensor *weights = mg_constant(tape, 4, (ptrdiff_t[]){s.B, s.n_head, s.T, s.T});
        mg_tensor *scores = mg_constant(tape, 4, weights->dim);
        mg_attention_options options = {.n_head = s.n_head, .mask = mask, .scale = (mg_real)0.5};
        mg_tensor *plain = mg_attention(tape, qkv, &options);
        options.weights = weights->data;
        options.scores = scores->data;
        mg_tensor *watched = mg_attention(tape, qkv, &options);
        assert_memory_equal(plain->data, watched->data, (size_t)mg_size(plain) * sizeof(mg_real));
        assert_masked(weights, scores, mask);
        mg_tape_reset(tape);
    }
    mg_tape_free(tape);
}

/* Tokens `cached` … of a sequence, after the others went into the cache; the weights of head 0 go to `weights`. */
static mg_tensor *decode(mg_tape *tape, const mg_tensor *qkv, shape s, ptrdiff_t cached, mg_real *keys, mg_real *values,
                         mg_real *weights) {
    mg_cached cache = {keys, values, s.T, 0, cached};
    mg_tensor *chunk = mg_constant(tape, 3, (ptrdiff_t[]){1, s.T - cached, 3 * s.C});
    memcpy(chunk->data, qkv->data + cached * 3 * s.C, (size_t)mg_size(chunk) * sizeof(mg_real));
    mg_attention_options options = {.n_head = s.n_head, .scale = (mg_real)0.5, .cache = &cache, .weights = weights};
    return mg_attention(tape, chunk, &options);
}

static void cached_queries(ptrdiff_t T, ptrdiff_t C, ptrdiff_t step) {
    mg_tape *tape = new_tape();
    mg_tensor *qkv = random_leaf(tape, 0, 3, (ptrdiff_t[]){1, T, 3 * C});
    mg_tensor *whole = fused(tape, qkv, (shape){.B = 1, .T = T, .C = C, .n_head = 1}, NULL, (mg_real)0.5);
    mg_real *keys = mg_constant(tape, 2, (ptrdiff_t[]){T, C})->data,
            *values = mg_constant(tape, 2, whole->dim + 1)->data;
    mg_real *weights = mg_constant(tape, 2, (ptrdiff_t[]){T, T})->data;
    for (ptrdiff_t cached = 0; cached < T; cached += step) {
        decode(tape, qkv, (shape){.B = 1, .T = cached > 0 ? cached : 1, .C = C, .n_head = 1}, 0, keys, values, NULL);
        mg_tensor *y = decode(tape, qkv, (shape){.B = 1, .T = T, .C = C, .n_head = 1}, cached, keys, values, weights);
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
    assert_fails(mg_linear_tied(tape, x, w), "x is (2, 3) and W is (4, 5)");
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
        cmocka_unit_test(what_a_sequence_may_see_is_met_with_its_heads_masks),
        cmocka_unit_test(without_a_list_every_head_is_causal),
        cmocka_unit_test(nan_where_none_looks_changes_no_bit),
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
