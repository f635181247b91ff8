/* A training run in its folder: the trainer, the log, checkpoints, what is printed, and the end of it. */
#ifndef MASKGRAD_RUN_H
#define MASKGRAD_RUN_H

#include "progress.h"
#include "run_dir.h"
#include "run_json.h"
#include "run_log.h"

typedef struct mg_run {
    mg_run_options options; /* resolved */
    mg_run_dir dir;         /* open and locked */
    mg_corpus *corpus;      /* owned, as is all below */
    mg_trainer *trainer;
    mg_run_log *log;
    mg_progress progress;
    double seconds_before; /* of training, in processes before this one */
    int64_t first_step;    /* done when this process began */
    int64_t saved_step;    /* of the checkpoint in the folder; -1: there is none */
    bool starts_from_file; /* its first weights are nowhere else in the folder: they are saved at step 0 */
} mg_run;

/* Write run.json, open the log, and train to the end, or until a signal asks for a stop: the step is finished and
 * saved; an evaluation is broken off. A loss that is not finite stops with MG_ERR_STATE; the last checkpoint stays.
 * *interrupted tells of a signal.
 */
mg_status mg_run_train(mg_run *run, bool *interrupted, mg_error *error);
/* position.csv, samples.txt, and the summary on stdout; nothing of these if a signal breaks the evaluation off. */
mg_status mg_run_finish(mg_run *run, bool *interrupted, mg_error *error);
void mg_run_free(mg_run *run);

#endif
