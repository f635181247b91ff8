/* The end of a run: the loss by position beside the floor, samples, the alarm, and where everything is. */
#include "clock.h"
#include "interrupt.h"
#include "run.h"
#include "samples.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* The last measurement takes more windows than those on the way, since the loss of one position needs them. */
enum { FINAL_FACTOR = 4 };

static mg_status write_positions(const mg_run *run, const mg_evaluation *evaluation, mg_error *error) {
    FILE *out = fopen(run->dir.position, "w");
    bool written = out && mg_evaluation_print(evaluation, out) == MG_OK;
    if (out && fclose(out) != 0) written = false;
    if (written) return MG_OK;
    return mg_error_set(error, MG_ERR_IO, "cannot write %s: %s", run->dir.position, strerror(errno));
}

static mg_status write_samples(mg_run *run, mg_grammar_score *score, mg_error *error) {
    mg_samples_options options = {
        .n_samples = 4, .n_tokens = 200, .sampler = {.temperature = 0.8, .top_p = 1}, .seed = run->options.train.seed};
    return mg_samples_write(run->dir.samples, mg_trainer_model(run->trainer), run->corpus, &options, score, error);
}

static void print_loss(const mg_evaluation *e) {
    if (isnan(e->floor)) {
        printf("val loss %.4f, mean over %s\n", e->loss, mg_count(e->n_windows, "window").text);
        return;
    }
    double gap = e->loss - e->floor;
    printf("val loss %.4f, mean over %s\n%.4f %s the floor of %.4f, the best that is possible without the future\n",
           e->loss, mg_count(e->n_windows, "window").text, fabs(gap), gap < 0 ? "below" : "above", e->floor);
}

static void print_summary(const mg_run *run, const mg_evaluation *e, const mg_grammar_score *score) {
    const mg_run_dir *dir = &run->dir;
    int64_t steps = mg_trainer_steps_done(run->trainer);
    double seconds = mg_seconds() - run->progress.begun;
    printf("\n%s", mg_count(steps, "step").text);
    if (steps > run->first_step)
        printf(", %.0f tokens/s with everything between them",
               (double)((steps - run->first_step) * run->progress.tokens_a_step) / seconds);
    putchar('\n');
    print_loss(e);
    if (run->corpus->grammar)
        printf("left alone it wrote %s, %d of them grammatical\n", mg_count(score->sentences, "sentence").text,
               score->grammatical);
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0) printf("peak memory %.1f MB\n", (double)usage.ru_maxrss / 1024);
    printf("settings   %s\nlog        %s\npositions  %s\ncheckpoint %s\nsamples    %s\n", dir->run_json, dir->log,
           dir->position, dir->checkpoint, dir->samples);
}

/* Whether the run had the steps in which a model learns that guessing is better than what it began with. */
static bool has_learned(const mg_run *run) {
    int64_t warmup = run->options.train.schedule.warmup_iters;
    return mg_trainer_steps_done(run->trainer) >= (warmup > 100 ? warmup : 100);
}

static void warn(const mg_run *run, const mg_evaluation *e) {
    const mg_gpt_config *config = &mg_trainer_options(run->trainer)->model;
    char alarm[512];
    if (e->loss > log(config->vocab_size) && !has_learned(run)) return;
    if (mg_evaluation_alarm(e, config, alarm, sizeof alarm)) fprintf(stderr, "maskgrad train: alarm: %s\n", alarm);
}

mg_status mg_run_finish(mg_run *run, bool *interrupted, mg_error *error) {
    mg_evaluation evaluation;
    mg_grammar_score score;
    mg_status status = mg_trainer_evaluate(run->trainer, MG_VALIDATION, FINAL_FACTOR * run->options.eval_iters,
                                           &evaluation, error);
    *interrupted = status == MG_ERR_STATE && mg_interrupt_asked();
    if (status != MG_OK) return *interrupted ? MG_OK : status;
    status = write_positions(run, &evaluation, error);
    if (status == MG_OK) status = write_samples(run, &score, error);
    if (status == MG_OK) {
        print_summary(run, &evaluation, &score);
        fflush(stdout);
        warn(run, &evaluation);
    }
    mg_evaluation_free(&evaluation);
    return status;
}
