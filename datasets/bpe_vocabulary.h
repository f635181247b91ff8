/* A merges.txt, read: the tokens, and which pairs make which. Internal to datasets. */
#ifndef MASKGRAD_BPE_VOCABULARY_H
#define MASKGRAD_BPE_VOCABULARY_H

#include "byte_alphabet.h"
#include "tokenizer.h"

typedef struct mg_bpe_pair {
    int left, right, merged; /* ids; left < 0: an empty place of the table */
} mg_bpe_pair;

typedef struct mg_bpe_vocabulary {
    mg_byte_alphabet alphabet;
    int n_tokens;
    mg_token *tokens;
    char *bytes;        /* of all tokens, in a row */
    mg_bpe_pair *pairs; /* a hash table with open addressing */
    size_t pair_mask;   /* its size, a power of two, less one */
} mg_bpe_vocabulary;

/* See mg_bpe_new. On failure *vocabulary is empty. */
mg_status mg_bpe_vocabulary_read(mg_bpe_vocabulary *vocabulary, const char *merges, size_t length, const char *name,
                                 mg_error *error);
void mg_bpe_vocabulary_free(mg_bpe_vocabulary *vocabulary);

static inline int mg_bpe_vocabulary_byte(const mg_bpe_vocabulary *vocabulary, unsigned char byte) {
    return vocabulary->alphabet.id_of_byte[byte];
}
/* What two tokens make, or -1. */
int mg_bpe_vocabulary_pair(const mg_bpe_vocabulary *vocabulary, int left, int right);

#endif
