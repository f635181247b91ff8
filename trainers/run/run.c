#include "run.h"
#include "clock.h"
#include "hash.h"
#include "run_alarm.h"
#include "run_attention.h"

#include <inttypes.h>
#include <math.h>
#include <unistd.h>

void mg_run_free(mg_run *run) {
    mg_run_log_close(run->log);
    mg_trainer_free(run->trainer);
    mg_corpus_free(run->corpus);
    mg_run_dir_close(&run->dir);
}

/* ---- The log ---- */

static mg_status open_log(mg_run *run, mg_error *error) {
    if (run->saved_step < 0) return mg_run_log_create(&run->log, run->dir.log, error);
    char warning[512];
    mg_run_log_row last;
    mg_status status = mg_run_log_resume(&run->log, run->dir.log, run->first_step, &last, warning, sizeof warning,
                                         error);
    if (status != MG_OK) return status;
    if (warning[0] && run->watch.warned) run->watch.warned(run, warning, run->watch.user);
    run->seconds_before = last.step < 0 ? 0 : last.seconds;
    return MG_OK;
}

static mg_status open_attention(mg_run *run, mg_error *error) {
    run->logs_attention = run->options.log_attention || access(run->dir.attention, F_OK) == 0;
    return run->logs_attention ? mg_run_attention_resume(run->dir.attention, run->first_step, error) : MG_OK;
}

static double seconds_of(const mg_run *run) {
    return run->seconds_before + mg_seconds() - run->begun;
}

static mg_status log_step(mg_run *run, const mg_step *step, mg_error *error) {
    mg_run_log_row row = {
        .step = step->step,
        .loss = step->loss,
        .lr = step->lr,
        .grad_norm = step->grad_norm,
        .tokens = step->tokens,
        .seconds = seconds_of(run),
    };
    return mg_run_log_append(run->log, &row, error);
}

static mg_status log_evaluation(mg_run *run, int64_t step, double loss, mg_error *error) {
    mg_run_log_row row = {
        .step = step,
        .validation = true,
        .loss = loss,
        .lr = mg_lr_at(&run->options.train.schedule, step),
        .grad_norm = NAN,
        .tokens = mg_trainer_checkpoint(run->trainer).train.tokens,
        .seconds = seconds_of(run),
    };
    return mg_run_log_append(run->log, &row, error);
}

/* ---- What happens between two steps ---- */

static const mg_stop *stop_of(const mg_run *run) {
    return run->watch.stop.asked ? &run->watch.stop : NULL;
}

static bool asked_to_stop(const mg_run *run) {
    return run->watch.stop.asked && run->watch.stop.asked(run->watch.stop.user);
}

static mg_status loss_on(mg_run *run, mg_split split, double *loss, mg_error *error) {
    mg_evaluation evaluation;
    mg_status status = mg_trainer_evaluate(&evaluation, run->trainer, split, run->options.eval_iters, stop_of(run),
                                           error);
    if (status != MG_OK) return status;
    *loss = evaluation.loss;
    mg_evaluation_free(&evaluation);
    return MG_OK;
}

static mg_status log_attention(mg_run *run, int64_t step, mg_error *error) {
    if (!run->logs_attention) return MG_OK;
    return mg_run_attention_log(run->dir.attention, mg_trainer_model(run->trainer), run->corpus,
                                run->options.train.seed, step, stop_of(run), error);
}

/* A loss that is no number says at which step. */
static mg_status name_the_step(int64_t step, mg_status status, mg_error *error) {
    if (status != MG_ERR_STATE) return status;
    mg_error inner = *error;
    return mg_error_set(error, status, "step %" PRId64 ": %s", step, inner.message);
}

