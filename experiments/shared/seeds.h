/* A lab with several seeds: its verdicts are on means over them, with their intervals. */
#ifndef MASKGRAD_LAB_SEEDS_H
#define MASKGRAD_LAB_SEEDS_H

#include "lab.h"
#include "options.h"
#include "statistics.h"
#include "training.h"

/* The options of a lab that trains and can repeat itself: those of lab_measured_training_tables, and --seeds. */
typedef struct lab_seeded_options {
    mg_run_options run; /* first: the tables of a run count from it */
    int seeds;          /* the first is run.train.seed, the others follow it */
} lab_seeded_options;
extern const mg_settings lab_seeded_tables[];

/* A mean below a limit: of one seed the number itself, of more the upper end of the mean's 95 % interval (Student's t),
 * so that what the seeds leave open does not pass. The name says which. */
bool lab_check_mean_below(mg_lab *lab, const char *name, int n, const double *observed, double limit, const char *unit);
bool lab_check_mean_at_most(mg_lab *lab, const char *name, int n, const double *observed, double limit,
                            const char *unit);
/* The same from below, with the lower end. */
bool lab_check_mean_above(mg_lab *lab, const char *name, int n, const double *observed, double limit, const char *unit);
bool lab_check_mean_at_least(mg_lab *lab, const char *name, int n, const double *observed, double limit,
                             const char *unit);
/* The whole interval within the tolerance (a test of equivalence): the end that is farther from what is expected. */
bool lab_check_mean_near(mg_lab *lab, const char *name, int n, const double *observed, double expected,
                         double tolerance, const char *unit);
/* The name of a check that is on another number than the mean's interval: "…, largest of 5 seeds"; of one seed the name
 * itself. */
const char *lab_name_over_seeds(mg_lab *lab, const char *name, int n, const char *which);
/* "0.0431 ± 0.0012 (n = 5)": mean and standard error; of one seed the number only. */
const char *lab_mean_text(mg_lab *lab, int n, const double *observed);

/* For each of `length` places the mean over n seeds, and its standard error. */
void lab_mean_curve(int n, int length, double *const *of_seed, double *mean, double *error);
/* lab_training_figure over n trainings that differ only in their seed: means, with a band or bars of one standard
 * error. Of one training it is that figure. */
lab_figure *lab_seeded_training_figure(mg_lab *lab, int n, const lab_training *of_seed, const char *name,
                                       const char *title);

#endif
