/* A corpus: token ids, their tokenizer, a split, the source if it is known, and windows of the tokens. */
#ifndef MASKGRAD_CORPUS_H
#define MASKGRAD_CORPUS_H

#include "grammar.h"

typedef struct mg_data_options {
    const char *path;     /* a file; a folder: all its files; "-": standard input; several of these, one per line */
    const char *tokens;   /* "char", "word", "gpt2"; NULL: "char" (a grammar brings its own) */
    const char *column;   /* of a CSV whose rows are documents */
    char delimiter;       /* between its fields; 0: the one of comma, semicolon, tab and bar that gives the column */
    const char *encoding; /* that iconv(3) knows; NULL: UTF-8 */
    bool special;         /* <|endoftext|> in a text is one token, which ends a document */
    const char *merges;   /* for "gpt2": merges.txt */
    double validation;    /* share of the tokens, the last, kept for validation, at least one token; 0: none, and the
                           * training tokens serve as both */
    int64_t grammar_size; /* words to draw from a grammar; 0: 1,000,000 */
    uint64_t seed;        /* of that draw */
    const mg_tokenizer *tokenizer; /* not NULL: an existing model's tokenizer, used instead of tokens and merges */
} mg_data_options;

typedef enum mg_split { MG_TRAIN, MG_VALIDATION } mg_split;

typedef struct mg_corpus {
    char *name; /* the file's name without its folder; "a.txt and 2 more" */
    int *ids;   /* all of them; the first n_train are for training */
    ptrdiff_t n, n_train;
    mg_tokenizer *tokenizer; /* owned */
    mg_grammar *grammar;     /* owned; NULL unless the file is a grammar */
    uint64_t hash; /* FNV-1a, 64 bits: the files' bytes as UTF-8; a column's name, a validation share that is not the
                    * default; for a grammar, the draw's seed and size */
    bool has_rows;       /* its texts are the rows of a CSV's column */
    ptrdiff_t line_ends; /* inside those texts */
    bool has_ends;       /* documents end with <|endoftext|>: several texts, and options->special */
    char warning[1024];  /* what a user should know, e.g. that CR characters are dropped; empty if nothing */
} mg_corpus;

/* The kind of file is recognized by its content: a CSV with the header state,word,next,weight is a grammar; with
 * options->column it is a CSV of documents, which are joined by newlines; else text. Several texts are
 * joined by <|endoftext|>, which is one token. If tokens other than words are requested, a grammar is spelled out as
 * text, and its corpus has no grammar. Errors name the file. */
MG_API mg_status mg_corpus_load(mg_corpus **corpus, const mg_data_options *options, mg_error *error);
MG_API void mg_corpus_free(mg_corpus *corpus);

/* B windows of T inputs and their targets, target = the next token (this is where the shift happens, once). Offsets are
 * drawn uniformly among all windows of the split: a function of (rng). ids and targets hold B*T. */
MG_API void mg_corpus_batch(const mg_corpus *corpus, mg_split split, mg_rng rng, ptrdiff_t B, ptrdiff_t T, int *ids,
                            int *targets);

/* ---- Not installed: between maskgrad's own files ---- */
/* The token that ends each document: the word that ends a grammar's sentences, <|endoftext|> if the corpus or the
 * model's vocabulary has it, else the newline after the row of a CSV or the line of a text. MG_ERR_INPUT if no token
 * does so, with the reason. */
mg_status mg_corpus_document_end(const mg_corpus *corpus, int *id, mg_error *error);
/* What a document that ends with the token `end` is: "a row of the CSV", "a sentence of the grammar" … */
const char *mg_corpus_document_words(const mg_corpus *corpus, int end);
ptrdiff_t mg_corpus_tokens(const mg_corpus *corpus, mg_split split);
/* The average number of characters per token of the split, spaces between words included. Divide a loss in nats per
 * token by it to compare losses between tokenizers. */
double mg_corpus_characters_per_token(const mg_corpus *corpus, mg_split split);
/* Whether each split holds at least one window of block_size inputs and their targets (block_size + 1 tokens); if not,
 * MG_ERR_INPUT with the split, its length and the length needed. */
mg_status mg_corpus_check(const mg_corpus *corpus, ptrdiff_t block_size, mg_error *error);
/* The smallest share for options->validation, in two digits, that leaves such a window to both splits; 0: there is
 * none.
 */
double mg_corpus_least_validation(const mg_corpus *corpus, ptrdiff_t block_size);
/* The windows of mg_corpus_batch from window `first` of the draw on: window k is a function of (rng, k), however a draw
 * is cut into batches.
 */
void mg_corpus_windows(const mg_corpus *corpus, mg_split split, mg_rng rng, ptrdiff_t first, ptrdiff_t B, ptrdiff_t T,
                       int *ids, int *targets);
/* The tokens that a split's windows are taken from, and how many; without validation tokens, validation reads the
 * training tokens. */
const int *mg_corpus_ids(const mg_corpus *corpus, mg_split split);

#ifndef MG_LIBRARY /* whose line a failure names: error.h */
MG_CALLED(mg_status, mg_corpus_load, (corpus, options), (corpus, options, error), mg_corpus **corpus,
          const mg_data_options *options, mg_error *error)
MG_CALLED_VOID(mg_corpus_batch, (corpus, ids, targets), (corpus, split, rng, B, T, ids, targets),
               const mg_corpus *corpus, mg_split split, mg_rng rng, ptrdiff_t B, ptrdiff_t T, int *ids, int *targets)
#define mg_corpus_load(...) MG_AT(mg_corpus_load, __VA_ARGS__)
#define mg_corpus_batch(...) MG_AT(mg_corpus_batch, __VA_ARGS__)
#endif

#endif
