/* What occurs in both splits, in texts of which it is known. */
#include "repetition.h"

#include "check.h"

#include <stdlib.h>
#include <unistd.h>

static const mg_data_options usual = {.validation = 0.1, .seed = 1337};

static mg_error error;

static double repetition_of(const char *text, size_t size, const char *tokens, double validation) {
    char path[] = "/tmp/maskgrad-test-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, size), size);
    close(file);
    mg_data_options options = usual;
    options.path = path;
    options.tokens = tokens;
    options.validation = validation;
    mg_corpus *corpus;
    assert_int_equal(mg_corpus_load(&corpus, &options, &error), MG_OK);
    unlink(path);
    double share;
    assert_int_equal(mg_corpus_repetition(corpus, &share, &error), MG_OK);
    mg_corpus_free(corpus);
    return share;
}

enum { N = 100000, TAIL = 10000 };
static char text[N];

static void draw_text(void) {
    for (size_t i = 0; i < N; i++)
        text[i] = (char)(i % 7 == 6 ? ' ' : 'a' + (int)mg_rng_below((mg_rng){1, MG_STREAM_TEST, 0}, i, 26));
}

static void test_random_letters_recur_nowhere(void **state) {
    (void)state;
    draw_text();
    assert_close(repetition_of(text, N, "char", 0.1), 0, 0);
    assert_close(repetition_of(text, N, "word", 0.1), 0, 0);
}

static void test_a_copied_part_is_its_share(void **state) {
    (void)state;
    const double parts[] = {0.03, 0.25, 0.5, 1};
    for (int i = 0; i < 4; i++) {
        draw_text();
        size_t copied = (size_t)(parts[i] * TAIL);
        memcpy(text + N - TAIL, text + 777, copied); /* windows that end in it: all but the last 49 */
        double share = (double)(copied - 49) / (TAIL - 49);
        assert_close(repetition_of(text, N, "char", 0.1), share, 0.01);
    }
    assert_close(repetition_of(text, N, "char", 0), 0, 0); /* one split: nothing to compare */
}

static void test_edges(void **state) {
    (void)state;
    for (size_t i = 0; i < N; i++) text[i] = 'a'; /* every window is the same one */
    assert_close(repetition_of(text, N, "char", 0.1), 1, 0);
    assert_close(repetition_of(text, 500, "char", 0.1), 1, 0); /* one window of 50 */
    assert_close(repetition_of(text, 490, "char", 0.1), 0, 0); /* none */
    draw_text();
    memcpy(text + 450, text + 1, 50);
    assert_close(repetition_of(text, 500, "char", 0.1), 1, 0);
    text[449 + 50] = '#'; /* one letter less */
    assert_close(repetition_of(text, 500, "char", 0.1), 0, 0);
    mg_data_options options = usual;
    options.path = MASKGRAD_SOURCE_DIR "/datasets/data/frases.csv";
    options.grammar_size = 5000;
    mg_corpus *corpus;
    double share;
    assert_int_equal(mg_corpus_load(&corpus, &options, &error), MG_OK);
    assert_int_equal(mg_corpus_repetition(corpus, &share, &error), MG_OK);
    assert_close(share, 0, 0); /* a grammar's sentences recur by their nature */
    mg_corpus_free(corpus);
}

static void test_it_is_said_above_one_percent(void **state) {
    (void)state;
    char said[256];
    assert_null(mg_repetition_say(0.01, said, sizeof said));
    assert_null(mg_repetition_say(NAN, said, sizeof said));
    assert_says(mg_repetition_say(0.346, said, sizeof said), "35% of the validation windows of 50 characters");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_letters_recur_nowhere),
        cmocka_unit_test(test_a_copied_part_is_its_share),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_it_is_said_above_one_percent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
