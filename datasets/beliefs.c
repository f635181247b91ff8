#include "beliefs.h"

#include "heap.h"

#include <math.h>
#include <string.h>

enum { MOST_BELIEFS = 200000, MOST_NUMBERS = 4 << 20, MOST_WAYS = 4 << 20, FIRST_PART = 256 };
#define MOST_FILTERED ((ptrdiff_t)1 << 29) /* ways times states: a few seconds */

/* The table that finds a belief again works on rounded numbers, since the same belief reached in two ways differs in
 * its last bits. A belief on a rounding boundary may be stored twice, which only costs memory. A key has one number per
 * possible state. */
typedef struct index {
    mg_vocabulary rounded;
    int64_t *keys; /* room for every belief */
    size_t used;
    double *p; /* of each word, under one belief */
} index;

static mg_status reserve(const mg_grammar *g, mg_beliefs *b, index *known, mg_error *error) {
    size_t room = (size_t)b->room, n_states = (size_t)g->states.n;
    b->belief = mg_alloc(room * n_states, sizeof *b->belief, "the beliefs of a grammar", error);
    b->entropy = mg_alloc(room, sizeof *b->entropy, "the beliefs of a grammar", error);
    b->first = mg_alloc(room + 1, sizeof *b->first, "the beliefs of a grammar", error);
    b->way_to = mg_alloc((size_t)b->way_room, sizeof *b->way_to, "the beliefs of a grammar", error);
    b->way_p = mg_alloc((size_t)b->way_room, sizeof *b->way_p, "the beliefs of a grammar", error);
    known->keys = mg_alloc((room + 1) * n_states, sizeof *known->keys, "the beliefs of a grammar", error);
    known->p = mg_alloc((size_t)g->words.n, sizeof *known->p, "the words of a grammar", error);
    return b->belief && b->entropy && b->first && b->way_to && b->way_p && known->keys && known->p ? MG_OK
                                                                                                   : MG_ERR_MEMORY;
}

/* The number of this belief, added if it is new; -1 if there is no room. */
static mg_status number_of(const mg_grammar *g, const double *belief, mg_beliefs *b, index *known, int *id,
                           mg_error *error) {
    size_t n_states = (size_t)g->states.n, n = 0;
    int64_t *key = known->keys + known->used;
    for (size_t s = 0; s < n_states; s++) {
        int64_t rounded = belief[s] > 0 ? llround(belief[s] * 1e12) : 0;
        if (rounded > 0) key[n++] = (int64_t)s << 40 | rounded; /* 1e12 has 40 bits */
    }
    mg_token token = {(const char *)key, n * sizeof *key};
    *id = mg_vocabulary_find(&known->rounded, token);
    if (*id >= 0 || b->n == b->room) return MG_OK;
    memcpy(b->belief + (size_t)b->n++ * n_states, belief, n_states * sizeof *belief);
    known->used += n;
    return mg_vocabulary_add(&known->rounded, token, id, error);
}

/* Follow every word from one belief; their probabilities are in known->p. *is_complete becomes false when the room runs
 * out. */
static mg_status expand(const mg_grammar *g, ptrdiff_t from, mg_beliefs *b, index *known, bool *is_complete,
                        mg_error *error) {
    double next[MG_GRAMMAR_MAX_STATES];
    for (int word = 0; word < g->words.n; word++) {
        if (known->p[word] == 0) continue;
        double p = mg_grammar_filter(g, b->belief + from * g->states.n, word, next);
        int id;
        mg_status status = number_of(g, next, b, known, &id, error);
        if (status != MG_OK) return status;
        *is_complete = id >= 0 && b->n_ways < b->way_room;
        if (!*is_complete) return MG_OK;
        b->way_to[b->n_ways] = id;
        b->way_p[b->n_ways++] = p;
    }
    return MG_OK;
}

/* Where the observer starts. */
typedef struct origin {
    ptrdiff_t n;
    const double *belief; /* n rows of n_states */
    int *number;          /* n: which beliefs they are */
} origin;

