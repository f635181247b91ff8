/* The table of labs. A lab is one file, lab_NAME.c, and one row. */
#ifndef MASKGRAD_LABS_H
#define MASKGRAD_LABS_H

#include "lab.h"

struct argp;

/* Which of the options that several labs share this one takes; the others are refused. --out-dir, --seed, --quick and
 * --threads are everybody's. */
enum { LAB_TAKES_DATA = 1, LAB_TAKES_CHECKPOINT = 2, LAB_TAKES_PROMPT = 4 };

typedef struct lab_row {
    const char *name, *question; /* one line */
    mg_status (*run)(lab *lab, mg_error *error);
    int takes;
    /* Options of its own: a parser whose state->input is options_size zeroed bytes, later lab_asked(lab)->own. It sets
     * their defaults at ARGP_KEY_INIT. NULL and 0: none. */
    const struct argp *options;
    size_t options_size;
} lab_row;

extern const lab_row lab_rows[]; /* ends with a row whose name is NULL */

mg_status lab_mask(lab *lab, mg_error *error);

#endif
