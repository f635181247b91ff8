/* The parts of lab heads: a head's map in numbers, with a name for them; all maps of a model; what they show. heads.c
 * says what the numbers mean. */
#ifndef MASKGRAD_LAB_HEADS_H
#define MASKGRAD_LAB_HEADS_H

#include "lab_private.h"
#include "subject.h"

/* ---- One head (heads_map.c) ---- */

typedef struct lab_head_numbers {
    double distance, entropy, first;
    double offset[2];    /* mean weight on the token itself and on the one before */
    double next;         /* mean weight on the token after, which is the label: 0 under the mask */
    double induction;    /* mean weight on what followed earlier copies of the query's token, over the same rows */
    double duplicate;    /* mean weight on earlier copies of the query's own token, over the rows that have one */
    double n_duplicates; /* rows that have one */
    double n_others;     /* earlier tokens that are no copies, over all rows */
} lab_head_numbers;

/* Of a map (T,T), one row per query. ids: the T tokens, or NULL: no duplicates are looked for. */
lab_head_numbers lab_head_measure(int T, const mg_real *map, const int *ids);
/* The map of the head that looks at everything it may see alike. */
void lab_head_uniform(int T, mg_mask mask, mg_real *map);

typedef enum lab_head_name {
    NEXT_TOKEN,
    PREVIOUS_TOKEN,
    SELF,
    DUPLICATE_TOKEN,
    INDUCTION,
    SINK,
    BROAD,
    NOT_DEFINED,
    MIXED,
    LAB_HEAD_NAMES
} lab_head_name;
extern const char *const lab_head_names[LAB_HEAD_NAMES];

/* By the first rule that holds, which lab_head_tell_rules puts into the report. */
lab_head_name lab_head_name_of(const lab_head_numbers *numbers, double uniform_entropy);
void lab_head_tell_rules(mg_lab *lab);

/* The numbers and names of maps that are known beforehand. */
void lab_head_check_ruler(mg_lab *lab);

/* A text that asks for a habit, written to `path`: 6 times in 10 a letter is the one before the last again, else it is
 * drawn. To predict the next letter a head must look at the one before its query. */
mg_status lab_head_write_echoes(mg_lab *lab, const char *path, mg_error *error);

/* ---- All heads, on several texts (heads_measure.c) ---- */

typedef struct lab_head_maps {
    int n_layer, n_head, T, n_texts;
    mg_real *weights, *scores; /* (n_layer, B, n_head, T, T) of one text at a time: B is 1 */
    lab_mean *distance, *entropy, *first;
    lab_head_numbers *numbers; /* (n_layer, n_head): means over the texts */
    double sum_error, forbidden, softmax_error, different_logits;
} lab_head_maps;

static inline ptrdiff_t lab_head_count(const lab_head_maps *m) {
    return (ptrdiff_t)m->n_layer * m->n_head;
}

/* Captures the maps of each text and measures them, into the lab's memory. */
void lab_head_measure_all(mg_lab *lab, mg_gpt *gpt, const lab_text_set *texts, lab_head_maps *m);
/* Whether they are maps of attention at all. */
void lab_head_check_maps(mg_lab *lab, const lab_head_maps *m, const mg_gpt_config *config);
/* The control: whether what is read off the maps counts for any prediction of the first text. */
void lab_head_check_effect(mg_lab *lab, mg_gpt *gpt, const lab_text_set *texts);

/* ---- What they show (heads_show.c) ---- */

enum { LAB_HEAD_PORTRAIT_T = 14 }; /* tokens */

/* The heads of one layer, on the beginning of the first text, short enough for its tokens to be read. */
void lab_head_show_portraits(mg_lab *lab, const lab_subject *subject, const lab_text_set *texts, int layer);
/* All heads of all layers at a glance: one row per layer, one column per head. */
void lab_head_show_layers(mg_lab *lab, const lab_head_maps *m, const lab_head_numbers *uniform, bool causal);
void lab_head_show_scatter(mg_lab *lab, const lab_head_maps *m, const lab_head_numbers *uniform);
void lab_head_show_table(mg_lab *lab, const lab_head_maps *m, const lab_head_numbers *uniform);

/* ---- Habits, on the text that asks for them (heads_habits.c) ---- */

/* The mean weight on the token before, of the head that looks there most. */
double lab_head_most_before(const lab_head_maps *m);
/* Two models of the same text, one mask apart: the masked one must look back, the unmasked one can look at its label.
 */
void lab_head_check_habits(mg_lab *lab, const lab_head_maps *m, const lab_head_numbers *uniform, mg_gpt *unmasked,
                           const lab_text_set *texts, const char **labels, int portrait_T);

#endif
