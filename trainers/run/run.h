/* A training run in its folder: the trainer, the log, checkpoints, and the last measurement. It prints nothing: the
 * caller reports, through mg_run_watch. */
#ifndef MASKGRAD_RUN_H
#define MASKGRAD_RUN_H

#include "run_dir.h"
#include "run_json.h"
#include "run_log.h"
#include "trainer.h"

typedef struct mg_run mg_run;

/* The caller's callbacks; each may be NULL. */
typedef struct mg_run_watch {
    mg_stop stop;                                                        /* asked between steps and in evaluations */
    void (*warned)(const mg_run *run, const char *sentence, void *user); /* the log was repaired */
    void (*stepped)(const mg_run *run, const mg_step *step, void *user); /* after each step */
    void (*alarmed)(const mg_run *run, const mg_alarm_reading *reading, void *user); /* it reads its labels */
    void (*evaluating)(const mg_run *run, int64_t step, void *user);                 /* before an evaluation */
    void (*evaluated)(const mg_run *run, int64_t step, double train_loss, double validation_loss, void *user);
    void (*sampling)(const mg_run *run, int64_t step, void *user); /* before samples are drawn */
    void (*sampled)(const mg_run *run, int64_t step, const int *ids, ptrdiff_t n, void *user); /* the first of them */
    void *user;
} mg_run_watch;

struct mg_run {
    mg_run_options options; /* resolved */
    mg_run_dir dir;         /* open and locked */
    mg_corpus *corpus;      /* owned, as is all below */
    mg_trainer *trainer;
    mg_run_log *log;
    const mg_run_json *before; /* of the resumed run; NULL: a new run. Borrowed */
    mg_run_watch watch;
    mg_ranks *ranks;       /* that train together; NULL: this process by itself. Borrowed */
    double begun;          /* seconds of the monotonic clock when this process began to train */
    double seconds_before; /* of training, in processes before this one */
    int64_t first_step;    /* done when this process began */
    int64_t saved_step;    /* of the checkpoint in the folder; -1: there is none */
    bool logs_attention;   /* asked for, or begun before the run was resumed */
    bool starts_from_file; /* its first weights are nowhere else in the folder: they are saved at step 0 */
};

/* Write run.json, open the log, and train to the end, or until watch.stop asks for a stop: the step is finished and
 * saved; an evaluation is interrupted. A loss that is not finite stops with MG_ERR_STATE; the last checkpoint stays.
 * *stopped: watch.stop asked. */
mg_status mg_run_train(mg_run *run, bool *stopped, mg_error *error);

/* The part of a rank above 0 in mg_run_train, which is rank 0's: it makes the steps that rank 0 asks for, and writes
 * nothing. Only the trainer, the ranks and watch.stop of the run are used. */
mg_status mg_run_follow(mg_run *run, mg_error *error);

/* MG_ERR_INPUT unless all ranks have the same weights. */
mg_status mg_run_check_weights(mg_run *run, mg_error *error);

/* The last measurement of a run. */
typedef struct mg_run_results {
    mg_evaluation evaluation;
    mg_grammar_score score; /* of the samples, where the source is a grammar; else empty */
} mg_run_results;
/* Measure, and write position.csv and samples.txt. MG_ERR_STOPPED if watch.stop asked for it: then nothing of these is
 * written. Free the results with mg_evaluation_free(&results->evaluation). */
mg_status mg_run_finish(mg_run *run, mg_run_results *results, mg_error *error);
/* Draw the run's samples and write samples.txt; the watch hears of the first. */
mg_status mg_run_write_samples(mg_run *run, mg_grammar_score *score, mg_error *error);
void mg_run_free(mg_run *run);

#endif
