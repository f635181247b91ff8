/* Reading a grammar, and refusing invalid ones. */
#include "grammar_internal.h"

#include "file_limits.h"
#include "heap.h"
#include "quote.h"
#include "stationary.h"
#include "tokenizer_internal.h"
#include "utf8.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STATE, WORD, NEXT, WEIGHT, N_COLUMNS };
static const char *const column_names[N_COLUMNS] = {"state", "word", "next", "weight"};

/* What is needed while a file is read. */
typedef struct loader {
    mg_grammar *grammar;
    const char *name;
    int column[N_COLUMNS]; /* where each column is */
    mg_error *error;
} loader;

static mg_status find_columns(loader *l) {
    const mg_csv_table *table = l->grammar->table;
    mg_csv_names_text found = mg_csv_names(table);
    for (int i = 0; i < N_COLUMNS; i++) {
        l->column[i] = mg_csv_find(table, column_names[i]);
        if (l->column[i] < 0)
            return mg_error_set(
                l->error, MG_ERR_FORMAT,
                "%s: the column %s is missing; a grammar has state,word,next,weight, this header has %s", l->name,
                column_names[i], found.text);
    }
    if (mg_csv_columns(table) != N_COLUMNS)
        return mg_error_set(l->error, MG_ERR_FORMAT,
                            "%s: the header has %s; a grammar has the columns state,word,next,weight and no other",
                            l->name, found.text);
    if (mg_csv_rows(table) < 1) return mg_error_set(l->error, MG_ERR_FORMAT, "%s has a header but no rows", l->name);
    return MG_OK;
}

/* A refusal of one row: the culprit is the cell of `column`. */
static mg_status bad_cell(const loader *l, ptrdiff_t row, int column, const char *what) {
    const mg_csv_table *table = l->grammar->table;
    mg_token cell = mg_csv_cell(table, row, l->column[column]), state = mg_csv_cell(table, row, l->column[STATE]);
    return mg_error_set(l->error, MG_ERR_FORMAT, "%s, line %td (state %s): the %s %s %s", l->name,
                        mg_csv_line(table, row), mg_quote(state).text, column_names[column], mg_quote(cell).text, what);
}

/* A number as C writes it, whatever the locale of the program around us. */
static bool parse_number(const char *text, double *value) {
    locale_t c_locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    locale_t before = c_locale ? uselocale(c_locale) : (locale_t)0;
    char *end;
    *value = strtod(text, &end);
    if (c_locale) {
        uselocale(before);
        freelocale(c_locale);
    }
    return end != text && *end == '\0';
}

static mg_status read_name(loader *l, ptrdiff_t row, int column, mg_vocabulary *names, int *id) {
    mg_token cell = mg_csv_cell(l->grammar->table, row, l->column[column]);
    if (cell.length == 0) return bad_cell(l, row, column, "is empty");
    if (strlen(cell.bytes) != cell.length) return bad_cell(l, row, column, "contains a 0 byte");
    if (mg_utf8_check(cell.bytes, cell.length, NULL) != MG_OK) return bad_cell(l, row, column, "is not UTF-8");
    for (size_t i = 0; column == WORD && i < cell.length; i++)
        if (mg_is_space(cell.bytes[i])) return bad_cell(l, row, column, "contains white space, which separates words");
    return mg_vocabulary_add(names, cell, id, l->error);
}

static mg_status read_weight(loader *l, ptrdiff_t row, double *weight) {
    mg_token cell = mg_csv_cell(l->grammar->table, row, l->column[WEIGHT]);
    if (!parse_number(cell.bytes, weight)) return bad_cell(l, row, WEIGHT, "is not a number");
    if (!isfinite(*weight) || *weight <= 0)
        return bad_cell(l, row, WEIGHT, "is not a positive, finite number; leave the row out if it never happens");
    return MG_OK;
}

/* States are first numbered by the state column only, so that a `next` that no row defines is found. */
static mg_status read_states(loader *l) {
    mg_grammar *g = l->grammar;
    int id;
    for (ptrdiff_t row = 0; row < g->n_arcs; row++) {
        mg_status status = read_name(l, row, STATE, &g->states, &id);
        if (status != MG_OK) return status;
    }
    if (g->states.n > MG_GRAMMAR_MAX_STATES)
        return mg_error_set(l->error, MG_ERR_FORMAT, "%s has %d states; at most %d are supported", l->name, g->states.n,
                            MG_GRAMMAR_MAX_STATES);
    return MG_OK;
}

static mg_status read_rows(loader *l, mg_arc *arcs) {
    mg_grammar *g = l->grammar;
    for (ptrdiff_t row = 0; row < g->n_arcs; row++) {
        mg_arc *arc = &arcs[row];
        *arc = (mg_arc){0};
        arc->state = mg_vocabulary_find(&g->states, mg_csv_cell(g->table, row, l->column[STATE]));
        int known = g->states.n;
        mg_status status = read_name(l, row, NEXT, &g->states, &arc->next);
        if (status == MG_OK && g->states.n > known) status = bad_cell(l, row, NEXT, "is a state that no row defines");
        if (status == MG_OK) status = read_name(l, row, WORD, &g->words, &arc->word);
        if (status == MG_OK) status = read_weight(l, row, &arc->p);
        if (status != MG_OK) return status;
    }
    return MG_OK;
}

