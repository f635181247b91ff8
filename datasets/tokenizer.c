#include "tokenizer_internal.h"

#include "heap.h"
#include "quote.h"

#include <stdint.h>
#include <string.h>

static const mg_tokenizer_row none_row = {.name = "none", .separator = ""};

static const mg_tokenizer_row *row_of(mg_tokenizer_kind kind) {
    switch (kind) {
    case MG_TOKENIZER_CHAR: return &mg_char_row;
    case MG_TOKENIZER_WORD: return &mg_word_row;
    case MG_TOKENIZER_GRAMMAR: return &mg_grammar_row;
    case MG_TOKENIZER_NONE: return &none_row;
    case MG_TOKENIZER_GPT2: return &mg_gpt2_row;
    }
    MG_CHECK(false, "%d is not a kind of tokenizer", (int)kind);
    return NULL;
}

const char *mg_tokenizer_kind_name(mg_tokenizer_kind kind) {
    return row_of(kind)->name;
}

mg_status mg_tokenizer_kind_parse(mg_tokenizer_kind *kind, const char *name, mg_error *error) {
    for (int i = MG_TOKENIZER_CHAR; i <= MG_TOKENIZER_NONE; i++) {
        *kind = (mg_tokenizer_kind)i;
        if (strcmp(mg_tokenizer_kind_name(*kind), name) == 0) return MG_OK;
    }
    return mg_error_set(error, MG_ERR_INPUT,
                        "unknown kind of tokens '%s': it must be char, word, gpt2, grammar or none", name);
}

static mg_status copy_tokens(mg_tokenizer *t, int n, const mg_token *tokens, mg_error *error) {
    size_t total = 0, at = 0;
    for (int i = 0; i < n; i++) {
        if (tokens[i].length > SIZE_MAX / 2 - total)
            return mg_error_set(error, MG_ERR_INPUT, "token %d is longer than the memory of this machine", i);
        total += tokens[i].length;
    }
    t->bytes = mg_alloc(total, 1, "the tokens of a vocabulary", error);
    if (!t->bytes) return MG_ERR_MEMORY;
    mg_status reserved = mg_vocabulary_reserve(&t->vocabulary, n, error);
    if (reserved != MG_OK) return reserved;
    for (int i = 0; i < n; i++) {
        mg_token token = {t->bytes + at, tokens[i].length};
        if (token.length == 0) return mg_error_set(error, MG_ERR_INPUT, "token %d is empty", i);
        memcpy(t->bytes + at, tokens[i].bytes, token.length);
        at += token.length;
        const char *objection = t->row->objection ? t->row->objection(token) : NULL;
        if (objection) return mg_error_set(error, MG_ERR_INPUT, "token %d (%s) %s", i, mg_quote(token).text, objection);
        int id;
        mg_status status = mg_vocabulary_add(&t->vocabulary, token, &id, error);
        if (status != MG_OK) return status;
        if (id != i)
            return mg_error_set(error, MG_ERR_INPUT, "tokens %d and %d are the same: %s", id, i, mg_quote(token).text);
    }
    return MG_OK;
}

mg_status mg_tokenizer_make(mg_tokenizer **tokenizer, mg_tokenizer_kind kind, const mg_tokenizer_row *row, int n_tokens,
                            const mg_token *tokens, void *extra, mg_error *error) {
    *tokenizer = NULL;
    mg_tokenizer *t = mg_alloc_zero(1, sizeof *t, "a tokenizer", error);
    if (!t) {
        if (extra) row->free_extra(extra);
        return MG_ERR_MEMORY;
    }
    *t = (mg_tokenizer){.kind = kind, .row = row, .n_tokens = n_tokens, .extra = extra, .n_owners = 1};
    mg_status status = MG_OK;
    if (n_tokens < 1) status = mg_error_set(error, MG_ERR_INPUT, "a vocabulary needs at least one token");
    if (status == MG_OK && kind != MG_TOKENIZER_NONE) status = copy_tokens(t, n_tokens, tokens, error);
    if (status == MG_OK) {
        *tokenizer = t;
    } else {
        mg_tokenizer_free(t);
    }
    return status;
}

mg_status mg_tokenizer_new(mg_tokenizer **tokenizer, mg_tokenizer_kind kind, int n_tokens, const mg_token *tokens,
                           mg_error *error) {
    *tokenizer = NULL;
    if (kind == MG_TOKENIZER_GPT2)
        return mg_error_set(error, MG_ERR_INPUT,
                            "a GPT-2 tokenizer is made from its merges, not from a list of tokens");
    return mg_tokenizer_make(tokenizer, kind, row_of(kind), n_tokens, tokens, NULL, error);
}

mg_tokenizer *mg_tokenizer_share(const mg_tokenizer *tokenizer) {
    mg_tokenizer *shared = (mg_tokenizer *)(uintptr_t)tokenizer; /* the count of owners is not part of its value */
    shared->n_owners++;
    return shared;
}

void mg_tokenizer_free(mg_tokenizer *t) {
    if (!t || --t->n_owners > 0) return;
    if (t->extra) t->row->free_extra(t->extra);
    mg_vocabulary_free(&t->vocabulary);
    mg_free(t->bytes);
    mg_free(t);
}

mg_tokenizer_kind mg_tokenizer_get_kind(const mg_tokenizer *t) {
    return t->kind;
}

int mg_tokenizer_size(const mg_tokenizer *t) {
    return t->n_tokens;
}

mg_token mg_tokenizer_token(const mg_tokenizer *t, int id) {
    MG_CHECK(id >= 0 && id < t->n_tokens, "id %d is not in a vocabulary of %d tokens", id, t->n_tokens);
    return t->kind == MG_TOKENIZER_NONE ? (mg_token){"", 0} : t->vocabulary.token[id];
}

