#include "bpe_vocabulary.h"
#include "heap.h"
#include "utf8.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char end_of_text[] = "<|endoftext|>";
enum { END_OF_TEXT_LENGTH = sizeof end_of_text - 1, NONE = -1 };

/* ---- Pair → what it makes ---- */

static size_t hash_pair(int left, int right) {
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    return (size_t)(key * 0x9E3779B97F4A7C15u >>
                    32); /* Knuth's multiplicative hash: the high bits are the mixed ones */
}

static mg_bpe_pair *place_of_pair(const mg_bpe_vocabulary *v, int left, int right) {
    size_t at = hash_pair(left, right) & v->pair_mask;
    while (v->pairs[at].left >= 0 && (v->pairs[at].left != left || v->pairs[at].right != right))
        at = (at + 1) & v->pair_mask;
    return &v->pairs[at];
}

int mg_bpe_vocabulary_pair(const mg_bpe_vocabulary *vocabulary, int left, int right) {
    const mg_bpe_pair *place = place_of_pair(vocabulary, left, right);
    return place->left < 0 ? NONE : place->merged;
}

/* ---- Bytes → token, while the merges are read ---- */

typedef struct reader {
    mg_bpe_vocabulary *v;
    const char *name; /* the file, for errors */
    const char *text, *end;
    int line, first_line; /* of merges: 1, or 2 below a header */
    size_t used;          /* of v->bytes */
    int *id_of_token;     /* a hash table with open addressing, of the size of v->pairs */
} reader;

static int *place_of_token(const reader *r, const char *bytes, size_t length) {
    uint64_t hash = 0xCBF29CE484222325u; /* FNV-1a */
    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001B3u;
    for (size_t at = (size_t)(hash ^ hash >> 32) & r->v->pair_mask;; at = (at + 1) & r->v->pair_mask) {
        int *place = &r->id_of_token[at];
        if (*place == NONE) return place;
        mg_token token = r->v->tokens[*place];
        if (token.length == length && memcmp(token.bytes, bytes, length) == 0) return place;
    }
}

/* The bytes from `used` on, `length` of them, become the next token. */
static void add_token(reader *r, size_t length) {
    mg_token token = {r->v->bytes + r->used, length};
    *place_of_token(r, token.bytes, length) = r->v->n_tokens;
    r->v->tokens[r->v->n_tokens++] = token;
    r->used += length;
}

/* ---- Lines ---- */

typedef struct part {
    const char *text; /* as spelled in the file */
    size_t length;
} part;

static MG_PRINTF(3, 4) mg_status refuse(const reader *r, mg_error *error, const char *format, ...) {
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return mg_error_set(error, MG_ERR_FORMAT, "%s, line %d: %s", r->name, r->line, what);
}

/* How much of a part an error shows: whole characters, not a page of them. */
static int shown(part p) {
    size_t n = p.length < 64 ? p.length : 64;
    while (n > 0 && n < p.length && ((unsigned char)p.text[n] & 0xC0) == 0x80) n--;
    return (int)n;
}

static mg_status split_line(const reader *r, const char *end, part parts[2], mg_error *error) {
    int spaces = 0;
    for (const char *c = r->text; c < end; c++) spaces += *c == ' ';
    const char *space = spaces == 1 ? memchr(r->text, ' ', (size_t)(end - r->text)) : NULL;
    if (!space || space == r->text || space + 1 == end)
        return refuse(r, error, "a merge is two tokens with one space between them, and this line is not");
    parts[0] = (part){r->text, (size_t)(space - r->text)};
    parts[1] = (part){space + 1, (size_t)(end - space - 1)};
    return MG_OK;
}

/* From characters to the bytes they stand for, written behind the `*written` bytes of the token to be. */
static mg_status read_part(const reader *r, part p, size_t *written, int *id, mg_error *error) {
    char *bytes = r->v->bytes + r->used + *written;
    size_t n = 0;
    for (size_t at = 0; at < p.length;) {
        int length = mg_utf8_next(p.text + at, p.length - at);
        int byte = length > 0 ? mg_byte_alphabet_read(&r->v->alphabet, p.text + at, length) : -1;
        if (byte < 0) {
            /* Bytes that are no visible character are named by number: they would only upset the terminal. */
            if (length < 2)
                return refuse(r, error, "the byte 0x%02X is not part of a character of GPT-2's byte alphabet",
                              (unsigned char)p.text[at]);
            return refuse(r, error, "'%.*s' is not a character of GPT-2's byte alphabet", length, p.text + at);
        }
        bytes[n++] = (char)byte;
        at += (size_t)length;
    }
    *written += n;
    *id = *place_of_token(r, bytes, n);
    if (*id == NONE)
        return refuse(r, error, "the token '%.*s' is in no earlier line, so there is nothing to merge", shown(p),
                      p.text);
    return MG_OK;
}

static int line_of(const reader *r, int id) {
    return r->first_line + id - 256;
}

