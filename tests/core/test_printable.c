#include "printable.h"
#include "utf8.h"

#include "check.h"

#include <stdbool.h>

static void assert_shown(const char *text, const char *expected) {
    assert_string_equal(mg_shown(text).text, expected);
}

static void printable_text_stays(void **state) {
    (void)state;
    const char *const texts[] = {
        "",        "plain", "maçã 日本語 😀", "back\\slash \\n", "e\xCC\x81", "\xE2\x80\x8D" /* joins emoji */,
        "\xC2\xA0" /* no-break space, after C1 */};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) assert_shown(texts[i], texts[i]);
}

static void what_a_terminal_obeys_is_written_out(void **state) {
    (void)state;
    assert_shown("\x1B[31mred\x07", "\\x1B[31mred\\x07");
    assert_shown("a\nb\rc\td\x7F", "a\\nb\\rc\\td\\x7F");
    assert_shown("\xC2\x9B"
                 "31m\xC2\x80\xC2\x9F",
                 "\\u009B31m\\u0080\\u009F");
    assert_shown("\xE2\x80\xAA\xE2\x80\xAE\xE2\x81\xA6\xE2\x81\xA9\xE2\x80\x8E\xE2\x80\x8F\xD8\x9C",
                 "\\u202A\\u202E\\u2066\\u2069\\u200E\\u200F\\u061C");
    assert_shown("\xE2\x80\xA8\xE2\x80\xA9\xE2\x80\x8B\xEF\xBB\xBF", "\\u2028\\u2029\\u200B\\uFEFF");
    assert_shown("\xFF\xC3(\xE2\x82", "\\xFF\\xC3(\\xE2\\x82");
}

static void a_zero_is_a_control_character_too(void **state) {
    (void)state;
    char out[16];
    assert_int_equal(mg_printable(out, sizeof out, "a\0b", 3, "\n"), 6);
    assert_string_equal(out, "a\\x00b");
}

static void some_may_be_kept(void **state) {
    (void)state;
    char out[32];
    mg_printable(out, sizeof out, "a\n\tb\r\x1B", 6, "\n\t");
    assert_string_equal(out, "a\n\tb\\r\\x1B");
}

/* Every code point: nothing that is left moves the cursor or turns the line, and once more changes nothing. */
static void every_character_is_shown_or_written_out(void **state) {
    (void)state;
    for (uint32_t c = 0; c <= 0x10FFFF; c++) {
        if (c >= 0xD800 && c <= 0xDFFF) continue;
        char bytes[4], out[16], again[16];
        size_t n = 0;
        if (c < 0x80) bytes[n++] = (char)c;
        if (c >= 0x80 && c < 0x800) bytes[n++] = (char)(0xC0 | c >> 6);
        if (c >= 0x800 && c < 0x10000) bytes[n++] = (char)(0xE0 | c >> 12);
        if (c >= 0x10000) bytes[n++] = (char)(0xF0 | c >> 18);
        if (c >= 0x10000) bytes[n++] = (char)(0x80 | (c >> 12 & 0x3F));
        if (c >= 0x800) bytes[n++] = (char)(0x80 | (c >> 6 & 0x3F));
        if (c >= 0x80) bytes[n++] = (char)(0x80 | (c & 0x3F));
        size_t length = mg_printable(out, sizeof out, bytes, n, "");
        assert_int_equal(length, strlen(out));
        bool is_same = length == n && memcmp(out, bytes, n) == 0;
        bool is_control = c < 0x20 || (c >= 0x7F && c < 0xA0);
        if (is_control) assert_false(is_same);
        if (!is_same) assert_int_equal(out[0], '\\');
        for (size_t i = 0; i < length; i++) assert_true((unsigned char)out[i] >= 0x20 && out[i] != 0x7F);
        mg_printable(again, sizeof again, out, length, "");
        assert_string_equal(again, out);
    }
}

/* Whatever the room, the result fits, is UTF-8, and shows by its end that it was cut. */
static void long_text_is_cut_between_characters(void **state) {
    (void)state;
    static const char text[] = "añ\x1B日\n😀\xFFz";
    char whole[64];
    size_t length = mg_printable(whole, sizeof whole, text, sizeof text - 1, "");
    for (size_t room = 4; room < sizeof whole; room++) {
        char out[sizeof whole + 1];
        memset(out, '#', sizeof out);
        size_t n = mg_printable(out, room, text, sizeof text - 1, "");
        assert_true(n < room);
        assert_int_equal(strlen(out), n);
        assert_int_equal(out[room], '#');
        assert_int_equal(mg_utf8_check(out, n, NULL), MG_OK);
        if (room > length) {
            assert_string_equal(out, whole);
        } else {
            assert_string_equal(out + n - 3, "…");
            assert_memory_equal(out, whole, n - 3);
        }
    }
}

static void no_error_carries_a_control_character(void **state) {
    (void)state;
    mg_error error;
    assert_int_equal(mg_error_set(&error, MG_ERR_FORMAT, "%s: \x1B]0;%s", "a\nb", "\xC2\x9B"), MG_ERR_FORMAT);
    assert_string_equal(error.message, "a\\nb: \\x1B]0;\\u009B");
    /* A message may be wrapped in another one, also in its own place. */
    mg_error_set(&error, MG_ERR_FORMAT, "file: %s", error.message);
    assert_string_equal(error.message, "file: a\\nb: \\x1B]0;\\u009B");
    assert_fails(mg_fail(MG_FAILURE_BUG, "f.c", 1, "odd: %s", "\x1B"), "f.c:1: odd: \\x1B");
}

static void a_long_error_is_cut_between_characters(void **state) {
    (void)state;
    mg_error error;
    char name[4 * sizeof error.message];
    for (size_t shift = 0; shift < 4; shift++) {
        memset(name, 'a', shift);
        for (size_t i = shift; i + 4 <= sizeof name; i += 3) memcpy(name + i, "日", 4);
        mg_error_set(&error, MG_ERR_IO, "%s", name);
        size_t length = strlen(error.message);
        assert_true(length > sizeof error.message - 8);
        assert_string_equal(error.message + length - 3, "…");
        assert_int_equal(mg_utf8_check(error.message, length, NULL), MG_OK);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(printable_text_stays),
        cmocka_unit_test(what_a_terminal_obeys_is_written_out),
        cmocka_unit_test(a_zero_is_a_control_character_too),
        cmocka_unit_test(some_may_be_kept),
        cmocka_unit_test(every_character_is_shown_or_written_out),
        cmocka_unit_test(long_text_is_cut_between_characters),
        cmocka_unit_test(no_error_carries_a_control_character),
        cmocka_unit_test(a_long_error_is_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
