/* How this process was started: by itself, or with others by mpirun or srun, to train one model together. */
#ifndef MASKGRAD_LAUNCH_H
#define MASKGRAD_LAUNCH_H

#include "ranks.h"

/* *ranks is NULL for a process by itself; else it lives until mg_launch_leave. MG_ERR_STATE if MPI does not start. */
mg_status mg_launch_join(mg_ranks **ranks, mg_error *error);
/* Waits until all ranks leave. A process that exits otherwise ends all of them: with status 2, a usage error, which all
 * have found in the same arguments, in good order; else at once. */
void mg_launch_leave(mg_ranks *ranks);
/* How many of the ranks are on this machine: they share its processors. */
int mg_launch_neighbors(const mg_ranks *ranks);
/* How many processes a launcher has started with this one, of which a build without MPI knows nothing; 1: none. */
int mg_launch_strangers(void);

#endif
