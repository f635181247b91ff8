#include "evaluation.h"
#include "alarm.h"
#include "arithmetic.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct workspace {
    int *ids, *targets; /* (B,T) */
    mg_real *row_loss;  /* (B,T) */
    double *best;       /* (T): the Bayes-optimal predictor's */
} workspace;

static void free_workspace(workspace *w) {
    mg_free(w->ids);
    mg_free(w->targets);
    mg_free(w->row_loss);
    mg_free(w->best);
}

static mg_status make_workspace(workspace *w, ptrdiff_t B, ptrdiff_t T, mg_error *error) {
    size_t n = (size_t)B * (size_t)T;
    *w = (workspace){
        .ids = mg_alloc(n, sizeof(int), "the ids of a batch", error),
        .targets = mg_alloc(n, sizeof(int), "the targets of a batch", error),
        .row_loss = mg_alloc(n, sizeof(mg_real), "the losses of a batch", error),
        .best = mg_alloc((size_t)T, sizeof(double), "the best losses of a window", error),
    };
    if (w->ids && w->targets && w->row_loss && w->best) return MG_OK;
    free_workspace(w);
    return MG_ERR_MEMORY;
}

/* What the sums over windows need for the mean and the standard error of the gap to the floor. */
typedef struct gap_sums {
    double gap, gap_squared;
} gap_sums;

static void add_window(mg_evaluation *e, const mg_corpus *corpus, const mg_pairs *pairs, workspace *w, ptrdiff_t row,
                       gap_sums *sums) {
    ptrdiff_t T = e->n_positions;
    const mg_real *loss = w->row_loss + row * T;
    if (pairs) e->evidence += mg_alarm_gain(pairs, T, w->ids + row * T, w->targets + row * T, (double)loss[0]);
    for (ptrdiff_t t = 0; t < T; t++) e->position_loss[t] += (double)loss[t];
    if (!corpus->grammar) return;
    mg_grammar_bayes_loss(corpus->grammar, w->ids + row * T, w->targets + row * T, T, w->best);
    double gap = 0;
    for (ptrdiff_t t = 0; t < T; t++) {
        double at = (double)loss[t] - w->best[t];
        e->position_floor[t] += w->best[t];
        e->position_gap_error[t] += at * at; /* a sum of squares until finish() */
        gap += at;
    }
    gap /= (double)T;
    sums->gap += gap;
    sums->gap_squared += gap * gap;
}

static double mean_of(double *values, ptrdiff_t n, ptrdiff_t count) {
    double sum = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        values[i] /= (double)count;
        sum += values[i];
    }
    return sum / (double)n;
}

/* The standard error of a mean of n numbers. */
static double error_of_mean(double mean, double mean_of_squares, double n) {
    return sqrt(fmax(0, mean_of_squares - mean * mean) / fmax(1, n - 1));
}

static void finish(mg_evaluation *e, gap_sums sums) {
    e->loss = mean_of(e->position_loss, e->n_positions, e->n_windows);
    e->floor = e->gap_error = NAN;
    if (!e->position_floor) return;
    e->floor = mean_of(e->position_floor, e->n_positions, e->n_windows);
    double n = (double)e->n_windows;
    e->gap_error = error_of_mean(sums.gap / n, sums.gap_squared / n, n);
    for (ptrdiff_t t = 0; t < e->n_positions; t++)
        e->position_gap_error[t] = error_of_mean(e->position_loss[t] - e->position_floor[t],
                                                 e->position_gap_error[t] / n, n);
}

/* NaN says nothing about how well a model predicts, and every comparison with it is false. */
static mg_status check_finite(const mg_evaluation *e, mg_gpt *gpt, mg_error *error) {
    if (isfinite(e->loss)) return MG_OK;
    const char *what = isnan(e->loss) ? "not a number" : "infinite";
    const mg_param *culprit = mg_params_find_not_finite(mg_gpt_params(gpt));
    if (culprit)
        return mg_error_set(
            error, MG_ERR_STATE,
            "the loss is %s, since the model's '%s' holds NaN or infinity: nothing can be measured on it", what,
            culprit->name);
    return mg_error_set(error, MG_ERR_STATE, "the loss is %s: the model's weights are too large to compute with", what);
}

/* How many windows go through the model at once. A pass holds some 18 numbers per token, layer and unit of width, and 3
 * per token and word: with GPT-2's vocabulary a whole batch would take many times the memory of the model. */
static ptrdiff_t windows_at_once(const mg_gpt_config *c, ptrdiff_t B) {
    enum { BYTES = 1 << 28 };
    ptrdiff_t token = 18 * (ptrdiff_t)c->n_layer * c->n_embd + 3 * (ptrdiff_t)c->vocab_size;
    ptrdiff_t n = BYTES / ((ptrdiff_t)sizeof(mg_real) * token * c->block_size);
    return n < 1 ? 1 : n < B ? n : B;
}