const char *mg_tokenizer_separator(const mg_tokenizer *t, int previous_id, int id) {
    (void)id;
    return previous_id < 0 ? "" : t->row->separator;
}

/* Every token has at least one byte. The system gives no memory for what stays unused. */
mg_status mg_id_list_make(mg_id_list *list, size_t length, mg_error *error) {
    *list = (mg_id_list){.id = mg_alloc(length, sizeof *list->id, "token ids", error)};
    if (!list->id) return MG_ERR_MEMORY;
    mg_heap_fills_slowly(list->id, length * sizeof *list->id);
    return MG_OK;
}

static mg_status check_encodes(const mg_tokenizer *t, mg_error *error) {
    if (t->row->encode) return MG_OK;
    return mg_error_set(error, MG_ERR_INPUT,
                        "this model has no tokenizer and cannot read text; import it again with its merges.txt");
}

mg_status mg_tokenizer_append(const mg_tokenizer *t, const char *text, size_t length, mg_id_list *list,
                              mg_error *error) {
    mg_status status = check_encodes(t, error);
    list->offset = 0;
    while (status == MG_OK && list->offset < length) {
        const char *part = text + list->offset, *end = memchr(part, '\0', length - list->offset);
        size_t n = end ? (size_t)(end - part) : length - list->offset;
        if (n > 0) status = t->row->encode(t, part, n, list, error);
        if (status == MG_OK && end) list->id[list->n++] = mg_tokenizer_end_of_text(t);
        list->offset += n + 1;
    }
    return status;
}

mg_status mg_tokenizer_encode(int **ids, size_t *n_ids, const mg_tokenizer *t, const char *text, size_t length,
                              mg_error *error) {
    *ids = NULL;
    *n_ids = 0;
    mg_id_list list;
    mg_status status = check_encodes(t, error);
    if (status == MG_OK) status = mg_id_list_make(&list, length, error);
    if (status != MG_OK) return status;
    status = t->row->encode(t, text, length, &list, error);
    if (status != MG_OK) {
        mg_free(list.id);
        return status;
    }
    *ids = list.id;
    *n_ids = list.n;
    return MG_OK;
}

static mg_status decoded_length(const mg_tokenizer *t, const int *ids, size_t n_ids, size_t *length, mg_error *error) {
    *length = 0;
    for (size_t i = 0; i < n_ids; i++) {
        if (ids[i] < 0 || ids[i] >= t->n_tokens)
            return mg_error_set(error, MG_ERR_INPUT,
                                "id %d (number %zu of the list) is not in the vocabulary of %d tokens", ids[i], i,
                                t->n_tokens);
        *length += t->vocabulary.token[ids[i]].length + strlen(t->row->separator);
    }
    return MG_OK;
}

mg_status mg_tokenizer_decode(char **bytes, size_t *length, const mg_tokenizer *t, const int *ids, size_t n_ids,
                              mg_error *error) {
    *bytes = NULL;
    *length = 0;
    if (t->kind == MG_TOKENIZER_NONE)
        return mg_error_set(error, MG_ERR_INPUT, "this model has no tokenizer: its ids cannot be turned into text");
    size_t room;
    mg_status status = decoded_length(t, ids, n_ids, &room, error);
    if (status != MG_OK) return status;
    char *out = mg_alloc(room + 1, 1, "decoded text", error);
    if (!out) return MG_ERR_MEMORY;
    size_t at = 0;
    for (size_t i = 0; i < n_ids; i++) {
        const char *separator = mg_tokenizer_separator(t, i == 0 ? -1 : ids[i - 1], ids[i]);
        mg_token parts[2] = {{separator, strlen(separator)}, t->vocabulary.token[ids[i]]};
        for (int part = 0; part < 2; part++) {
            memcpy(out + at, parts[part].bytes, parts[part].length);
            at += parts[part].length;
        }
    }
    out[at] = '\0';
    *bytes = out;
    *length = at;
    return MG_OK;
}

bool mg_tokenizer_equal(const mg_tokenizer *a, const mg_tokenizer *b) {
    if (a->kind != b->kind || a->n_tokens != b->n_tokens) return false;
    for (int id = 0; id < a->n_tokens; id++) {
        mg_token x = mg_tokenizer_token(a, id), y = mg_tokenizer_token(b, id);
        if (x.length != y.length || memcmp(x.bytes, y.bytes, x.length) != 0) return false;
    }
    return true;
}

int mg_tokenizer_find(const mg_tokenizer *tokenizer, mg_token token) {
    return mg_vocabulary_find(&tokenizer->vocabulary, token);
}

static int find_token(const mg_tokenizer *tokenizer, const char *bytes) {
    return mg_tokenizer_find(tokenizer, (mg_token){bytes, strlen(bytes)});
}

bool mg_is_end_of_text(mg_token token) {
    return token.length == strlen(MG_END_OF_TEXT) && memcmp(token.bytes, MG_END_OF_TEXT, token.length) == 0;
}

int mg_tokenizer_end_of_text(const mg_tokenizer *tokenizer) {
    return tokenizer->kind == MG_TOKENIZER_GRAMMAR ? -1 : find_token(tokenizer, MG_END_OF_TEXT);
}

int mg_tokenizer_newline(const mg_tokenizer *tokenizer) {
    return find_token(tokenizer, "\n");
}

int mg_tokenizer_start_id(const mg_tokenizer *tokenizer) {
    int id = mg_tokenizer_end_of_text(tokenizer);
    if (id < 0 && tokenizer->kind == MG_TOKENIZER_GRAMMAR)
        id = find_token(tokenizer, ".");
    else if (id < 0)
        id = mg_tokenizer_newline(tokenizer);
    return id < 0 ? 0 : id;
}
