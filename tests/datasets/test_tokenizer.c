#include "heap.h"
#include "rng.h"
#include "tokenizer.h"

#include "check.h"

static mg_error error;

static mg_tokenizer *from_text(mg_tokenizer_kind kind, const char *text) {
    mg_tokenizer *tokenizer;
    assert_int_equal(mg_tokenizer_from_text(&tokenizer, kind, text, strlen(text), &error), MG_OK);
    return tokenizer;
}

static void assert_round_trip(const mg_tokenizer *tokenizer, const char *text, size_t length) {
    int *ids;
    char *back;
    size_t n, n_back;
    assert_int_equal(mg_tokenizer_encode(&ids, &n, tokenizer, text, length, &error), MG_OK);
    assert_int_equal(mg_tokenizer_decode(&back, &n_back, tokenizer, ids, n, &error), MG_OK);
    assert_int_equal(n_back, length);
    assert_memory_equal(back, text, length);
    mg_free(ids);
    mg_free(back);
}

static void assert_refuses_text(const mg_tokenizer *tokenizer, const char *text, const char *part) {
    int *ids;
    size_t n;
    assert_int_not_equal(mg_tokenizer_encode(&ids, &n, tokenizer, text, strlen(text), &error), MG_OK);
    assert_says(error.message, part);
    assert_null(ids);
}

static void characters_are_sorted_by_bytes(void **state) {
    (void)state;
    mg_tokenizer *t = from_text(MG_TOKENIZER_CHAR, "olá, olé");
    const char *expected[] = {" ", ",", "l", "o", "á", "é"};
    assert_int_equal(mg_tokenizer_size(t), 6);
    for (int i = 0; i < 6; i++) {
        mg_token token = mg_tokenizer_token(t, i);
        assert_int_equal(token.length, strlen(expected[i]));
        assert_memory_equal(token.bytes, expected[i], token.length);
    }
    assert_string_equal(mg_tokenizer_separator(t, 1, 2), "");
    assert_refuses_text(t, "olá você", "'v' at byte 5");
    assert_refuses_text(t, "ol\xE1", "byte 2 (0xE1)");
    mg_tokenizer_free(t);
}

static void words_are_cut_as_documented(void **state) {
    (void)state;
    const char *text = "Oi, mundo!  x\n\ty2 — fim.";
    const char *expected[] = {"Oi", ",", " mundo", "!", " ", " x", "\n", "\t", "y2", " —", " fim", "."};
    mg_tokenizer *t = from_text(MG_TOKENIZER_WORD, text);
    int *ids;
    size_t n;
    assert_int_equal(mg_tokenizer_encode(&ids, &n, t, text, strlen(text), &error), MG_OK);
    assert_int_equal(n, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < n; i++) {
        mg_token token = mg_tokenizer_token(t, ids[i]);
        assert_int_equal(token.length, strlen(expected[i]));
        assert_memory_equal(token.bytes, expected[i], token.length);
    }
    mg_free(ids);
    assert_refuses_text(t, "Oi, lua", "' lua' at byte 3");
    mg_tokenizer_free(t);
}

/* A random character: of ASCII mostly, so that words and runs of white space arise, else of any length. */
static size_t random_character(mg_rng rng, uint64_t index, char *out) {
    uint32_t w[4];
    mg_rng_words(rng, index, w);
    if (w[0] % 4 != 0) {
        static const char common[] = "  \n\t\r.,'ab1Z\x7F\x01";
        out[0] = common[w[1] % (sizeof common - 1)];
        return 1;
    }
    uint32_t code = w[1] % 0x110000;
    if (code >= 0xD800 && code < 0xE000) code = 0xE9;
    if (code < 0x80) return out[0] = (char)code, 1;
    if (code < 0x800) return out[0] = (char)(0xC0 | code >> 6), out[1] = (char)(0x80 | (code & 63)), 2;
    size_t n = code < 0x10000 ? 3 : 4;
    out[0] = (char)(n == 3 ? 0xE0 | code >> 12 : 0xF0 | code >> 18);
    for (size_t i = 1; i < n; i++) out[i] = (char)(0x80 | (code >> (6 * (n - 1 - i)) & 63));
    return n;
}

