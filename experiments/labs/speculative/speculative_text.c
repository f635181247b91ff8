/* Lab speculative, third part: is the text distributed as without drafting?
 *
 * All short texts that the judge could write are listed with their exact probabilities, many are drawn, and Pearson's
 * χ² says whether the counts fit. Two judges: the target, with both caches; and the grammar itself, whose exact
 * probabilities take the target's place. Two wrong rules show that the test can fail. */
#include "grammar_internal.h"
#include "lab_private.h"
#include "speculative.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 4, GAMMA = 3, LEAST_EXPECTED = 5 };
enum { PLAIN, RIGHT, ACCEPT_ALL, RESAMPLE, N_RULES };

/* ---- The rules ---- */

/* Wrong: whatever is drafted stays. */
static bool accept_all(const double *p, const double *q, int n, int *id, mg_rng rng, uint64_t index, void *user) {
    (void)p, (void)q, (void)n, (void)id, (void)rng, (void)index, (void)user;
    return true;
}

/* Wrong: what takes the place of a rejected token is drawn from p, and not from what p has more than q. */
static bool resample(const double *p, const double *q, int n, int *id, mg_rng rng, uint64_t index, void *user) {
    bool stays = mg_draft_judge(p, q, n, id, rng, index, user);
    if (!stays) *id = mg_sampler_draw(p, n, rng, index + 1);
    return stays;
}

static mg_draft_rule *rule_of(int rule) {
    if (rule == ACCEPT_ALL || lab_broken("speculative.rule")) return accept_all;
    if (rule == RESAMPLE || lab_broken("speculative.residual")) return resample;
    return mg_draft_judge;
}

static const char *const rule_names[N_RULES] = {"no draft", "the rule", "wrong: accept always",
                                                "wrong: resample from p"};

/* ---- Exact probabilities of short texts ---- */

/* p (n_ids): what follows n ids, which begin with the start. */
typedef void next_fn(void *user, const int *ids, int n, double *p);

/* The texts of LENGTH tokens that are likely enough to count, in lexicographic order; `rest` is all others together. */
typedef struct text_list {
    int n, room, n_ids;
    int *ids; /* (n, LENGTH) */
    double *p, rest;
    double least; /* likely enough */
    next_fn *next;
    void *user;
} text_list;

static void list_from(text_list *l, int *ids, int n, double probability) {
    if (n == LENGTH + 1) {
        memcpy(l->ids + (ptrdiff_t)l->n * LENGTH, ids + 1, LENGTH * sizeof *ids);
        l->p[l->n++] = probability;
        return;
    }
    double *p = mg_alloc((size_t)l->n_ids, sizeof *p, "probabilities", NULL);
    lab_need_memory(p, "probabilities");
    l->next(l->user, ids, n, p);
    for (int id = 0; id < l->n_ids; id++) {
        if (probability * p[id] < l->least) continue;
        ids[n] = id;
        list_from(l, ids, n + 1, probability * p[id]);
    }
    mg_free(p);
}

/* Move the least likely text to the rest. */
static void drop_one(text_list *l) {
    int least = 0;
    for (int i = 1; i < l->n; i++)
        if (l->p[i] < l->p[least]) least = i;
    l->rest += l->p[least];
    l->n--;
    memmove(l->p + least, l->p + least + 1, (size_t)(l->n - least) * sizeof *l->p);
    memmove(l->ids + (ptrdiff_t)least * LENGTH, l->ids + (ptrdiff_t)(least + 1) * LENGTH,
            (size_t)(l->n - least) * LENGTH * sizeof *l->ids);
}

/* Every cell, the rest included, is expected to be hit LEAST_EXPECTED times in n_texts. */
static void list_texts(mg_lab *lab, text_list *l, int start, int n_texts) {
    l->least = (double)LEAST_EXPECTED / n_texts;
    l->room = n_texts / LEAST_EXPECTED + 1;
    l->ids = lab_memory(lab, (size_t)l->room * LENGTH, sizeof *l->ids);
    l->p = lab_numbers(lab, l->room);
    int ids[LENGTH + 1] = {start};
    list_from(l, ids, 1, 1);
    double sum = 0;
    for (int i = 0; i < l->n; i++) sum += l->p[i];
    l->rest = lab_larger(0, 1 - sum);
    while (l->rest < l->least && l->n > 0) drop_one(l);
}

static int compare(const void *a, const void *b) {
    const int *x = a, *y = b;
    for (int i = 0; i < LENGTH; i++)
        if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
    return 0;
}

/* Pearson 1900. counts (n + 1): the last is the rest. */
static double chi_square(const text_list *l, const long *counts, int n_texts) {
    double sum = 0;
    for (int i = 0; i <= l->n; i++) {
        double expected = n_texts * (i < l->n ? l->p[i] : l->rest);
        sum += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
    }
    return sum;
}

/* What χ² with this many degrees of freedom exceeds once in 10,000 times: Wilson & Hilferty 1931. */
static double chi_square_limit(int freedom) {
    double a = 2.0 / (9 * freedom);
    return freedom * pow(1 - a + 3.719 * sqrt(a), 3);
}

