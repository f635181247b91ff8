#include "sampler.h"

#include "check.h"

enum { V = 6 };
static const mg_real logits[V] = {1, 3, 2, 3, -1, 0};

static int support(const mg_sampler *s, double *p) {
    int order[V], n = 0;
    double sum = 0;
    mg_sampler_probabilities(s, logits, V, p, order);
    for (int i = 0; i < V; i++) {
        n += p[i] > 0;
        sum += p[i];
    }
    assert_close(sum, 1, 1e-12);
    return n;
}

static void greedy_takes_the_lowest_id_of_equals(void **state) {
    (void)state;
    double p[V];
    assert_int_equal(support(&(mg_sampler){0, 0, 1}, p), 1);
    assert_true(p[1] == 1);
}

static void top_k_has_exactly_k(void **state) {
    (void)state;
    double p[V], all[V];
    support(&(mg_sampler){0.7, 0, 1}, all);
    for (int k = 1; k <= V + 2; k++) {
        assert_int_equal(support(&(mg_sampler){0.7, k, 1}, p), k < V ? k : V);
        if (k >= V)
            for (int i = 0; i < V; i++) assert_true(p[i] == all[i]); /* at or above the vocabulary: no effect */
    }
    support(&(mg_sampler){0.7, 1, 1}, p);
    assert_true(p[1] == 1 && p[3] == 0);
    support(&(mg_sampler){1, 3, 1}, p); /* 3, 3, 2: e^0, e^0, e^-1 */
    assert_close(p[2], exp(-1) / (2 + exp(-1)), 1e-12);
}

static void top_p_is_the_smallest_set_that_reaches_it(void **state) {
    (void)state;
    double all[V], p[V];
    support(&(mg_sampler){1, 0, 1}, all);
    const int by_likelihood[V] = {1, 3, 2, 0, 5, 4};
    double mass = 0;
    for (int i = 0; i < V; i++) {
        assert_int_equal(support(&(mg_sampler){1, 0, mass + all[by_likelihood[i]] / 2}, p), i + 1);
        for (int k = 0; k < V; k++) assert_int_equal(p[by_likelihood[k]] > 0, k <= i);
        mass += all[by_likelihood[i]];
    }
    assert_int_equal(support(&(mg_sampler){1, 2, 0.4}, p), 1); /* of the best two, half the mass each */
}

static void draws_follow_the_probabilities(void **state) {
    (void)state;
    enum { N = 40000 };
    double p[V];
    int count[V] = {0};
    support(&(mg_sampler){1, 4, 1}, p);
    for (uint64_t i = 0; i < N; i++) count[mg_sampler_draw(p, V, (mg_rng){7, MG_STREAM_SAMPLE, 0}, i)]++;
    for (int i = 0; i < V; i++) assert_close(count[i], N * p[i], 4 * sqrt(N * p[i] * (1 - p[i])) + 0.5);
}

static void limits(void **state) {
    (void)state;
    mg_error e;
    double p[V];
    int order[V];
    assert_int_equal(mg_sampler_check(&(mg_sampler){-1, 0, 1}, &e), MG_ERR_INPUT);
    assert_int_equal(mg_sampler_check(&(mg_sampler){NAN, 0, 1}, &e), MG_ERR_INPUT);
    assert_int_equal(mg_sampler_check(&(mg_sampler){1, -1, 1}, &e), MG_ERR_INPUT);
    assert_int_equal(mg_sampler_check(&(mg_sampler){1, 0, -0.1}, &e), MG_ERR_INPUT);
    assert_int_equal(mg_sampler_check(&(mg_sampler){1, 0, 0}, &e), MG_OK);
    assert_int_equal(mg_sampler_check(&(mg_sampler){1, 0, NAN}, &e), MG_ERR_INPUT);
    assert_int_equal(mg_sampler_check(&(mg_sampler){0, 0, 1}, &e), MG_OK);
    assert_fails(mg_sampler_probabilities(&(mg_sampler){1, 0, 1}, (mg_real[]){0, (mg_real)NAN}, 2, p, order),
                 "token 1");
    mg_sampler_probabilities(&(mg_sampler){1, 0, 1}, (mg_real[]){0, (mg_real)INFINITY, -(mg_real)INFINITY}, 3, p,
                             order);
    assert_true(p[0] == 0 && p[1] == 1 && p[2] == 0);
    mg_sampler_probabilities(&(mg_sampler){1, 1, 1}, (mg_real[]){5}, 1, p, order); /* a vocabulary of one */
    assert_true(p[0] == 1 && mg_sampler_draw(p, 1, (mg_rng){0, MG_STREAM_SAMPLE, 0}, 0) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_takes_the_lowest_id_of_equals),
        cmocka_unit_test(top_k_has_exactly_k),
        cmocka_unit_test(top_p_is_the_smallest_set_that_reaches_it),
        cmocka_unit_test(draws_follow_the_probabilities),
        cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
