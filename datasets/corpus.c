#include "corpus.h"

#include "bpe.h"
#include "csv_table.h"
#include "documents.h"
#include "file_limits.h"
#include "hash.h"
#include "heap.h"
#include "quote.h"
#include "tokenizer_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { USUAL_GRAMMAR = 1000000 }; /* words to draw */
#define USUAL_VALIDATION 0.1

/* One more sentence for the user. */
static void warn(mg_corpus *corpus, const char *format, ...) MG_PRINTF(2, 3);
static void warn(mg_corpus *corpus, const char *format, ...) {
    size_t at = strlen(corpus->warning);
    if (at > 0 && at + 2 < sizeof corpus->warning) at += (size_t)sprintf(corpus->warning + at, "; ");
    va_list arguments;
    va_start(arguments, format);
    mg_vsnprintf(corpus->warning + at, sizeof corpus->warning - at, format, arguments);
    va_end(arguments);
}

static const char *const grammar_columns[] = {"state", "word", "next", "weight"};

/* The same error, with the file's name before it. */
static mg_status name_the_file(const mg_data_options *options, mg_status status, const mg_error *inner,
                               mg_error *error) {
    return mg_error_set(error, status, "%s: %s", options->path, inner->message);
}

/* ---- Text ---- */

static mg_status make_tokenizer(mg_corpus *corpus, const mg_data_options *options, mg_tokenizer_kind kind,
                                const char *text, size_t length, mg_error *error) {
    switch (kind) {
    case MG_TOKENIZER_CHAR:
    case MG_TOKENIZER_WORD: return mg_tokenizer_from_documents(&corpus->tokenizer, kind, text, length, error);
    case MG_TOKENIZER_GPT2:
        if (options->merges) return mg_tokenizer_load_gpt2(&corpus->tokenizer, options->merges, error);
        return mg_error_set(error, MG_ERR_INPUT, "gpt2 tokens need their merges: --merges FILE, GPT-2's merges.txt");
    case MG_TOKENIZER_GRAMMAR:
        return mg_error_set(
            error, MG_ERR_INPUT,
            "only a grammar has grammar tokens, and the header of this file is not state,word,next,weight");
    case MG_TOKENIZER_NONE: break;
    }
    return mg_error_set(error, MG_ERR_INPUT, "a text needs tokens: char, word or gpt2");
}

/* The vocabulary, unless a model has brought one, and room for the ids. */
static mg_status begin_encoding(mg_corpus *corpus, const mg_data_options *options, mg_tokenizer_kind kind,
                                const char *text, size_t length, mg_id_list *ids, mg_error *error) {
    mg_error inner;
    mg_status status = MG_OK;
    if (options->tokenizer) {
        corpus->tokenizer = mg_tokenizer_share(options->tokenizer);
    } else {
        status = make_tokenizer(corpus, options, kind, text, length, &inner);
    }
    if (status == MG_OK) status = mg_id_list_make(ids, length, &inner);
    if (status != MG_OK) return name_the_file(options, status, &inner, error);
    corpus->ids = ids->id;
    return MG_OK;
}

static mg_status encode_text(mg_corpus *corpus, const mg_data_options *options, mg_tokenizer_kind kind,
                             const char *text, size_t length, mg_error *error) {
    mg_error inner;
    mg_id_list ids;
    mg_status status = begin_encoding(corpus, options, kind, text, length, &ids, error);
    if (status != MG_OK) return status;
    status = mg_tokenizer_append(corpus->tokenizer, text, length, &ids, &inner);
    corpus->n = (ptrdiff_t)ids.n;
    return status == MG_OK ? MG_OK : name_the_file(options, status, &inner, error);
}

/* File by file, so that an error names the file, and the place in it. */
static mg_status encode_documents(mg_corpus *corpus, const mg_data_options *options, mg_tokenizer_kind kind,
                                  const mg_documents *d, mg_error *error) {
    mg_error inner;
    mg_id_list ids;
    mg_status status = begin_encoding(corpus, options, kind, d->text, d->length, &ids, error);
    size_t begin = 0;
    for (int i = 0; i < d->files.n && status == MG_OK; begin = d->end[i++]) {
        status = mg_tokenizer_append(corpus->tokenizer, d->text + begin, d->end[i] - begin, &ids, &inner);
        mg_data_options own = *options;
        if (d->files.n > 1) own.path = d->files.path[i];
        if (status != MG_OK) return name_the_file(&own, status, &inner, error);
    }
    corpus->n = status == MG_OK ? (ptrdiff_t)ids.n : 0;
    return status;
}

