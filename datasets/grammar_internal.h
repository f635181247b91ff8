/* The parts of a grammar, for the files that walk it and filter by it. */
#ifndef MASKGRAD_GRAMMAR_INTERNAL_H
#define MASKGRAD_GRAMMAR_INTERNAL_H

#include "csv_table.h"
#include "file_limits.h"
#include "grammar.h"
#include "vocabulary.h"

/* One row of the file. */
typedef struct mg_arc {
    int state, word, next;
    double p;          /* P(word, next | state) */
    double cumulative; /* of the arcs of this state up to and with this one */
} mg_arc;

struct mg_grammar {
    mg_csv_table *table;         /* owns the bytes of all names */
    mg_vocabulary states, words; /* state 0 is the start */
    ptrdiff_t n_arcs;
    mg_arc *arc; /* by state; the arcs of s are first[s] … first[s + 1] - 1, in the file's order */
    ptrdiff_t *first;
    mg_arc *word_arc; /* the same arcs by word */
    ptrdiff_t *word_first;
    bool *closes;       /* for each word: whether it always leads to the start */
    bool is_unifilar;   /* state and word determine the next state */
    double *stationary; /* P(state) after a long walk, averaged over time */
};

/* P(word | belief); next becomes the belief after that word, normalized, or stays undefined if the result is 0. */
double mg_grammar_filter(const mg_grammar *grammar, const double *belief, int word, double *next);
/* p[word] = P(word | belief) for every word. Returns their entropy in nats. */
double mg_grammar_predict(const mg_grammar *grammar, const double *belief, double *p);
/* The arc that a uniform number in [0, 1) draws from a state. */
const mg_arc *mg_grammar_draw(const mg_grammar *grammar, int state, double uniform);

#endif
