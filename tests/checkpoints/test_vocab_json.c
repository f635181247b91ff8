#include "bpe.h"
#include "byte_alphabet.h"
#include "heap.h"
#include "vocab_json.h"

#include "check.h"

#include <stdlib.h>
#include <unistd.h>

static const char merges[] = "t h\nth e\n";

static char path[] = "vocab-XXXXXX";

/* The vocab.json that belongs to the merges, with one text in it replaced by another. */
static void write_vocab(const mg_tokenizer *tokenizer, const char *from, const char *to) {
    static char json[16384];
    mg_byte_alphabet alphabet;
    mg_byte_alphabet_fill(&alphabet);
    size_t at = 0;
    for (int id = 0; id < mg_tokenizer_size(tokenizer); id++) {
        mg_token token = mg_tokenizer_token(tokenizer, id);
        char spelled[64];
        int length = (int)mg_byte_alphabet_spell(&alphabet, token.bytes, token.length, spelled);
        const char *escape = *spelled == '"' || *spelled == '\\' ? "\\" : "";
        at += (size_t)snprintf(json + at, sizeof json - at, "%s\"%s%.*s\": %d", id ? ", " : "{", escape, length,
                               spelled, id);
    }
    snprintf(json + at, sizeof json - at, "}\n");
    const char *place = from ? strstr(json, from) : json;
    assert_non_null(place);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fprintf(file, "%.*s%s%s", (int)(place - json), json, to, place + (from ? strlen(from) : 0));
    fclose(file);
}

static void assert_answer(const char *from, const char *to, const char *says) {
    mg_tokenizer *tokenizer;
    mg_error error = {0};
    assert_int_equal(mg_tokenizer_new_gpt2(&tokenizer, merges, sizeof merges - 1, &error), MG_OK);
    write_vocab(tokenizer, from, to);
    assert_int_equal(mg_vocab_json_check(path, tokenizer, &error), says ? MG_ERR_FORMAT : MG_OK);
    if (says) assert_says(error.message, path);
    if (says) assert_says(error.message, says);
    mg_tokenizer_free(tokenizer);
}

static void the_vocabulary_of_the_merges_is_accepted(void **state) {
    (void)state;
    assert_answer(NULL, "", NULL);
}

static void another_vocabulary_is_refused(void **state) {
    (void)state;
    assert_answer("\"the\": 257", "\"the\": 300", "the token 'the' has id 300, but 257 according to the merges");
    assert_answer("\"the\": 257", "\"the\": \"257\"", "the id of the token 'the' is not an integer");
    assert_answer("\"the\": 257, ", "", "has no token 'the', which the merges make, with id 257");
    assert_answer("\"the\": 257", "\"the\": 257, \"<pad>\": 259", "has 260 tokens, but the merges make 259");
    assert_answer("\xC4\xA0", "\xC4\xA1\xC4\xA1", "has no token '\xC4\xA0'"); /* Ġ, the space */
}

static void what_is_no_vocabulary_is_refused(void **state) {
    (void)state;
    assert_answer("\"the\": 257", "\"the\": 257, \"the\": 257", "duplicate");
    assert_answer("{", "[", "line 1, column");
    assert_answer(NULL, "[] ", "line 1, column"); /* more than one value */
    assert_answer("\xC4\xA0", "\xC4", "decode byte 0xc4");
    mg_tokenizer *tokenizer;
    mg_error error = {0};
    assert_int_equal(mg_tokenizer_new_gpt2(&tokenizer, merges, sizeof merges - 1, &error), MG_OK);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs("[1, 2]\n", file);
    fclose(file);
    assert_int_equal(mg_vocab_json_check(path, tokenizer, &error), MG_ERR_FORMAT);
    assert_says(error.message, "is not a JSON object");
    assert_int_equal(mg_vocab_json_check("/nowhere/vocab.json", tokenizer, &error), MG_ERR_IO);
    assert_says(error.message, "/nowhere/vocab.json");
    mg_tokenizer_free(tokenizer);
}

static int make_file(void **state) {
    (void)state;
    int file = mkstemp(path);
    return file < 0 ? -1 : close(file);
}

static int remove_file(void **state) {
    (void)state;
    return unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vocabulary_of_the_merges_is_accepted),
        cmocka_unit_test(another_vocabulary_is_refused),
        cmocka_unit_test(what_is_no_vocabulary_is_refused),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
