/* The parts of lab hidden: its task, three models that learn it, what is measured of them, and what follows. */
#ifndef MASKGRAD_LAB_HIDDEN_H
#define MASKGRAD_LAB_HIDDEN_H

#include "adamw.h"
#include "subject.h"

enum { BOTH, LEFT, SHOWN, N_MODELS };
enum { LAB_MOST_HIDDEN = 4 /* in training */ };

/* ---- The task: one token of each window is hidden, and only it is asked for (hidden_task.c) ---- */

typedef struct lab_hidden_task {
    const mg_corpus *corpus;
    const mg_train_options *options;
    int T, hidden_id; /* what replaces a hidden token: one id more than the vocabulary has */
} lab_hidden_task;

/* (B,T) each. targets: -1 but where a token is hidden; shown: the same windows
 * with nothing hidden. */
typedef struct lab_hidden_batch {
    int B, *shown, *hidden, *targets, *at;
} lab_hidden_batch;

lab_hidden_batch lab_hidden_new_batch(mg_lab *lab, const lab_hidden_task *t, int B);
/* Windows first … first + B - 1 of a draw. Of each, between 1 and `most` tokens are hidden; at: the last of them. */
void lab_hidden_fill(const lab_hidden_task *t, mg_split split, mg_rng windows, ptrdiff_t first, int most,
                     lab_hidden_batch *b);

/* ---- The models (hidden_train.c) ---- */

typedef struct lab_hidden_model {
    const char *name;
    lab_color color;
    bool hides; /* the label is not in its input */
    mg_gpt *gpt;
    mg_adamw *adamw;
    double *loss; /* of every training step */
    /* After training, on windows of the validation split. */
    lab_mean measured, gap; /* loss, and loss minus the best possible on the same windows */
    double *position_loss;
} lab_hidden_model;

const int *lab_hidden_input(const lab_hidden_model *m, const lab_hidden_batch *b);
mg_status lab_hidden_new_model(mg_lab *lab, const lab_hidden_task *t, lab_hidden_model *m, mg_error *error);
mg_status lab_hidden_train(mg_lab *lab, const lab_hidden_task *t, lab_hidden_model models[N_MODELS], mg_error *error);

/* ---- What is measured (hidden_measure.c) ---- */

typedef struct lab_hidden_truth {
    bool known;
    double *position[2]; /* BOTH, LEFT: by hidden position */
    double mean[2];
} lab_hidden_truth;

/* Fills measured, gap and position_loss of each model. */
mg_status lab_hidden_evaluate(mg_lab *lab, const lab_hidden_task *t, lab_hidden_model models[N_MODELS], int n_batches,
                              mg_error *error);
/* The entropy of a hidden token, where the source is a grammar. */
mg_status lab_hidden_find_truth(mg_lab *lab, const lab_hidden_task *t, lab_hidden_truth *x, mg_error *error);

/* ---- What follows (hidden_show.c, hidden_reach.c, hidden_check.c) ---- */

void lab_hidden_show_curves(mg_lab *lab, lab_hidden_model models[N_MODELS], const lab_hidden_truth *x, int steps);
void lab_hidden_show_positions(mg_lab *lab, const lab_hidden_task *t, lab_hidden_model models[N_MODELS],
                               const lab_hidden_truth *x);
/* How far each token moves the prediction at the gap, with its picture and two checks. */
void lab_hidden_show_reach(mg_lab *lab, const lab_hidden_task *t, lab_hidden_model models[N_MODELS]);
/* The verdicts on the losses, and their table. */
void lab_hidden_check(mg_lab *lab, lab_hidden_model models[N_MODELS], const lab_hidden_truth *x, int steps);

#endif
