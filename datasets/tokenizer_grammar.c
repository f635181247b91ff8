/* GRAMMAR: words between white space. */
#include "tokenizer_internal.h"

#include "quote.h"
#include "utf8.h"

static const char *not_a_grammar_word(mg_token token) {
    if (mg_utf8_check(token.bytes, token.length, NULL) != MG_OK) return "is not UTF-8";
    for (size_t i = 0; i < token.length; i++)
        if (mg_is_space(token.bytes[i])) return "contains white space, which separates the words of a grammar";
    return NULL;
}

static mg_status encode(const mg_tokenizer *t, const char *text, size_t length, mg_id_list *ids, mg_error *error) {
    mg_status status = mg_utf8_check(text, length, error);
    for (size_t at = 0; at < length && status == MG_OK;) {
        if (mg_is_space(text[at])) {
            at++;
            continue;
        }
        mg_token word = {text + at, 0};
        while (at + word.length < length && !mg_is_space(text[at + word.length])) word.length++;
        int id = mg_vocabulary_find(&t->vocabulary, word);
        if (id < 0)
            return mg_error_set(error, MG_ERR_INPUT, "%s at byte %zu is not among the %s of the grammar",
                                mg_quote(word).text, at, mg_count(t->n_tokens, "word").text);
        ids->id[ids->n++] = id;
        at += word.length;
    }
    return status;
}

const mg_tokenizer_row mg_grammar_row = {"grammar", " ", not_a_grammar_word, encode, NULL};