static mg_status evaluate(mg_run *run, int64_t step, mg_error *error) {
    double train_loss, validation_loss;
    const mg_run_watch *watch = &run->watch;
    if (watch->evaluating) watch->evaluating(run, step, watch->user);
    mg_status status = loss_on(run, MG_TRAIN, &train_loss, error);
    if (status == MG_OK) status = loss_on(run, MG_VALIDATION, &validation_loss, error);
    if (status == MG_OK) status = log_attention(run, step, error);
    if (status != MG_OK) return name_the_step(step, status, error);
    mg_trainer_note_loss(run->trainer, validation_loss);
    if (watch->evaluated) watch->evaluated(run, step, train_loss, validation_loss, watch->user);
    return log_evaluation(run, step, validation_loss, error);
}

/* The samples of the end are drawn by mg_run_finish. */
static mg_status sample(mg_run *run, int64_t step, mg_error *error) {
    mg_grammar_score score;
    if (run->watch.sampling) run->watch.sampling(run, step, run->watch.user);
    return name_the_step(step, mg_run_write_samples(run, &score, error), error);
}

/* Whether something that is done every `interval` steps is due; 0: never. */
static bool is_due(const mg_run *run, int64_t step, int64_t interval) {
    return interval > 0 && step > run->first_step && step % interval == 0;
}

/* The log first: a checkpoint is never beside a log without its steps. */
static mg_status save(mg_run *run, int64_t step, mg_error *error) {
    if (run->saved_step == step) return MG_OK;
    mg_status status = mg_run_log_sync(run->log, error);
    mg_checkpoint checkpoint = mg_trainer_checkpoint(run->trainer);
    if (status == MG_OK) status = mg_checkpoint_save(run->dir.checkpoint, &checkpoint, error);
    if (status == MG_OK) run->saved_step = step;
    return status;
}

/* *stop: whether a stop was asked for, before or during the evaluation. */
static mg_status between_steps(mg_run *run, int64_t step, bool *stop, mg_error *error) {
    bool end = step >= run->options.train.max_iters;
    mg_status status = MG_OK;
    if (!*stop && (end || step % run->options.eval_interval == 0)) status = evaluate(run, step, error);
    if (status == MG_ERR_STOPPED) {
        *stop = true;
        status = MG_OK;
    }
    if (status == MG_OK && !*stop && !end && is_due(run, step, run->options.sample_interval))
        status = sample(run, step, error);
    bool due = is_due(run, step, run->options.save_interval);
    if (status == MG_OK && (end || *stop || due)) status = save(run, step, error);
    return status;
}

/* A run that was accused before it was interrupted is not accused again. */
static mg_status set_alarm(mg_run *run, mg_error *error) {
    bool was_raised = mg_run_alarm_resume(run->dir.alarms, run->first_step);
    if (was_raised || run->options.on_alarm == MG_ALARM_OFF) return MG_OK;
    return mg_trainer_set_alarm(run->trainer, error);
}

/* A run that the alarm stops is saved first, so it can be inspected and resumed. */
static mg_status raise_alarm(mg_run *run, mg_error *error) {
    mg_alarm_reading reading = mg_alarm_read(mg_trainer_alarm(run->trainer));
    mg_status status = mg_run_alarm_write(run->dir.alarms, &reading, error);
    if (run->watch.alarmed) run->watch.alarmed(run, &reading, run->watch.user);
    if (status != MG_OK || run->options.on_alarm != MG_ALARM_STOP) return status;
    status = save(run, mg_trainer_steps_done(run->trainer), error);
    if (status != MG_OK) return status;
    return mg_error_set(error, MG_ERR_STATE, "the alarm at step %" PRId64 " ends the run, because --on-alarm is stop",
                        reading.raised_at);
}

static mg_status note_step(mg_run *run, const mg_step *step, mg_error *error) {
    if (run->watch.stepped) run->watch.stepped(run, step, run->watch.user);
    mg_status status = log_step(run, step, error);
    return status == MG_OK && step->alarm ? raise_alarm(run, error) : status;
}

/* ---- Several ranks ---- */

/* What rank 0 tells the others before each step. */
typedef struct order {
    bool go;    /* make a step; else the run is over */
    bool alarm; /* with an alarm set */
    bool check; /* it is over in good order: all have the same weights */
} order;

static mg_status give(mg_run *run, order o, mg_error *error) {
    return mg_ranks_are_many(run->ranks) ? mg_ranks_broadcast(run->ranks, &o, sizeof o, error) : MG_OK;
}

