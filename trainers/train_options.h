/* What defines a training run apart from its data. In each of these 0 is the default: no decay, no warm-up, no clipping
 * and seed 0 where 0 is a value of its own, else what its comment says. */
#ifndef MASKGRAD_TRAIN_OPTIONS_H
#define MASKGRAD_TRAIN_OPTIONS_H

#include "adamw.h"
#include "gpt_config.h"

#include <stdbool.h>

typedef struct mg_train_options {
    mg_gpt_config model;     /* vocab_size 0: as many as the corpus's tokenizer has */
    int batch_size;          /* windows per micro-batch; 0: 16 */
    int grad_accum;          /* micro-batches per step, whose gradients are averaged; 0: 1 */
    int64_t max_iters;       /* where the schedule ends by default; 0: 1500 */
    mg_lr_schedule schedule; /* lr 0: 1e-3; decay_iters 0: max_iters */
    double weight_decay;
    double beta1, beta2; /* 0: 0.9 and 0.99, unless betas_are_set */
    bool betas_are_set;  /* both are meant as they are: 0 averages over one step only */
    double grad_clip;    /* of the global norm; 0: off */
    uint64_t seed;       /* of the initial weights, the windows and dropout */
} mg_train_options;

/* ---- Not installed: between maskgrad's own files ---- */
/* Replace each 0 by its default. */
void mg_train_options_fill(mg_train_options *options);
/* Filled options: MG_ERR_INPUT with the first that is out of range. The model, the betas and the weight decay are left
 * to what is made of them. */
mg_status mg_train_options_check(const mg_train_options *options, mg_error *error);

#endif
