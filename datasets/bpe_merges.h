/* A merges.txt, read: which pairs of tokens make which. Internal to datasets. */
#ifndef MASKGRAD_BPE_MERGES_H
#define MASKGRAD_BPE_MERGES_H

#include "byte_alphabet.h"
#include "vocabulary.h"

typedef struct mg_bpe_merge {
    int left, right; /* ids; merge number i makes the token 256 + i */
} mg_bpe_merge;

typedef struct mg_bpe_merges {
    mg_byte_alphabet alphabet;
    mg_bpe_merge *merge;  /* in the order of their ranks */
    int *slot;            /* open addressing: a merge's number, or -1 */
    size_t mask;          /* the number of slots, a power of two, minus one */
    mg_vocabulary tokens; /* all tokens, in the order of their ids */
    char *bytes;          /* of the tokens, in a row */
} mg_bpe_merges;

/* See mg_tokenizer_new_gpt2; errors call the file `name`. *merges must be freed, after a failure too. */
mg_status mg_bpe_merges_read(mg_bpe_merges *merges, const char *text, size_t length, const char *name, mg_error *error);
/* Frees `tokens`, which finding merges does not need. */
void mg_bpe_merges_forget_tokens(mg_bpe_merges *merges);
void mg_bpe_merges_free(mg_bpe_merges *merges);
/* What two tokens make, or -1. */
int mg_bpe_merges_find(const mg_bpe_merges *merges, int left, int right);

#endif
