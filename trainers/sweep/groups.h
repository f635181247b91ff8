/* Runs that share their settings, their seeds aside: repetitions of one experiment. */
#ifndef MASKGRAD_GROUPS_H
#define MASKGRAD_GROUPS_H

#include "arena.h"
#include "compare.h"
#include "statistics.h"

/* A setting as the user would type it: the mask is --mask causal and not the lookahead that run.json holds, a switch is
 * true if its flag is given, and a number has at most 15 digits. Returns the flag's name. `text` may be NULL. */
const char *mg_run_typed(const mg_setting *setting, const mg_run_options *options, size_t base, char *text,
                         size_t size);

/* Whether runs differ in a setting that can matter to the result: not the folder, threads, what is printed and when,
 * nor what follows from other settings (the final learning rate from the highest). */
bool mg_run_differs(const mg_setting *setting, size_t base, const mg_run_record *records, int n);

/* What is measured of each run. */
typedef enum mg_run_metric {
    MG_METRIC_FINAL,   /* the last validation loss of a finished run */
    MG_METRIC_LAST,    /* the loss at the last position of a finished run, from position.csv */
    MG_METRIC_SECONDS, /* to the first validation loss of at most a given one */
    MG_N_METRICS
} mg_run_metric;

typedef struct mg_run_group {
    const char **value; /* of each setting that tells the groups apart, as typed */
    const char *label;  /* "mask=none lr=3e-05"; "all runs" where there is no such setting */
    int n, *run;        /* the numbers of its runs */
    mg_summary metric[MG_N_METRICS];
} mg_run_group;

typedef struct mg_run_groups {
    mg_arena *arena; /* owns all of it */
    int n_settings;
    const char **setting; /* the names of those that tell the groups apart */
    int n_pooled;
    const char **pooled; /* those that differ too, and that `by` leaves out */
    int n;
    mg_run_group *group;            /* by their mean final loss, the lowest first; NaN last */
    double *measured[MG_N_METRICS]; /* of each run, NaN where there is none */
} mg_run_groups;

/* Group by all settings in which the runs differ (mg_run_differs) but the seed, or by those of `by`, "lr,mask". `loss`
 * is what MG_METRIC_SECONDS waits for; NaN: none. MG_ERR_INPUT for a name that is no flag of train. */
mg_status mg_run_groups_make(mg_run_groups *groups, const mg_run_record *records, int n, const char *by, double loss,
                             mg_error *error);
void mg_run_groups_free(mg_run_groups *groups);
/* Whether a group has more than one run. */
bool mg_run_groups_repeat(const mg_run_groups *groups);

#endif
