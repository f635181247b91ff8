/* Counts of pairs in a hash table with open addressing (Knuth, The Art of Computer Programming 3, section 6.4). */
#include "pairs.h"
#include "arithmetic.h"
#include "heap.h"

#include <math.h>

typedef struct slot {
    int first, second;
    int64_t count; /* 0: free */
} slot;

struct mg_pairs {
    int n_tokens;
    int64_t *count; /* n_tokens: how often each is first */
    slot *slots;
    size_t size, used; /* size is a power of two, at least twice as large as used */
};

/* The slot of a pair, or the free slot for it. */
static slot *find(slot *slots, size_t size, int first, int second) {
    uint64_t key = (uint64_t)(uint32_t)first << 32 | (uint32_t)second;
    size_t i = (size_t)(key * 0x9E3779B97F4A7C15u >> 32); /* the golden ratio's: section 6.4 */
    for (;; i++) {
        slot *s = &slots[i & (size - 1)];
        if (s->count == 0 || (s->first == first && s->second == second)) return s;
    }
}

static mg_status grow(mg_pairs *pairs, mg_error *error) {
    size_t size = pairs->size ? 2 * pairs->size : 256;
    slot *slots = mg_alloc_zero(size, sizeof *slots, "the pairs of tokens", error);
    if (!slots) return MG_ERR_MEMORY;
    for (size_t i = 0; i < pairs->size; i++)
        if (pairs->slots[i].count) *find(slots, size, pairs->slots[i].first, pairs->slots[i].second) = pairs->slots[i];
    mg_free(pairs->slots);
    pairs->slots = slots;
    pairs->size = size;
    return MG_OK;
}

static mg_status add(mg_pairs *pairs, int first, int second, mg_error *error) {
    mg_status status = 2 * pairs->used >= pairs->size ? grow(pairs, error) : MG_OK;
    if (status != MG_OK) return status;
    slot *s = find(pairs->slots, pairs->size, first, second);
    if (s->count == 0) {
        *s = (slot){.first = first, .second = second};
        pairs->used++;
    }
    s->count++;
    pairs->count[first]++;
    return MG_OK;
}

mg_status mg_pairs_new(mg_pairs **pairs, const mg_corpus *corpus, mg_split split, ptrdiff_t T, ptrdiff_t distance,
                       mg_error *error) {
    *pairs = NULL;
    const int *ids = mg_corpus_ids(corpus, split);
    ptrdiff_t n = mg_corpus_tokens(corpus, split), offsets = n - (T > distance ? T : distance);
    MG_CHECK(T >= 1 && distance >= 1 && offsets >= 1, "pairs at a distance of %td in windows of %td, from %td tokens",
             distance, T, n);
    mg_pairs *made = mg_alloc_zero(1, sizeof *made, "the pairs of tokens", error);
    if (!made) return MG_ERR_MEMORY;
    made->n_tokens = mg_tokenizer_size(corpus->tokenizer);
    made->count = mg_alloc_zero((size_t)made->n_tokens, sizeof *made->count, "the counts of tokens", error);
    mg_status status = made->count ? grow(made, error) : MG_ERR_MEMORY;
    for (ptrdiff_t i = 0; status == MG_OK && i < offsets; i++) status = add(made, ids[i], ids[i + distance], error);
    if (status != MG_OK) {
        mg_pairs_free(made);
        return status;
    }
    *pairs = made;
    return MG_OK;
}

void mg_pairs_free(mg_pairs *pairs) {
    if (!pairs) return;
    mg_free(pairs->count);
    mg_free(pairs->slots);
    mg_free(pairs);
}

double mg_pairs_surprisal(const mg_pairs *pairs, int first, int second) {
    MG_CHECK(first >= 0 && first < pairs->n_tokens, "the token %d of %d", first, pairs->n_tokens);
    int64_t together = find(pairs->slots, pairs->size, first, second)->count;
    if (together == 0) return mg_log_double((double)pairs->count[first] + 1);
    return mg_log_double((double)pairs->count[first] / (double)together);
}

double mg_pairs_entropy(const mg_pairs *pairs) {
    double sum = 0, n = 0;
    for (size_t i = 0; i < pairs->size; i++) {
        const slot *s = &pairs->slots[i];
        if (s->count == 0) continue;
        sum += (double)s->count * mg_log_double((double)pairs->count[s->first] / (double)s->count);
        n += (double)s->count;
    }
    return sum / n;
}
