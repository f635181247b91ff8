#include "estimate.h"
#include "clock.h"
#include "hash.h"
#include "threads.h"
#include "trainer.h"

#include <string.h>

/* What runs of one kind share: the same work per step. */
typedef struct kind {
    uint64_t hash;
    double step, batch; /* seconds: of a step, and of evaluating one batch */
    double parameters;
    bool timed, impossible;
} kind;

/* Settings that change what is computed, and not how much. */
static bool costs_nothing(const mg_setting *setting) {
    static const char *const names[] = {"seed",      "lr",           "min-lr",        "warmup-iters",  "lr-decay-iters",
                                        "beta1",     "beta2",        "weight-decay",  "grad-clip",     "init-std",
                                        "max-iters", "name",         "attn-init-std", "eval-interval", "eval-iters",
                                        "on-alarm",  "log-interval", "save-interval"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(setting->name, names[i]) == 0) return true;
    return false;
}

static uint64_t kind_of(const mg_run_options *options) {
    uint64_t hash = MG_FNV_START;
    mg_setting_cursor at = {0};
    for (const mg_setting *s; (s = mg_setting_next(&at, mg_run_settings));) {
        char text[MG_SETTING_ROOM];
        if (costs_nothing(s)) continue;
        mg_setting_format(s, (const char *)options + at.base, text, sizeof text);
        hash = mg_fnv1a(hash, text, strlen(text) + 1);
    }
    return hash;
}

static mg_status time_trainer(kind *k, mg_trainer *trainer, const mg_stop *stop, mg_error *error) {
    mg_step step;
    mg_evaluation evaluation;
    k->step = 0;
    mg_status status = mg_trainer_step(trainer, &step, error); /* the first makes memory ready */
    for (int i = 0; i < MG_SWEEP_TIMED_STEPS && status == MG_OK; i++) {
        status = mg_trainer_step(trainer, &step, error);
        k->step += step.seconds / MG_SWEEP_TIMED_STEPS;
    }
    double begun = mg_seconds();
    if (status == MG_OK) status = mg_trainer_evaluate(&evaluation, trainer, MG_VALIDATION, 1, stop, error);
    if (status != MG_OK) return status;
    mg_evaluation_free(&evaluation);
    k->batch = mg_seconds() - begun;
    k->parameters = (double)mg_params_count(mg_gpt_params(mg_trainer_model(trainer)));
    k->timed = true;
    return MG_OK;
}

/* Only what is refused before the first step makes a kind impossible. Steps that fail, since this run's numbers
 * diverge, leave its time unknown: the next run of the kind is tried. */
static mg_status time_kind(kind *k, const mg_run_options *options, int threads, const mg_stop *stop, mg_error *error) {
    mg_corpus *corpus = NULL;
    mg_trainer *trainer = NULL;
    mg_set_threads(threads > 0 ? threads : options->threads);
    mg_status status = mg_corpus_load(&corpus, &options->data, error);
    if (status == MG_OK) status = mg_trainer_new(&trainer, &options->train, corpus, error);
    k->impossible = status != MG_OK;
    if (status == MG_OK) status = time_trainer(k, trainer, stop, error);
    mg_trainer_free(trainer);
    mg_corpus_free(corpus);
    mg_parallel_release();
    mg_set_threads(0);
    return status;
}

static void add_run(mg_sweep_estimate *e, const kind *k, const mg_run_options *o, int64_t steps_done) {
    enum { SPLITS = 2, LAST = 4 }; /* an evaluation is of both splits; the last one is of four times the batches */
    enum { ROW = 80, FLOATS = 3 }; /* bytes of a row in log.csv; a weight and its two moments */
    double steps = (double)(o->train.max_iters - steps_done), interval = (double)o->eval_interval;
    double evaluations = steps / interval + 2;
    e->seconds += steps * k->step + (evaluations * SPLITS + LAST) * o->eval_iters * k->batch;
    e->bytes += k->parameters * FLOATS * sizeof(float) + (double)o->train.max_iters * (1 + 1 / interval) * ROW;
    e->known++;
}

static kind *find(kind *kinds, int *n, uint64_t hash) {
    for (int i = 0; i < *n; i++)
        if (kinds[i].hash == hash) return &kinds[i];
    kinds[*n] = (kind){.hash = hash};
    return &kinds[(*n)++];
}

static void say_impossible(mg_sweep_estimate *e, const mg_error *reason) {
    if (!e->why[0]) snprintf(e->why, sizeof e->why, "%s", reason->message);
}

static mg_status estimate_run(mg_sweep_estimate *e, kind *k, const mg_run_options *options, int64_t steps, int threads,
                              bool may_time, const mg_stop *stop, mg_error *error) {
    mg_error reason;
    bool from_file = strcmp(options->init_from, "scratch") != 0;         /* its sizes are the file's */
    mg_status status = mg_train_options_check(&options->train, &reason); /* of this run, whatever its kind */
    if (status != MG_OK) {
        say_impossible(e, &reason);
        e->impossible++;
        return MG_OK;
    }
    if (!k->timed && !k->impossible && may_time && !from_file) {
        status = time_kind(k, options, threads, stop, &reason);
        if (status == MG_ERR_STOPPED) return mg_error_set(error, status, "%s", reason.message);
        if (k->impossible) say_impossible(e, &reason);
        e->kinds += k->timed;
    }
    if (k->timed) add_run(e, k, options, steps);
    e->impossible += k->impossible;
    return MG_OK;
}

mg_status mg_sweep_estimate_all(mg_sweep_estimate *estimate, const mg_sweep_plan *plan, int threads, double budget,
                                const mg_stop *stop, mg_error *error) {
    enum { MOST_KINDS = 256 };
    kind kinds[MOST_KINDS + 1];
    int n = 0;
    double begun = mg_seconds();
    *estimate = (mg_sweep_estimate){0};
    for (int run = 0; run < plan->n; run++) {
        mg_sweep_state state;
        int64_t steps;
        mg_run_options options = mg_sweep_options(plan, run);
        mg_status status = mg_sweep_look(plan, run, &state, &steps, error);
        if (status != MG_OK) return status;
        if (state == MG_SWEEP_FINISHED) continue;
        estimate->runs++;
        kind *k = find(kinds, &n, kind_of(&options));
        if (n > MOST_KINDS) n = MOST_KINDS; /* what does not fit is never timed */
        bool may_time = mg_seconds() - begun < budget && k < kinds + MOST_KINDS;
        status = estimate_run(estimate, k, &options, steps, threads, may_time, stop, error);
        if (status != MG_OK) return status;
    }
    return MG_OK;
}