static mg_status read_merge(reader *r, const char *end, mg_error *error) {
    part parts[2] = {{0}};
    mg_status status = split_line(r, end, parts, error);
    size_t length = 0;
    int ids[2] = {0};
    for (int i = 0; i < 2 && status == MG_OK; i++) status = read_part(r, parts[i], &length, &ids[i], error);
    if (status != MG_OK) return status;

    mg_bpe_pair *place = place_of_pair(r->v, ids[0], ids[1]);
    if (place->left >= 0)
        return refuse(r, error, "the merge '%.*s' '%.*s' is already in line %d", shown(parts[0]), parts[0].text,
                      shown(parts[1]), parts[1].text, line_of(r, place->merged));
    int same = *place_of_token(r, r->v->bytes + r->used, length);
    if (same != NONE)
        return refuse(r, error, "the merge '%.*s' '%.*s' makes the token that line %d makes", shown(parts[0]),
                      parts[0].text, shown(parts[1]), parts[1].text, line_of(r, same));
    *place = (mg_bpe_pair){ids[0], ids[1], r->v->n_tokens};
    add_token(r, length);
    return MG_OK;
}

static mg_status read_merges(reader *r, mg_error *error) {
    while (r->text < r->end) {
        const char *feed = memchr(r->text, '\n', (size_t)(r->end - r->text));
        const char *end = feed ? feed : r->end;
        mg_status status = read_merge(r, end > r->text && end[-1] == '\r' ? end - 1 : end, error);
        if (status != MG_OK) return status;
        r->text = feed ? feed + 1 : r->end;
        r->line++;
    }
    return MG_OK;
}

/* ---- The whole ---- */

static bool starts_with(const reader *r, const char *prefix) {
    size_t n = strlen(prefix);
    return (size_t)(r->end - r->text) >= n && memcmp(r->text, prefix, n) == 0;
}

static mg_status read_header(reader *r, mg_error *error) {
    if (starts_with(r, "version https://git-lfs"))
        return mg_error_set(error, MG_ERR_FORMAT,
                            "%s is a git-lfs pointer in the place of the file: `git lfs pull` gets it", r->name);
    /* "#version: 0.2" would also pass for two tokens, but never for two that are known in the first line. */
    if (starts_with(r, "#version")) {
        const char *feed = memchr(r->text, '\n', (size_t)(r->end - r->text));
        r->text = feed ? feed + 1 : r->end;
        r->line++;
    }
    while (r->end > r->text && (r->end[-1] == '\n' || r->end[-1] == '\r')) r->end--;
    r->first_line = r->line;
    if (r->text < r->end) return MG_OK;
    return mg_error_set(error, MG_ERR_FORMAT, "%s holds no merges: a merges.txt has one merge a line", r->name);
}

/* Room for all lines that are left and the bytes they spell. */
static mg_status reserve(reader *r, mg_error *error) {
    size_t length = (size_t)(r->end - r->text), lines = 1;
    if (length > INT_MAX / 2)
        return mg_error_set(error, MG_ERR_FORMAT, "%s has %zu bytes, which no merges.txt has", r->name, length);
    for (const char *c = r->text; c < r->end; c++) lines += *c == '\n';
    size_t n_tokens = 256 + lines + 1, size = 1;
    while (size < 2 * n_tokens) size *= 2;
    r->v->pair_mask = size - 1;
    r->v->tokens = mg_alloc(n_tokens, sizeof *r->v->tokens, "the tokens of a byte-pair encoding", error);
    r->v->bytes = mg_alloc(256 + length + END_OF_TEXT_LENGTH, 1, "the bytes of its tokens", error);
    r->v->pairs = mg_alloc(size, sizeof *r->v->pairs, "the merges of a byte-pair encoding", error);
    r->id_of_token = mg_alloc(size, sizeof *r->id_of_token, "the index of its tokens", error);
    if (!r->v->tokens || !r->v->bytes || !r->v->pairs || !r->id_of_token) return MG_ERR_MEMORY;
    for (size_t i = 0; i < size; i++) {
        r->v->pairs[i] = (mg_bpe_pair){NONE, NONE, NONE};
        r->id_of_token[i] = NONE;
    }
    return MG_OK;
}

static void add_bytes(reader *r) {
    mg_byte_alphabet_fill(&r->v->alphabet);
    for (int id = 0; id < 256; id++) {
        r->v->bytes[r->used] = (char)r->v->alphabet.byte_of_id[id];
        add_token(r, 1);
    }
}

static mg_status add_end_of_text(reader *r, mg_error *error) {
    int same = *place_of_token(r, end_of_text, END_OF_TEXT_LENGTH);
    if (same != NONE) {
        r->line = line_of(r, same);
        return refuse(r, error, "a merge makes %s, which is reserved", end_of_text);
    }
    memcpy(r->v->bytes + r->used, end_of_text, END_OF_TEXT_LENGTH);
    add_token(r, END_OF_TEXT_LENGTH);
    return MG_OK;
}

mg_status mg_bpe_vocabulary_read(mg_bpe_vocabulary *vocabulary, const char *merges, size_t length, const char *name,
                                 mg_error *error) {
    *vocabulary = (mg_bpe_vocabulary){0};
    reader r = {.v = vocabulary, .name = name, .text = merges, .end = merges + length, .line = 1};
    mg_status status = read_header(&r, error);
    if (status == MG_OK) status = reserve(&r, error);
    if (status == MG_OK) {
        add_bytes(&r);
        status = read_merges(&r, error);
    }
    if (status == MG_OK) status = add_end_of_text(&r, error);
    mg_free(r.id_of_token);
    if (status != MG_OK) mg_bpe_vocabulary_free(vocabulary);
    return status;
}

void mg_bpe_vocabulary_free(mg_bpe_vocabulary *vocabulary) {
    mg_free(vocabulary->tokens);
    mg_free(vocabulary->bytes);
    mg_free(vocabulary->pairs);
    *vocabulary = (mg_bpe_vocabulary){0};
}