mg_status mg_run_check_weights(mg_run *run, mg_error *error) {
    const mg_params *params = mg_gpt_params(mg_trainer_model(run->trainer));
    if (!mg_ranks_are_many(run->ranks)) return MG_OK;
    uint64_t hash = mg_fnv1a(MG_FNV_START, params->values, (size_t)params->size * sizeof *params->values);
    return mg_ranks_same(run->ranks, hash, "weights", error);
}

mg_status mg_run_follow(mg_run *run, mg_error *error) {
    for (;;) {
        bool stop;
        order o;
        mg_step step;
        mg_status status = mg_ranks_any(run->ranks, asked_to_stop(run), &stop, error);
        if (status == MG_OK) status = mg_ranks_broadcast(run->ranks, &o, sizeof o, error);
        if (status == MG_OK && o.check) status = mg_run_check_weights(run, error);
        if (status != MG_OK || !o.go) return status;
        if (o.alarm && !mg_trainer_alarm(run->trainer)) status = mg_trainer_set_alarm(run->trainer, error);
        if (status == MG_OK) status = mg_trainer_step(run->trainer, &step, error);
        if (status != MG_OK) return status;
    }
}

/* ---- All of it ---- */

static mg_status write_run_json(mg_run *run, mg_error *error) {
    const mg_params *params = mg_gpt_params(mg_trainer_model(run->trainer));
    mg_run_facts facts = {
        .data_hash = run->corpus->hash,
        .data_name = run->corpus->name,
        .vocab_size = mg_trainer_options(run->trainer)->model.vocab_size,
        .n_parameters = mg_params_count(params),
        .n_tokens = run->corpus->n,
        .n_train = run->corpus->n_train,
        .tokenizer = mg_tokenizer_kind_name(mg_tokenizer_get_kind(run->corpus->tokenizer)),
        .characters_per_token = mg_corpus_characters_per_token(run->corpus, MG_VALIDATION),
        .before = run->before,
        .ranks = mg_ranks_are_many(run->ranks) ? run->ranks->count : 1,
        .step = run->first_step,
    };
    return mg_run_json_write(run->dir.run_json, &run->options, &facts, error);
}

static mg_status begin(mg_run *run, mg_error *error) {
    run->first_step = mg_trainer_steps_done(run->trainer);
    run->begun = mg_seconds();
    mg_status status = open_log(run, error);
    if (status == MG_OK) status = open_attention(run, error);
    if (status == MG_OK && run->starts_from_file) status = save(run, 0, error);
    if (status == MG_OK) status = write_run_json(run, error);
    return status == MG_OK ? set_alarm(run, error) : status;
}

/* A failure of this rank's own ends the run of all: it is given as the order to end, at the time for one. */
mg_status mg_run_train(mg_run *run, bool *stopped, mg_error *error) {
    const mg_train_options *o = mg_trainer_options(run->trainer);
    mg_status status = begin(run, error);
    *stopped = false;
    for (;;) {
        int64_t step = mg_trainer_steps_done(run->trainer);
        mg_status sent = mg_ranks_any(run->ranks, asked_to_stop(run), stopped, error);
        if (sent != MG_OK) return sent;
        if (status == MG_OK) status = between_steps(run, step, stopped, error);
        order next = {.go = status == MG_OK && !*stopped && step < o->max_iters,
                      .alarm = mg_trainer_alarm(run->trainer) != NULL,
                      .check = status == MG_OK && (*stopped || step >= o->max_iters)};
        mg_error held = *error;
        sent = give(run, next, error);
        if (sent == MG_OK && next.check) sent = mg_run_check_weights(run, error);
        if (status != MG_OK) *error = held;
        if (!next.go || sent != MG_OK) return status == MG_OK ? sent : status;
        mg_step done;
        status = mg_trainer_step(run->trainer, &done, error);
        if (status != MG_OK) return status; /* the same on all ranks */
        status = note_step(run, &done, error);
    }
}
