#include "tokenizer_h5.h"

#include "bpe.h"
#include "file_limits.h"

#include <inttypes.h>
#include <string.h>

static const char tokens_path[] = MG_TOKENIZER_GROUP "/tokens";   /* uint8: all tokens, one after another */
static const char offsets_path[] = MG_TOKENIZER_GROUP "/offsets"; /* int64: where each starts; and the end */
static const char merges_path[] = MG_TOKENIZER_GROUP "/merges";   /* uint8: merges.txt; only for kind gpt2 */

static const char own_ids_name[] = "own_ids"; /* attribute: the ids are those of `tokens`, not those that merges make */

static mg_status write_tokens(const mg_h5 *h5, const mg_tokenizer *tokenizer) {
    int n = mg_tokenizer_size(tokenizer);
    int64_t *offsets = mg_alloc((size_t)n + 1, sizeof *offsets, "the offsets of tokens", h5->error);
    if (!offsets) return MG_ERR_MEMORY;
    offsets[0] = 0;
    for (int id = 0; id < n; id++) offsets[id + 1] = offsets[id] + (int64_t)mg_tokenizer_token(tokenizer, id).length;
    char *bytes = mg_alloc((size_t)offsets[n], 1, "the bytes of tokens", h5->error);
    mg_status status = bytes ? MG_OK : MG_ERR_MEMORY;
    if (status == MG_OK) {
        for (int id = 0; id < n; id++) {
            mg_token token = mg_tokenizer_token(tokenizer, id);
            memcpy(bytes + offsets[id], token.bytes, token.length);
        }
        status = mg_h5_write_data(h5, tokens_path, MG_H5_UINT8, 1, &(ptrdiff_t){(ptrdiff_t)offsets[n]}, bytes);
    }
    if (status == MG_OK)
        status = mg_h5_write_data(h5, offsets_path, MG_H5_INT64, 1, &(ptrdiff_t){(ptrdiff_t)n + 1}, offsets);
    mg_free(bytes);
    mg_free(offsets);
    return status;
}

static mg_status write_merges(const mg_h5 *h5, const mg_tokenizer *tokenizer) {
    size_t length;
    const char *merges = mg_tokenizer_merges(tokenizer, &length);
    return mg_h5_write_data(h5, merges_path, MG_H5_UINT8, 1, &(ptrdiff_t){(ptrdiff_t)length}, merges);
}

mg_status mg_tokenizer_h5_write(const mg_h5 *h5, const mg_tokenizer *tokenizer) {
    mg_tokenizer_kind kind = mg_tokenizer_get_kind(tokenizer);
    mg_status status = mg_h5_write_group(h5, MG_TOKENIZER_GROUP);
    if (status == MG_OK) status = mg_h5_write_text(h5, MG_TOKENIZER_GROUP, "kind", mg_tokenizer_kind_name(kind));
    if (status == MG_OK) status = mg_h5_write_int(h5, MG_TOKENIZER_GROUP, "size", mg_tokenizer_size(tokenizer));
    if (status == MG_OK && mg_tokenizer_has_own_ids(tokenizer))
        status = mg_h5_write_int(h5, MG_TOKENIZER_GROUP, own_ids_name, 1);
    if (status == MG_OK && kind != MG_TOKENIZER_NONE) status = write_tokens(h5, tokenizer);
    if (status == MG_OK && kind == MG_TOKENIZER_GPT2) status = write_merges(h5, tokenizer);
    return status;
}

/* The kind and the number of tokens. */
static mg_status read_kind(const mg_h5 *h5, int vocab_size, mg_tokenizer_kind *kind, int *n) {
    char name[32];
    int64_t size = 0;
    mg_status status = mg_h5_read_text(h5, MG_TOKENIZER_GROUP, "kind", name, sizeof name);
    if (status == MG_OK) status = mg_h5_read_int(h5, MG_TOKENIZER_GROUP, "size", &size);
    if (status != MG_OK) return status;
    if (mg_tokenizer_kind_parse(kind, name, NULL) != MG_OK)
        return mg_h5_error(h5, "the tokenizer has the unknown kind '%s'", name);
    if (size < 1 || size > vocab_size)
        return mg_h5_error(h5, "the tokenizer has %" PRId64 " tokens, but the model's vocab_size is %d", size,
                           vocab_size);
    *n = (int)size;
    return MG_OK;
}

mg_status mg_tokenizer_h5_kind(const mg_h5 *h5, int vocab_size, mg_tokenizer_kind *kind) {
    int n;
    return read_kind(h5, vocab_size, kind, &n);
}

/* The tokens from their bytes and n + 1 offsets, which must increase from 0 to n_bytes. */
static mg_status find_tokens(const mg_h5 *h5, int n, const int64_t *offsets, const char *bytes, ptrdiff_t n_bytes,
                             mg_token *tokens) {
    for (int id = 0; id < n; id++) {
        if (offsets[id] < 0 || offsets[id + 1] < offsets[id] || offsets[id + 1] > n_bytes)
            return mg_h5_error(h5, "%s does not increase from 0 to %td at token %d", offsets_path, n_bytes, id);
        tokens[id] = (mg_token){bytes + offsets[id], (size_t)(offsets[id + 1] - offsets[id])};
    }
    if (offsets[0] == 0 && offsets[n] == n_bytes) return MG_OK;
    return mg_h5_error(h5, "%s must start at 0 and end at %td", offsets_path, n_bytes);
}