/* The losses of all windows of a batch. */
static void forward_batch(mg_gpt *gpt, mg_tape *tape, workspace *w, ptrdiff_t B, ptrdiff_t T) {
    ptrdiff_t most = windows_at_once(mg_gpt_get_config(gpt), B);
    for (ptrdiff_t row = 0; row < B; row += most) {
        ptrdiff_t n = B - row < most ? B - row : most, at = row * T;
        mg_gpt_loss(gpt, tape, w->ids + at, w->targets + at, n, T, NULL, w->row_loss + at);
        mg_tape_reset(tape);
    }
}

/* The mean loss of a batch's predictions against the token `ahead` places after each input, where it is in the window;
 * NaN if it never is. */
static double loss_ahead(mg_gpt *gpt, mg_tape *tape, workspace *w, ptrdiff_t B, ptrdiff_t T, int ahead) {
    double sum = 0, n = 0;
    for (ptrdiff_t b = 0; b < B; b++)
        for (ptrdiff_t t = 0; t < T; t++) {
            ptrdiff_t there = t + ahead;
            w->targets[b * T + t] = there < T ? w->ids[b * T + there] : -1;
        }
    forward_batch(gpt, tape, w, B, T);
    for (ptrdiff_t i = 0; i < B * T; i++) {
        if (w->targets[i] < 0) continue;
        sum += (double)w->row_loss[i];
        n++;
    }
    return sum / n;
}

/* A model that does worse than a table of pairs may predict another token than the next one. */
static void find_shift(mg_evaluation *e, mg_gpt *gpt, mg_tape *tape, workspace *w, ptrdiff_t B, ptrdiff_t T) {
    enum { FURTHEST = 3 };
    e->shift_loss = NAN;
    for (int ahead = 0; ahead <= FURTHEST; ahead++) {
        double loss = loss_ahead(gpt, tape, w, B, T, ahead);
        if (ahead == 1 || !(loss < 0.8 * e->loss) || e->shift_loss <= loss) continue;
        e->shift = ahead;
        e->shift_loss = loss;
    }
}

/* The results' arrays; nothing is kept on failure. */
static mg_status make_results(mg_evaluation *e, ptrdiff_t T, bool has_floor, mg_error *error) {
    e->position_loss = mg_alloc_zero((size_t)T, sizeof(double), "the losses by position", error);
    if (has_floor) {
        e->position_floor = mg_alloc_zero((size_t)T, sizeof(double), "the floor by position", error);
        e->position_gap_error = mg_alloc_zero((size_t)T, sizeof(double), "the gap by position", error);
    }
    if (e->position_loss && (!has_floor || (e->position_floor && e->position_gap_error))) return MG_OK;
    mg_evaluation_free(e);
    return MG_ERR_MEMORY;
}

static mg_status measure(mg_evaluation *e, mg_gpt *gpt, mg_tape *tape, const mg_corpus *corpus, const mg_pairs *pairs,
                         const mg_evaluation_options *o, workspace *w, mg_error *error) {
    ptrdiff_t B = o->batch_size, T = e->n_positions;
    gap_sums sums = {0, 0};
    for (int batch = 0; batch < o->n_batches; batch++) {
        if (o->stop && o->stop->asked(o->stop->user))
            return mg_error_set(error, MG_ERR_STOPPED, "the evaluation was interrupted");
        mg_rng rng = {o->seed, MG_STREAM_EVAL, 0};
        mg_corpus_windows(corpus, o->split, rng, batch * B, B, T, w->ids, w->targets);
        forward_batch(gpt, tape, w, B, T);
        for (ptrdiff_t row = 0; row < B; row++) add_window(e, corpus, pairs, w, row, &sums);
    }
    finish(e, sums);
    mg_status status = check_finite(e, gpt, error);
    if (status == MG_OK && pairs && e->loss > mg_pairs_entropy(pairs)) find_shift(e, gpt, tape, w, B, T);
    return status;
}

static mg_status check_options(const mg_evaluation_options *o, const mg_corpus *corpus, ptrdiff_t T, mg_error *error) {
    if (o->n_batches < 1 || o->batch_size < 1)
        return mg_error_set(error, MG_ERR_INPUT, "n_batches is %d and batch_size %d; both must be at least 1",
                            o->n_batches, o->batch_size);
    return mg_corpus_check(corpus, T, error);
}

