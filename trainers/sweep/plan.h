/* The runs of a sweep: their names, folders, settings and commands, and what their folders say of them. Nothing else is
 * kept about a run that has finished: its folder is the proof. */
#ifndef MASKGRAD_PLAN_H
#define MASKGRAD_PLAN_H

#include "grid.h"
#include "run_log.h"

#include <stdio.h>

typedef struct mg_sweep_plan {
    const mg_sweep_grid *grid;
    mg_run_options base; /* what all runs share */
    int n_words;         /* the same as words of a command line, borrowed */
    char *const *words;
    const char *program, *out_dir; /* borrowed */
    int n;
    char **name; /* of each run, and of its folder in out_dir */
} mg_sweep_plan;

/* Fill plan->n and plan->name from the rest. MG_ERR_INPUT if two runs have the same settings, or a shared setting is
 * swept too. Free with mg_sweep_plan_free. */
mg_status mg_sweep_plan_make(mg_sweep_plan *plan, mg_error *error);
void mg_sweep_plan_free(mg_sweep_plan *plan);

/* All settings of a run, resolved. */
mg_run_options mg_sweep_options(const mg_sweep_plan *plan, int run);
/* OUT, and OUT/output in it. */
mg_status mg_sweep_make_folders(const mg_sweep_plan *plan, mg_error *error);
/* OUT/NAME, or with a suffix OUT/output/NAME<suffix>. Free with mg_free; memory that runs out is a failure. */
char *mg_sweep_folder(const mg_sweep_plan *plan, int run);
char *mg_sweep_output(const mg_sweep_plan *plan, int run, const char *suffix);
#define MG_SWEEP_OUTPUT ".txt"         /* what a run's process printed */
#define MG_SWEEP_FAILURE "~failed.txt" /* the same, of one that failed */

/* The command that begins or continues a run: words that end with NULL, in the grid's arena. `threads` 0 leaves them to
 * the shared settings. */
char **mg_sweep_words(const mg_sweep_plan *plan, int run, int threads);
/* Write a word as a shell reads it back, quoted if it has to be. */
void mg_sweep_print_word(FILE *out, const char *text);
/* Write words as one line that a shell reads back as these words. */
void mg_sweep_print_command(FILE *out, char *const *words);

typedef enum mg_sweep_state {
    MG_SWEEP_NEW,
    MG_SWEEP_BEGUN,    /* its folder has steps, and not all */
    MG_SWEEP_FINISHED, /* nothing is left to do */
    MG_SWEEP_FAILED_BEFORE,
    MG_SWEEP_N_STATES
} mg_sweep_state;
/* What a run's folder says. MG_ERR_INPUT if it holds a run with other settings, which names the first. *steps: done so
 * far. */
mg_status mg_sweep_look(const mg_sweep_plan *plan, int run, mg_sweep_state *state, int64_t *steps, mg_error *error);
/* The last line of a failed run's output: why. */
void mg_sweep_reason(const mg_sweep_plan *plan, int run, char *text, size_t size);

#endif
