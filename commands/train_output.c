/* What `train` prints. */
#include "train_output.h"
#include "clock.h"
#include "gemm.h"
#include "interrupt.h"
#include "language.h"
#include "parallel.h"
#include "printable.h"
#include "repetition.h"
#include "say.h"
#include "text_printer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- Before the first step ---- */

static void warn_about_schedule(const mg_run *run) {
    const mg_train_options *o = mg_trainer_options(run->trainer);
    const mg_lr_schedule *s = &o->schedule;
    int64_t done = mg_trainer_steps_done(run->trainer);
    if (done == o->max_iters) return;
    if (s->warmup_iters >= o->max_iters)
        mg_say("train", "the learning rate never reaches --lr %g: --warmup-iters is %" PRId64 ", and the run has %s",
               s->lr, s->warmup_iters, mg_count(o->max_iters, "step").text);
    else if (s->min_lr == s->lr || s->decay_iters >= o->max_iters)
        return;
    else if (s->decay_iters <= s->warmup_iters)
        mg_say("train",
               "the learning rate drops to --min-lr %g right after the warm-up: --lr-decay-iters %" PRId64
               " is not above --warmup-iters %" PRId64,
               s->min_lr, s->decay_iters, s->warmup_iters);
    else if (done >= s->decay_iters)
        mg_say("train",
               "all %s from here run at --min-lr %g: --lr-decay-iters is %" PRId64
               ", and a resumed run cannot change it",
               mg_count(o->max_iters - done, "step").text, s->min_lr, s->decay_iters);
    else
        mg_say("train",
               "from step %" PRId64
               " on, the learning rate stays at --min-lr %g: --lr-decay-iters is below --max-iters %" PRId64,
               s->decay_iters, s->min_lr, o->max_iters);
}

/* Whether each of T queries sees the same under both. */
static bool is_same_mask(mg_mask a, mg_mask b, int T) {
    for (int i = 0; i < T; i++) {
        mg_interval one = mg_visible(a, i, T), other = mg_visible(b, i, T);
        if (one.first != other.first || one.end != other.end) return false;
    }
    return true;
}

/* Within a short context, a mask with a number may be one that has a name. */
static void warn_about_mask(const mg_gpt_config *config) {
    mg_mask mask = config->mask, causal = mg_lookahead(0), none = mg_lookahead(MG_LOOKAHEAD_ALL);
    if (mask.kind == MG_MASK_LOOKAHEAD && (mask.n == causal.n || mask.n == none.n)) return;
    bool is_causal = is_same_mask(mask, causal, config->block_size);
    if (!is_causal && !is_same_mask(mask, none, config->block_size)) return;
    char words[128];
    mg_gpt_config without_leak = *config;
    without_leak.leak_layer = -1;
    mg_mask_words(&without_leak, words, sizeof words);
    mg_say("train", "mask %s is the same as %s here: --block-size is %d", words, is_causal ? "causal" : "none",
           config->block_size);
}

void mg_train_announce(const mg_run *run) {
    const mg_train_options *o = mg_trainer_options(run->trainer);
    char mask[128];
    mg_mask_words(&o->model, mask, sizeof mask);
    char text[1024];
    char ranks[32] = "";
    if (mg_ranks_are_many(run->ranks)) snprintf(ranks, sizeof ranks, "%d ranks of ", run->ranks->count);
    snprintf(text, sizeof text, "%td tokens, vocabulary %d; model: %td parameters, mask %s; seed %" PRIu64 ", %s%s, %s",
             run->corpus->n, o->model.vocab_size, mg_params_count(mg_gpt_params(mg_trainer_model(run->trainer))), mask,
             o->seed, ranks, mg_count(mg_threads(), "thread").text, mg_blas_name());
    char name[1100];
    snprintf(name, sizeof name, "%s: ", mg_shown(run->corpus->name).text);
    mg_print_record(stderr, name, "    ", text);
    if (run->corpus->warning[0]) mg_say("train", "%s", mg_shown(run->corpus->warning).text);
    if (o->model.documents)
        mg_say("train", "a document is %s", mg_corpus_document_words(run->corpus, o->model.document_end));
    warn_about_mask(&o->model);
    warn_about_schedule(run);
    double share;
    if (mg_corpus_repetition(run->corpus, &share, NULL) == MG_OK && mg_repetition_say(share, text, sizeof text))
        mg_say("train", "%s", text);
}

/* ---- While it trains ---- */

static void show_warning(const mg_run *run, const char *sentence, void *progress) {
    (void)run;
    (void)progress;
    mg_say("train", "%s", mg_shown(sentence).text);
}

static void show_step(const mg_run *run, const mg_step *step, void *progress) {
    if (step->step % run->options.log_interval == 0) {
        mg_progress_clear(progress);
        printf("iter %" PRId64 ": loss %.4f, time %.2fms\n", step->step, step->loss, 1000 * step->seconds);
        fflush(stdout);
    }
    mg_progress_step(progress, step->step + 1, step->loss);
}