mg_status mg_evaluate_on(mg_evaluation *evaluation, mg_gpt *gpt, mg_tape *tape, const mg_corpus *corpus,
                         const mg_evaluation_options *options, mg_error *error) {
    mg_evaluation_options o = options ? *options : (mg_evaluation_options){0};
    if (o.n_batches == 0) o.n_batches = 50;
    if (o.batch_size == 0) o.batch_size = 16;
    ptrdiff_t T = mg_gpt_get_config(gpt)->block_size;
    *evaluation = (mg_evaluation){0};
    mg_evaluation e = {.n_positions = T,
                       .n_windows = (ptrdiff_t)o.n_batches * o.batch_size,
                       .evidence = o.evidence ? 0 : NAN,
                       .shift = 1};
    workspace w = {0};
    mg_pairs *pairs = NULL;
    mg_status status = check_options(&o, corpus, T, error);
    if (status == MG_OK) status = make_workspace(&w, o.batch_size, T, error);
    if (status == MG_OK && o.evidence) status = mg_pairs_new(&pairs, corpus, o.split, T, 1, error);
    if (status == MG_OK) status = make_results(&e, T, corpus->grammar, error);
    if (status == MG_OK) {
        mg_tape_record(tape, false);
        status = measure(&e, gpt, tape, corpus, pairs, &o, &w, error);
        mg_tape_record(tape, true);
        if (status == MG_OK)
            *evaluation = e;
        else
            mg_evaluation_free(&e);
    }
    mg_pairs_free(pairs);
    free_workspace(&w);
    return status;
}

mg_status mg_evaluate(mg_evaluation *evaluation, mg_gpt *gpt, const mg_corpus *corpus,
                      const mg_evaluation_options *options, mg_error *error) {
    *evaluation = (mg_evaluation){0};
    mg_tape *tape;
    mg_status status = mg_tape_new(&tape, error);
    if (status == MG_OK) status = mg_evaluate_on(evaluation, gpt, tape, corpus, options, error);
    mg_tape_free(tape);
    return status;
}

void mg_evaluation_free(mg_evaluation *evaluation) {
    mg_free(evaluation->position_loss);
    mg_free(evaluation->position_floor);
    mg_free(evaluation->position_gap_error);
    *evaluation = (mg_evaluation){0};
}

mg_status mg_evaluation_print(const mg_evaluation *evaluation, FILE *out) {
    fputs("position,loss,floor\n", out);
    for (ptrdiff_t t = 0; t < evaluation->n_positions; t++) {
        fprintf(out, "%td,%.9g,", t, evaluation->position_loss[t]);
        if (evaluation->position_floor) fprintf(out, "%.9g", evaluation->position_floor[t]);
        fputc('\n', out);
    }
    return ferror(out) ? MG_ERR_IO : MG_OK;
}

/* ---- The alarm ---- */

static const char *below_floor(const mg_evaluation *e, const mg_gpt_config *config, char *text, size_t size) {
    /* The floor is the best on average; on few windows chance may bring a model below it. */
    double gap = e->loss - e->floor;
    if (!(gap < -0.005 - 4 * e->gap_error)) return NULL;
    int n = mg_snprintf(text, size, "the loss %.4f is below the floor %.4f: the model sees its labels; ", e->loss,
                        e->floor);
    if (n < 0 || (size_t)n >= size) return text;
    if (mg_gpt_is_causal(config))
        mg_snprintf(text + n, size - (size_t)n,
                    "its mask is causal, so look at the data (is it the grammar's?) and at the shift of the targets");
    else
        mg_snprintf(text + n, size - (size_t)n, "its mask is not causal");
    return text;
}

/* The targets are right here, so only a leak can read them. */
static const char *reads_labels(const mg_evaluation *e, const mg_gpt_config *config, char *text, size_t size) {
    double first = e->position_loss[0];
    mg_alarm_reading reading = {
        .evidence = e->evidence,
        .windows = e->n_windows,
        .first = first,
        .bound = first + e->evidence / (double)e->n_windows,
        .last = e->position_loss[e->n_positions - 1],
        .cause = MG_CAUSE_RIGHT,
    };
    return mg_alarm_say(&reading, config, text, size);
}

static const char *predicts_another(const mg_evaluation *e, char *text, size_t size) {
    char which[32] = "their own position's";
    if (e->shift > 0) mg_snprintf(which, sizeof which, "the one %d ahead", e->shift);
    mg_snprintf(text, size,
                "its predictions do not fit the next token (loss %.4f) but %s (loss %.4f), as if it was trained with "
                "targets %s",
                e->loss, which, e->shift_loss,
                e->shift == 0   ? "that were not shifted"
                : e->shift == 2 ? "that were shifted twice"
                                : "that were shifted three times");
    return text;
}

const char *mg_evaluation_alarm(const mg_evaluation *e, const mg_gpt_config *config, char *text, size_t size) {
    double uniform = mg_log_double(config->vocab_size);
    if (e->evidence >= MG_ALARM_EVIDENCE) return reads_labels(e, config, text, size);
    if (e->shift != 1) return predicts_another(e, text, size);
    if (isinf(e->floor)) {
        mg_snprintf(
            text, size,
            "the grammar cannot produce these targets, so they are not the next tokens: check how they are shifted");
        return text;
    }
    if (e->loss > uniform + 0.1) {
        mg_snprintf(
            text, size,
            "the loss %.4f is above ln V = %.4f, the loss of guessing: the learning rate may be too high, or the data "
            "or the mask is not what the model was trained with",
            e->loss, uniform);
        return text;
    }
    return isfinite(e->floor) ? below_floor(e, config, text, size) : NULL;
}
