#include "training.h"
#include "lab_private.h"
#include "utf8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const mg_settings lab_training_tables[] = {{mg_data_settings, 0},
                                           MG_SETTINGS_OF_TRAIN(mg_model_settings),
                                           MG_SETTINGS_OF_TRAIN(mg_training_settings),
                                           {mg_machine_settings, 0},
                                           {NULL, 0}};
const mg_settings lab_measured_training_tables[] = {{mg_data_settings, 0},
                                                    MG_SETTINGS_OF_TRAIN(mg_model_settings),
                                                    MG_SETTINGS_OF_TRAIN(mg_training_settings),
                                                    {mg_measuring_settings, 0},
                                                    {mg_machine_settings, 0},
                                                    {NULL, 0}};

const char *lab_shipped_data(mg_lab *lab, const char *name) {
    return lab_format(lab, "%s/%s", lab_asked(lab)->data_folder, name);
}

mg_status lab_load_corpus(mg_lab *lab, mg_run_options *options, mg_corpus **corpus, mg_error *error) {
    if (!options->data.path) options->data.path = lab_shipped_data(lab, "frases.csv");
    mg_status status = mg_corpus_load(corpus, &options->data, error);
    if (status) return status;
    status = mg_corpus_check(*corpus, options->train.model.block_size, error);
    if (!status && mg_tokenizer_size((*corpus)->tokenizer) < 2)
        status = mg_error_set(error, MG_ERR_FORMAT,
                              "%s has one token only: there is nothing to learn in a vocabulary of one",
                              options->data.path);
    if (status) {
        mg_corpus_free(*corpus);
        *corpus = NULL;
        return status;
    }
    if ((*corpus)->warning[0]) {
        fprintf(stderr, "maskgrad: warning: %s\n", (*corpus)->warning);
        lab_note(lab, "About the data: %s", (*corpus)->warning);
    }
    return MG_OK;
}

void lab_training_settings(mg_lab *lab, const mg_run_options *run, const mg_corpus *corpus) {
    char model[128];
    mg_model_words(&run->train.model, model, sizeof model);
    lab_setting(lab, "corpus", "%s: %td tokens, a vocabulary of %d", corpus->name, corpus->n,
                mg_tokenizer_size(corpus->tokenizer));
    lab_setting(lab, "model", "%s", model);
    lab_setting(lab, "training", "%s of %s, learning rate %g", mg_count(run->train.max_iters, "step").text,
                mg_count((int64_t)run->train.batch_size * run->train.grad_accum, "window").text,
                run->train.schedule.lr);
}

double lab_thread_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

mg_tape *lab_inference_tape(void) {
    mg_tape *tape;
    mg_tape_new(&tape, NULL);
    lab_need_memory(tape, "a tape");
    mg_tape_record(tape, false);
    return tape;
}

void *lab_memory(mg_lab *lab, size_t n, size_t size) {
    void *x = mg_arena_alloc(lab->arena, n, size, "a lab's numbers");
    memset(x, 0, n * size);
    return x;
}

double *lab_numbers(mg_lab *lab, ptrdiff_t n) {
    return lab_memory(lab, (size_t)n, sizeof(double));
}

mg_real *lab_reals(mg_lab *lab, ptrdiff_t n) {
    return lab_memory(lab, (size_t)n, sizeof(mg_real));
}

mg_real *lab_heat(mg_lab *lab, ptrdiff_t n, const double *values) {
    mg_real *x = lab_reals(lab, n);
    for (ptrdiff_t i = 0; i < n; i++) x[i] = (mg_real)values[i];
    return x;
}

/* The beginning of a token, made visible; the number of bytes that it takes. */
static int visible_part(const char *bytes, size_t n, char part[8]) {
    unsigned char first = (unsigned char)bytes[0];
    int length = mg_utf8_next(bytes, n);
    if (first == ' ' || first == '\n' || first == '\t')
        strcpy(part, first == ' ' ? "␣" : first == '\n' ? "↵" : "⇥");
    else if (length < 1 || first < 32 || first == 127) /* a byte of GPT-2's alphabet need not be a whole character */
        snprintf(part, 8, "\\x%02X", first);
    else
        snprintf(part, 8, "%.*s", length, bytes);
    return length < 1 ? 1 : length;
}

