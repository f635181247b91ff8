/* What the labs that train share: a corpus, and several models trained side by side on the same seed and windows. */
#ifndef MASKGRAD_LAB_TRAINING_H
#define MASKGRAD_LAB_TRAINING_H

#include "lab.h"
#include "options.h"
#include "trainer.h"

/* The flags of the labs that train: the data, the model, the training and the threads; and, measured, how often and on
 * how much the models are evaluated. About mg_run_options. */
extern const mg_settings lab_training_tables[], lab_measured_training_tables[];

/* A shipped data set ("frases.csv"), wherever the program is started from. */
const char *lab_shipped_data(mg_lab *lab, const char *name);
/* options->data.path NULL takes the shipped grammar frases.csv. Warnings of the corpus go to stderr and into a note. */
mg_status lab_load_corpus(mg_lab *lab, mg_run_options *options, mg_corpus **corpus, mg_error *error);

/* The settings of a training for the report: corpus, model, steps. */
void lab_training_settings(mg_lab *lab, const mg_run_options *run, const mg_corpus *corpus);

/* One of the models. The caller fills the first part; lab_training_free frees the rest. */
typedef struct lab_variant {
    const char *name; /* "masked" */
    lab_color color;
    mg_train_options options;

    mg_trainer *trainer;
    double *loss, *grad_norm; /* max_iters each: of every step */
    double *validation;       /* at the common evaluation steps */
} lab_variant;

typedef struct lab_training lab_training;
struct lab_training {
    int n_variants;
    lab_variant *variant;
    int n_steps, n_evaluations;
    double *evaluation_step; /* n_evaluations: the last one is n_steps */
    long different_tokens;   /* places in which the variants' batches differed, over all steps: 0 if the lab is fair */

    /* Called after each evaluation, if not NULL: n_evaluations is how many there were with this one. It may run the
     * models on tapes of its own, and leaves no gradients behind. */
    void (*watch)(mg_lab *lab, const lab_training *training, void *user);
    void *user;
};

/* Train them all, one step of each in turn. Evaluates every eval_interval steps on eval_iters batches. A loss that is
 * not finite ends the training of the lab with an error. */
mg_status lab_train(mg_lab *lab, lab_training *training, const mg_corpus *corpus, const mg_run_options *run,
                    mg_error *error);
void lab_training_free(lab_training *training);

/* Means over windows of `width` steps, at the windows' middles: places for n / width + 1. Returns how many. */
int lab_smooth(int n, const double *y, int width, double *x_out, double *y_out);
/* The window of a training's curves: n_steps / 100 steps, or one. */
int lab_smooth_width(const lab_training *training);
/* step, and loss from 0 */
extern const lab_axes lab_loss_axes;
/* The curves of all variants: validation losses at their steps, and the mean of the training losses over windows of
 * n_steps / 100 steps. The figure stays open for floors. */
lab_figure *lab_training_figure(mg_lab *lab, const lab_training *training, const char *name, const char *title);

/* Whether n losses were still falling when they end, by 5 % from one quarter to the next: then their end says little.
 */
bool lab_still_falling(int n, const double *loss);

/* Below this a loss has collapsed, where `last` is what the last position of T pays: 0.1 nats, or twice what that one
 * honest position costs at best in a short window. */
double lab_collapsed(double last, ptrdiff_t T);

/* Seconds of this thread's own work: what else the machine does meanwhile does not count. */
double lab_thread_seconds(void);
/* A tape that records nothing. */
mg_tape *lab_inference_tape(void);
/* n zeros that live as long as the lab. */
void *lab_memory(mg_lab *lab, size_t n, size_t size);
double *lab_numbers(mg_lab *lab, ptrdiff_t n);
mg_real *lab_reals(mg_lab *lab, ptrdiff_t n);
/* The n values as a heat map takes them. */
mg_real *lab_heat(mg_lab *lab, ptrdiff_t n, const double *values);
/* The tokens of n ids as labels of an axis, white space made visible. */
const char **lab_token_labels(mg_lab *lab, const mg_tokenizer *tokenizer, const int *ids, ptrdiff_t n);

#endif