static bool is_named_csv(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot && (strcasecmp(dot, ".csv") == 0 || strcasecmp(dot, ".tsv") == 0);
}

/* Whether a field of a header is one of a grammar's columns, in whatever letters, quotes and blanks. */
static bool is_grammar_column(const char *field, size_t length) {
    static const char blank[] = " \t\"'";
    for (; length > 0 && strchr(blank, field[0]); length--) field++;
    while (length > 0 && strchr(blank, field[length - 1])) length--;
    for (int i = 0; i < 4; i++)
        if (strlen(grammar_columns[i]) == length && strncasecmp(field, grammar_columns[i], length) == 0) return true;
    return false;
}

/* Four fields between separators of any kind, two of them with a grammar's names, in one of the first lines. */
static bool resembles_a_grammar(const char *text, size_t length) {
    enum { FIRST_LINES = 5 };
    const char *end = text + length;
    for (int line = 0; line < FIRST_LINES && text < end; line++) {
        int fields = 0, found = 0;
        for (bool ended = false; !ended; fields++) {
            size_t n = strcspn(text, ",;\t|\n\r");
            found += is_grammar_column(text, n);
            text += n;
            ended = !*text || *text == '\n' || *text == '\r';
            text += text < end;
        }
        if (fields == 4 && found >= 2) return true;
    }
    return false;
}

static void hint_at_tables(mg_corpus *corpus, const char *text, size_t length) {
    if (is_named_csv(corpus->name))
        warn(corpus,
             "%s is read as plain text, commas and quotes included: --column NAME reads only the texts of one column, "
             "and a grammar begins with the line state,word,next,weight",
             corpus->name);
    else if (resembles_a_grammar(text, length))
        warn(corpus, "%s is read as plain text: as a grammar, it would begin with the line state,word,next,weight",
             corpus->name);
}

/* What was changed while the files were read, or might have been meant. */
static void report(mg_corpus *corpus, const mg_data_options *options, const mg_documents *d,
                   const mg_documents_options *how) {
    const char *name = corpus->name, *returns = mg_count(d->n_returns, "carriage return").text;
    if (d->files.n_empty > 0)
        warn(corpus, "%s of %s %s empty and left out", mg_count(d->files.n_empty, "file").text, name,
             d->files.n_empty == 1 ? "is" : "are");
    if (d->n_marks > 0) warn(corpus, "the byte order mark at the start of %s is left out", name);
    if (d->n_returns > 0 && d->n_old_mac > 0)
        warn(corpus, "%s has %s (\\r): those that end its lines became newlines, others are dropped", name, returns);
    else if (d->n_returns > 0)
        warn(corpus, "%s has %s (\\r), %s", name, returns, how->keep_returns ? "kept as tokens" : "dropped");
    if (d->n_doubtful > 0)
        warn(corpus, "%s is valid UTF-8, but read as %s: without --encoding, its letters would be other ones", name,
             options->encoding);
    if (d->n_literal > 0 && !options->special)
        warn(corpus, "%s holds " MG_END_OF_TEXT " %s, read as plain text: --special makes it one token", name,
             mg_count(d->n_literal, "time").text);
    if (options->special && d->n_ends == 0)
        warn(corpus, "--special changes nothing: %s has no " MG_END_OF_TEXT " and only one document", name);
    if (options->delimiter && !options->column)
        warn(corpus, "--delimiter changes nothing: %s is read as plain text, not by --column", name);
}

/* Several texts are kept apart by a token that no text holds, if the model has one. */
static mg_status choose_ends(mg_corpus *corpus, const mg_data_options *options, int n_files, bool *mark,
                             mg_error *error) {
    bool wanted = options->special || (n_files > 1 && !options->column);
    *mark = wanted && (!options->tokenizer || mg_tokenizer_end_of_text(options->tokenizer) >= 0);
    if (*mark == wanted) return MG_OK;
    if (options->special) return mg_error_set(error, MG_ERR_INPUT, "--special: the model has no token " MG_END_OF_TEXT);
    warn(corpus, "the model has no token " MG_END_OF_TEXT ", so the %d files are joined by newlines", n_files);
    return MG_OK;
}

/* GPT-2's tokens know carriage returns, and so does a model that was trained on them. */
static bool keeps_returns(const mg_data_options *options, mg_tokenizer_kind kind) {
    if (kind == MG_TOKENIZER_GPT2) return true;
    return options->tokenizer && kind != MG_TOKENIZER_GRAMMAR &&
           mg_tokenizer_find(options->tokenizer, (mg_token){"\r", 1}) >= 0;
}