/* What a constructor said, as this file's error. */
static mg_status made(const mg_h5 *h5, mg_status status, const mg_error *why) {
    if (status == MG_OK) return MG_OK;
    if (status == MG_ERR_MEMORY) return mg_error_set(h5->error, status, "%s", why->message);
    return mg_h5_error(h5, "the tokenizer is not valid: %s", why->message);
}

/* A list of tokens, and merges unless they are NULL. */
static mg_status read_tokens(const mg_h5 *h5, mg_tokenizer_kind kind, int n, const char *merges, size_t n_merges,
                             mg_tokenizer **tokenizer) {
    ptrdiff_t n_bytes = 0, n_offsets = (ptrdiff_t)n + 1;
    mg_status status = mg_h5_read_data(h5, 1, &(mg_h5_data){offsets_path, MG_H5_INT64, 1, &n_offsets, NULL});
    if (status == MG_OK) status = mg_h5_read_length(h5, tokens_path, MG_H5_UINT8, &n_bytes);
    if (status == MG_OK && (size_t)n_bytes > MG_MOST_TOKENS)
        status = mg_h5_error(h5, "%s has %td bytes; the limit is %zu", tokens_path, n_bytes, MG_MOST_TOKENS);
    if (status != MG_OK) return status;
    int64_t *offsets = mg_alloc((size_t)n_offsets, sizeof *offsets, "the offsets of tokens", h5->error);
    char *bytes = mg_alloc((size_t)n_bytes, 1, "the bytes of tokens", h5->error);
    mg_token *tokens = mg_alloc((size_t)n, sizeof *tokens, "a list of tokens", h5->error);
    status = offsets && bytes && tokens ? MG_OK : MG_ERR_MEMORY;
    const mg_h5_data data[] = {{offsets_path, MG_H5_INT64, 1, &n_offsets, offsets},
                               {tokens_path, MG_H5_UINT8, 1, &n_bytes, bytes}};
    if (status == MG_OK) status = mg_h5_read_data(h5, 2, data);
    if (status == MG_OK) status = find_tokens(h5, n, offsets, bytes, n_bytes, tokens);
    mg_error why = {0};
    if (status == MG_OK && merges)
        status = made(h5, mg_tokenizer_new_gpt2_as(tokenizer, merges, n_merges, n, tokens, &why), &why);
    else if (status == MG_OK)
        status = made(h5, mg_tokenizer_new(tokenizer, kind, n, tokens, &why), &why);
    mg_free(tokens);
    mg_free(bytes);
    mg_free(offsets);
    return status;
}

/* The vocabulary follows from the merges; the tokens in the file are there for other readers. */
static mg_status make_from_merges(const mg_h5 *h5, int n, const char *merges, size_t length, mg_tokenizer **tokenizer) {
    mg_error why = {0};
    mg_status status = made(h5, mg_tokenizer_new_gpt2(tokenizer, merges, length, &why), &why);
    if (status != MG_OK || mg_tokenizer_size(*tokenizer) == n) return status;
    status = mg_h5_error(h5, "%s makes %d tokens, but the tokenizer's size is %d", merges_path,
                         mg_tokenizer_size(*tokenizer), n);
    mg_tokenizer_free(*tokenizer);
    *tokenizer = NULL;
    return status;
}

static mg_status read_merges(const mg_h5 *h5, int n, mg_tokenizer **tokenizer) {
    ptrdiff_t length = 0;
    bool own_ids = false;
    mg_status status = mg_h5_read_length(h5, merges_path, MG_H5_UINT8, &length);
    if (status == MG_OK && (size_t)length > MG_MOST_MERGES)
        status = mg_h5_error(h5, "%s has %td bytes; the limit is %zu", merges_path, length, MG_MOST_MERGES);
    if (status == MG_OK) status = mg_h5_has_attribute(h5, MG_TOKENIZER_GROUP, own_ids_name, &own_ids);
    if (status != MG_OK) return status;
    char *merges = mg_alloc((size_t)length, 1, "the merges of a tokenizer", h5->error);
    if (!merges) return MG_ERR_MEMORY;
    status = mg_h5_read_data(h5, 1, &(mg_h5_data){merges_path, MG_H5_UINT8, 1, &length, merges});
    if (status == MG_OK && own_ids)
        status = read_tokens(h5, MG_TOKENIZER_GPT2, n, merges, (size_t)length, tokenizer);
    else if (status == MG_OK)
        status = make_from_merges(h5, n, merges, (size_t)length, tokenizer);
    mg_free(merges);
    return status;
}

mg_status mg_tokenizer_h5_read(const mg_h5 *h5, int vocab_size, mg_tokenizer **tokenizer) {
    *tokenizer = NULL;
    mg_tokenizer_kind kind;
    int n = 0;
    mg_error why = {0};
    mg_status status = read_kind(h5, vocab_size, &kind, &n);
    if (status != MG_OK) return status;
    switch (kind) {
    case MG_TOKENIZER_GPT2: return read_merges(h5, n, tokenizer);
    case MG_TOKENIZER_NONE: return made(h5, mg_tokenizer_new(tokenizer, kind, n, NULL, &why), &why);
    case MG_TOKENIZER_CHAR:
    case MG_TOKENIZER_WORD:
    case MG_TOKENIZER_GRAMMAR: break;
    }
    return read_tokens(h5, kind, n, NULL, 0, tokenizer);
}