static void any_text_comes_back(void **state) {
    (void)state;
    enum { CHARACTERS = 300 };
    for (uint32_t round = 0; round < 200; round++) {
        char text[4 * CHARACTERS];
        size_t length = 0;
        for (uint64_t i = 0; i < CHARACTERS; i++)
            length += random_character((mg_rng){9, MG_STREAM_TEST, round}, i, text + length);
        for (int kind = MG_TOKENIZER_CHAR; kind <= MG_TOKENIZER_WORD; kind++) {
            mg_tokenizer *t;
            assert_int_equal(mg_tokenizer_from_text(&t, (mg_tokenizer_kind)kind, text, length, &error), MG_OK);
            assert_round_trip(t, text, length);
            assert_round_trip(t, text, 0);
            mg_tokenizer_free(t);
        }
    }
}

/* A checkpoint stores the tokens: the same tokenizer must come from them. */
static void a_list_of_tokens_makes_the_same(void **state) {
    (void)state;
    const char *text = "um dois\ntrês dois";
    for (int kind = MG_TOKENIZER_CHAR; kind <= MG_TOKENIZER_WORD; kind++) {
        mg_tokenizer *t = from_text((mg_tokenizer_kind)kind, text), *copy;
        mg_token tokens[32];
        int n = mg_tokenizer_size(t);
        for (int i = 0; i < n; i++) tokens[i] = mg_tokenizer_token(t, i);
        assert_int_equal(mg_tokenizer_new(&copy, (mg_tokenizer_kind)kind, n, tokens, &error), MG_OK);
        mg_tokenizer_free(t);
        assert_round_trip(copy, text, strlen(text));
        mg_tokenizer_free(copy);
    }
}

static void a_grammar_tokenizer_splits_at_white_space(void **state) {
    (void)state;
    mg_tokenizer *t;
    const mg_token tokens[] = {{"o", 1}, {"cão", 4}, {".", 1}};
    assert_int_equal(mg_tokenizer_new(&t, MG_TOKENIZER_GRAMMAR, 3, tokens, &error), MG_OK);
    assert_round_trip(t, "o cão . o", 10);
    int *ids;
    size_t n;
    assert_int_equal(mg_tokenizer_encode(&ids, &n, t, "  o\ncão\t", 9, &error), MG_OK);
    assert_int_equal(n, 2);
    mg_free(ids);
    assert_refuses_text(t, "o gato", "'gato' at byte 2");
    assert_string_equal(mg_tokenizer_separator(t, -1, 0), "");
    assert_string_equal(mg_tokenizer_separator(t, 0, 1), " ");
    mg_tokenizer_free(t);
}

static void ids_alone_have_no_text(void **state) {
    (void)state;
    mg_tokenizer *t;
    assert_int_equal(mg_tokenizer_new(&t, MG_TOKENIZER_NONE, 50257, NULL, &error), MG_OK);
    assert_int_equal(mg_tokenizer_size(t), 50257);
    assert_int_equal(mg_tokenizer_token(t, 3).length, 0);
    assert_refuses_text(t, "a", "no tokenizer");
    char *bytes;
    size_t length;
    assert_int_equal(mg_tokenizer_decode(&bytes, &length, t, (int[]){1}, 1, &error), MG_ERR_INPUT);
    mg_tokenizer_free(t);
}

static void assert_refuses_tokens(mg_tokenizer_kind kind, int n, const mg_token *tokens, const char *part) {
    mg_tokenizer *t;
    assert_int_equal(mg_tokenizer_new(&t, kind, n, tokens, &error), MG_ERR_INPUT);
    assert_says(error.message, part);
    assert_null(t);
}

