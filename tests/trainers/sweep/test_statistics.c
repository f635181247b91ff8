/* Means, Student's t and Welch's interval, beside NumPy's and SciPy's (tests/reference/make_statistics.py). */
#include "check.h"
#include "statistics.h"

#include <math.h>

static const double a[] = {1.376, 1.402, 1.381, 1.395, 1.369}, b[] = {0.043, 0.051, 0.0405, 0.047};

static void assert_relative(double found, double wanted) {
    assert_close(found / wanted, 1, 1e-12);
}

/* SciPy's quantiles are right to about nine digits. */
static void assert_as_scipy(double found, double wanted) {
    assert_close(found / wanted, 1, 1e-8);
}

static void summaries(void **state) {
    (void)state;
    mg_summary s = mg_summarize(5, a);
    assert_int_equal(s.n, 5);
    assert_relative(s.mean, 1.3846000000000001);
    assert_relative(s.sd, 0.013612494260788499);
    assert_relative(s.se, 0.0060876925020897669);
    s = mg_summarize(4, b);
    assert_relative(s.mean, 0.045374999999999999);
    assert_relative(s.sd, 0.0046075119822596945);
    assert_relative(s.se, 0.0023037559911298472);
}

/* What is not finite does not count; without enough numbers there is no spread, and never one of 0. */
static void what_is_missing(void **state) {
    (void)state;
    const double holes[] = {NAN, 2, INFINITY, 4, -INFINITY};
    mg_summary s = mg_summarize(5, holes);
    assert_int_equal(s.n, 2);
    assert_close(s.mean, 3, 0);
    assert_relative(s.sd, sqrt(2));
    s = mg_summarize(2, holes);
    assert_int_equal(s.n, 1);
    assert_close(s.mean, 2, 0);
    assert_true(isnan(s.sd) && isnan(s.se) && isnan(mg_mean_interval(&s).low));
    s = mg_summarize(1, holes);
    assert_int_equal(s.n, 0);
    assert_true(isnan(s.mean));
    mg_summary whole = mg_summarize(5, a);
    assert_true(isnan(mg_welch_of(&s, &whole).interval.low) && isnan(mg_welch_of(&whole, &s).interval.high));
    const double same[] = {7, 7, 7};
    s = mg_summarize(3, same);
    assert_close(s.sd, 0, 0);
    assert_close(mg_welch_of(&s, &s).interval.low, 0, 0);
}

/* Large numbers that differ little keep their spread. */
static void nothing_cancels(void **state) {
    (void)state;
    const double far[] = {1e9 + 1, 1e9 + 2, 1e9 + 3};
    assert_relative(mg_summarize(3, far).sd, 1);
}

static void quantiles(void **state) {
    (void)state;
    static const double known[][3] = {
        {0.7, 36.611415029868937, 0.35603136567741978},  {1, 12.706204736432095, 0.32491969623407446},
        {2, 4.3026527299112747, 0.2886751346880066},     {3.3, 3.0248744618409331, 0.27450197421010231},
        {10, 2.2281388519649385, 0.26018482949208005},   {29, 2.045229642132703, 0.25568363396713761},
        {1000, 1.9623390808264074, 0.25341451583949864}, {10000, 1.9602012398906259, 0.25335384344572681},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_as_scipy(mg_student_quantile(0.975, known[i][0]), known[i][1]);
        assert_as_scipy(mg_student_quantile(0.6, known[i][0]), known[i][2]);
        assert_as_scipy(mg_student_quantile(0.025, known[i][0]), -known[i][1]);
    }
    assert_close(mg_student_quantile(0.5, 4), 0, 1e-12);
    /* Two that have a formula: tan(pi (p - 1/2)), and (2p - 1) sqrt(2 / (4p (1 - p))). */
    assert_relative(mg_student_quantile(0.975, 1), tan(0.475 * acos(-1)));
    assert_relative(mg_student_quantile(0.6, 2), 0.2 * sqrt(2 / 0.96));
}

static void welch(void **state) {
    (void)state;
    double shifted[5];
    for (int i = 0; i < 5; i++) shifted[i] = a[i] + 0.01;
    mg_summary all_a = mg_summarize(5, a), two_a = mg_summarize(2, a), all_b = mg_summarize(4, b),
               near = mg_summarize(5, shifted);
    const mg_welch found[] = {mg_welch_of(&all_a, &all_b), mg_welch_of(&two_a, &all_b), mg_welch_of(&all_a, &near)};
    static const double known[][4] = {
        {1.3392250000000001, 5.0885537267749106, 1.3225802429269644, 1.3558697570730358},
        {1.3436249999999998, 1.0634448066468649, 1.1977673474181176, 1.4894826525818821},
        {-0.010000000000000009, 8, -0.029853075173560121, 0.0098530751735601031},
    };
    for (int i = 0; i < 3; i++) {
        assert_relative(found[i].difference, known[i][0]);
        assert_relative(found[i].df, known[i][1]);
        assert_as_scipy(found[i].interval.low, known[i][2]);
        assert_as_scipy(found[i].interval.high, known[i][3]);
    }
    assert_true(found[2].interval.low < 0 && found[2].interval.high > 0); /* undecided, as it should be */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(summaries), cmocka_unit_test(what_is_missing), cmocka_unit_test(nothing_cancels),
        cmocka_unit_test(quantiles), cmocka_unit_test(welch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
