/* How well a model predicts windows of a corpus, position by position, compared with the best any honest model could do
 * on the same windows. */
#ifndef MASKGRAD_EVALUATION_H
#define MASKGRAD_EVALUATION_H

#include "corpus.h"
#include "gpt.h"
#include "pairs.h"

#include <stdio.h>

typedef struct mg_evaluation {
    ptrdiff_t n_positions, n_windows;
    double loss;      /* mean over everything, nats per token */
    double floor;     /* the Bayes-optimal predictor's, on the same windows; NaN where the source is unknown */
    double gap_error; /* standard error of loss − floor over windows; NaN where the source is unknown */
    double
        evidence; /* nats by which position 0 is below what one token allows, summed over windows; NaN without pairs */
    int shift;    /* the token that the predictions fit: 1, the next; 0 if they fit the input itself, 2, 3 */
    double shift_loss;          /* and the loss there; only where shift is not 1 */
    double *position_loss;      /* n_positions */
    double *position_floor;     /* n_positions; NULL where the source is unknown */
    double *position_gap_error; /* n_positions: standard error of loss − floor; NULL where the source is unknown */
} mg_evaluation;

/* Asked between two batches; the evaluation ends there, with MG_ERR_STOPPED, once it returns true. */
typedef struct mg_stop {
    bool (*asked)(void *user);
    void *user;
} mg_stop;

/* n_batches * batch_size windows of T tokens. Window k is a function of (seed, k), so how they are cut into batches
 * does not change which they are. MG_ERR_STATE, with the parameter to blame, if the loss is not finite. Free the result
 * with mg_evaluation_free. `tape` is empty before and after, and records afterwards.
 *
 * With the split's pairs at distance 1 (or NULL) the evidence of alarm.h is summed too. Its bound holds on any split
 * that the windows are drawn from, trained on or not, since a prediction from x0 alone cannot beat how often x1 follows
 * x0 in that very split. `stop` may be NULL. */
MG_API mg_status mg_evaluate(mg_gpt *gpt, mg_tape *tape, const mg_corpus *corpus, mg_split split, int n_batches,
                             ptrdiff_t batch_size, uint64_t seed, const mg_pairs *pairs, const mg_stop *stop,
                             mg_evaluation *evaluation, mg_error *error);
MG_API void mg_evaluation_free(mg_evaluation *evaluation);

/* ---- Not installed: between maskgrad's own files ---- */
/* `position,loss,floor`, one row per position; floor is empty where the source is unknown. MG_ERR_IO if `out` cannot be
 * written. */
mg_status mg_evaluation_print(const mg_evaluation *evaluation, FILE *out);
/* What an evaluation says about the run: NULL if it is plausible, else a sentence with the likely cause, in `text`. The
 * model reads its labels (evidence of MG_ALARM_EVIDENCE, or a loss below the floor); predicts another token than the
 * next; is scored against targets that its grammar cannot produce; or does worse than guessing. */
const char *mg_evaluation_alarm(const mg_evaluation *evaluation, const mg_gpt_config *config, char *text, size_t size);

#endif