static void show_alarm(const mg_run *run, const mg_alarm_reading *reading, void *progress) {
    char text[1024];
    mg_progress_clear(progress);
    mg_say("train", "alarm at step %" PRId64 ": %s", reading->raised_at,
           mg_alarm_say(reading, &mg_trainer_options(run->trainer)->model, text, sizeof text));
}

static void show_evaluating(const mg_run *run, int64_t step, void *progress) {
    (void)run;
    mg_progress_say(progress, step, "evaluating");
}

static void show_evaluation(const mg_run *run, int64_t step, double train_loss, double validation_loss,
                            void *progress) {
    mg_progress_clear(progress);
    printf("step %" PRId64 ": train loss %.4f, val loss %.4f, means over %s\n", step, train_loss, validation_loss,
           mg_count_in_english(run->options.eval_iters * run->options.train.batch_size, "window").text);
    fflush(stdout);
}

static void show_sampling(const mg_run *run, int64_t step, void *progress) {
    (void)run;
    mg_progress_say(progress, step, "sampling");
}

/* Those of the end are only written: the summary says where. */
static void show_sample(const mg_run *run, int64_t step, const int *ids, ptrdiff_t n, void *progress) {
    if (step >= run->options.train.max_iters) return;
    mg_progress_clear(progress);
    printf("step %" PRId64 ": sample\n", step);
    mg_text_printer printer = mg_text_printer_begin(stdout, run->corpus->tokenizer, false);
    for (ptrdiff_t i = 0; i < n && mg_text_printer_token(ids[i], &printer);) i++;
    mg_text_printer_end(&printer);
    printf("---------------\n");
    fflush(stdout);
}

mg_run_watch mg_train_watch(mg_progress *progress) {
    return (mg_run_watch){.stop = mg_interrupt_stop(),
                          .warned = show_warning,
                          .stepped = show_step,
                          .alarmed = show_alarm,
                          .evaluating = show_evaluating,
                          .evaluated = show_evaluation,
                          .sampling = show_sampling,
                          .sampled = show_sample,
                          .user = progress};
}

/* ---- At the end ---- */

int64_t mg_train_tokens_per_step(const mg_run *run) {
    const mg_train_options *o = mg_trainer_options(run->trainer);
    return (int64_t)o->batch_size * o->grad_accum * o->model.block_size;
}

static void print_loss(const mg_evaluation *e) {
    printf("val loss %.4f, mean over %s\n", e->loss, mg_count_in_english(e->n_windows, "window").text);
    if (!isfinite(e->floor)) return;
    double gap = e->loss - e->floor;
    mg_tell("    ", "%.4f %s the floor of %.4f, the best possible without seeing the future", fabs(gap),
            gap < 0 ? "below" : "above", e->floor);
}

static void print_summary(const mg_run *run, const mg_evaluation *e, const mg_grammar_score *score) {
    const mg_run_dir *dir = &run->dir;
    int64_t steps = mg_trainer_steps_done(run->trainer);
    double seconds = mg_seconds() - run->begun;
    printf("\n%s", mg_count(steps, "step").text);
    if (steps > run->first_step)
        mg_printf(", %.0f tokens/s including evaluation and saving",
                  (double)((steps - run->first_step) * mg_train_tokens_per_step(run)) / seconds);
    putchar('\n');
    if (mg_ranks_are_many(run->ranks))
        printf("%.1f%% of the time in communication, waiting for other ranks included\n",
               100 * run->ranks->seconds / seconds);
    print_loss(e);
    if (run->corpus->grammar)
        mg_printf("unprompted, it wrote %s, %d of them grammatical\n", mg_count(score->sentences, "sentence").text,
                  score->grammatical);
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0) mg_printf("peak memory %.1f MB\n", (double)usage.ru_maxrss / 1024);
    mg_printf("settings   %s\nlog        %s\npositions  %s\ncheckpoint %s\nsamples    %s\n",
              mg_shown(dir->run_json).text, mg_shown(dir->log).text, mg_shown(dir->position).text,
              mg_shown(dir->checkpoint).text, mg_shown(dir->samples).text);
    if (run->logs_attention) mg_printf("attention  %s\n", mg_shown(dir->attention).text);
    if (access(dir->alarms, F_OK) == 0) mg_printf("alarm      %s\n", mg_shown(dir->alarms).text);
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
    if (mg_evaluation_alarm(e, config, alarm, sizeof alarm)) mg_say("train", "alarm: %s", alarm);
}

void mg_train_summarize(const mg_run *run, const mg_evaluation *evaluation, const mg_grammar_score *score) {
    print_summary(run, evaluation, score);
    fflush(stdout);
    warn(run, evaluation);
}
