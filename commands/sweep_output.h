/* What `sweep` prints: the plan, the runs as they end, one live line for all that run, and how it ended. */
#ifndef MASKGRAD_SWEEP_OUTPUT_H
#define MASKGRAD_SWEEP_OUTPUT_H

#include "estimate.h"
#include "progress.h"
#include "sweep.h"

void mg_sweep_tell_plan(const mg_sweep_plan *plan, const mg_sweep_how *how, const mg_sweep_estimate *estimate);
void mg_sweep_tell_jobs(const mg_sweep_plan *plan);
/* Returns the exit status. */
int mg_sweep_tell_end(const mg_sweep_plan *plan, const mg_sweep_end *end, bool stopped);

/* Prints the runs as they end, and above the live line. */
mg_sweep_watch mg_sweep_show(mg_live_line *live);

#endif