static mg_status load_documents(mg_corpus *corpus, const mg_data_options *options, mg_tokenizer_kind kind,
                                mg_documents *d, mg_error *error) {
    mg_documents_options how = {.column = options->column,
                                .delimiter = options->delimiter,
                                .encoding = options->encoding,
                                .special = options->special,
                                .keep_returns = keeps_returns(options, kind)};
    mg_status status = choose_ends(corpus, options, d->files.n, &how.mark, error);
    if (status != MG_OK) return status;
    if (!options->column && d->files.n == 1) hint_at_tables(corpus, d->text, d->length);
    status = mg_documents_join(d, &how, error);
    if (status != MG_OK) return status;
    report(corpus, options, d, &how);
    corpus->has_rows = options->column != NULL;
    corpus->line_ends = d->line_ends;
    corpus->has_ends = d->n_ends > 0;
    return encode_documents(corpus, options, kind, d, error);
}

/* ---- Grammar ---- */

/* Three of the four names are enough: then a mistake in the fourth is reported, and not taken for text. */
static mg_status look_for_a_grammar(const char *text, size_t length, bool *is_grammar, mg_error *error) {
    enum { LONGEST_HEADER = 1024 };
    size_t header = 0;
    while (header < length && header < LONGEST_HEADER && text[header] != '\n' && text[header] != '\r') header++;
    *is_grammar = false;
    if (header == LONGEST_HEADER) return MG_OK;
    char delimiter;
    int found;
    size_t most = header + LONGEST_HEADER; /* the first line may be "sep=;" */
    mg_status status = mg_csv_delimiter(text, length < most ? length : most, grammar_columns, 4, &delimiter, &found,
                                        error);
    *is_grammar = status == MG_OK && found >= 3;
    return status;
}

static mg_status grammar_tokenizer(const mg_grammar *grammar, mg_tokenizer **tokenizer, mg_error *error) {
    int n = mg_grammar_words(grammar);
    mg_token *tokens = mg_alloc((size_t)n, sizeof *tokens, "the words of a grammar", error);
    if (!tokens) return MG_ERR_MEMORY;
    for (int i = 0; i < n; i++)
        tokens[i] = (mg_token){mg_grammar_word(grammar, i), strlen(mg_grammar_word(grammar, i))};
    mg_status status = mg_tokenizer_new(tokenizer, MG_TOKENIZER_GRAMMAR, n, tokens, error);
    mg_free(tokens);
    return status;
}

/* A model knows a grammar's words only by their numbers: they must be the same in both. */
static mg_status check_same_words(const mg_data_options *options, const mg_tokenizer *ours, mg_error *error) {
    const mg_tokenizer *theirs = options->tokenizer;
    int n = mg_tokenizer_size(ours), n_theirs = mg_tokenizer_size(theirs);
    for (int i = 0; i < n && i < n_theirs; i++) {
        mg_token a = mg_tokenizer_token(ours, i), b = mg_tokenizer_token(theirs, i);
        if (a.length == b.length && memcmp(a.bytes, b.bytes, a.length) == 0) continue;
        return mg_error_set(error, MG_ERR_INPUT, "word %d of %s is %s, but the model's is %s: it knows another grammar",
                            i, options->path, mg_quote(a).text, mg_quote(b).text);
    }
    if (n != n_theirs)
        return mg_error_set(error, MG_ERR_INPUT, "%s has %s, but the model's grammar has %d", options->path,
                            mg_count(n, "word").text, n_theirs);
    return MG_OK;
}

/* The sentences as text, for tokens that are not the grammar's own. */
static mg_status spell_out(mg_corpus *corpus, const mg_data_options *options, mg_tokenizer_kind kind, mg_error *error) {
    char *text;
    size_t length;
    mg_status status = mg_tokenizer_decode(&text, &length, corpus->tokenizer, corpus->ids, (size_t)corpus->n, error);
    if (status != MG_OK) return status;
    mg_tokenizer_free(corpus->tokenizer);
    mg_grammar_free(corpus->grammar);
    mg_free(corpus->ids);
    corpus->tokenizer = NULL;
    corpus->grammar = NULL;
    corpus->ids = NULL;
    warn(corpus,
         "the words of %s are spelled out as %s tokens, so the best possible loss is not computed; leave --tokens out "
         "for the grammar's own words, for which it is",
         corpus->name, mg_tokenizer_kind_name(kind));
    status = encode_text(corpus, options, kind, text, length, error);
    mg_free(text);
    return status;
}

