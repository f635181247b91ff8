/* What the files of lab channel share: models for which each label is visible with some probability. */
#ifndef MASKGRAD_CHANNEL_H
#define MASKGRAD_CHANNEL_H

#include "training.h"

/* Whether position t of window `number` of a draw sees its label: the same uniform number for every probability, so
 * what one model sees, the next one sees too. The last position has no label to see. */
bool channel_leaks(const mg_lab *lab, uint32_t stream, uint64_t number, int t, int T, double probability);
/* n windows from `first` on: position t sees 0 … t, or, where it leaks, its label at t + 1. (n,T) intervals. */
void channel_fill(const mg_lab *lab, uint32_t stream, uint64_t first, int n, int T, double probability,
                  mg_interval *sequence);

typedef struct channel_run {
    const char *name; /* "1/4" */
    double probability;
    lab_color color;

    mg_gpt *gpt;
    double *curve;   /* max_iters: the loss of each step */
    double loss;     /* of the evaluation, nats per token; NaN: training diverged */
    double possible; /* the loss on the same windows of who knows the grammar and sees the same labels; NaN: a text */
    double error;    /* standard error of loss − possible */
    double *position_loss; /* (T) */
} channel_run;

/* Train on the corpus, and evaluate on `windows` validation windows. Free r->gpt, also after an error. */
mg_status channel_train(mg_lab *lab, const mg_run_options *run, const mg_corpus *corpus, int windows, channel_run *r,
                        mg_error *error);

/* channel_proof.c: whether a label can be seen by other ways than the one that is open, in any depth. */
mg_status channel_prove(mg_lab *lab, mg_error *error);

#endif
