/* The table of labs. A lab is one file, lab_NAME.c, and one row. */
#ifndef MASKGRAD_LABS_H
#define MASKGRAD_LABS_H

#include "flags.h"
#include "lab.h"

/* Which of the options that several labs share this one takes; the others are refused. --out-dir, --seed, --quick and
 * --threads are everybody's. */
enum { LAB_TAKES_DATA = 1, LAB_TAKES_CHECKPOINT = 2, LAB_TAKES_PROMPT = 4 };

/* A lab's own options: tables of flags about one struct, which the lab reads at lab_asked(lab)->own. They may be the
 * tables of a training run (options.h) about a mg_run_options; where such a table has a flag of the frame's, --seed or
 * --data, the frame reads it from there, and both see the same value. */
typedef struct lab_options {
    const mg_flag *const *tables; /* ends with NULL */
    size_t size;                  /* of the struct */
    void (*set_defaults)(void *own);
    void (*set_quick)(void *own); /* what --quick changes in the defaults, not in what is given; NULL: nothing */
} lab_options;

typedef struct lab_row {
    const char *name, *question; /* one line */
    mg_status (*run)(mg_lab *lab, mg_error *error);
    int takes;
    const lab_options *options; /* NULL: none of its own */
} lab_row;

extern const lab_row lab_rows[]; /* ends with a row whose name is NULL */

mg_status lab_leak(mg_lab *lab, mg_error *error);
extern const lab_options lab_leak_options;
mg_status lab_attention(mg_lab *lab, mg_error *error);
mg_status lab_saturation(mg_lab *lab, mg_error *error);
mg_status lab_mask(mg_lab *lab, mg_error *error);
mg_status lab_proof(mg_lab *lab, mg_error *error);
mg_status lab_dial(mg_lab *lab, mg_error *error);
extern const lab_options lab_dial_options;
mg_status lab_cache(mg_lab *lab, mg_error *error);
mg_status lab_heads(mg_lab *lab, mg_error *error);
extern const lab_options lab_heads_options;
mg_status lab_multihead(mg_lab *lab, mg_error *error);
mg_status lab_ablation(mg_lab *lab, mg_error *error);
extern const lab_options lab_subject_options; /* of the labs that look into a model: lab_subject.h */

#endif