static mg_status refuse_repetitions(const loader *l, const mg_arc *arcs) {
    mg_vocabulary seen = {0};
    mg_status status = MG_OK;
    int(*key)[3] = mg_alloc((size_t)l->grammar->n_arcs, sizeof *key, "the rows of a grammar", l->error);
    if (!key) return MG_ERR_MEMORY;
    for (ptrdiff_t i = 0; i < l->grammar->n_arcs && status == MG_OK; i++) {
        key[i][0] = arcs[i].state;
        key[i][1] = arcs[i].word;
        key[i][2] = arcs[i].next;
        int id;
        status = mg_vocabulary_add(&seen, (mg_token){(const char *)key[i], sizeof key[i]}, &id, l->error);
        if (status == MG_OK && id != (int)i)
            status = mg_error_set(
                l->error, MG_ERR_FORMAT,
                "%s: lines %td and %td have the same state, word and next; write one row with their sum", l->name,
                mg_csv_line(l->grammar->table, id), mg_csv_line(l->grammar->table, i));
    }
    mg_vocabulary_free(&seen);
    mg_free(key);
    return status;
}

/* Weights become probabilities. */
static mg_status normalize(const loader *l, mg_arc *arcs) {
    mg_grammar *g = l->grammar;
    double total[MG_GRAMMAR_MAX_STATES] = {0}, so_far[MG_GRAMMAR_MAX_STATES] = {0};
    for (ptrdiff_t i = 0; i < g->n_arcs; i++) total[arcs[i].state] += arcs[i].p;
    for (ptrdiff_t i = 0; i < g->n_arcs; i++) {
        mg_arc *arc = &arcs[i];
        if (!isfinite(total[arc->state]))
            return bad_cell(l, i, WEIGHT, "is too large to add to the other weights of its state");
        arc->p /= total[arc->state];
        if (arc->p < 1e-300) return bad_cell(l, i, WEIGHT, "is too small beside the other weights of its state");
        so_far[arc->state] += arc->p;
        arc->cumulative = so_far[arc->state];
    }
    return MG_OK;
}

/* Counting sort of the arcs by state or by word; first has n_keys + 1 entries. */
static void sort_arcs(const mg_arc *from, ptrdiff_t n, bool by_word, int n_keys, mg_arc *to, ptrdiff_t *first) {
    memset(first, 0, ((size_t)n_keys + 1) * sizeof *first);
    for (ptrdiff_t i = 0; i < n; i++) first[(by_word ? from[i].word : from[i].state) + 1]++;
    for (int key = 0; key < n_keys; key++) first[key + 1] += first[key];
    for (ptrdiff_t i = 0; i < n; i++) to[first[by_word ? from[i].word : from[i].state]++] = from[i];
    for (int key = n_keys; key > 0; key--) first[key] = first[key - 1];
    first[0] = 0;
}

static mg_status build_tables(const loader *l, const mg_arc *arcs) {
    mg_grammar *g = l->grammar;
    size_t n_arcs = (size_t)g->n_arcs, n_states = (size_t)g->states.n, n_words = (size_t)g->words.n;
    g->arc = mg_alloc(n_arcs, sizeof *g->arc, "a grammar", l->error);
    g->word_arc = mg_alloc(n_arcs, sizeof *g->word_arc, "a grammar", l->error);
    g->first = mg_alloc(n_states + 1, sizeof *g->first, "a grammar", l->error);
    g->word_first = mg_alloc(n_words + 1, sizeof *g->word_first, "a grammar", l->error);
    g->closes = mg_alloc(n_words, sizeof *g->closes, "a grammar", l->error);
    g->stationary = mg_alloc(n_states, sizeof *g->stationary, "a grammar", l->error);
    if (!g->arc || !g->word_arc || !g->first || !g->word_first || !g->closes || !g->stationary) return MG_ERR_MEMORY;
    sort_arcs(arcs, g->n_arcs, false, g->states.n, g->arc, g->first);
    sort_arcs(g->arc, g->n_arcs, true, g->words.n, g->word_arc, g->word_first);
    g->is_unifilar = true; /* the arcs of a word are ordered by state */
    for (int word = 0; word < g->words.n; word++) {
        g->closes[word] = true;
        for (ptrdiff_t i = g->word_first[word]; i < g->word_first[word + 1]; i++) {
            const mg_arc *arc = &g->word_arc[i];
            if (arc->next != 0) g->closes[word] = false;
            if (i > g->word_first[word] && arc[-1].state == arc->state) g->is_unifilar = false;
        }
    }
    return MG_OK;
}