static mg_status load_grammar(mg_corpus *corpus, const mg_data_options *options, mg_tokenizer_kind kind,
                              const char *csv, size_t length, mg_error *error) {
    mg_status status = mg_grammar_parse(&corpus->grammar, csv, length, options->path, error);
    if (status == MG_OK) status = grammar_tokenizer(corpus->grammar, &corpus->tokenizer, error);
    if (status == MG_OK && options->tokenizer && kind == MG_TOKENIZER_GRAMMAR)
        status = check_same_words(options, corpus->tokenizer, error);
    if (status != MG_OK) return status;
    corpus->n = options->grammar_size;
    corpus->ids = mg_alloc((size_t)corpus->n, sizeof *corpus->ids, "the words drawn from a grammar", error);
    if (!corpus->ids) return MG_ERR_MEMORY;
    mg_grammar_sample(corpus->grammar, options->seed, corpus->ids, corpus->n);
    uint64_t draw[2] = {options->seed, (uint64_t)options->grammar_size};
    corpus->hash = mg_fnv1a(corpus->hash, draw, sizeof draw);
    return kind == MG_TOKENIZER_GRAMMAR ? MG_OK : spell_out(corpus, options, kind, error);
}

/* ---- All of it ---- */

static mg_status choose_kind(const mg_data_options *options, bool is_grammar, mg_tokenizer_kind *kind,
                             mg_error *error) {
    *kind = is_grammar ? MG_TOKENIZER_GRAMMAR : MG_TOKENIZER_CHAR;
    if (options->tokens) {
        mg_status status = mg_tokenizer_kind_parse(kind, options->tokens, error);
        if (status != MG_OK || !options->tokenizer || *kind == mg_tokenizer_get_kind(options->tokenizer)) return status;
        return mg_error_set(error, MG_ERR_INPUT, "tokens is '%s', but the model's tokens are '%s'", options->tokens,
                            mg_tokenizer_kind_name(mg_tokenizer_get_kind(options->tokenizer)));
    }
    if (options->tokenizer) *kind = mg_tokenizer_get_kind(options->tokenizer);
    return MG_OK;
}

/* An option that cannot act is not ignored in silence. */
static mg_status check_idle(mg_corpus *corpus, const mg_data_options *options, mg_tokenizer_kind kind, bool is_grammar,
                            mg_error *error) {
    if (options->merges && kind != MG_TOKENIZER_GPT2)
        return mg_error_set(
            error, MG_ERR_INPUT, "merges are given, but the tokens of %s are %s: only gpt2 tokens need merges",
            options->path, kind == MG_TOKENIZER_GRAMMAR ? "the grammar's words" : mg_tokenizer_kind_name(kind));
    if (options->merges && options->tokenizer)
        warn(corpus, "%s is not read: the checkpoint has its own merges", options->merges);
    if (!is_grammar && options->grammar_size != USUAL_GRAMMAR)
        warn(corpus, "the grammar size changes nothing: %s is not a grammar", corpus->name);
    if (is_grammar && options->delimiter)
        warn(corpus, "--delimiter changes nothing: %s is a grammar, whose delimiter is found", corpus->name);
    if (is_grammar && options->special)
        warn(corpus, "--special changes nothing: %s is a grammar, whose words are its tokens", corpus->name);
    return MG_OK;
}

static mg_status split(mg_corpus *corpus, const mg_data_options *options, mg_error *error) {
    if (corpus->n < 2)
        return mg_error_set(error, MG_ERR_FORMAT, "%s is too short: it has %s, and an input and its target are 2",
                            options->path, mg_count(corpus->n, "token").text);
    ptrdiff_t kept = (ptrdiff_t)((double)corpus->n * options->validation);
    if (kept == 0 && options->validation > 0) kept = 1; /* too few for a window: mg_corpus_check refuses it */
    corpus->n_train = corpus->n - kept;
    return MG_OK;
}

/* The hash of the bytes and of the options that decide which tokens a split has. With the default split and no column
 * it is the hash of the bytes. */
static uint64_t hash_options(uint64_t hash, const mg_data_options *options) {
    if (options->column) hash = mg_fnv1a(hash, options->column, strlen(options->column) + 1);
    if (options->validation != USUAL_VALIDATION)
        hash = mg_fnv1a(hash, &options->validation, sizeof options->validation);
    return hash;
}

static mg_status check_options(const mg_data_options *o, mg_error *error) {
    if (!(o->validation >= 0 && o->validation < 1))
        return mg_error_set(error, MG_ERR_INPUT, "validation is a share of the tokens: %g is not in [0, 1)",
                            o->validation);
    if (o->grammar_size < 2 || o->grammar_size > MG_GRAMMAR_LONGEST_CORPUS)
        return mg_error_set(error, MG_ERR_INPUT,
                            "grammar_size is %" PRId64 "; the words to draw from %s must be between 2 and %d",
                            o->grammar_size, o->path, MG_GRAMMAR_LONGEST_CORPUS);
    return MG_OK;
}