static mg_status enumerate(const mg_grammar *g, const origin *from_here, ptrdiff_t depth, mg_beliefs *b, index *known,
                           bool *is_complete, mg_error *error) {
    mg_status status = MG_OK;
    for (ptrdiff_t i = 0; i < from_here->n && status == MG_OK && *is_complete; i++) {
        status = number_of(g, from_here->belief + i * g->states.n, b, known, &from_here->number[i], error);
        *is_complete = from_here->number[i] >= 0;
    }
    ptrdiff_t level = 0, level_end = b->n;
    b->first[0] = 0;
    for (ptrdiff_t from = 0; from < b->n && status == MG_OK && *is_complete; from++) {
        if (from == level_end) {
            level++;
            level_end = b->n;
        }
        b->entropy[from] = mg_grammar_predict(g, b->belief + from * g->states.n, known->p);
        if (level != depth) status = expand(g, from, b, known, is_complete, error);
        b->first[from + 1] = b->n_ways;
    }
    return status;
}

static mg_status enumerate_within(const mg_grammar *g, const origin *from_here, ptrdiff_t depth, ptrdiff_t room,
                                  ptrdiff_t way_room, mg_beliefs *b, bool *is_complete, mg_error *error) {
    *b = (mg_beliefs){.room = room, .way_room = way_room};
    index known = {0};
    *is_complete = true;
    mg_status status = reserve(g, b, &known, error);
    if (status == MG_OK) status = enumerate(g, from_here, depth, b, &known, is_complete, error);
    mg_vocabulary_free(&known.rounded);
    mg_free(known.keys);
    mg_free(known.p);
    if (status != MG_OK) mg_beliefs_free(b);
    return status;
}

/* Most grammars have a few dozen beliefs: try with little room first. */
mg_status mg_beliefs_enumerate_from(const mg_grammar *g, ptrdiff_t n_starts, const double *starts, int *number,
                                    ptrdiff_t depth, mg_beliefs *b, bool *is_complete, mg_error *error) {
    const origin from_here = {n_starts, starts, number};
    ptrdiff_t most = MOST_NUMBERS / g->states.n < MOST_BELIEFS ? MOST_NUMBERS / g->states.n : MOST_BELIEFS;
    ptrdiff_t ways = MOST_FILTERED / g->states.n < MOST_WAYS ? MOST_FILTERED / g->states.n : MOST_WAYS;
    for (ptrdiff_t part = FIRST_PART;; part /= 16) {
        mg_status status = enumerate_within(g, &from_here, depth, most / part + 1, ways / part, b, is_complete, error);
        if (status != MG_OK || *is_complete || part == 1) return status;
        mg_beliefs_free(b);
    }
}

mg_status mg_beliefs_enumerate(const mg_grammar *g, ptrdiff_t depth, mg_beliefs *b, bool *is_complete,
                               mg_error *error) {
    int number;
    return mg_beliefs_enumerate_from(g, 1, g->stationary, &number, depth, b, is_complete, error);
}

double mg_beliefs_mean_entropy(const mg_beliefs *b, const double *share) {
    double mean = 0;
    for (ptrdiff_t i = 0; i < b->n; i++) mean += share[i] * b->entropy[i];
    return mean;
}

void mg_beliefs_free(mg_beliefs *b) {
    mg_free(b->belief);
    mg_free(b->entropy);
    mg_free(b->first);
    mg_free(b->way_to);
    mg_free(b->way_p);
    *b = (mg_beliefs){0};
}

void mg_beliefs_step(const mg_beliefs *b, double *share[2]) {
    const double *before = share[0];
    double *after = share[1];
    memset(after, 0, (size_t)b->n * sizeof *after);
    for (ptrdiff_t from = 0; from < b->n; from++) {
        if (before[from] == 0) continue;
        for (ptrdiff_t way = b->first[from]; way < b->first[from + 1]; way++)
            after[b->way_to[way]] += before[from] * b->way_p[way];
    }
    share[1] = share[0];
    share[0] = after;
}
