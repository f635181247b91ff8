/* Rolling hashes (Karp and Rabin 1987): those of some validation windows go into a table, those of all training windows
 * are looked up, and equal hashes are compared token by token. */
#include "repetition.h"
#include "heap.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_WINDOWS = 4000, SLOTS = 16384 };

static const uint64_t BASE = 0x9E3779B97F4A7C15u; /* odd, so that no token's part is lost */

typedef struct slot {
    const int *window; /* NULL: free */
    uint64_t hash;
    int count;  /* windows of the validation split that are this one */
    bool found; /* in the training split */
} slot;

static uint64_t hash_of(const int *window, ptrdiff_t length) {
    uint64_t hash = 0;
    for (ptrdiff_t i = 0; i < length; i++) hash = hash * BASE + (uint64_t)window[i] + 1;
    return hash;
}

/* The slot of a window, or the free slot for it. */
static slot *find(slot *slots, uint64_t hash, const int *window, ptrdiff_t length) {
    for (size_t i = (size_t)(hash >> 40);; i++) {
        slot *s = &slots[i % SLOTS];
        if (!s->window) return s;
        if (s->hash == hash && memcmp(s->window, window, (size_t)length * sizeof *window) == 0) return s;
    }
}

static int add_windows(slot *slots, const int *ids, ptrdiff_t n, ptrdiff_t length) {
    ptrdiff_t windows = n - length + 1, count = windows < MOST_WINDOWS ? windows : MOST_WINDOWS;
    for (ptrdiff_t i = 0; i < count; i++) {
        const int *window = ids + i * windows / count;
        uint64_t hash = hash_of(window, length);
        slot *s = find(slots, hash, window, length);
        s->window = window;
        s->hash = hash;
        s->count++;
    }
    return (int)count;
}

static void look_up(slot *slots, const int *ids, ptrdiff_t n, ptrdiff_t length) {
    uint64_t first_weight = 1, hash = hash_of(ids, length);
    for (ptrdiff_t i = 1; i < length; i++) first_weight *= BASE;
    for (ptrdiff_t i = 0;; i++) {
        slot *s = find(slots, hash, ids + i, length);
        if (s->window) s->found = true;
        if (i + length >= n) return;
        hash = (hash - ((uint64_t)ids[i] + 1) * first_weight) * BASE + (uint64_t)ids[i + length] + 1;
    }
}

mg_status mg_corpus_repetition(const mg_corpus *corpus, double *share, mg_error *error) {
    *share = 0;
    if (corpus->grammar || corpus->n_train == corpus->n) return MG_OK;
    ptrdiff_t n_train = mg_corpus_tokens(corpus, MG_TRAIN), n = mg_corpus_tokens(corpus, MG_VALIDATION);
    ptrdiff_t length = (ptrdiff_t)ceil(MG_REPETITION_CHARACTERS /
                                       mg_corpus_characters_per_token(corpus, MG_VALIDATION));
    if (n < length || n_train < length) return MG_OK;
    slot *slots = mg_alloc_zero(SLOTS, sizeof *slots, "validation windows", error);
    if (!slots) return MG_ERR_MEMORY;
    int count = add_windows(slots, mg_corpus_ids(corpus, MG_VALIDATION), n, length), found = 0;
    look_up(slots, mg_corpus_ids(corpus, MG_TRAIN), n_train, length);
    for (int i = 0; i < SLOTS; i++) found += slots[i].found ? slots[i].count : 0;
    mg_free(slots);
    *share = (double)found / count;
    return MG_OK;
}

const char *mg_repetition_say(double share, char *text, size_t size) {
    if (!(share > 0.01)) return NULL;
    snprintf(
        text, size,
        "%.0f%% of the validation windows of %d characters also occur in the training split: there, a low loss shows "
        "memorization, not a leak",
        100 * share, MG_REPETITION_CHARACTERS);
    return text;
}
