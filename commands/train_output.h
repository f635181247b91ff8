/* What `train` prints: steps and the summary to stdout, all else to stderr. */
#ifndef MASKGRAD_TRAIN_OUTPUT_H
#define MASKGRAD_TRAIN_OUTPUT_H

#include "progress.h"
#include "run.h"

/* The data, the model and the machine; and what is odd about the data and the schedule. */
void mg_train_announce(const mg_run *run);
/* What the run reports to while it trains. `progress` outlives the training. */
mg_run_watch mg_train_watch(mg_progress *progress);
int64_t mg_train_tokens_per_step(const mg_run *run);
/* The final evaluation, the texts' score, where the files are; and an alarm if the evaluation is not plausible. */
void mg_train_summarize(const mg_run *run, const mg_evaluation *evaluation, const mg_grammar_score *score);

#endif
