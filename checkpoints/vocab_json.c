#include "vocab_json.h"
#include "byte_alphabet.h"
#include "file_limits.h"
#include "heap.h"
#include "json_file.h"

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
    return mg_error_set(error, MG_ERR_FORMAT,
                        "%s: the token '%.*s' has id %" JSON_INTEGER_FORMAT ", but %d according to the merges", path,
                        (int)length, spelled, json_integer_value(value), id);
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