static const char *token_label(mg_lab *lab, mg_token token) {
    enum { MOST_OF_A_BYTE = 4 }; /* \xE2 */
    char *label = mg_arena_alloc(lab->arena, MOST_OF_A_BYTE * token.length + 8, 1, "a label"), *end = label;
    *end = '\0';
    for (size_t at = 0; at < token.length; end += strlen(end))
        at += (size_t)visible_part(token.bytes + at, token.length - at, end);
    return label;
}

const char **lab_token_labels(mg_lab *lab, const mg_tokenizer *tokenizer, const int *ids, ptrdiff_t n) {
    const char **labels = mg_arena_alloc(lab->arena, (size_t)n, sizeof *labels, "a lab's labels");
    for (ptrdiff_t i = 0; i < n; i++) labels[i] = token_label(lab, mg_tokenizer_token(tokenizer, ids[i]));
    return labels;
}

static mg_status set_up(mg_lab *lab, lab_training *t, const mg_corpus *corpus, const mg_run_options *run,
                        mg_error *error) {
    t->n_steps = (int)run->train.max_iters;
    t->n_evaluations = 0;
    t->different_tokens = 0;
    int most = t->n_steps / (int)run->eval_interval + 2;
    t->evaluation_step = lab_numbers(lab, most);
    for (int i = 0; i < t->n_variants; i++) {
        lab_variant *v = &t->variant[i];
        v->loss = lab_numbers(lab, t->n_steps);
        v->grad_norm = lab_numbers(lab, t->n_steps);
        v->validation = lab_numbers(lab, most);
        mg_train_options_resolve(&v->options);
        mg_status status = mg_trainer_new(&v->trainer, &v->options, corpus, error);
        if (!status) status = mg_trainer_set_alarm(v->trainer, error);
        if (status) return status;
    }
    return MG_OK;
}

/* The windows of the step that was just done, compared token by token with the first variant's. */
static void compare_windows(lab_training *t) {
    const mg_train_options *o = mg_trainer_options(t->variant[0].trainer);
    long n = (long)o->batch_size * o->grad_accum * o->model.block_size;
    const int *first[2], *other[2];
    mg_trainer_batch(t->variant[0].trainer, &first[0], &first[1]);
    for (int i = 1; i < t->n_variants; i++) {
        mg_trainer_batch(t->variant[i].trainer, &other[0], &other[1]);
        for (long k = 0; k < n; k++) t->different_tokens += (first[0][k] != other[0][k]) + (first[1][k] != other[1][k]);
    }
}

static mg_status evaluate(mg_lab *lab, lab_training *t, int step, int eval_iters, mg_error *error) {
    for (int i = 0; i < t->n_variants; i++) {
        mg_evaluation e;
        mg_status status = mg_trainer_evaluate(&e, t->variant[i].trainer, MG_VALIDATION, eval_iters, lab_stop(lab),
                                               error);
        if (status) return status;
        t->variant[i].validation[t->n_evaluations] = e.loss;
        mg_evaluation_free(&e);
    }
    t->evaluation_step[t->n_evaluations++] = step;
    if (t->watch) t->watch(lab, t, t->user);
    return MG_OK;
}

static mg_status one_step(lab_training *t, int step, mg_error *error) {
    for (int i = 0; i < t->n_variants; i++) {
        mg_step done;
        mg_status status = mg_trainer_step(t->variant[i].trainer, &done, error);
        if (status) return status;
        t->variant[i].loss[step] = done.loss;
        t->variant[i].grad_norm[step] = done.grad_norm;
    }
    compare_windows(t);
    return MG_OK;
}

static void show_progress(mg_lab *lab, const lab_training *t, int step) {
    if (step == 0) {
        lab_progress(lab, "training", step, t->n_steps, "%s", mg_count(t->n_variants, "model").text);
        return;
    }
    int low = 0, high = 0; /* all would not fit into a line */
    for (int i = 1; i < t->n_variants; i++) {
        if (t->variant[i].loss[step - 1] < t->variant[low].loss[step - 1]) low = i;
        if (t->variant[i].loss[step - 1] > t->variant[high].loss[step - 1]) high = i;
    }
    const lab_variant *lowest = &t->variant[low], *highest = &t->variant[high];
    lab_progress(lab, "training", step, t->n_steps, "loss %.3f%s%s%s", lowest->loss[step - 1],
                 low == high ? "" : lab_format(lab, " (%s)", lowest->name),
                 low == high ? "" : lab_format(lab, " to %.3f", highest->loss[step - 1]),
                 low == high ? "" : lab_format(lab, " (%s)", highest->name));
}

