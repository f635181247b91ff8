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

/* As trainers of tokenizers number them: special tokens first. */
static void special_tokens_may_stand_first(void **state) {
    (void)state;
    mg_tokenizer *plain, *own;
    mg_error error = {0};
    int *ids;
    size_t n;
    char *text;
    assert_int_equal(mg_tokenizer_new_gpt2(&plain, merges, sizeof merges - 1, &error), MG_OK);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs("{\"<s>\": 0, \"<|endoftext|>\": 1, \"\xE2\x96\x81\": 2", file);
    mg_byte_alphabet alphabet;
    mg_byte_alphabet_fill(&alphabet);
    for (int id = 0; id < mg_tokenizer_size(plain) - 1; id++) {
        mg_token token = mg_tokenizer_token(plain, id);
        char spelled[64];
        size_t length = mg_byte_alphabet_spell(&alphabet, token.bytes, token.length, spelled);
        fputs(", \"", file);
        for (size_t i = 0; i < length; i++) {
            if (strchr("\"\\", spelled[i])) fputc('\\', file);
            fputc(spelled[i], file);
        }
        fprintf(file, "\": %d", id + 3);
    }
    fputs("}", file);
    fclose(file);
    assert_int_equal(mg_vocab_json_check(path, plain, &error), MG_ERR_FORMAT);
    assert_int_equal(mg_vocab_json_read(path, plain, &own, &error), MG_OK);
    assert_int_equal(mg_tokenizer_size(own), mg_tokenizer_size(plain) + 2);
    int *plain_ids;
    const char *said = "the <s> \xF0\x9F\x98\x80 the";
    assert_int_equal(mg_tokenizer_encode(&plain_ids, &n, plain, said, strlen(said), &error), MG_OK);
    size_t n_own;
    assert_int_equal(mg_tokenizer_encode(&ids, &n_own, own, said, strlen(said), &error), MG_OK);
    assert_int_equal(n, n_own);
    for (size_t i = 0; i < n; i++) assert_int_equal(ids[i], plain_ids[i] + 3);
    assert_int_equal(mg_tokenizer_decode(&text, &n, own, ids, n, &error), MG_OK);
    assert_string_equal(text, said);
    mg_free(text);
    assert_int_equal(mg_tokenizer_decode(&text, &n, own, (int[]){0, 2, 1}, 3, &error), MG_OK);
    assert_string_equal(text, "<s>\xE2\x96\x81<|endoftext|>");
    assert_int_equal(mg_tokenizer_start_id(own), 1);
    mg_free(text);
    mg_free(ids);
    mg_free(plain_ids);
    mg_tokenizer_free(own);
    mg_tokenizer_free(plain);
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
        cmocka_unit_test(special_tokens_may_stand_first),
        cmocka_unit_test(what_is_no_vocabulary_is_refused),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
