/* From bytes to token ids and back. A tokenizer carries its vocabulary; a checkpoint stores it whole. */
#ifndef MASKGRAD_TOKENIZER_H
#define MASKGRAD_TOKENIZER_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum mg_tokenizer_kind {
    MG_TOKENIZER_CHAR,    /* UTF-8 characters */
    MG_TOKENIZER_WORD,    /* words, punctuation and white space, lossless */
    MG_TOKENIZER_GRAMMAR, /* the words of a grammar; text is words separated by single spaces */
    MG_TOKENIZER_GPT2,    /* byte-level BPE */
    MG_TOKENIZER_NONE     /* ids only: an imported model without merges; encode and decode refuse */
} mg_tokenizer_kind;

typedef struct mg_token {
    const char *bytes; /* not 0-terminated */
    size_t length;
} mg_token;

typedef struct mg_tokenizer mg_tokenizer;

/* The vocabulary that a text needs, sorted by bytes. CHAR and WORD only. Invalid UTF-8 is an error with its offset. */
MG_API mg_status mg_tokenizer_from_text(mg_tokenizer **tokenizer, mg_tokenizer_kind kind, const char *text,
                                        size_t length, mg_error *error);
MG_API void mg_tokenizer_free(mg_tokenizer *tokenizer);

MG_API int mg_tokenizer_size(const mg_tokenizer *tokenizer);

/* ids is allocated (free with mg_free). A piece that is not in the vocabulary is MG_ERR_INPUT with the piece and its
 * byte offset. decode(encode(text)) = text for every text that encodes (GRAMMAR: up to white space). */
MG_API mg_status mg_tokenizer_encode(int **ids, size_t *n_ids, const mg_tokenizer *tokenizer, const char *text,
                                     size_t length, mg_error *error);
/* bytes is allocated and 0-terminated; an id out of range is MG_ERR_INPUT. */
MG_API mg_status mg_tokenizer_decode(char **bytes, size_t *length, const mg_tokenizer *tokenizer, const int *ids,
                                     size_t n_ids, mg_error *error);

/* ---- Not installed: between maskgrad's own files ---- */
/* From a list of distinct tokens, id = index. For GPT2 the vocabulary follows from the merges: see bpe.h. */
mg_status mg_tokenizer_new(mg_tokenizer **tokenizer, mg_tokenizer_kind kind, int n_tokens, const mg_token *tokens,
                           mg_error *error);
mg_tokenizer_kind mg_tokenizer_get_kind(const mg_tokenizer *tokenizer);
const char *mg_tokenizer_kind_name(mg_tokenizer_kind kind); /* "char", "word", "grammar", "gpt2", "none" */
mg_status mg_tokenizer_kind_parse(mg_tokenizer_kind *kind, const char *name, mg_error *error);
/* What to print between the text so far and this token: " " for a grammar's words (none before the first), else "". */
const char *mg_tokenizer_separator(const mg_tokenizer *tokenizer, int previous_id, int id);
/* The id after which a text starts when there is no prompt: GPT-2's end of text, the "." of a grammar, a newline, or
 * else id 0. */
int mg_tokenizer_start_id(const mg_tokenizer *tokenizer);
/* The id of a newline; -1: there is none. */
int mg_tokenizer_newline(const mg_tokenizer *tokenizer);
mg_token mg_tokenizer_token(const mg_tokenizer *tokenizer, int id);
/* Whether every id is the same token in both. */
bool mg_tokenizer_equal(const mg_tokenizer *a, const mg_tokenizer *b);

#ifndef MG_LIBRARY /* whose line a failure names: error.h */
MG_CALLED(mg_status, mg_tokenizer_from_text, (tokenizer, text), (tokenizer, kind, text, length, error),
          mg_tokenizer **tokenizer, mg_tokenizer_kind kind, const char *text, size_t length, mg_error *error)
MG_CALLED(int, mg_tokenizer_size, (tokenizer), (tokenizer), const mg_tokenizer *tokenizer)
MG_CALLED(mg_status, mg_tokenizer_encode, (ids, n_ids, tokenizer, text), (ids, n_ids, tokenizer, text, length, error),
          int **ids, size_t *n_ids, const mg_tokenizer *tokenizer, const char *text, size_t length, mg_error *error)
MG_CALLED(mg_status, mg_tokenizer_decode, (bytes, length, tokenizer, ids),
          (bytes, length, tokenizer, ids, n_ids, error), char **bytes, size_t *length, const mg_tokenizer *tokenizer,
          const int *ids, size_t n_ids, mg_error *error)
#define mg_tokenizer_from_text(...) MG_AT(mg_tokenizer_from_text, __VA_ARGS__)
#define mg_tokenizer_size(...) MG_AT(mg_tokenizer_size, __VA_ARGS__)
#define mg_tokenizer_encode(...) MG_AT(mg_tokenizer_encode, __VA_ARGS__)
#define mg_tokenizer_decode(...) MG_AT(mg_tokenizer_decode, __VA_ARGS__)
#endif

#endif
