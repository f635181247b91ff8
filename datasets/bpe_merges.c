#include "bpe_merges.h"
#include "file_limits.h"
#include "heap.h"
#include "quote.h"
#include "utf8.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char end_of_text[] = "<|endoftext|>";
enum { END_OF_TEXT_LENGTH = sizeof end_of_text - 1, NONE = -1 };

static size_t hash_pair(int left, int right) {
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    return (size_t)(key * 0x9E3779B97F4A7C15u >> 32); /* Fibonacci hashing: the high bits are the mixed ones */
}

/* The slot that holds the pair, or the free one where it would go. */
static int *find_slot(const mg_bpe_merges *m, int left, int right) {
    size_t at = hash_pair(left, right) & m->mask;
    while (m->slot[at] != NONE && (m->merge[m->slot[at]].left != left || m->merge[m->slot[at]].right != right))
        at = (at + 1) & m->mask;
    return &m->slot[at];
}

int mg_bpe_merges_find(const mg_bpe_merges *m, int left, int right) {
    int number = *find_slot(m, left, right);
    return number == NONE ? NONE : 256 + number;
}

typedef struct reader {
    mg_bpe_merges *m;
    const char *name; /* the file, for errors */
    const char *text, *end;
    int line, first_line; /* of merges: 1, or 2 below a header */
    size_t used;          /* of m->bytes */
} reader;

/* The bytes from `used` on, `length` of them, become the next token. */
static mg_status add_token(reader *r, size_t length, mg_error *error) {
    int id;
    mg_status status = mg_vocabulary_add(&r->m->tokens, (mg_token){r->m->bytes + r->used, length}, &id, error);
    r->used += length;
    return status;
}

/* ---- Lines ---- */

static MG_PRINTF(3, 4) mg_status refuse(const reader *r, mg_error *error, const char *format, ...) {
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return mg_error_set(error, MG_ERR_FORMAT, "%s, line %d: %s", r->name, r->line, what);
}

/* The two tokens of a line, as they are spelled. */
static mg_status split_line(const reader *r, const char *end, mg_token spelled[2], mg_error *error) {
    int spaces = 0;
    for (const char *c = r->text; c < end; c++) spaces += *c == ' ';
    const char *space = spaces == 1 ? memchr(r->text, ' ', (size_t)(end - r->text)) : NULL;
    if (!space || space == r->text || space + 1 == end)
        return refuse(r, error, "a merge is two tokens with one space between them, and this line is not");
    spelled[0] = (mg_token){r->text, (size_t)(space - r->text)};
    spelled[1] = (mg_token){space + 1, (size_t)(end - space - 1)};
    return MG_OK;
}

/* From characters to the bytes they represent, appended to the `*written` bytes of the new token. */
static mg_status read_token(const reader *r, mg_token spelled, size_t *written, int *id, mg_error *error) {
    mg_token token = {r->m->bytes + r->used + *written, 0};
    for (size_t at = 0; at < spelled.length; token.length++) {
        int length = mg_utf8_next(spelled.bytes + at, spelled.length - at);
        int byte = length > 0 ? mg_byte_alphabet_read(&r->m->alphabet, spelled.bytes + at, length) : -1;
        if (byte < 0)
            return refuse(r, error, "%s is not a character of GPT-2's byte alphabet",
                          mg_quote((mg_token){spelled.bytes + at, length > 0 ? (size_t)length : 1}).text);
        r->m->bytes[r->used + (*written)++] = (char)byte;
        at += (size_t)length;
    }
    *id = mg_vocabulary_find(&r->m->tokens, token);
    if (*id == NONE)
        return refuse(r, error, "no earlier line makes the token %s, so it cannot be merged", mg_quote(spelled).text);
    return MG_OK;
}

static int line_of(const reader *r, int id) {
    return r->first_line + id - 256;
}

