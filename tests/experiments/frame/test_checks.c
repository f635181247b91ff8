/* A verdict is what was measured: NaN never passes, and the texts say what the verdict says. */
#include "lab_for_test.h"

static const lab_check *last_check(const mg_lab *lab) {
    return lab->checks.item[lab->checks.n - 1];
}

static void nothing_unmeasured_passes(void **state) {
    (void)state;
    char folder[64];
    mg_lab *lab = lab_for_test(folder);
    static const double bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double x = bad[i];
        assert_false(lab_check_zero(lab, "zero", x, ""));
        assert_false(lab_check_below(lab, "below", x, 1, ""));
        assert_false(lab_check_at_most(lab, "at most", x, 1, ""));
        assert_false(lab_check_above(lab, "above", x, 1, ""));
        assert_false(lab_check_at_least(lab, "at least", x, 1, ""));
        assert_false(lab_check_near(lab, "near", x, 1, 1e300, ""));
        assert_false(lab_check_near(lab, "near itself", x, x, INFINITY, ""));
        assert_false(lab_check_between(lab, "between", x, -INFINITY, INFINITY, ""));
        assert_false(lab_check_below(lab, "below it", 1, NAN, ""));
    }
    assert_int_equal(lab_count_of(lab, LAB_FAIL), lab->checks.n);
    lab_check_below(lab, "loss", NAN, 1, "nats");
    assert_string_equal(last_check(lab)->observed, "not measured");
    assert_false(lab_check_same_text(lab, "text", NULL, "a"));
    assert_false(lab_check_same_text(lab, "text", NULL, NULL));
    assert_string_equal(last_check(lab)->observed, "not produced");
    remove_lab(lab);
}

static void verdicts_at_their_limits(void **state) {
    (void)state;
    char folder[64];
    mg_lab *lab = lab_for_test(folder);
    assert_true(lab_check_zero(lab, "zero", -0.0, ""));
    assert_string_equal(last_check(lab)->observed, "0");
    assert_false(lab_check_zero(lab, "zero", 5e-324, ""));
    assert_false(lab_check_below(lab, "below", 1, 1, ""));
    assert_true(lab_check_at_most(lab, "at most", 1, 1, ""));
    assert_false(lab_check_above(lab, "above", 1, 1, ""));
    assert_true(lab_check_at_least(lab, "at least", 1, 1, ""));
    assert_true(lab_check_near(lab, "near", 1.5, 1, 0.5, ""));
    assert_true(lab_check_near(lab, "exactly", 8, 8, 0, "cells"));
    assert_string_equal(last_check(lab)->expected, "exactly 8 cells");
    assert_true(lab_check_between(lab, "between", 2, 2, 3, ""));
    assert_true(lab_check_count(lab, "count", 123456, 123456, "bytes"));
    assert_string_equal(last_check(lab)->expected, "123456 bytes");
    assert_string_equal(last_check(lab)->observed, "123456 bytes");
    assert_false(lab_check_count(lab, "count", 123457, 123456, ""));
    remove_lab(lab);
}

/* What the texts of a check of "below" say, read back. */
static void texts_say_the_verdict(void **state) {
    (void)state;
    char folder[64];
    mg_lab *lab = lab_for_test(folder);
    for (int i = -60; i <= 60; i++) {
        double limit = 1.0 / 3, observed = limit + i * pow(10, -4 - (abs(i) % 12));
        bool passed = lab_check_below(lab, "below", observed, limit, "nats");
        double said, said_limit;
        assert_int_equal(sscanf(last_check(lab)->observed, "%lf nats", &said), 1);
        assert_int_equal(sscanf(last_check(lab)->expected, "below %lf nats", &said_limit), 1);
        assert_int_equal(said < said_limit, passed);
        passed = lab_check_near(lab, "near", observed, limit, 1e-6, "");
        double said_tolerance;
        assert_int_equal(sscanf(last_check(lab)->observed, "%lf", &said), 1);
        assert_int_equal(sscanf(last_check(lab)->expected, "%lf ± %lf", &said_limit, &said_tolerance), 2);
        assert_int_equal(fabs(said - said_limit) <= said_tolerance, passed);
    }
    lab_check_near(lab, "as written", 1.3256, 1.325575, 0.0001, "nats");
    assert_string_equal(last_check(lab)->expected, "1.325575 ± 0.0001 nats");
    remove_lab(lab);
}

static void texts_are_compared_whole(void **state) {
    (void)state;
    char folder[64];
    mg_lab *lab = lab_for_test(folder);
    char a[400], b[400];
    memset(a, 'x', sizeof a);
    a[399] = '\0';
    memcpy(b, a, sizeof a);
    assert_true(lab_check_same_text(lab, "same", a, b));
    b[390] = 'y';
    assert_false(lab_check_same_text(lab, "same", a, b));
    assert_says(last_check(lab)->expected, "y"); /* the excerpt shows where they part */
    remove_lab(lab);
}

/* Undecided is neither: it counts as no pass, and a failure beside it still decides. */
static void undecided_is_no_pass(void **state) {
    (void)state;
    char folder[64];
    mg_lab *lab = lab_for_test(folder);
    lab_check_below(lab, "loss", 1, 2, "nats");
    assert_int_equal(lab_verdict_of(lab), LAB_PASS);
    assert_string_equal(lab_verdicts_in_words(lab), "1 of 1 checks pass");
    lab_undecided(lab, "learned", 4.175, "nats", "a text of %d symbols", 4);
    assert_string_equal(last_check(lab)->expected, "a text of 4 symbols");
    assert_string_equal(last_check(lab)->observed, "4.175 nats");
    assert_int_equal(lab_verdict_of(lab), LAB_UNDECIDED);
    assert_string_equal(lab_verdicts_in_words(lab), "1 of 2 checks pass, 1 is undecided");
    lab_undecided(lab, "nothing", NAN, "nats", "nothing flows");
    assert_string_equal(last_check(lab)->observed, "not measured");
    lab_check_below(lab, "loss", 3, 2, "nats");
    assert_int_equal(lab_verdict_of(lab), LAB_FAIL);
    assert_string_equal(lab_verdicts_in_words(lab), "1 of 4 checks pass, 1 fails, 2 are undecided");
    remove_lab(lab);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_unmeasured_passes), cmocka_unit_test(verdicts_at_their_limits),
        cmocka_unit_test(texts_say_the_verdict),     cmocka_unit_test(texts_are_compared_whole),
        cmocka_unit_test(undecided_is_no_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
