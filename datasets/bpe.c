#include "bpe.h"
#include "bpe_merges.h"
#include "file_limits.h"
#include "gpt2_split.h"
#include "heap.h"
#include "quote.h"
#include "read_text.h"
#include "tokenizer_internal.h"

/* What a tokenizer of this kind has besides its vocabulary. */
typedef struct bpe {
    mg_bpe_merges merges;
    mg_splitter *splitter;
    char *text; /* the merges as given */
    size_t length;
    int *own_id; /* of each token of the merges, in a vocabulary in another order; NULL: they are the same */
} bpe;

/* ---- Merging one piece: always the pair of lowest rank, the leftmost of equals. Going through the piece again for
 * each merge is quadratic; here the symbols are a linked list and the pairs that could be merged wait in a heap. A pair
 * that a merge has changed stays in the heap and is recognized as stale when it surfaces. ---- */

enum { NOTHING = -1 };

typedef struct symbol {
    int id;
    int merged;               /* what it and its right neighbor would make, or NOTHING */
    ptrdiff_t previous, next; /* indices; NOTHING at the ends */
} symbol;

typedef struct candidate {
    int merged; /* ids of merges ascend with their rank */
    ptrdiff_t left;
} candidate;

typedef struct merger {
    const mg_bpe_merges *merges;
    symbol *symbols;
    candidate *heap;
    size_t n_heap;
    size_t capacity; /* bytes of a piece that there is room for */
} merger;

static bool comes_before(candidate a, candidate b) {
    return a.merged < b.merged || (a.merged == b.merged && a.left < b.left);
}

static void heap_push(merger *m, candidate added) {
    size_t at = m->n_heap++;
    for (; at > 0 && comes_before(added, m->heap[(at - 1) / 2]); at = (at - 1) / 2) m->heap[at] = m->heap[(at - 1) / 2];
    m->heap[at] = added;
}

static candidate heap_pop(merger *m) {
    candidate top = m->heap[0], moved = m->heap[--m->n_heap];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < m->n_heap; at = child) {
        if (child + 1 < m->n_heap && comes_before(m->heap[child + 1], m->heap[child])) child++;
        if (!comes_before(m->heap[child], moved)) break;
        m->heap[at] = m->heap[child];
    }
    m->heap[at] = moved;
    return top;
}

/* The symbol at `left` or its neighbor is new: what can they make? */
static void consider(merger *m, ptrdiff_t left) {
    symbol *s = &m->symbols[left];
    s->merged = s->next == NOTHING ? NOTHING : mg_bpe_merges_find(m->merges, s->id, m->symbols[s->next].id);
    if (s->merged != NOTHING) heap_push(m, (candidate){s->merged, left});
}

static void merge(merger *m, candidate chosen) {
    symbol *left = &m->symbols[chosen.left], *right = &m->symbols[left->next];
    left->id = chosen.merged;
    left->next = right->next;
    right->merged = NOTHING;
    if (left->next != NOTHING) m->symbols[left->next].previous = chosen.left;
    consider(m, chosen.left);
    if (left->previous != NOTHING) consider(m, left->previous);
}

static void merger_free(merger *m) {
    mg_free(m->symbols);
    mg_free(m->heap);
}

static mg_status merger_reserve(merger *m, size_t length, mg_error *error) {
    if (length <= m->capacity) return MG_OK;
    merger_free(m);
    size_t capacity = 2 * length + 64;
    m->symbols = mg_alloc(capacity, sizeof *m->symbols, "the bytes of a word", error);
    /* One pair per byte, and two more per merge; there are fewer merges than bytes. */
    m->heap = mg_alloc(capacity, 3 * sizeof *m->heap, "the pairs of a word", error);
    m->capacity = m->symbols && m->heap ? capacity : 0;
    return m->capacity ? MG_OK : MG_ERR_MEMORY;
}

static mg_status merge_piece(merger *m, const char *piece, size_t length, mg_id_list *ids, mg_error *error) {
    mg_status status = merger_reserve(m, length, error);
    if (status != MG_OK) return status;
    ptrdiff_t n = (ptrdiff_t)length;
    for (ptrdiff_t i = 0; i < n; i++) {
        int id = m->merges->alphabet.id_of_byte[(unsigned char)piece[i]];
        m->symbols[i] = (symbol){id, NOTHING, i - 1, i + 1 < n ? i + 1 : NOTHING};
    }
    m->n_heap = 0;
    for (ptrdiff_t i = 0; i < n; i++) consider(m, i);
    while (m->n_heap > 0) {
        candidate best = heap_pop(m);
        if (m->symbols[best.left].merged == best.merged) merge(m, best);
    }
    for (ptrdiff_t i = 0; i != NOTHING; i = m->symbols[i].next) ids->id[ids->n++] = m->symbols[i].id;
    return MG_OK;
}

static mg_status merge_pieces(merger *m, mg_split *split, mg_id_list *ids, mg_error *error) {
    for (;;) {
        const char *piece;
        size_t length;
        mg_status status = mg_split_next(split, &piece, &length, error);
        if (status != MG_OK || !piece) return status;
        status = merge_piece(m, piece, length, ids, error);
        if (status != MG_OK) return status;
    }
}