static void bad_vocabularies_are_refused(void **state) {
    (void)state;
    assert_refuses_tokens(MG_TOKENIZER_CHAR, 0, NULL, "at least one token");
    assert_refuses_tokens(MG_TOKENIZER_CHAR, 2, (mg_token[]){{"a", 1}, {"a", 1}}, "tokens 0 and 1 are the same: 'a'");
    assert_refuses_tokens(MG_TOKENIZER_CHAR, 2, (mg_token[]){{"a", 1}, {"", 0}}, "token 1 is empty");
    assert_refuses_tokens(MG_TOKENIZER_CHAR, 1, (mg_token[]){{"ab", 2}}, "more than one character");
    assert_refuses_tokens(MG_TOKENIZER_CHAR, 1, (mg_token[]){{"\xE9", 1}}, "token 0 ('\\xE9') is not UTF-8");
    assert_refuses_tokens(MG_TOKENIZER_WORD, 1, (mg_token[]){{"a b", 3}}, "more than one word");
    assert_refuses_tokens(MG_TOKENIZER_GRAMMAR, 1, (mg_token[]){{"a\nb", 3}}, "'a\\nb'");
    assert_refuses_tokens(MG_TOKENIZER_GPT2, 1, (mg_token[]){{"a", 1}}, "merges");
    mg_tokenizer *t;
    assert_int_equal(mg_tokenizer_from_text(&t, MG_TOKENIZER_CHAR, "", 0, &error), MG_ERR_FORMAT);
    assert_int_equal(mg_tokenizer_from_text(&t, MG_TOKENIZER_WORD, "ab\xFFz", 4, &error), MG_ERR_FORMAT);
    assert_says(error.message, "byte 2 (0xFF)");
}

static void ids_out_of_range_are_refused(void **state) {
    (void)state;
    mg_tokenizer *t = from_text(MG_TOKENIZER_CHAR, "ab");
    char *bytes;
    size_t length;
    assert_int_equal(mg_tokenizer_decode(&bytes, &length, t, (int[]){0, 2}, 2, &error), MG_ERR_INPUT);
    assert_says(error.message, "id 2");
    assert_int_equal(mg_tokenizer_decode(&bytes, &length, t, (int[]){-1}, 1, &error), MG_ERR_INPUT);
    assert_null(bytes);
    assert_fails(mg_tokenizer_token(t, 2), "id 2");
    mg_tokenizer_free(t);
}

static void kinds_have_names(void **state) {
    (void)state;
    const char *names[] = {"char", "word", "grammar", "gpt2", "none"};
    for (int i = 0; i < 5; i++) {
        mg_tokenizer_kind kind;
        assert_string_equal(mg_tokenizer_kind_name((mg_tokenizer_kind)i), names[i]);
        assert_int_equal(mg_tokenizer_kind_parse(&kind, names[i], &error), MG_OK);
        assert_int_equal(kind, i);
    }
    mg_tokenizer_kind kind;
    assert_int_equal(mg_tokenizer_kind_parse(&kind, "bpe", &error), MG_ERR_INPUT);
    assert_says(error.message, "'bpe'");
}

static void equal_is_token_by_token(void **state) {
    (void)state;
    mg_tokenizer *a = from_text(MG_TOKENIZER_CHAR, "abc"), *same = from_text(MG_TOKENIZER_CHAR, "cba"),
                 *longer = from_text(MG_TOKENIZER_CHAR, "abcd"), *other = from_text(MG_TOKENIZER_CHAR, "abd"),
                 *words = from_text(MG_TOKENIZER_WORD, "a"), *characters = from_text(MG_TOKENIZER_CHAR, "a");
    assert_true(mg_tokenizer_equal(a, a) && mg_tokenizer_equal(a, same));
    assert_false(mg_tokenizer_equal(a, longer) || mg_tokenizer_equal(longer, a));
    assert_false(mg_tokenizer_equal(a, other));
    assert_int_equal(mg_tokenizer_size(words), mg_tokenizer_size(characters));
    assert_false(mg_tokenizer_equal(words, characters)); /* the same tokens of another kind */
    mg_tokenizer *all[] = {a, same, longer, other, words, characters};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) mg_tokenizer_free(all[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_are_sorted_by_bytes),
        cmocka_unit_test(words_are_cut_as_documented),
        cmocka_unit_test(any_text_comes_back),
        cmocka_unit_test(a_list_of_tokens_makes_the_same),
        cmocka_unit_test(a_grammar_tokenizer_splits_at_white_space),
        cmocka_unit_test(ids_alone_have_no_text),
        cmocka_unit_test(bad_vocabularies_are_refused),
        cmocka_unit_test(ids_out_of_range_are_refused),
        cmocka_unit_test(kinds_have_names),
        cmocka_unit_test(equal_is_token_by_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
