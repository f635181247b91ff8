/* How well a model predicts windows of a corpus, position by position, compared with the best any honest model could do
 * on the same windows. */
#ifndef MASKGRAD_EVALUATION_H
#define MASKGRAD_EVALUATION_H

#include "corpus.h"
#include "gpt.h"

#include <stdio.h>

typedef struct mg_evaluation {
    ptrdiff_t n_positions, n_windows;
    double loss;       /* mean over everything, nats per token */
    double floor;      /* the Bayes-optimal predictor's, on the same windows; NaN where the source is unknown */
    double gap_error;  /* standard error of loss − floor over windows; NaN where the source is unknown */
    double evidence;   /* nats by which position 0 is below what one token allows, summed over windows; NaN unless asked
                          for */
    int shift;         /* the token that the predictions fit: 1, the next; 0 if they fit the input itself, 2, 3 */
    double shift_loss; /* and the loss there; only where shift is not 1 */
    double *position_loss;      /* n_positions */
    double *position_floor;     /* n_positions; NULL where the source is unknown */
    double *position_gap_error; /* n_positions: standard error of loss − floor; NULL where the source is unknown */
} mg_evaluation;

/* Asked between two batches; the evaluation ends there, with MG_ERR_STOPPED, once it returns true. */
typedef struct mg_stop {
    bool (*asked)(void *user);
    void *user;
} mg_stop;

typedef struct mg_evaluation_options {
    mg_split split; /* 0: the training tokens */
    int n_batches;  /* 0: 50 */
    int batch_size; /* windows per batch; 0: 16 */
    uint64_t seed;  /* of the windows */
    /* Also sum the evidence that the model reads its labels (docs/lab-alarm.md), and look for the token that it
     * predicts if it is worse than one token allows. The bound holds on any split, trained on or not, since a
     * prediction from x0 alone cannot beat how often x1 follows x0 in that very split. */
    bool evidence;
    const mg_stop *stop; /* or NULL */
} mg_evaluation_options;

/* n_batches * batch_size windows of T tokens. Window k is a function of (seed, k), so how they are cut into batches
 * does not change which they are. `options` may be NULL. MG_ERR_INPUT: the options are out of range, or the split has
 * no window. MG_ERR_STATE, with the parameter to blame, if the loss is not finite. *evaluation then holds nothing. */
MG_API mg_status mg_evaluate(mg_evaluation *evaluation, mg_gpt *gpt, const mg_corpus *corpus,
                             const mg_evaluation_options *options, mg_error *error);
MG_API void mg_evaluation_free(mg_evaluation *evaluation);

/* ---- Not installed: between maskgrad's own files ---- */
/* The same on a tape that is empty before and after, and records afterwards. */
mg_status mg_evaluate_on(mg_evaluation *evaluation, mg_gpt *gpt, mg_tape *tape, const mg_corpus *corpus,
                         const mg_evaluation_options *options, mg_error *error);
/* `position,loss,floor`, one row per position; floor is empty where the source is unknown. MG_ERR_IO if `out` cannot be
 * written. */
mg_status mg_evaluation_print(const mg_evaluation *evaluation, FILE *out);
/* What an evaluation says about the run: NULL if it is plausible, else a sentence with the likely cause, in `text`. The
 * model reads its labels (evidence of MG_ALARM_EVIDENCE, or a loss below the floor); predicts another token than the
 * next; is scored against targets that its grammar cannot produce; or does worse than guessing. */
const char *mg_evaluation_alarm(const mg_evaluation *evaluation, const mg_gpt_config *config, char *text, size_t size);

#ifndef MG_LIBRARY /* whose line a failure names: error.h */
MG_CALLED(mg_status, mg_evaluate, (evaluation, gpt, corpus), (evaluation, gpt, corpus, options, error),
          mg_evaluation *evaluation, mg_gpt *gpt, const mg_corpus *corpus, const mg_evaluation_options *options,
          mg_error *error)
#define mg_evaluate(...) MG_AT(mg_evaluate, __VA_ARGS__)
#endif

#endif