static mg_status load_source(mg_corpus *corpus, const mg_data_options *options, mg_documents *d, mg_error *error) {
    bool is_grammar = false;
    mg_tokenizer_kind kind;
    mg_status status = options->column ? MG_OK : look_for_a_grammar(d->text, d->length, &is_grammar, error);
    if (status == MG_OK && is_grammar && d->files.n > 1)
        status = mg_error_set(error, MG_ERR_INPUT, "%s is a grammar, which is read on its own, not with other files",
                              d->files.path[0]);
    if (status == MG_OK) status = choose_kind(options, is_grammar, &kind, error);
    if (status == MG_OK) status = check_idle(corpus, options, kind, is_grammar, error);
    if (status != MG_OK) return status;
    if (!is_grammar) {
        status = load_documents(corpus, options, kind, d, error);
        corpus->hash = hash_options(d->hash, options);
        return status;
    }
    corpus->hash = hash_options(mg_fnv1a(MG_FNV_START, d->text, d->length), options);
    return load_grammar(corpus, options, kind, d->text, d->length, error);
}

static mg_status load(mg_corpus *corpus, const mg_data_options *options, mg_error *error) {
    char name[256];
    mg_documents d;
    mg_data_name(options->path, name, sizeof name);
    corpus->name = mg_strdup(name, error);
    if (!corpus->name) return MG_ERR_MEMORY;
    mg_status status = mg_documents_begin(&d, options, error);
    mg_data_options own = *options; /* with a path for messages: one line */
    if (strcmp(own.path, "-") == 0 || strchr(own.path, '\n')) own.path = name;
    if (status == MG_OK) status = load_source(corpus, &own, &d, error);
    mg_documents_free(&d);
    return status == MG_OK ? split(corpus, &own, error) : status;
}

mg_status mg_corpus_load(mg_corpus **corpus, const mg_data_options *options, mg_error *error) {
    *corpus = NULL;
    mg_data_options filled = *options;
    if (filled.grammar_size == 0) filled.grammar_size = USUAL_GRAMMAR;
    mg_status status = check_options(&filled, error);
    if (status != MG_OK) return status;
    *corpus = mg_alloc_zero(1, sizeof **corpus, "a corpus", error);
    if (!*corpus) return MG_ERR_MEMORY;
    status = load(*corpus, &filled, error);
    if (status != MG_OK) {
        mg_corpus_free(*corpus);
        *corpus = NULL;
    }
    return status;
}

void mg_corpus_free(mg_corpus *corpus) {
    if (!corpus) return;
    mg_free(corpus->name);
    mg_free(corpus->ids);
    mg_tokenizer_free(corpus->tokenizer);
    mg_grammar_free(corpus->grammar);
    mg_free(corpus);
}

const char *mg_corpus_document_words(const mg_corpus *corpus, int end) {
    if (corpus->grammar) return "a sentence of the grammar";
    if (end == mg_tokenizer_end_of_text(corpus->tokenizer)) return "a text that ends with " MG_END_OF_TEXT;
    return corpus->has_rows ? "a row of the CSV" : "a line of the text";
}

mg_status mg_corpus_document_end(const mg_corpus *corpus, int *id, mg_error *error) {
    mg_error inner;
    if (corpus->grammar) {
        if (mg_grammar_sentence_end(corpus->grammar, id, &inner) == MG_OK) return MG_OK;
        return mg_error_set(error, MG_ERR_INPUT,
                            "%s: %s; for documents, one word must end every sentence and occur nowhere else",
                            corpus->name, inner.message);
    }
    bool is_gpt2 = mg_tokenizer_get_kind(corpus->tokenizer) == MG_TOKENIZER_GPT2; /* which always has the token */
    *id = corpus->has_ends || !is_gpt2 ? mg_tokenizer_end_of_text(corpus->tokenizer) : -1;
    if (*id >= 0) return MG_OK;
    *id = mg_tokenizer_newline(corpus->tokenizer);
    if (*id < 0)
        return mg_error_set(error, MG_ERR_INPUT,
                            "%s has no newline among its tokens, so it is one document: documents are several files, "
                            "the rows of a CSV's column, the lines of a text or the sentences of a grammar",
                            corpus->name);
    if (corpus->line_ends > 0)
        return mg_error_set(error, MG_ERR_INPUT,
                            "%s has %s inside its texts, and a newline ends a document: take them out, or end "
                            "documents with a token of their own, by --special",
                            corpus->name, mg_count(corpus->line_ends, "newline").text);
    return MG_OK;
}