/* ---- Drawing texts ---- */

typedef mg_status draw_fn(void *user, int rule, uint64_t seed, uint32_t sample, int *ids, mg_error *error);

typedef struct judge {
    const char *name;
    next_fn *next;
    draw_fn *draw;
    void *user;
} judge;

static mg_status chi_square_of(mg_lab *lab, const judge *j, text_list *l, int rule, int n_texts, double *found,
                               mg_error *error) {
    long *counts = lab_memory(lab, (size_t)l->n + 1, sizeof *counts);
    for (int i = 0; i < n_texts; i++) {
        int ids[LENGTH];
        uint32_t sample = SPECULATIVE_TEXT + (uint32_t)(rule * n_texts + i);
        mg_status status = j->draw(j->user, rule, lab_asked(lab)->seed, sample, ids, error);
        if (!status && i % 500 == 0) status = lab_interrupted(lab, error);
        if (status) return status;
        const int *cell = bsearch(ids, l->ids, (size_t)l->n, LENGTH * sizeof *ids, compare);
        counts[cell ? (cell - l->ids) / LENGTH : l->n]++;
    }
    *found = chi_square(l, counts, n_texts);
    return MG_OK;
}

/* A pass needs a control: where a wrong rule is not found out, the right one has not been tested. */
static void check_rules(mg_lab *lab, const judge *j, int n_texts, double limit, const double found[N_RULES]) {
    bool seen = found[ACCEPT_ALL] > limit && found[RESAMPLE] > limit;
    for (int rule = 0; rule < N_RULES; rule++) {
        const char *name = lab_format(lab, "%s, judged by %s: χ² of %d texts", rule_names[rule], j->name, n_texts);
        if (!seen && found[rule] <= limit)
            lab_undecided(lab, name, found[rule], "",
                          "with this draft model and this judge, %d texts do not show both wrong rules", n_texts);
        else if (rule == PLAIN || rule == RIGHT)
            lab_check_at_most(lab, name, found[rule], limit, "");
        else
            lab_check_above(lab, name, found[rule], limit, "");
    }
}

static mg_status test_judge(mg_lab *lab, const speculative_models *m, const judge *j, lab_table *table, int n_texts,
                            mg_error *error) {
    text_list list = {.n_ids = m->n_ids, .next = j->next, .user = j->user};
    list_texts(lab, &list, m->start, n_texts);
    if (list.n == 0) {
        lab_undecided(lab, lab_format(lab, "judged by %s: χ² of %d texts", j->name, n_texts), NAN, "",
                      "no text of %d tokens is expected %d times", LENGTH, LEAST_EXPECTED);
        return MG_OK;
    }
    double found[N_RULES], limit = chi_square_limit(list.n);
    for (int rule = 0; rule < N_RULES; rule++) {
        mg_status status = chi_square_of(lab, j, &list, rule, n_texts, &found[rule], error);
        if (status) return status;
        lab_progress(lab, "writing", rule + 1, N_RULES, "%s", j->name);
        lab_table_row(table, "%s\t%s\t%d\t%.1f\t%.1f", j->name, rule_names[rule], list.n, found[rule], limit);
    }
    check_rules(lab, j, n_texts, limit, found);
    return MG_OK;
}

/* ---- The target as the judge ---- */

typedef struct target_judge {
    const speculative_models *m;
    mg_tape *tape;
    mg_generator *plain;
    mg_speculator *with;
} target_judge;

static void target_next(void *user, const int *ids, int n, double *p) {
    const target_judge *t = user;
    speculative_predict(t->m, t->m->target, t->tape, ids, n, 1, p);
}

static mg_status target_draw(void *user, int rule, uint64_t seed, uint32_t sample, int *ids, mg_error *error) {
    target_judge *t = user;
    if (rule == PLAIN) return mg_generate_ids(t->plain, &speculative_sampler, seed, sample, LENGTH, ids, error);
    mg_speculator_set_rule(t->with, rule_of(rule), NULL);
    return mg_speculate_ids(t->with, &speculative_sampler, seed, sample, LENGTH, ids, error);
}

/* At temperature 0 nothing is left to chance: the very same text. */
static mg_status check_greedy(mg_lab *lab, const speculative_models *m, target_judge *t, mg_error *error) {
    const mg_sampler greedy = {.temperature = 0, .top_p = 1};
    int n = m->block_size - 1, *ids = lab_memory(lab, (size_t)n, sizeof *ids);
    const char *text[2];
    for (int drafted = 0; drafted < 2; drafted++) {
        mg_speculator_set_rule(t->with, rule_of(RIGHT), NULL);
        mg_status status = drafted ? mg_speculate_ids(t->with, &greedy, lab_asked(lab)->seed, 0, n, ids, error)
                                   : mg_generate_ids(t->plain, &greedy, lab_asked(lab)->seed, 0, n, ids, error);
        char *bytes = NULL;
        size_t length;
        if (!status) status = mg_tokenizer_decode(&bytes, &length, m->corpus->tokenizer, ids, (size_t)n, error);
        if (status) return status;
        text[drafted] = lab_format(lab, "%s", bytes);
        mg_free(bytes);
    }
    lab_check_same_text(lab, lab_format(lab, "at temperature 0: %d tokens with a draft", n), text[1], text[0]);
    return MG_OK;
}