static mg_status read_merge(reader *r, const char *end, mg_error *error) {
    mg_token spelled[2] = {{0}};
    mg_status status = split_line(r, end, spelled, error);
    size_t length = 0;
    int ids[2] = {0};
    for (int i = 0; i < 2 && status == MG_OK; i++) status = read_token(r, spelled[i], &length, &ids[i], error);
    if (status != MG_OK) return status;

    int *slot = find_slot(r->m, ids[0], ids[1]);
    if (*slot != NONE)
        return refuse(r, error, "the merge of %s and %s is already in line %d", mg_quote(spelled[0]).text,
                      mg_quote(spelled[1]).text, line_of(r, 256 + *slot));
    int same = mg_vocabulary_find(&r->m->tokens, (mg_token){r->m->bytes + r->used, length});
    if (same != NONE)
        return refuse(r, error, "the merge of %s and %s makes the token that line %d makes", mg_quote(spelled[0]).text,
                      mg_quote(spelled[1]).text, line_of(r, same));
    *slot = r->m->tokens.n - 256;
    r->m->merge[*slot] = (mg_bpe_merge){ids[0], ids[1]};
    return add_token(r, length, error);
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
                            "%s is a git-lfs pointer, not the file itself: run `git lfs pull` to fetch it", r->name);
    /* "#version: 0.2" would also pass for two tokens, but never for two that are known in the first line. */
    if (starts_with(r, "#version")) {
        const char *feed = memchr(r->text, '\n', (size_t)(r->end - r->text));
        r->text = feed ? feed + 1 : r->end;
        r->line++;
    }
    while (r->end > r->text && (r->end[-1] == '\n' || r->end[-1] == '\r')) r->end--;
    r->first_line = r->line;
    if (r->text < r->end) return MG_OK;
    return mg_error_set(error, MG_ERR_FORMAT, "%s holds no merges: a merges.txt has one merge per line", r->name);
}

/* Room for all lines that are left and the bytes they spell. */
static mg_status reserve(reader *r, mg_error *error) {
    size_t length = (size_t)(r->end - r->text), lines = 1, size = 1;
    if (length > MG_MOST_MERGES)
        return mg_error_set(error, MG_ERR_FORMAT, "%s has %zu bytes; a merges.txt may have at most %zu MiB", r->name,
                            length, MG_MOST_MERGES / MG_MIB);
    for (const char *c = r->text; c < r->end; c++) lines += *c == '\n';
    while (size < 2 * lines) size *= 2;
    r->m->mask = size - 1;
    r->m->merge = mg_alloc(lines, sizeof *r->m->merge, "the merges of a tokenizer", error);
    r->m->slot = mg_alloc(size, sizeof *r->m->slot, "the merges of a tokenizer", error);
    r->m->bytes = mg_alloc(256 + length + END_OF_TEXT_LENGTH, 1, "the tokens of a vocabulary", error);
    if (!r->m->merge || !r->m->slot || !r->m->bytes) return MG_ERR_MEMORY;
    for (size_t i = 0; i < size; i++) r->m->slot[i] = NONE;
    return MG_OK;
}

static mg_status add_bytes(reader *r, mg_error *error) {
    mg_byte_alphabet_fill(&r->m->alphabet);
    mg_status status = MG_OK;
    for (int id = 0; id < 256 && status == MG_OK; id++) {
        r->m->bytes[r->used] = (char)r->m->alphabet.byte_of_id[id];
        status = add_token(r, 1, error);
    }
    return status;
}

static mg_status add_end_of_text(reader *r, mg_error *error) {
    int same = mg_vocabulary_find(&r->m->tokens, (mg_token){end_of_text, END_OF_TEXT_LENGTH});
    if (same != NONE) {
        r->line = line_of(r, same);
        return refuse(r, error, "the merge makes %s, which is reserved", end_of_text);
    }
    memcpy(r->m->bytes + r->used, end_of_text, END_OF_TEXT_LENGTH);
    return add_token(r, END_OF_TEXT_LENGTH, error);
}

mg_status mg_bpe_merges_read(mg_bpe_merges *merges, const char *text, size_t length, const char *name,
                             mg_error *error) {
    *merges = (mg_bpe_merges){0};
    reader r = {.m = merges, .name = name, .text = text, .end = text + length, .line = 1};
    mg_status status = read_header(&r, error);
    if (status == MG_OK) status = reserve(&r, error);
    if (status == MG_OK) status = add_bytes(&r, error);
    if (status == MG_OK) status = read_merges(&r, error);
    if (status == MG_OK) status = add_end_of_text(&r, error);
    return status;
}

void mg_bpe_merges_forget_tokens(mg_bpe_merges *merges) {
    mg_vocabulary_free(&merges->tokens);
    mg_free(merges->bytes);
    merges->bytes = NULL;
}

void mg_bpe_merges_free(mg_bpe_merges *merges) {
    mg_bpe_merges_forget_tokens(merges);
    mg_free(merges->merge);
    mg_free(merges->slot);
    *merges = (mg_bpe_merges){0};
}
