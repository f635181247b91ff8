/* The runs of a plan, carried out: some at a time, each a process of its own. It prints nothing: the caller watches. */
#ifndef MASKGRAD_SWEEP_H
#define MASKGRAD_SWEEP_H

#include "evaluation.h"
#include "plan.h"

/* How a run ended. */
typedef enum mg_sweep_end {
    MG_SWEEP_OPEN,   /* not begun, or stopped and saved */
    MG_SWEEP_DONE,   /* finished, now or before */
    MG_SWEEP_HELD,   /* another process is training it */
    MG_SWEEP_FAILED, /* now, or before and not tried again */
    MG_SWEEP_N_ENDS
} mg_sweep_end;

typedef struct mg_sweep_progress {
    int count[MG_SWEEP_N_ENDS], running;
    int64_t steps, all_steps; /* of all runs */
    int64_t steps_before;     /* the part of `steps` that this sweep found */
    double begun;             /* seconds of the monotonic clock */
} mg_sweep_progress;

typedef struct mg_sweep_watch {
    mg_stop stop;
    void (*ended)(const mg_sweep_plan *plan, int run, mg_sweep_end end, void *user);
    void (*progressed)(const mg_sweep_plan *plan, const mg_sweep_progress *progress, void *user); /* often */
    void *user;
} mg_sweep_watch;

typedef struct mg_sweep_how {
    int jobs;    /* processes at a time, at least 1 */
    int threads; /* shared fairly between them; 0: the plan's settings say how many each has */
    bool retry;  /* runs that failed before */
} mg_sweep_how;

/* How many threads the process in a slot gets, at least 1; 0 if how->threads is. */
int mg_sweep_threads(const mg_sweep_how *how, int slot);
/* Run what is not finished. end[run] says how each run ended. When watch->stop asks, the processes are asked to save
 * and stop, and waited for: MG_ERR_STOPPED. A run that fails is no failure of this function. */
mg_status mg_sweep_run(const mg_sweep_plan *plan, const mg_sweep_how *how, const mg_sweep_watch *watch,
                       mg_sweep_end *end, mg_error *error);

/* Write OUT/jobs.txt, one command per line, and OUT/jobs.sbatch, a template for Slurm. MG_ERR_INPUT for a word with a
 * line end, which would end its line. */
mg_status mg_sweep_write_jobs(const mg_sweep_plan *plan, int threads, mg_error *error);

#endif