/* Mark all states that can be reached from the start, or, backwards, from which the start can be reached. */
static void mark_connected(const mg_grammar *g, bool backwards, bool *marked) {
    memset(marked, 0, (size_t)g->states.n * sizeof *marked);
    marked[0] = true;
    for (bool is_changed = true; is_changed;) {
        is_changed = false;
        for (ptrdiff_t i = 0; i < g->n_arcs; i++) {
            int from = backwards ? g->arc[i].next : g->arc[i].state, to = backwards ? g->arc[i].state : g->arc[i].next;
            if (!marked[from] || marked[to]) continue;
            marked[to] = is_changed = true;
        }
    }
}

static mg_status check_connected(const loader *l) {
    const mg_grammar *g = l->grammar;
    bool marked[MG_GRAMMAR_MAX_STATES];
    for (int backwards = 0; backwards < 2; backwards++) {
        mark_connected(g, backwards, marked);
        for (int s = 0; s < g->states.n; s++) {
            if (marked[s]) continue;
            return mg_error_set(l->error, MG_ERR_FORMAT, "%s: the state %s %s the start, %s", l->name,
                                mg_quote(g->states.token[s]).text,
                                backwards ? "has no way back to" : "cannot be reached from",
                                mg_quote(g->states.token[0]).text);
        }
    }
    return MG_OK;
}

static mg_status load(loader *l) {
    mg_grammar *g = l->grammar;
    mg_status status = find_columns(l);
    if (status != MG_OK) return status;
    g->n_arcs = mg_csv_rows(g->table);
    if (g->n_arcs > MG_GRAMMAR_MOST_ARCS)
        return mg_error_set(l->error, MG_ERR_FORMAT, "%s has %td rows; a grammar may have at most %d", l->name,
                            g->n_arcs, MG_GRAMMAR_MOST_ARCS);
    mg_arc *arcs = mg_alloc((size_t)g->n_arcs, sizeof *arcs, "the rows of a grammar", l->error);
    if (!arcs) return MG_ERR_MEMORY;
    status = read_states(l);
    if (status == MG_OK) status = read_rows(l, arcs);
    if (status == MG_OK) status = refuse_repetitions(l, arcs);
    if (status == MG_OK) status = normalize(l, arcs);
    if (status == MG_OK) status = build_tables(l, arcs);
    mg_free(arcs);
    if (status == MG_OK) status = check_connected(l);
    if (status == MG_OK) status = mg_stationary(g, g->stationary, l->error);
    return status;
}

mg_status mg_grammar_parse(mg_grammar **grammar, const char *csv, size_t length, const char *name, mg_error *error) {
    *grammar = NULL;
    mg_grammar *g = mg_alloc_zero(1, sizeof *g, "a grammar", error);
    if (!g) return MG_ERR_MEMORY;
    loader l = {.grammar = g, .name = name, .error = error};
    char delimiter;
    int found;
    mg_status status = mg_csv_delimiter(csv, length, column_names, N_COLUMNS, &delimiter, &found, error);
    if (status == MG_OK) status = mg_csv_parse(&g->table, csv, length, name, true, delimiter, error);
    if (status == MG_OK) status = load(&l);
    if (status == MG_OK) {
        *grammar = g;
    } else {
        mg_grammar_free(g);
    }
    return status;
}

void mg_grammar_free(mg_grammar *g) {
    if (!g) return;
    mg_csv_free(g->table);
    mg_vocabulary_free(&g->states);
    mg_vocabulary_free(&g->words);
    mg_free(g->arc);
    mg_free(g->first);
    mg_free(g->word_arc);
    mg_free(g->word_first);
    mg_free(g->closes);
    mg_free(g->stationary);
    mg_free(g);
}

int mg_grammar_words(const mg_grammar *g) {
    return g->words.n;
}

const char *mg_grammar_word(const mg_grammar *g, int id) {
    MG_CHECK(id >= 0 && id < g->words.n, "word %d is not in a grammar of %d words", id, g->words.n);
    return g->words.token[id].bytes;
}

static mg_quoted quoted(const mg_grammar *g, int word) {
    return mg_quote((mg_token){mg_grammar_word(g, word), strlen(mg_grammar_word(g, word))});
}

mg_status mg_grammar_sentence_end(const mg_grammar *g, int *word, mg_error *error) {
    *word = -1;
    for (ptrdiff_t i = 0; i < g->n_arcs; i++) {
        int ends = g->arc[i].word;
        if (g->arc[i].next != 0 || ends == *word) continue;
        if (!g->closes[ends])
            return mg_error_set(error, MG_ERR_INPUT, "%s ends some sentences and occurs inside others",
                                quoted(g, ends).text);
        if (*word >= 0)
            return mg_error_set(error, MG_ERR_INPUT, "a sentence can end with %s and with %s", quoted(g, *word).text,
                                quoted(g, ends).text);
        *word = ends;
    }
    return MG_OK;
}