static mg_status encode(const mg_tokenizer *tokenizer, const char *text, size_t length, mg_id_list *ids,
                        mg_error *error) {
    const bpe *b = tokenizer->extra;
    mg_split split;
    merger m = {.merges = &b->merges};
    size_t first = ids->n;
    mg_status status = mg_split_begin(&split, b->splitter, text, length, error);
    if (status == MG_OK) status = merge_pieces(&m, &split, ids, error);
    for (size_t i = first; b->own_id && i < ids->n; i++) ids->id[i] = b->own_id[ids->id[i]];
    merger_free(&m);
    mg_split_end(&split);
    return status;
}

/* ---- The tokenizer ---- */

static void bpe_free(void *extra) {
    bpe *b = extra;
    mg_bpe_merges_free(&b->merges);
    mg_splitter_free(b->splitter);
    mg_free(b->own_id);
    mg_free(b->text);
    mg_free(b);
}

const mg_tokenizer_row mg_gpt2_row = {.name = "gpt2", .separator = "", .encode = encode, .free_extra = bpe_free};

/* Where the tokens of the merges are among others; all but <|endoftext|> are there, in the same order. */
static mg_status find_own_ids(bpe *b, int n, const mg_token *tokens, mg_error *error) {
    mg_vocabulary own = {0};
    int n_ours = b->merges.tokens.n - 1, before = -1, id;
    b->own_id = mg_alloc((size_t)n_ours + 1, sizeof *b->own_id, "the ids of a vocabulary", error);
    mg_status status = b->own_id ? mg_vocabulary_reserve(&own, n, error) : MG_ERR_MEMORY;
    for (int i = 0; i < n && status == MG_OK; i++) {
        status = mg_vocabulary_add(&own, tokens[i], &id, error);
        if (status == MG_OK && id != i)
            status = mg_error_set(error, MG_ERR_INPUT, "ids %d and %d are one token", id, i);
    }
    for (int i = 0; i < n_ours && status == MG_OK; i++) {
        mg_token token = b->merges.tokens.token[i];
        b->own_id[i] = mg_vocabulary_find(&own, token);
        if (b->own_id[i] <= before)
            status = mg_error_set(error, MG_ERR_INPUT, b->own_id[i] < 0 ? "there is no token %s" : "%s is out of order",
                                  mg_quote(token).text);
        before = b->own_id[i];
    }
    mg_vocabulary_free(&own);
    return status;
}

/* With n_own tokens of another order and number; 0: those of the merges. */
static mg_status new_named(mg_tokenizer **tokenizer, const char *merges, size_t length, const char *name, int n_own,
                           const mg_token *own, mg_error *error) {
    *tokenizer = NULL;
    bpe *b = mg_alloc_zero(1, sizeof *b, "a byte-pair encoding", error);
    if (!b) return MG_ERR_MEMORY;
    mg_status status = mg_bpe_merges_read(&b->merges, merges, length, name, error);
    if (status == MG_OK) status = mg_splitter_new(&b->splitter, error);
    if (status == MG_OK && n_own > 0) status = find_own_ids(b, n_own, own, error);
    if (status == MG_OK) {
        b->length = length;
        b->text = mg_strndup(merges, length, error);
        if (!b->text) status = MG_ERR_MEMORY;
    }
    if (status != MG_OK) {
        bpe_free(b);
        return status;
    }
    const mg_vocabulary *tokens = &b->merges.tokens;
    status = mg_tokenizer_make(tokenizer, MG_TOKENIZER_GPT2, &mg_gpt2_row, n_own > 0 ? n_own : tokens->n,
                               n_own > 0 ? own : tokens->token, b, error);
    if (status == MG_OK) mg_bpe_merges_forget_tokens(&b->merges); /* the tokenizer has them now */
    return status;
}

mg_status mg_tokenizer_new_gpt2(mg_tokenizer **tokenizer, const char *merges, size_t length, mg_error *error) {
    return new_named(tokenizer, merges, length, "the merges", 0, NULL, error);
}

mg_status mg_tokenizer_new_gpt2_as(mg_tokenizer **tokenizer, const char *merges, size_t length, int n_tokens,
                                   const mg_token *tokens, mg_error *error) {
    return new_named(tokenizer, merges, length, "the merges", n_tokens, tokens, error);
}

bool mg_tokenizer_has_own_ids(const mg_tokenizer *tokenizer) {
    const bpe *b = mg_tokenizer_get_kind(tokenizer) == MG_TOKENIZER_GPT2 ? tokenizer->extra : NULL;
    return b && b->own_id;
}

mg_status mg_tokenizer_load_gpt2(mg_tokenizer **tokenizer, const char *path, mg_error *error) {
    *tokenizer = NULL;
    char *merges;
    size_t length;
    mg_status status = mg_read_text(path, MG_MOST_MERGES, &merges, &length, error);
    if (status == MG_OK) status = new_named(tokenizer, merges, length, path, 0, NULL, error);
    mg_free(merges);
    return status;
}

const char *mg_tokenizer_merges(const mg_tokenizer *tokenizer, size_t *length) {
    const bpe *b = mg_tokenizer_get_kind(tokenizer) == MG_TOKENIZER_GPT2 ? tokenizer->extra : NULL;
    *length = b ? b->length : 0;
    return b ? b->text : NULL;
}
