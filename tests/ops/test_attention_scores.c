/* Attention with scores of any size, on every kind of processor: its weights are mg_softmax's, forward and backward. */
#include "attention_heads.h"

#include "fixture.h"

enum { MOST = 40, WIDTH = 5 };

typedef struct problem {
    mg_tensor *qkv, *dout;
    mg_real scores[MOST * MOST], weights[MOST * MOST];
} problem;

/* One head; q, k and v of token t from fill. */
static void attend(problem *p, ptrdiff_t n, ptrdiff_t width, double (*fill)(ptrdiff_t token, ptrdiff_t column),
                   double size) {
    p->qkv = mg_leaf(tape, 3, (ptrdiff_t[]){1, n, 3 * width});
    p->dout = mg_constant(tape, 3, (ptrdiff_t[]){1, n, width});
    for (ptrdiff_t t = 0; t < n; t++)
        for (ptrdiff_t c = 0; c < 3 * width; c++)
            p->qkv->data[t * 3 * width + c] = (mg_real)(fill(t, c) * (c < width ? size : 1));
    for (ptrdiff_t i = 0; i < n * width; i++)
        p->dout->data[i] = (mg_real)mg_rng_normal((mg_rng){4, MG_STREAM_TEST, 0}, (uint64_t)i);
    const mg_attention_options options = {.n_head = 1, .scale = 1, .scores = p->scores, .weights = p->weights};
    mg_tensor *y = mg_attention(tape, p->qkv, &options);
    mg_backward(tape, mg_sum(tape, mg_mul(tape, y, p->dout), MG_ALL_AXES));
}

static void assert_near(double a, double b, double tolerance, const char *what) {
    if (a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance) return;
    fail_msg("%s is %.9g, expected %.9g", what, a, b);
}

/* The weights are the softmax of the visible scores, and dv_j = Σ_i p_ij do_i. */
static void assert_softmax(const problem *p, ptrdiff_t n, ptrdiff_t width) {
    for (ptrdiff_t i = 0; i < n; i++) {
        mg_tensor *row = mg_constant(tape, 1, (ptrdiff_t[]){i + 1});
        memcpy(row->data, p->scores + i * n, (size_t)(i + 1) * sizeof(mg_real));
        const mg_tensor *softmax = mg_softmax(tape, row);
        for (ptrdiff_t j = 0; j <= i; j++)
            assert_near((double)p->weights[i * n + j], (double)softmax->data[j], 1e-6, "a weight");
    }
    for (ptrdiff_t j = 0; j < n; j++)
        for (ptrdiff_t d = 0; d < width; d++) {
            double dv = 0;
            for (ptrdiff_t i = j; i < n; i++)
                dv += (double)p->weights[i * n + j] * (double)p->dout->data[i * width + d];
            assert_near((double)p->qkv->grad[j * 3 * width + 2 * width + d], dv, 2e-5, "dv");
        }
}

static void on_every_processor(void (*test)(void)) {
    const mg_attention_heads *const *heads = mg_attention_heads_list(), *best = heads[0];
    for (; *heads; heads++) {
        mg_attention_heads_use(*heads);
        test();
        mg_tape_reset(tape);
    }
    mg_attention_heads_use(best);
}

/* Queries and keys of small whole numbers: their products, times a power of two, are exact in any order. Some are
 * equal. */
static double whole(ptrdiff_t token, ptrdiff_t column) {
    return (double)((token / 2 * 7 + column * column * 3) % 5 - 2);
}

static double equal(ptrdiff_t token, ptrdiff_t column) {
    return column < 2 * WIDTH ? 1 : (double)(token % 3);
}

static double normal(ptrdiff_t token, ptrdiff_t column) {
    return mg_rng_normal((mg_rng){4, MG_STREAM_TEST, 1}, (uint64_t)(token * 3 * WIDTH + column));
}

static void try_sizes(void) {
    static problem p;
    const ptrdiff_t lengths[] = {1, 2, 3, 4, 5, 19, MOST};
    for (int l = 0; l < 7; l++)
        for (int power = -4; power <= 100; power += 4) {
            ptrdiff_t n = lengths[l];
            attend(&p, n, WIDTH, whole, ldexp(1, power));
            assert_softmax(&p, n, WIDTH);
            attend(&p, n, WIDTH, normal, ldexp(1, power));
            assert_softmax(&p, n, WIDTH);
            attend(&p, n, WIDTH, equal, ldexp(1, power));
            assert_softmax(&p, n, WIDTH);
            for (ptrdiff_t j = 0; j < n; j++) { /* Σ_d dk_jd does not depend on the scores' size: they are all equal */
                assert_near((double)p.weights[(n - 1) * n + j], 1 / (double)n, 1e-7, "the weight of one of equals");
                assert_true(isfinite((double)p.qkv->grad[j * 3 * WIDTH]));
            }
            mg_tape_reset(tape);
        }
}

static void scores_of_any_size(void **state) {
    (void)state;
    on_every_processor(try_sizes);
}

/* Width 1: each score is a product of two of these. */
static double extreme(ptrdiff_t token, ptrdiff_t column) {
    const double query[] = {1, -1, 0, 1e10}, key[] = {INFINITY, 1, -INFINITY, INFINITY, 1e30, -1e30, 0, -INFINITY, NAN};
    return column == 0 ? query[token % 4] : column == 1 ? key[token % 9] : (double)token;
}

static double hidden(ptrdiff_t token, ptrdiff_t column) {
    return column == 0 ? 1 : column == 1 ? token % 3 == 2 ? 5 : -INFINITY : (double)token;
}

static void try_infinities(void) {
    static problem p;
    for (ptrdiff_t n = 1; n <= MOST; n++) {
        attend(&p, n, 1, extreme, 1);
        assert_softmax(&p, n, 1);
        attend(&p, n, 1, hidden, 1);
        assert_softmax(&p, n, 1);
        mg_tape_reset(tape);
    }
}

static void infinite_scores_are_limits(void **state) {
    (void)state;
    on_every_processor(try_infinities);
}

int main(void) {
#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        test(scores_of_any_size),
        test(infinite_scores_are_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
