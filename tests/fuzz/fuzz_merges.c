/* A merges.txt and a text, with a 0 byte between them. Whatever they are: no crash, and if the merges are accepted, the
 * text encodes and decodes to itself. */
#include "bpe.h"
#include "heap.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition) abort();
}

static void check_round_trip(const mg_tokenizer *tokenizer, const char *text, size_t length) {
    int *ids;
    char *bytes;
    size_t n_ids, n_bytes;
    require(mg_tokenizer_encode(&ids, &n_ids, tokenizer, text, length, NULL) == MG_OK);
    require(mg_tokenizer_decode(&bytes, &n_bytes, tokenizer, ids, n_ids, NULL) == MG_OK);
    require(n_bytes == length && memcmp(bytes, text, length) == 0);
    mg_free(ids);
    mg_free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *merges = (const char *)data, *zero = size ? memchr(data, 0, size) : NULL;
    size_t length = zero ? (size_t)(zero - merges) : size;
    mg_tokenizer *tokenizer;
    mg_error error;
    if (mg_tokenizer_new_gpt2(&tokenizer, merges, length, &error) != MG_OK) {
        require(error.status == MG_ERR_FORMAT && error.message[0] != '\0');
        return 0;
    }
    if (zero) check_round_trip(tokenizer, zero + 1, size - length - 1);
    mg_tokenizer_free(tokenizer);
    return 0;
}
