#include "bpe.h"
#include "bpe_vocabulary.h"
#include "gpt2_split.h"
#include "heap.h"

#include <stdbool.h>

struct mg_bpe {
    mg_bpe_vocabulary vocabulary;
    mg_splitter *splitter;
    char *merges;
    size_t merges_length;
};

mg_status mg_bpe_new(mg_bpe **result, const char *merges, size_t length, const char *name, mg_error *error) {
    *result = NULL;
    mg_bpe *bpe = mg_alloc_zero(1, sizeof *bpe, "a byte-pair encoding", error);
    if (!bpe) return MG_ERR_MEMORY;
    mg_status status = mg_bpe_vocabulary_read(&bpe->vocabulary, merges, length, name, error);
    if (status == MG_OK) status = mg_splitter_new(&bpe->splitter, error);
    if (status == MG_OK) {
        bpe->merges = mg_strndup(merges, length, error);
        bpe->merges_length = length;
        if (!bpe->merges) status = MG_ERR_MEMORY;
    }
    if (status != MG_OK) {
        mg_bpe_free(bpe);
        return status;
    }
    *result = bpe;
    return MG_OK;
}

void mg_bpe_free(mg_bpe *bpe) {
    if (!bpe) return;
    mg_bpe_vocabulary_free(&bpe->vocabulary);
    mg_splitter_free(bpe->splitter);
    mg_free(bpe->merges);
    mg_free(bpe);
}

int mg_bpe_size(const mg_bpe *bpe) {
    return bpe->vocabulary.n_tokens;
}

mg_token mg_bpe_token(const mg_bpe *bpe, int id) {
    MG_CHECK(id >= 0 && id < mg_bpe_size(bpe), "token %d of a vocabulary of %d", id, mg_bpe_size(bpe));
    return bpe->vocabulary.tokens[id];
}

const char *mg_bpe_merges(const mg_bpe *bpe, size_t *length) {
    *length = bpe->merges_length;
    return bpe->merges;
}

/* ---- Merging one piece: always the pair of lowest rank, the leftmost of equals. Going through the piece again for
 * each merge is quadratic; here the symbols are a linked list and the pairs that could be merged wait in a heap. A pair
 * that a merge has changed stays in the heap and is recognised as stale when it surfaces. ---- */

enum { NOTHING = -1 };

typedef struct symbol {
    int id;
    int merged;               /* what it and its right neighbour would make, or NOTHING */
    ptrdiff_t previous, next; /* indices; NOTHING at the ends */
} symbol;

typedef struct candidate {
    int merged; /* ids of merges ascend with their rank */
    ptrdiff_t left;
} candidate;

typedef struct merger {
    const mg_bpe_vocabulary *vocabulary;
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

/* The symbol at `left` or its neighbour is new: what can they make? */
static void consider(merger *m, ptrdiff_t left) {
    symbol *s = &m->symbols[left];
    s->merged = s->next == NOTHING ? NOTHING : mg_bpe_vocabulary_pair(m->vocabulary, s->id, m->symbols[s->next].id);
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
    /* A pair for each byte, and two more for each of at most as many merges. */
    m->heap = mg_alloc(capacity, 3 * sizeof *m->heap, "the pairs of a word", error);
    m->capacity = m->symbols && m->heap ? capacity : 0;
    return m->capacity ? MG_OK : MG_ERR_MEMORY;
}

/* The ids of one piece are appended to ids, which has room. Returns how many. */
static size_t merge_piece(merger *m, const char *piece, size_t length, int *ids) {
    ptrdiff_t n = (ptrdiff_t)length;
    for (ptrdiff_t i = 0; i < n; i++) {
        int id = mg_bpe_vocabulary_byte(m->vocabulary, (unsigned char)piece[i]);
        m->symbols[i] = (symbol){id, NOTHING, i - 1, i + 1 < n ? i + 1 : NOTHING};
    }
    m->n_heap = 0;
    for (ptrdiff_t i = 0; i < n; i++) consider(m, i);
    while (m->n_heap > 0) {
        candidate best = heap_pop(m);
        if (m->symbols[best.left].merged == best.merged) merge(m, best);
    }
    size_t count = 0;
    for (ptrdiff_t i = 0; i != NOTHING; i = m->symbols[i].next) ids[count++] = m->symbols[i].id;
    return count;
}

static mg_status encode_pieces(merger *m, mg_split *split, int *ids, size_t *n_ids, mg_error *error) {
    for (;;) {
        const char *piece;
        size_t length;
        mg_status status = mg_split_next(split, &piece, &length, error);
        if (status != MG_OK || !piece) return status;
        status = merger_reserve(m, length, error);
        if (status != MG_OK) return status;
        *n_ids += merge_piece(m, piece, length, ids + *n_ids);
    }
}

mg_status mg_bpe_encode(const mg_bpe *bpe, const char *text, size_t length, int **ids, size_t *n_ids, mg_error *error) {
    *n_ids = 0;
    *ids = mg_alloc(length, sizeof **ids, "token ids", error); /* no token is shorter than a byte */
    if (!*ids) return MG_ERR_MEMORY;
    mg_split split;
    mg_status status = mg_split_begin(&split, bpe->splitter, text, length, error);
    merger m = {.vocabulary = &bpe->vocabulary};
    if (status == MG_OK) status = encode_pieces(&m, &split, *ids, n_ids, error);
    merger_free(&m);
    mg_split_end(&split);
    if (status != MG_OK) {
        mg_free(*ids);
        *ids = NULL;
        *n_ids = 0;
    }
    return status;
}
