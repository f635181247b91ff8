/* The parts of a tokenizer, for the files that implement the kinds. */
#ifndef MASKGRAD_TOKENIZER_INTERNAL_H
#define MASKGRAD_TOKENIZER_INTERNAL_H

#include "tokenizer.h"
#include "vocabulary.h"

#include <stdbool.h>

/* Ids so far, in a block that has room for one per byte of the text. */
typedef struct mg_id_list {
    int *id;
    size_t n;
    size_t offset; /* in the whole text, of the part that is being encoded: for messages */
} mg_id_list;

/* What differs between kinds: one row each. */
typedef struct mg_tokenizer_row {
    const char *name;
    const char *separator; /* what mg_tokenizer_separator puts between two tokens */
    /* Why this token cannot belong to such a vocabulary, as the end of "token 7 ('x') …"; NULL if it can. The pointer
     * itself may be NULL: every token is allowed. */
    const char *(*objection)(mg_token token);
    /* Append the ids of a text. NULL: the kind cannot encode. */
    mg_status (*encode)(const mg_tokenizer *tokenizer, const char *text, size_t length, mg_id_list *ids,
                        mg_error *error);
    void (*free_extra)(void *extra); /* NULL if there is nothing to free */
} mg_tokenizer_row;

struct mg_tokenizer {
    mg_tokenizer_kind kind;
    const mg_tokenizer_row *row;
    int n_tokens;
    mg_vocabulary vocabulary; /* empty for NONE */
    char *bytes;              /* of all tokens, one after another */
    void *extra;              /* what the kind needs besides (GPT2: its merges) */
    int n_owners;
};

extern const mg_tokenizer_row mg_char_row, mg_word_row, mg_grammar_row, mg_gpt2_row;

/* What mg_tokenizer_new does for a given row. Takes over `extra`, also when it fails. */
mg_status mg_tokenizer_make(mg_tokenizer **tokenizer, mg_tokenizer_kind kind, const mg_tokenizer_row *row, int n_tokens,
                            const mg_token *tokens, void *extra, mg_error *error);
/* One more owner: mg_tokenizer_free must then be called once more. Not to be used from two threads at once. */
mg_tokenizer *mg_tokenizer_share(const mg_tokenizer *tokenizer);

/* The token that ends a document, in the vocabulary of GPT2 and, of texts with several documents, of CHAR and WORD. */
#define MG_END_OF_TEXT "<|endoftext|>"
bool mg_is_end_of_text(mg_token token);
int mg_tokenizer_find(const mg_tokenizer *tokenizer, mg_token token); /* its id, or -1 */
/* Its id, or -1. */
int mg_tokenizer_end_of_text(const mg_tokenizer *tokenizer);
/* As mg_tokenizer_from_text, for documents in which a 0 byte marks the end of one. */
mg_status mg_tokenizer_from_documents(mg_tokenizer **tokenizer, mg_tokenizer_kind kind, const char *text, size_t length,
                                      mg_error *error);
/* Append the ids of such documents. The list has room; the tokenizer has the token if there is a 0 byte. */
mg_status mg_tokenizer_append(const mg_tokenizer *tokenizer, const char *text, size_t length, mg_id_list *ids,
                              mg_error *error);
mg_status mg_id_list_make(mg_id_list *ids, size_t length, mg_error *error);

/* The bytes of the first token of n >= 1 bytes of valid UTF-8; only for CHAR and WORD. */
typedef size_t mg_piece_fn(const char *text, size_t n);
mg_piece_fn *mg_tokenizer_piece(mg_tokenizer_kind kind);

bool mg_is_space(char byte); /* ASCII white space, whatever the locale */

#endif
