/* A head of lab heads: its map in numbers, and a name for them. heads.c says what they mean. */
#ifndef MASKGRAD_LAB_HEADS_H
#define MASKGRAD_LAB_HEADS_H

#include "lab_private.h"

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

#endif
