/* CHAR and WORD: a text is cut into pieces from left to right, and each piece is a token. */
#include "tokenizer_internal.h"

#include "heap.h"
#include "quote.h"
#include "utf8.h"

#include <stdlib.h>
#include <string.h>

bool mg_is_space(char byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* Letters and digits; everything outside ASCII counts as a letter, so nothing is lost without a Unicode table. */
static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (unsigned char)c >= 0x80;
}

static size_t char_piece(const char *text, size_t n) {
    int length = mg_utf8_next(text, n);
    return length > 0 ? (size_t)length : 1;
}

/* A run of letters or one other character, with the single space before it; other white space is a piece of its own. */
static size_t word_piece(const char *text, size_t n) {
    size_t at = text[0] == ' ' && n > 1 && !mg_is_space(text[1]) ? 1 : 0;
    if (!is_letter(text[at])) return at + 1;
    while (at < n && is_letter(text[at])) at++;
    return at;
}

mg_piece_fn *mg_tokenizer_piece(mg_tokenizer_kind kind) {
    MG_CHECK(kind == MG_TOKENIZER_CHAR || kind == MG_TOKENIZER_WORD, "%s tokens are not cut from a text",
             mg_tokenizer_kind_name(kind));
    return kind == MG_TOKENIZER_CHAR ? char_piece : word_piece;
}

static mg_status encode(const mg_tokenizer *t, const char *text, size_t length, mg_id_list *ids, mg_error *error) {
    mg_status status = mg_utf8_check(text, length, error);
    mg_piece_fn *piece = mg_tokenizer_piece(t->kind);
    for (size_t at = 0; at < length && status == MG_OK;) {
        mg_token token = {text + at, piece(text + at, length - at)};
        int id = mg_vocabulary_find(&t->vocabulary, token);
        if (id < 0)
            return mg_error_set(error, MG_ERR_INPUT, "%s at byte %zu is not among the %s of the vocabulary",
                                mg_quote(token).text, ids->offset + at,
                                mg_count(t->n_tokens, t->kind == MG_TOKENIZER_CHAR ? "character" : "word").text);
        ids->id[ids->n++] = id;
        at += token.length;
    }
    return status;
}

static const char *not_utf8(mg_token token) {
    return mg_utf8_check(token.bytes, token.length, NULL) == MG_OK ? NULL : "is not UTF-8";
}

static const char *not_a_character(mg_token token) {
    if (mg_is_end_of_text(token)) return NULL;
    if (not_utf8(token)) return not_utf8(token);
    return char_piece(token.bytes, token.length) == token.length ? NULL : "is more than one character";
}

static const char *not_a_word(mg_token token) {
    if (mg_is_end_of_text(token)) return NULL;
    if (not_utf8(token)) return not_utf8(token);
    return word_piece(token.bytes, token.length) == token.length ? NULL : "is more than one word";
}

const mg_tokenizer_row mg_char_row = {"char", "", not_a_character, encode, NULL};
const mg_tokenizer_row mg_word_row = {"word", "", not_a_word, encode, NULL};

static int by_bytes(const void *a, const void *b) {
    const mg_token *x = a, *y = b;
    size_t shorter = x->length < y->length ? x->length : y->length;
    int order = memcmp(x->bytes, y->bytes, shorter);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

static mg_status collect(mg_vocabulary *found, mg_piece_fn *piece, const char *text, size_t length, mg_error *error) {
    mg_status status = MG_OK;
    for (size_t at = 0; at < length && status == MG_OK;) {
        mg_token token = {text + at, piece(text + at, length - at)};
        int id;
        status = mg_vocabulary_add(found, token, &id, error);
        at += token.length;
    }
    return status;
}

/* The same, where a 0 byte is the token that ends a document. */
static mg_status collect_documents(mg_vocabulary *found, mg_piece_fn *piece, const char *text, size_t length,
                                   mg_error *error) {
    mg_status status = MG_OK;
    for (size_t at = 0; at < length && status == MG_OK;) {
        const char *end = memchr(text + at, '\0', length - at);
        size_t n = end ? (size_t)(end - text) - at : length - at;
        int id;
        status = collect(found, piece, text + at, n, error);
        if (status == MG_OK && end)
            status = mg_vocabulary_add(found, (mg_token){MG_END_OF_TEXT, strlen(MG_END_OF_TEXT)}, &id, error);
        at += n + 1;
    }
    return status;
}

static mg_status from_text(mg_tokenizer **tokenizer, mg_tokenizer_kind kind, bool documents, const char *text,
                           size_t length, mg_error *error) {
    *tokenizer = NULL;
    mg_vocabulary found = {0};
    mg_status status = mg_utf8_check(text, length, error);
    if (status == MG_OK)
        status = (documents ? collect_documents : collect)(&found, mg_tokenizer_piece(kind), text, length, error);
    if (status == MG_OK && found.n == 0)
        status = mg_error_set(error, MG_ERR_FORMAT, "the text is empty; a vocabulary needs at least one token");
    if (status == MG_OK) {
        qsort(found.token, (size_t)found.n, sizeof *found.token, by_bytes);
        status = mg_tokenizer_new(tokenizer, kind, found.n, found.token, error);
    }
    mg_vocabulary_free(&found);
    return status;
}

mg_status mg_tokenizer_from_text(mg_tokenizer **tokenizer, mg_tokenizer_kind kind, const char *text, size_t length,
                                 mg_error *error) {
    return from_text(tokenizer, kind, false, text, length, error);
}

mg_status mg_tokenizer_from_documents(mg_tokenizer **tokenizer, mg_tokenizer_kind kind, const char *text, size_t length,
                                      mg_error *error) {
    return from_text(tokenizer, kind, true, text, length, error);
}
