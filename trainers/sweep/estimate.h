/* How long a plan will take and how much disk, from a few steps that are timed here. */
#ifndef MASKGRAD_ESTIMATE_H
#define MASKGRAD_ESTIMATE_H

#include "evaluation.h"
#include "plan.h"

typedef struct mg_sweep_estimate {
    int runs;       /* that are not finished */
    int known;      /* of these, how many were estimated: the sums are of them only */
    int impossible; /* of these, how many cannot begin: `why` is the first one's reason */
    double seconds; /* of one process after the other */
    double bytes;   /* of disk, when they are finished */
    int kinds;      /* models that were timed */
    char why[1024];
} mg_sweep_estimate;

enum { MG_SWEEP_TIMED_STEPS = 3 };

/* Time MG_SWEEP_TIMED_STEPS steps and an evaluation of each kind of run, with so many threads (0: the run's own), until
 * about `budget` seconds are over; kinds that were not reached, or whose steps fail, stay unknown. Nothing is written.
 * MG_ERR_STOPPED. */
mg_status mg_sweep_estimate_all(mg_sweep_estimate *estimate, const mg_sweep_plan *plan, int threads, double budget,
                                const mg_stop *stop, mg_error *error);

#endif
