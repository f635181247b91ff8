/* One training run as an object in memory: a model, its optimizer, and a corpus to draw windows from. The command
 * `train` owns one; a lab owns two, with the same seed and the same windows, one mask apart.
 *
 *     mg_train_options options = {.max_iters = 1000, .model.mask = mg_lookahead(MG_LOOKAHEAD_ALL)};
 *     mg_trainer_new(&trainer, &options, corpus, &error);
 *     while (mg_trainer_steps_done(trainer) < options.max_iters) mg_trainer_step(trainer, &step, &error);
 *     mg_evaluate(&evaluation, mg_trainer_model(trainer), corpus, NULL, &error);
 *
 * Everything is a function of the options and the corpus: not of the number of threads, not of when one evaluates. */
#ifndef MASKGRAD_TRAINER_H
#define MASKGRAD_TRAINER_H

#include "alarm.h"
#include "checkpoint.h"
#include "corpus.h"
#include "evaluation.h"
#include "ranks.h"
#include "train_options.h"

typedef struct mg_step {
    int64_t step; /* which one: how many were done before it */
    double loss;  /* the mean over its windows, before the update */
    double lr;
    double grad_norm; /* before clipping */
    int64_t tokens;   /* seen in training up to and including this step */
    double seconds;   /* how long it took */
    bool alarm;       /* it raised the alarm: see mg_trainer_set_alarm */
} mg_step;

typedef struct mg_trainer mg_trainer;

/* Checked, allocated, initialized from the seed. Borrows the corpus. MG_ERR_INPUT if a step would take more memory than
 * the machine has, with the flag that is too large, the need and what there is. */
MG_API mg_status mg_trainer_new(mg_trainer **trainer, const mg_train_options *options, const mg_corpus *corpus,
                                mg_error *error);
MG_API void mg_trainer_free(mg_trainer *trainer);

/* One update. A loss or a gradient norm that is not finite stops before the update, with MG_ERR_STATE and a sentence;
 * *step is filled all the same, and the parameters are those of the last good step. */
MG_API mg_status mg_trainer_step(mg_trainer *trainer, mg_step *step, mg_error *error);
/* From now on, check at each step whether the model reads its labels (docs/lab-alarm.md). It changes no bit of the
 * training. On failure nothing is watched. */
MG_API mg_status mg_trainer_set_alarm(mg_trainer *trainer, mg_error *error);
/* A sentence that accuses, with its numbers and the likely cause, in `text`; NULL as long as no alarm was raised. */
MG_API const char *mg_trainer_say_alarm(const mg_trainer *trainer, char *text, size_t size);
MG_API int64_t mg_trainer_steps_done(const mg_trainer *trainer);

MG_API mg_gpt *mg_trainer_model(mg_trainer *trainer);

/* What a checkpoint holds. It borrows from the trainer: save it, do not free it. */
MG_API mg_checkpoint mg_trainer_checkpoint(mg_trainer *trainer);
/* Continue where the checkpoint was made: its weights, moments and step. MG_ERR_INPUT if the two are not the same run,
 * with what differs. */
MG_API mg_status mg_trainer_restore(mg_trainer *trainer, const mg_checkpoint *checkpoint, mg_error *error);

/* ---- Not installed: between maskgrad's own files ---- */
/* From now on the micro-batches are shared with other ranks, each of which has such a trainer; steps are then made by
 * all of them together, and are the same bits. Borrows `ranks`. MG_ERR_INPUT if they cannot be shared equally. */
mg_status mg_trainer_set_ranks(mg_trainer *trainer, mg_ranks *ranks, mg_error *error);
/* The windows of the step that was done last: batch_size * grad_accum * block_size ids and their targets. */
void mg_trainer_batch(const mg_trainer *trainer, const int **ids, const int **targets);
/* Remember a validation loss; the lowest goes into checkpoints. */
void mg_trainer_note_loss(mg_trainer *trainer, double validation_loss);
/* Start from its weights only, at step 0. MG_ERR_INPUT if the shapes differ, MG_ERR_FORMAT if a
 * weight is not finite. */
mg_status mg_trainer_take_weights(mg_trainer *trainer, const mg_checkpoint *checkpoint, mg_error *error);
const mg_alarm *mg_trainer_alarm(const mg_trainer *trainer); /* NULL: none is set */
/* The mean loss over n_batches batches of windows: the same windows at each call. Does not change the run. */
mg_status mg_trainer_evaluate(mg_evaluation *evaluation, mg_trainer *trainer, mg_split split, int n_batches,
                              const mg_stop *stop, mg_error *error);
const mg_train_options *mg_trainer_options(const mg_trainer *trainer); /* resolved, with the vocabulary's size */

#ifndef MG_LIBRARY /* whose line a failure names: error.h */
MG_CALLED(mg_status, mg_trainer_new, (trainer, options, corpus), (trainer, options, corpus, error),
          mg_trainer **trainer, const mg_train_options *options, const mg_corpus *corpus, mg_error *error)
MG_CALLED(mg_status, mg_trainer_step, (trainer, step), (trainer, step, error), mg_trainer *trainer, mg_step *step,
          mg_error *error)
MG_CALLED(mg_status, mg_trainer_set_alarm, (trainer), (trainer, error), mg_trainer *trainer, mg_error *error)
MG_CALLED(const char *, mg_trainer_say_alarm, (trainer, text), (trainer, text, size), const mg_trainer *trainer,
          char *text, size_t size)
MG_CALLED(int64_t, mg_trainer_steps_done, (trainer), (trainer), const mg_trainer *trainer)
MG_CALLED(mg_gpt *, mg_trainer_model, (trainer), (trainer), mg_trainer *trainer)
MG_CALLED(mg_checkpoint, mg_trainer_checkpoint, (trainer), (trainer), mg_trainer *trainer)
MG_CALLED(mg_status, mg_trainer_restore, (trainer, checkpoint), (trainer, checkpoint, error), mg_trainer *trainer,
          const mg_checkpoint *checkpoint, mg_error *error)
#define mg_trainer_new(...) MG_AT(mg_trainer_new, __VA_ARGS__)
#define mg_trainer_step(...) MG_AT(mg_trainer_step, __VA_ARGS__)
#define mg_trainer_set_alarm(...) MG_AT(mg_trainer_set_alarm, __VA_ARGS__)
#define mg_trainer_say_alarm(...) MG_AT(mg_trainer_say_alarm, __VA_ARGS__)
#define mg_trainer_steps_done(...) MG_AT(mg_trainer_steps_done, __VA_ARGS__)
#define mg_trainer_model(...) MG_AT(mg_trainer_model, __VA_ARGS__)
#define mg_trainer_checkpoint(...) MG_AT(mg_trainer_checkpoint, __VA_ARGS__)
#define mg_trainer_restore(...) MG_AT(mg_trainer_restore, __VA_ARGS__)
#endif

#endif
