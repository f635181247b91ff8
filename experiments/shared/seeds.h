/* A lab with several seeds: its verdicts are on means over them, with their intervals. */
#ifndef MASKGRAD_LAB_SEEDS_H
#define MASKGRAD_LAB_SEEDS_H

#include "lab.h"
#include "options.h"
#include "statistics.h"

/* The options of a lab that trains and can repeat itself: those of lab_measured_training_tables, and --seeds. */
typedef struct lab_seeded_options {
    mg_run_options run; /* first: the tables of a run count from it */
    int seeds;          /* the first is run.train.seed, the others follow it */
} lab_seeded_options;
extern const mg_settings lab_seeded_tables[];

/* A mean below a limit: of one seed the number itself, of more the upper end of the mean's 95 % interval (Student's t),
 * so that what the seeds leave open does not pass. The name says which. */
bool lab_check_mean_below(mg_lab *lab, const char *name, int n, const double *observed, double limit, const char *unit);
/* The same at least, with the lower end. */
bool lab_check_mean_at_least(mg_lab *lab, const char *name, int n, const double *observed, double limit,
                             const char *unit);
/* "0.0431 ± 0.0012 (n = 5)": mean and standard error; of one seed the number only. */
const char *lab_mean_text(mg_lab *lab, int n, const double *observed);

#endif
