/* Distinct byte strings, numbered in the order in which they were added, found by hashing. */
#ifndef MASKGRAD_VOCABULARY_H
#define MASKGRAD_VOCABULARY_H

#include "tokenizer.h"

/* Starts as {0}. The bytes of the tokens stay the caller's and must live as long as this. */
typedef struct mg_vocabulary {
    mg_token *token;
    int n, capacity;
    int *slot; /* open addressing: a token's number, or -1 */
    size_t n_slots;
    int of_byte[256]; /* tokens of one byte, most of a text's, need no hash: their number + 1, or 0 */
} mg_vocabulary;

/* Room for exactly that many tokens: if their number is known, nothing is wasted. */
mg_status mg_vocabulary_reserve(mg_vocabulary *vocabulary, int capacity, mg_error *error);
/* The number of the token; it is added if it is new. */
mg_status mg_vocabulary_add(mg_vocabulary *vocabulary, mg_token token, int *id, mg_error *error);
/* Its number, or -1. */
int mg_vocabulary_find(const mg_vocabulary *vocabulary, mg_token token);
void mg_vocabulary_free(mg_vocabulary *vocabulary);

#endif