static mg_status by_target(mg_lab *lab, const speculative_models *m, lab_table *table, int n_texts, mg_error *error) {
    target_judge t = {.m = m, .tape = lab_inference_tape()};
    mg_status status = mg_generator_new(&t.plain, m->target, m->n_ids, true, error);
    if (!status) status = mg_speculator_new(&t.with, m->target, m->draft, m->n_ids, GAMMA, error);
    if (!status) {
        mg_generator_prompt(t.plain, &m->start, 1);
        mg_speculator_prompt(t.with, &m->start, 1);
        status = test_judge(lab, m, &(judge){"the target", target_next, target_draw, &t}, table, n_texts, error);
    }
    if (!status) status = check_greedy(lab, m, &t, error);
    mg_tape_free(t.tape);
    mg_generator_free(t.plain);
    mg_speculator_free(t.with);
    return status;
}

/* ---- The grammar as the judge ---- */

typedef struct grammar_judge {
    const mg_grammar *grammar;
    mg_generator *draft;
    int n_ids, start;
    double *p, *q;
    int *order;
} grammar_judge;

static void grammar_next(void *user, const int *ids, int n, double *p) {
    const grammar_judge *g = user;
    double belief[MG_GRAMMAR_MAX_STATES], next[MG_GRAMMAR_MAX_STATES];
    size_t bytes = (size_t)g->grammar->states.n * sizeof *belief;
    memcpy(belief, g->grammar->stationary, bytes);
    for (int i = 0; i < n; i++)
        if (mg_grammar_filter(g->grammar, belief, ids[i], next) > 0) memcpy(belief, next, bytes);
    mg_grammar_predict(g->grammar, belief, p);
}

/* One token at a time: what is tested here is the rule. */
static mg_status grammar_draw(void *user, int rule, uint64_t seed, uint32_t sample, int *ids, mg_error *error) {
    grammar_judge *g = user;
    mg_rng rng = {seed, MG_STREAM_SAMPLE, sample};
    int text[LENGTH + 1] = {g->start};
    (void)error;
    mg_generator_rewind(g->draft);
    for (int i = 0; i < LENGTH; i++) {
        grammar_next(g, text, i + 1, g->p);
        if (rule == PLAIN) {
            text[i + 1] = mg_sampler_draw(g->p, g->n_ids, rng, (uint64_t)i);
            continue;
        }
        mg_sampler_probabilities(&speculative_sampler, mg_generator_logits(g->draft), g->n_ids, g->q, g->order);
        text[i + 1] = mg_sampler_draw(g->q, g->n_ids, rng, 3 * (uint64_t)i);
        rule_of(rule)(g->p, g->q, g->n_ids, &text[i + 1], rng, 3 * (uint64_t)i + 1, NULL);
        if (i + 1 < LENGTH) mg_generator_append(g->draft, text[i + 1]);
    }
    memcpy(ids, text + 1, LENGTH * sizeof *ids);
    return MG_OK;
}

static mg_status by_grammar(mg_lab *lab, const speculative_models *m, lab_table *table, int n_texts, mg_error *error) {
    grammar_judge g = {.grammar = m->corpus->grammar, .n_ids = m->n_ids, .start = m->start};
    g.p = lab_numbers(lab, m->n_ids);
    g.q = lab_numbers(lab, m->n_ids);
    g.order = lab_memory(lab, (size_t)m->n_ids, sizeof *g.order);
    mg_status status = mg_generator_new(&g.draft, m->draft, m->n_ids, true, error);
    if (status) return status;
    mg_generator_prompt(g.draft, &m->start, 1);
    status = test_judge(lab, m, &(judge){"the grammar", grammar_next, grammar_draw, &g}, table, n_texts, error);
    mg_generator_free(g.draft);
    return status;
}

/* ---- All of it ---- */

mg_status lab_speculative_text(mg_lab *lab, const speculative_models *m, mg_error *error) {
    int n_texts = lab_asked(lab)->quick ? 5000 : 10000;
    lab_table *table = lab_table_begin(lab, "distribution", "Do the texts fit their exact probabilities?",
                                       "judge\trule\tdegrees of freedom\tχ²\tlimit");
    mg_status status = by_target(lab, m, table, n_texts, error);
    if (!status && m->corpus->grammar) status = by_grammar(lab, m, table, n_texts, error);
    lab_table_end(
        table,
        "%d texts of %d tokens per row, drafted %d at a time. A cell is one text, or all texts together that are "
        "expected fewer than %d times. A right rule is above the limit once in 10,000 runs. The grammar as the "
        "judge: the draft model drafts, and the exact probabilities of the source take the target's place.",
        n_texts, LENGTH, GAMMA, LEAST_EXPECTED);
    return status;
}
