#include "rng.h"
#include "utf8.h"

#include "check.h"

#define REPLACED "\xEF\xBF\xBD"

static void next_follows_the_table_of_the_standard(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        int expected;
    } cases[] = {
        {"a", 1},
        {"\xC3\xA9", 2},
        {"\xE2\x82\xAC", 3},
        {"\xF0\x9F\x98\x80", 4},
        {"\xF4\x8F\xBF\xBF", 4}, /* U+10FFFF, the last */
        {"\xED\x9F\xBF", 3},     /* U+D7FF, before the surrogates */
        {"\xC3", 0},
        {"\xE2\x82", 0},
        {"\xF0\x9F\x98", 0},
        {"\x80", -1},
        {"\xC0\xAF", -1},         /* overlong '/' */
        {"\xE0\x80\xAF", -1},     /* overlong too */
        {"\xF0\x80\x80\xAF", -1}, /* and this */
        {"\xED\xA0\x80", -1},     /* U+D800, a surrogate */
        {"\xF4\x90\x80\x80", -1}, /* U+110000 */
        {"\xF5\x80", -1},
        {"\xFF", -1},
        {"\xC3"
         "a",
         -1},
        {"\xE2\x82"
         "a",
         -2},
        {"\xF0\x9F\x98"
         "a",
         -3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(mg_utf8_next(cases[i].bytes, strlen(cases[i].bytes)), cases[i].expected);
    assert_int_equal(mg_utf8_next("", 1), 1); /* U+0000 is a character */
}

/* Push `bytes` in pieces of `step`, flush, and compare everything printed. */
static void assert_prints(const char *bytes, size_t step, const char *expected) {
    mg_utf8_stream stream = {0};
    char printed[256];
    size_t at = 0, n = strlen(bytes);
    for (size_t i = 0; i < n; i += step)
        at += mg_utf8_push(&stream, bytes + i, n - i < step ? n - i : step, printed + at);
    at += mg_utf8_flush(&stream, printed + at);
    printed[at] = '\0';
    assert_string_equal(printed, expected);
}

static void an_emoji_is_held_back_until_it_is_whole(void **state) {
    (void)state;
    mg_utf8_stream stream = {0};
    char printed[MG_UTF8_ROOM(2)];
    assert_int_equal(mg_utf8_push(&stream, "a\xF0", 2, printed), 1);
    assert_int_equal(mg_utf8_push(&stream, "\x9F", 1, printed), 0);
    assert_int_equal(mg_utf8_push(&stream, "", 0, printed), 0);
    assert_int_equal(mg_utf8_push(&stream, "\x98", 1, printed), 0);
    assert_int_equal(mg_utf8_push(&stream, "\x80z", 2, printed), 5);
    assert_memory_equal(printed, "\xF0\x9F\x98\x80z", 5);
    assert_int_equal(mg_utf8_flush(&stream, printed), 0);
}

static void what_is_invalid_prints_as_u_fffd_however_it_is_cut(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"plain", "plain"},
        {"ol\xC3\xA1 \xF0\x9F\x98\x80!", "ol\xC3\xA1 \xF0\x9F\x98\x80!"},
        {"\x80\xBF", REPLACED REPLACED},
        {"\xF0\x9F\x98", REPLACED}, /* the text ends within a character */
        {"\xF0\x9F\x98\xF0\x9F\x98\x80", REPLACED "\xF0\x9F\x98\x80"},
        {"\xE2\x82 x", REPLACED " x"},
        {"\xED\xA0\x80", REPLACED REPLACED REPLACED},
        /* The example of the Unicode Standard, table 3-8. */
        {"\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64",
         "a" REPLACED REPLACED REPLACED "b" REPLACED "c" REPLACED REPLACED "d"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t step = 1; step <= 8; step++) assert_prints(cases[i][0], step, cases[i][1]);
}

static void random_bytes_print_as_valid_utf8_within_the_room(void **state) {
    (void)state;
    mg_rng rng = {1, MG_STREAM_TEST, 0};
    mg_utf8_stream stream = {0};
    for (uint64_t round = 0; round < 2000; round++) {
        char bytes[8], printed[MG_UTF8_ROOM(8)];
        size_t n = mg_rng_below(rng, round * 16, 9);
        for (size_t i = 0; i < n; i++) bytes[i] = (char)(mg_rng_below(rng, round * 16 + 1 + i, 256));
        size_t length = mg_utf8_push(&stream, bytes, n, printed);
        assert_true(length <= MG_UTF8_ROOM(n));
        for (size_t at = 0; at < length;) {
            int next = mg_utf8_next(printed + at, length - at);
            assert_true(next > 0);
            at += (size_t)next;
        }
    }
}

static void columns_count_characters(void **state) {
    (void)state;
    assert_int_equal(mg_utf8_columns(""), 0);
    assert_int_equal(mg_utf8_columns("a\xC3\xA7\xC3\xA3o"), 4);
    assert_int_equal(mg_utf8_fitting("a\xC3\xA7\xC3\xA3o", 2), 3);
    assert_int_equal(mg_utf8_fitting("a\xC3\xA7\xC3\xA3o", 4), 6);
    assert_int_equal(mg_utf8_fitting("ab", 80), 2);
    assert_int_equal(mg_utf8_columns("\xE6\xBC\xA2\xE5\xAD\x97"), 4);      /* two characters of East Asia */
    assert_int_equal(mg_utf8_fitting("\xE6\xBC\xA2\xE5\xAD\x97", 3), 3); /* half a character does not fit */
    assert_int_equal(mg_utf8_columns("a\xCC\x83o"), 2);                     /* a tilde on the a */
    assert_int_equal(mg_utf8_columns("\xFF\xE6\xBC"), 2);                  /* bytes that are none */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(next_follows_the_table_of_the_standard),
        cmocka_unit_test(an_emoji_is_held_back_until_it_is_whole),
        cmocka_unit_test(what_is_invalid_prints_as_u_fffd_however_it_is_cut),
        cmocka_unit_test(columns_count_characters),
        cmocka_unit_test(random_bytes_print_as_valid_utf8_within_the_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