int lab_smooth(int n, const double *y, int width, double *x_out, double *y_out) {
    int count = 0;
    for (int begin = 0; begin < n; begin += width, count++) {
        int end = begin + width < n ? begin + width : n;
        double sum = 0;
        for (int i = begin; i < end; i++) sum += y[i];
        x_out[count] = 0.5 * (begin + end);
        y_out[count] = sum / (end - begin);
    }
    return count;
}

const lab_axes lab_loss_axes = {.x = "step", .y = "loss (nats per token)", .y_from_zero = true};

int lab_smooth_width(const lab_training *t) {
    return t->n_steps / 100 > 1 ? t->n_steps / 100 : 1;
}

lab_figure *lab_training_figure(mg_lab *lab, const lab_training *t, const char *name, const char *title) {
    lab_figure *figure = lab_figure_begin(lab, name, title, lab_loss_axes);
    int width = lab_smooth_width(t);
    double *x = lab_numbers(lab, t->n_steps), *y = lab_numbers(lab, t->n_steps);
    for (int i = 0; i < t->n_variants; i++) {
        const lab_variant *v = &t->variant[i];
        int n = lab_smooth(t->n_steps, v->loss, width, x, y);
        lab_line(figure, v->color, lab_format(lab, "%s, training", v->name), n, x, y);
        lab_points(figure, v->color, lab_format(lab, "%s, validation", v->name), t->n_evaluations, t->evaluation_step,
                   v->validation);
    }
    return figure;
}

/* Where no model is accused nothing shows that one would be: then the honest ones are not said to have passed. */
static void tell_alarms(mg_lab *lab, const lab_training *t) {
    const char *accused = "";
    for (int i = 0; i < t->n_variants; i++) {
        mg_alarm_reading reading = mg_alarm_read(mg_trainer_alarm(t->variant[i].trainer));
        if (reading.raised_at < 0) continue;
        accused = lab_format(lab, "%s%s‘%s’ at step %d", accused, *accused ? ", " : "", t->variant[i].name,
                             (int)reading.raised_at);
    }
    lab_note(lab, "Did training notice a model that reads its labels (`maskgrad lab alarm`)? %s%s.",
             *accused ? "Yes: " : "None", accused);
    for (int i = 0; i < t->n_variants && *accused; i++) {
        const lab_variant *v = &t->variant[i];
        if (mg_gpt_is_causal(&v->options.model))
            lab_check_count(lab, lab_format(lab, "%s: accused of reading its labels", v->name),
                            mg_alarm_read(mg_trainer_alarm(v->trainer)).raised_at >= 0, 0, "");
    }
}

/* What an interrupted training has to show: the curves until then. */
static void show_unfinished(mg_lab *lab, lab_training *t, int steps_done) {
    int planned = t->n_steps;
    t->n_steps = steps_done;
    if (steps_done == 0) return;
    lab_figure *figure = lab_training_figure(lab, t, "unfinished", "The losses until the interruption");
    lab_figure_end(figure, "Training was interrupted after %d of %s.", steps_done, mg_count(planned, "step").text);
}

mg_status lab_train(mg_lab *lab, lab_training *t, const mg_corpus *corpus, const mg_run_options *run, mg_error *error) {
    mg_status status = set_up(lab, t, corpus, run, error);
    int step = 0;
    while (status == MG_OK) {
        if (step % 20 == 0 || step == t->n_steps) show_progress(lab, t, step);
        if (step % run->eval_interval == 0 || step == t->n_steps)
            status = evaluate(lab, t, step, run->eval_iters, error);
        if (status || step == t->n_steps) break;
        status = lab_interrupted(lab, error);
        if (!status) status = one_step(t, step, error);
        if (!status) step++;
    }
    if (status == MG_ERR_STOPPED) show_unfinished(lab, t, step);
    if (status == MG_OK) tell_alarms(lab, t);
    return status;
}

void lab_training_free(lab_training *t) {
    for (int i = 0; i < t->n_variants; i++) {
        mg_trainer_free(t->variant[i].trainer);
        t->variant[i].trainer = NULL;
    }
}

bool lab_still_falling(int n, const double *loss) {
    enum { FEWEST = 40 };
    int part = n / 4;
    double before = 0, last = 0;
    for (int i = 0; i < part; i++) {
        before += loss[n - 2 * part + i];
        last += loss[n - part + i];
    }
    return n < FEWEST || before > 1.05 * last;
}

double lab_collapsed(double last, ptrdiff_t T) {
    return fmax(0.1, 2 * last / (double)T);
}
