/* How long a lab says it still takes. */
#include "time_left.h"

#include "check.h"

#include <math.h>
#include <string.h>

static void is_not_said_before_it_is_known(void **state) {
    (void)state;
    assert_true(isnan(lab_seconds_left(1.9, 100, 1000)));
    assert_true(isnan(lab_seconds_left(60, 0, 1000)));
    assert_true(isnan(lab_seconds_left(60, 19, 1000)));
    assert_true(isfinite(lab_seconds_left(60, 20, 1000)));
}

static void follows_from_the_finished_steps(void **state) {
    (void)state;
    assert_close(lab_seconds_left(10, 250, 1000), 30, 1e-12);
    assert_close(lab_seconds_left(10, 1000, 1000), 0, 1e-12);
    assert_close(lab_seconds_left(4, 1, 3), 8, 1e-12);
}

static void says_no_more_than_it_knows(void **state) {
    (void)state;
    static const struct {
        double seconds;
        const char *words;
    } rows[] = {{NAN, ""},
                {1.9, ""},
                {2, "about 2 s left"},
                {9.2, "about 10 s left"},
                {10.4, "about 15 s left"},
                {38, "about 40 s left"},
                {60, "about 60 s left"},
                {61, "about 2 min left"},
                {3600, "about 60 min left"},
                {5400, "about 1.5 h left"}};
    char text[64];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        lab_time_left_words(rows[i].seconds, text, sizeof text);
        assert_string_equal(text, rows[i].words);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_not_said_before_it_is_known),
        cmocka_unit_test(follows_from_the_finished_steps),
        cmocka_unit_test(says_no_more_than_it_knows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
