/* Producing sentences, and judging others. */
#include "grammar_internal.h"

#include <string.h>

const mg_arc *mg_grammar_draw(const mg_grammar *g, int state, double uniform) {
    ptrdiff_t low = g->first[state], high = g->first[state + 1] - 1;
    while (low < high) {
        ptrdiff_t middle = low + (high - low) / 2;
        if (uniform < g->arc[middle].cumulative) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return &g->arc[low];
}

void mg_grammar_sample(const mg_grammar *g, uint64_t seed, int *ids, ptrdiff_t n) {
    mg_rng rng = {seed, MG_STREAM_GRAMMAR, 0};
    int state = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const mg_arc *arc = mg_grammar_draw(g, state, mg_rng_uniform(rng, (uint64_t)i));
        ids[i] = arc->word;
        state = arc->next;
    }
}

/* The states that a text could be in. */
typedef struct state_set {
    bool has[MG_GRAMMAR_MAX_STATES];
    int n;
} state_set;

static void set_all(state_set *set, int n_states) {
    for (int s = 0; s < n_states; s++) set->has[s] = true;
    set->n = n_states;
}

static void set_start(state_set *set, int n_states) {
    memset(set->has, 0, (size_t)n_states * sizeof *set->has);
    set->has[0] = true;
    set->n = 1;
}

/* Follow a word; false if no state of the set emits it. */
static bool follow(const mg_grammar *g, state_set *set, int word) {
    state_set next = {.n = 0};
    if (word < 0 || word >= g->words.n) return false;
    for (ptrdiff_t i = g->word_first[word]; i < g->word_first[word + 1]; i++) {
        const mg_arc *arc = &g->word_arc[i];
        if (!set->has[arc->state] || next.has[arc->next]) continue;
        next.has[arc->next] = true;
        next.n++;
    }
    if (next.n == 0) return false;
    *set = next;
    return true;
}

int mg_grammar_shortest_sentence(const mg_grammar *g) {
    state_set set;
    set_start(&set, g->states.n);
    /* Every state can return to the start, so this ends. */
    for (int words = 1;; words++) {
        state_set next = {.n = 0};
        for (int state = 0; state < g->states.n; state++)
            for (ptrdiff_t i = g->first[state]; set.has[state] && i < g->first[state + 1]; i++)
                next.has[g->arc[i].next] = true;
        if (next.has[0]) return words;
        set = next;
    }
}

void mg_grammar_judge(const mg_grammar *g, const int *ids, ptrdiff_t n, bool from_start, mg_grammar_score *score) {
    *score = (mg_grammar_score){.words = n};
    state_set set = {.n = 0};
    bool in_sentence = from_start, is_possible = true;
    if (from_start) {
        set_start(&set, g->states.n);
    } else {
        set_all(&set, g->states.n);
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        if (!follow(g, &set, ids[i])) {
            score->impossible_words++;
            is_possible = false;
            set_all(&set, g->states.n);
        }
        bool is_closing = ids[i] >= 0 && ids[i] < g->words.n && g->closes[ids[i]];
        if (!is_closing && !(set.n == 1 && set.has[0])) continue;
        if (in_sentence) score->sentences++;
        if (in_sentence && is_possible) score->grammatical++;
        set_start(&set, g->states.n);
        in_sentence = is_possible = true;
    }
    if (in_sentence && !is_possible) score->sentences++;
}
