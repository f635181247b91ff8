/* What is translated and what is not, and formats that are filled in by mg_vwords as by vsnprintf. */
#include "check.h"
#include "language.h"

#include <inttypes.h>
#include <stdlib.h>

/* One word, as a catalog would translate it. */
static const char *translated(const char *text, const void *user) {
    (void)user;
    return strcmp(text, "loss") == 0 ? "perda média" : text;
}

static int words(char *text, size_t size, bool ascii, const char *format, ...) MG_PRINTF(4, 5);
static int words(char *text, size_t size, bool ascii, const char *format, ...) {
    const mg_wording wording = {translated, NULL, ascii};
    va_list arguments;
    va_start(arguments, format);
    int n = mg_vwords(text, size, &wording, format, arguments);
    va_end(arguments);
    return n;
}

/* Every conversion of the program, with flags, widths and precisions. */
static void test_as_vsnprintf(void **state) {
    (void)state;
    char ours[256], theirs[256];
#define SAME(...)                                                                                                      \
    do {                                                                                                               \
        int n = snprintf(theirs, sizeof theirs, __VA_ARGS__);                                                          \
        assert_int_equal(words(ours, sizeof ours, false, __VA_ARGS__), n);                                             \
        assert_string_equal(ours, theirs);                                                                             \
    } while (0)
    SAME("nothing");
    SAME("100%% of it, %d%%", 7);
    SAME("%d %5d|%-5d|%05d|%+d", 1, -2, 3, 4, 5);
    SAME("%u %x %o %c", 4000000000U, 255U, 8U, 'x');
    SAME("%ld %lld %zu %td %" PRId64 " %" PRIu64 " %016" PRIx64, -5L, 1LL << 40, (size_t)7, (ptrdiff_t)-8, INT64_MIN,
         UINT64_MAX, UINT64_C(0xABCDEF));
    SAME("%.4f %8.2f|%-8.1e|%g %+.3g %.*g", 1.5, -2.25, 1e-9, 0.1, 3.0, 3, 3.14159);
    SAME("%f %g %g", NAN, INFINITY, -INFINITY);
    SAME("%s|%10s|%-10s|%.3s|%.*s|%*s|%-*s|", "a", "b", "c", "defgh", 2, "ijk", 4, "l", 5, "m");
    char reordered[] = "%2$s comes before %1$d"; /* as a catalog may have it: no format of ISO C */
    SAME(reordered, 3, "this");
    SAME("%*d|%-*d|%.*f", -6, 1, 6, 2, 2, 3.14159);
    SAME("%p", (void *)ours);
#undef SAME
}

static void test_cut(void **state) {
    (void)state;
    char text[6];
    assert_int_equal(words(text, sizeof text, false, "%d and %s", 12, "more"), 11);
    assert_string_equal(text, "12 an");
    assert_int_equal(words(NULL, 0, false, "%s", "four"), 4);
}

static void test_words_in_a_format(void **state) {
    (void)state;
    char text[64];
    words(text, sizeof text, false, "%-12s|%12s|", "loss", "loss");
    assert_string_equal(text, "perda média | perda média|"); /* columns, not bytes */
    words(text, sizeof text, true, "%s: %s", "loss", "média");
    assert_string_equal(text, "perda media: média"); /* what is not ours stays */
    words(text, sizeof text, false, "--%s '%s' %s.%s %.4s (%s)", "loss", "loss", "a", "loss", "loss", "loss");
    assert_string_equal(text, "--loss 'loss' a.loss loss (perda média)"); /* names, and a word */
}

static void test_ascii(void **state) {
    (void)state;
    const char *in = "áàâãçéêíóôõúüÁÇÉÃ≤“—", *out = "aaaaceeiooouuACEA<=\"-";
    while (*in) {
        size_t n;
        const char *ascii = mg_ascii_of(in, &n);
        assert_memory_equal(ascii, out, strlen(ascii));
        out += strlen(ascii);
        in += n;
    }
    assert_string_equal(out, "");
}

static void test_without_a_catalog(void **state) {
    (void)state;
    const char *const folders[] = {"/nonexistent"};
    char data[] = "loss";
    assert_false(mg_language_begin("pt-BR", 1, folders));
    assert_false(mg_language_begin("../../etc", 1, folders));
    assert_true(mg_language_begin("en", 1, folders));
    assert_true(mg_language_is_english());
    assert_string_equal(mg_language(), "en");
    assert_ptr_equal(mg_words(data), data);
    assert_string_equal(mg_count(2, "step").text, "2 steps");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_vsnprintf),      cmocka_unit_test(test_cut),
        cmocka_unit_test(test_words_in_a_format), cmocka_unit_test(test_ascii),
        cmocka_unit_test(test_without_a_catalog),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
