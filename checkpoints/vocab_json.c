#include "vocab_json.h"
#include "bpe.h"
#include "byte_alphabet.h"
#include "file_limits.h"
#include "heap.h"
#include "json_file.h"
#include "utf8.h"

#include <string.h>

/* `spelled` is the token in the byte alphabet. */
static mg_status check_token(const json_t *json, const char *path, const char *spelled, size_t length, int id,
                             mg_error *error) {
    const json_t *value = json_object_getn(json, spelled, length);
    if (!value)
        return mg_error_set(error, MG_ERR_FORMAT, "%s has no token '%.*s', which the merges make, with id %d", path,
                            (int)length, spelled, id);
    if (!json_is_integer(value))
        return mg_error_set(error, MG_ERR_FORMAT, "%s: the id of the token '%.*s' is not an integer", path, (int)length,
                            spelled);
    if (json_integer_value(value) == id) return MG_OK;
    return mg_error_set(error, MG_ERR_FORMAT, "%s: the token '%.*s' has id %lld, but %d according to the merges", path,
                        (int)length, spelled, (long long)json_integer_value(value), id);
}

static mg_status check_tokens(const json_t *json, const char *path, const mg_tokenizer *tokenizer, mg_error *error) {
    if (!json_is_object(json))
        return mg_error_set(error, MG_ERR_FORMAT, "%s is not a JSON object from tokens to ids", path);
    mg_byte_alphabet alphabet;
    mg_byte_alphabet_fill(&alphabet);
    mg_status status = MG_OK;
    for (int id = 0; id < mg_tokenizer_size(tokenizer) && status == MG_OK; id++) {
        mg_token token = mg_tokenizer_token(tokenizer, id);
        char *spelled = mg_alloc(token.length, 2, "a token's spelling", error);
        if (!spelled) return MG_ERR_MEMORY;
        size_t length = mg_byte_alphabet_spell(&alphabet, token.bytes, token.length, spelled);
        status = check_token(json, path, spelled, length, id, error);
        mg_free(spelled);
    }
    /* All of ours are in it. Does it have more? */
    if (status == MG_OK && json_object_size(json) != (size_t)mg_tokenizer_size(tokenizer))
        status = mg_error_set(error, MG_ERR_FORMAT, "%s has %s, but the merges make %d", path,
                              mg_count((int64_t)json_object_size(json), "token").text, mg_tokenizer_size(tokenizer));
    return status;
}

mg_status mg_vocab_json_check(const char *path, const mg_tokenizer *tokenizer, mg_error *error) {
    json_t *json;
    mg_status status = mg_json_file_read(path, MG_MOST_VOCAB_JSON, &json, error);
    if (status != MG_OK) return status;
    status = check_tokens(json, path, tokenizer, error);
    json_decref(json);
    return status;
}

/* ---- Writing ---- */

static int put_token(json_t *json, const mg_byte_alphabet *alphabet, mg_token token, int id, mg_error *error) {
    char *spelled = mg_alloc(token.length, 2, "a token's spelling", error);
    if (!spelled) return -1;
    size_t length = mg_byte_alphabet_spell(alphabet, token.bytes, token.length, spelled);
    int status = json_object_setn_new(json, spelled, length, json_integer(id));
    mg_free(spelled);
    return status;
}

mg_status mg_vocab_json_write(FILE *out, const mg_tokenizer *tokenizer, mg_error *error) {
    mg_byte_alphabet alphabet;
    mg_byte_alphabet_fill(&alphabet);
    json_t *json = json_object();
    for (int id = 0; json && id < mg_tokenizer_size(tokenizer); id++) {
        if (put_token(json, &alphabet, mg_tokenizer_token(tokenizer, id), id, error) == 0) continue;
        json_decref(json);
        json = NULL;
    }
    return mg_json_print(out, json, error);
}

/* ---- Ids of its own ---- */

/* The bytes that a key spells; a key with other characters, as special tokens may have, is its own bytes. */
static size_t unspell(const mg_byte_alphabet *alphabet, const char *key, char *bytes) {
    size_t length = strlen(key), n = 0;
    for (size_t at = 0; at < length;) {
        int step = mg_utf8_next(key + at, length - at),
            byte = step > 0 ? mg_byte_alphabet_read(alphabet, key + at, step) : -1;
        if (byte < 0) {
            memcpy(bytes, key, length);
            return length;
        }
        bytes[n++] = (char)byte;
        at += (size_t)step;
    }
    return n;
}

/* The tokens in the order of their ids, which are 0 … n - 1. */
static mg_status list_tokens(json_t *json, const char *path, char *bytes, mg_token *tokens, mg_error *error) {
    size_t n = json_object_size(json);
    mg_byte_alphabet alphabet;
    mg_byte_alphabet_fill(&alphabet);
    const char *key;
    json_t *value;
    json_object_foreach(json, key, value) {
        json_int_t id = json_integer_value(value);
        if (!json_is_integer(value) || id < 0 || (size_t)id >= n || tokens[id].bytes)
            return mg_error_set(error, MG_ERR_FORMAT,
                                "%s: the id of the token '%s' is not one of 0 to %zu, or not its own", path, key,
                                n - 1);
        size_t length = unspell(&alphabet, key, bytes);
        tokens[id] = (mg_token){bytes, length};
        bytes += length;
    }
    return MG_OK;
}

static mg_status read_tokens(json_t *json, const char *path, const mg_tokenizer *tokenizer, mg_tokenizer **as,
                             mg_error *error) {
    size_t n = json_object_size(json), n_bytes = 0, n_merges;
    const char *key, *merges = mg_tokenizer_merges(tokenizer, &n_merges);
    json_t *value;
    json_object_foreach(json, key, value) n_bytes += strlen(key);
    mg_token *tokens = mg_alloc_zero(n, sizeof *tokens, "the tokens of a vocabulary", error);
    char *bytes = mg_alloc(n_bytes, 1, "the tokens of a vocabulary", error);
    mg_status status = tokens && bytes ? list_tokens(json, path, bytes, tokens, error) : MG_ERR_MEMORY;
    mg_error why;
    if (status == MG_OK) {
        status = mg_tokenizer_new_gpt2_as(as, merges, n_merges, (int)n, tokens, &why);
        if (status != MG_OK)
            status = mg_error_set(error, status == MG_ERR_MEMORY ? status : MG_ERR_FORMAT, "%s: %s", path, why.message);
    }
    mg_free(bytes);
    mg_free(tokens);
    return status;
}

mg_status mg_vocab_json_read(const char *path, const mg_tokenizer *tokenizer, mg_tokenizer **as, mg_error *error) {
    json_t *json;
    *as = NULL;
    mg_status status = mg_json_file_read(path, MG_MOST_VOCAB_JSON, &json, error);
    if (status != MG_OK) return status;
    if (json_is_object(json) && json_object_size(json) > 0)
        status = read_tokens(json, path, tokenizer, as, error);
    else
        status = mg_error_set(error, MG_ERR_FORMAT, "%s is not a JSON object from tokens to ids", path);
    json_decref(json);
    return status;
}
