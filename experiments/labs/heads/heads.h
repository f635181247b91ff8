/* A head of lab heads: its map in numbers, and the numbers' name. lab_heads.c says what they mean. */
#ifndef MASKGRAD_LAB_HEADS_H
#define MASKGRAD_LAB_HEADS_H

#include "lab_private.h"

typedef struct lab_head_numbers {
    double distance, entropy, first;
    double offset[2];    /* mean weight on the token itself and on the one before */
    double duplicate;    /* mean weight on earlier copies of the query's own token, over the rows that have one */
    double n_duplicates; /* rows that have one */
    double n_others;     /* earlier tokens that are no copies, over all rows */
} lab_head_numbers;

/* Of a map (T,T), a row a query. ids: the T tokens, or NULL: no duplicates are looked for. */
lab_head_numbers lab_head_measure(int T, const mg_real *map, const int *ids);
/* The map of the head that looks at everything it may see alike. */
void lab_head_uniform(int T, int lookahead, mg_real *map);

typedef enum lab_head_name {
    PREVIOUS_TOKEN,
    SELF,
    DUPLICATE_TOKEN,
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

#endif
