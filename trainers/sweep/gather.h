/* Many run folders, read. */
#ifndef MASKGRAD_GATHER_H
#define MASKGRAD_GATHER_H

#include "compare.h"

typedef struct mg_run_set {
    mg_run_record *record;
    int n;
    int repeated;  /* records after these n: folders that are among them already */
    int not_begun; /* of the runs in a folder of runs, how many have no step yet and were left out */
} mg_run_set;

/* Each path is a run folder, or a folder of run folders, whose runs are taken in the order of their names. */
mg_status mg_run_gather(mg_run_set *set, int n_paths, const char *const *paths, mg_error *error);
void mg_run_set_free(mg_run_set *set);

#endif
