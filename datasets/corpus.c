#include "corpus.h"

#include "bpe.h"
#include "csv_table.h"
#include "file_limits.h"
#include "hash.h"
#include "heap.h"
#include "quote.h"
#include "read_text.h"
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
    vsnprintf(corpus->warning + at, sizeof corpus->warning - at, format, arguments);
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
    case MG_TOKENIZER_WORD: return mg_tokenizer_from_text(&corpus->tokenizer, kind, text, length, error);
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

static ptrdiff_t count(const char *text, size_t length, char wanted) {
    ptrdiff_t n = 0;
    for (size_t i = 0; i < length; i++) n += text[i] == wanted;
    return n;
}

static void count_carriage_returns(mg_corpus *corpus, const char *text, size_t length) {
    ptrdiff_t n = count(text, length, '\r');
    if (n > 0) warn(corpus, "%s has %s (\\r), kept as tokens", corpus->name, mg_count(n, "carriage return").text);
}

static mg_status encode_text(mg_corpus *corpus, const mg_data_options *options, mg_tokenizer_kind kind,
                             const char *text, size_t length, mg_error *error) {
    mg_error inner;
    mg_status status = MG_OK;
    if (options->tokenizer) {
        corpus->tokenizer = mg_tokenizer_share(options->tokenizer);
    } else {
        status = make_tokenizer(corpus, options, kind, text, length, &inner);
    }
    size_t n = 0;
    if (status == MG_OK) status = mg_tokenizer_encode(corpus->tokenizer, text, length, &corpus->ids, &n, &inner);
    corpus->n = (ptrdiff_t)n;
    return status == MG_OK ? MG_OK : name_the_file(options, status, &inner, error);
}

static bool is_named_csv(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot && strcasecmp(dot, ".csv") == 0;
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

static mg_status load_text(mg_corpus *corpus, const mg_data_options *options, mg_tokenizer_kind kind, const char *text,
                           size_t length, mg_error *error) {
    if (length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        warn(corpus, "the byte order mark at the start of %s is left out", corpus->name);
        text += 3;
        length -= 3;
    }
    if (is_named_csv(corpus->name))
        warn(corpus,
             "%s is read as plain text, commas and quotes included: --column NAME reads only the texts of one column, "
             "and a grammar begins with the line state,word,next,weight",
             corpus->name);
    else if (resembles_a_grammar(text, length))
        warn(corpus, "%s is read as plain text: as a grammar, it would begin with the line state,word,next,weight",
             corpus->name);
    count_carriage_returns(corpus, text, length);
    return encode_text(corpus, options, kind, text, length, error);
}

/* ---- CSV of documents ---- */

static mg_status load_documents(mg_corpus *corpus, const mg_data_options *options, mg_tokenizer_kind kind,
                                const char *csv, size_t length, mg_error *error) {
    char *text;
    ptrdiff_t rows;
    mg_status status = mg_csv_read_column(csv, length, options->path, options->column, &text, &length, &rows, error);
    if (status == MG_OK && rows == 0)
        status = mg_error_set(error, MG_ERR_FORMAT, "%s has a header but no rows", options->path);
    if (status == MG_OK) count_carriage_returns(corpus, text, length);
    if (status == MG_OK) corpus->line_ends = count(text, length, '\n') - (rows - 1);
    if (status == MG_OK) status = encode_text(corpus, options, kind, text, length, error);
    mg_free(text);
    return status;
}

/* ---- Grammar ---- */

/* Three of the four names are enough: then a mistake in the fourth is reported, and not taken for text. */
static mg_status look_for_a_grammar(const char *text, size_t length, bool *is_grammar, mg_error *error) {
    enum { LONGEST_HEADER = 1024 };
    size_t header = 0;
    while (header < length && header < LONGEST_HEADER && text[header] != '\n' && text[header] != '\r') header++;
    mg_csv_table *table;
    *is_grammar = false;
    if (header == LONGEST_HEADER) return MG_OK;
    mg_status status = mg_csv_parse(&table, text, header, "", true, error);
    if (status == MG_ERR_FORMAT) return MG_OK;
    if (status != MG_OK) return status;
    int found = 0;
    for (int i = 0; i < 4; i++) found += mg_csv_find(table, grammar_columns[i]) >= 0;
    mg_csv_free(table);
    *is_grammar = found >= 3;
    return MG_OK;
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
    mg_status status = mg_tokenizer_decode(corpus->tokenizer, corpus->ids, (size_t)corpus->n, &text, &length, error);
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

/* The bytes, and what else decides which tokens a split has. The program's default split leaves the hash that of the
 * bytes. */
static uint64_t hash_of(const mg_data_options *options, const char *text, size_t length) {
    uint64_t hash = mg_fnv1a(MG_FNV_START, text, length);
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

static mg_status load(mg_corpus *corpus, const mg_data_options *options, mg_error *error) {
    const char *slash = strrchr(options->path, '/');
    corpus->name = mg_strdup(slash ? slash + 1 : options->path, error);
    if (!corpus->name) return MG_ERR_MEMORY;
    char *text;
    size_t length;
    mg_status status = mg_read_text_or_stream(options->path, MG_MOST_TEXT, MG_MOST_STREAM, &text, &length, error);
    if (status != MG_OK) return status;
    corpus->hash = hash_of(options, text, length);
    bool is_grammar = false;
    mg_tokenizer_kind kind;
    if (!options->column) status = look_for_a_grammar(text, length, &is_grammar, error);
    if (status == MG_OK) status = choose_kind(options, is_grammar, &kind, error);
    if (status == MG_OK) status = check_idle(corpus, options, kind, is_grammar, error);
    if (status == MG_OK) {
        if (options->column) {
            status = load_documents(corpus, options, kind, text, length, error);
        } else if (is_grammar) {
            status = load_grammar(corpus, options, kind, text, length, error);
        } else {
            status = load_text(corpus, options, kind, text, length, error);
        }
    }
    mg_free(text);
    return status == MG_OK ? split(corpus, options, error) : status;
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

mg_status mg_corpus_document_end(const mg_corpus *corpus, int *id, mg_error *error) {
    mg_error inner;
    if (corpus->grammar) {
        if (mg_grammar_sentence_end(corpus->grammar, id, &inner) == MG_OK) return MG_OK;
        return mg_error_set(error, MG_ERR_INPUT,
                            "%s: %s; for documents, one word must end every sentence and occur nowhere else",
                            corpus->name, inner.message);
    }
    *id = mg_tokenizer_newline(corpus->tokenizer);
    if (*id < 0)
        return mg_error_set(error, MG_ERR_INPUT,
                            "%s has no newline among its tokens, so it is one document: documents are the rows of a "
                            "CSV's column, the lines of a text or the sentences of a grammar",
                            corpus->name);
    if (corpus->line_ends > 0)
        return mg_error_set(error, MG_ERR_INPUT,
                            "%s has %s inside its texts, and a newline ends a document: take them out", corpus->name,
                            mg_count(corpus->line_ends, "newline").text);
    return MG_OK;
}
