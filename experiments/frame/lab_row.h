/* A lab as the frame knows it: its name, its question, its options, and what runs it. */
#ifndef MASKGRAD_LAB_ROW_H
#define MASKGRAD_LAB_ROW_H

#include "lab.h"
#include "setting.h"

/* Which of the options that several labs share this one takes; the others are refused. --out-dir, --seed, --quick and
 * --threads are everybody's. */
enum { LAB_TAKES_DATA = 1, LAB_TAKES_CHECKPOINT = 2, LAB_TAKES_PROMPT = 4 };
enum { LAB_PROMPTS_CHECKPOINT = LAB_TAKES_PROMPT | 8 }; /* a prompt only for a model of the user's own */

/* A lab's own options: tables of settings about one struct, which the lab reads at lab_asked(lab)->own. They may be the
 * tables of a training run (options.h) about a mg_run_options; where such a table has a flag of the frame's, --seed or
 * --data, the frame reads it from there, and both see the same value. */
typedef struct lab_options {
    const mg_settings *tables;
    size_t size; /* of the struct */
    void (*set_defaults)(void *own);
    void (*set_quick)(void *own); /* what --quick changes in the defaults, not in what is given; NULL: nothing */
} lab_options;

typedef struct lab_row {
    const char *name, *question; /* one line */
    mg_status (*run)(mg_lab *lab, mg_error *error);
    int takes;
    const lab_options *options; /* NULL: none of its own */
} lab_row;

#endif
