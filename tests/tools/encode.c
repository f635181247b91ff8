/* encode MERGES VOCAB_JSON: the ids of strings, for comparison with another tokenizer.
 *
 * Standard input holds strings, each after its length in bytes and a line feed; standard output gets one line of ids
 * for each. Exits 1 if anything fails, also if the two files do not belong together or ids do not decode to their
 * string. */
#include "bpe.h"
#include "heap.h"
#include "vocab_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *message) {
    fprintf(stderr, "encode: %s\n", message);
    exit(1);
}

static void check(mg_status status, const mg_error *error) {
    if (status != MG_OK) fail(error->message);
}

static void encode(const mg_tokenizer *tokenizer, const char *text, size_t length) {
    int *ids;
    char *bytes;
    size_t n_ids, n_bytes;
    mg_error error;
    check(mg_tokenizer_encode(&ids, &n_ids, tokenizer, text, length, &error), &error);
    check(mg_tokenizer_decode(&bytes, &n_bytes, tokenizer, ids, n_ids, &error), &error);
    if (n_bytes != length || memcmp(bytes, text, length) != 0) fail("ids do not decode to their text");
    for (size_t i = 0; i < n_ids; i++) printf(i ? " %d" : "%d", ids[i]);
    putchar('\n');
    mg_free(ids);
    mg_free(bytes);
}

int main(int argc, char **argv) {
    if (argc != 3) fail("usage: encode MERGES VOCAB_JSON < STRINGS");
    mg_tokenizer *tokenizer;
    mg_error error;
    check(mg_tokenizer_load_gpt2(&tokenizer, argv[1], &error), &error);
    check(mg_vocab_json_check(argv[2], tokenizer, &error), &error);
    for (size_t length; scanf("%zu", &length) == 1;) {
        char *text = mg_alloc(length, 1, "a string", &error);
        if (!text) fail(error.message);
        if (getchar() != '\n' || fread(text, 1, length, stdin) != length) fail("a string is shorter than announced");
        encode(tokenizer, text, length);
        mg_free(text);
    }
    mg_tokenizer_free(tokenizer);
    return 0;
}
