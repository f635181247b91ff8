/* Lab saturation: what dies without 1/sqrt(d_k), and what does not.
 *
 * The softmax's Jacobian diag(p) − p pᵀ vanishes where one weight is 1. The gradient of the scores goes through it, so
 * it shrinks when rows saturate. But scores = scale · q kᵀ, so the gradient of q is scale · (gradient of the scores) ·
 * k: a model without the scale multiplies by 1 where the other multiplies by 1/8. Which of the two wins is measured. */
#include "saturation.h"
#include "lab_private.h"
#include "labs.h"
#include "scores.h"

#include <math.h>
#include <stdlib.h>

/* ---- Random rows ---- */

/* What is expected is far from 0, or it is small and so is its scatter. */
static void compare(mg_lab *lab, const char *what, const lab_means measured[LAB_N_SCALINGS],
                    const double expected[LAB_N_SCALINGS][LAB_N_WIDTHS], double tolerance) {
    for (int scaling = 0; scaling < LAB_N_SCALINGS; scaling++)
        for (int w = 0; w < LAB_N_WIDTHS; w++) {
            const char *name = lab_format(lab, "%s, %s, d_k = %d", what,
                                          scaling == LAB_SCALED ? "divided by √d_k" : "not divided", lab_widths[w]);
            lab_check_near(lab, name, measured[scaling].mean[w], expected[scaling][w],
                           expected[scaling][w] < 0.02 ? tolerance / 4 : tolerance, "");
        }
}

static void random_rows(mg_lab *lab) {
    static const double jacobian[LAB_N_SCALINGS][LAB_N_WIDTHS] = {{.382, .385, .386, .386, .386},
                                                                  {.343, .239, .139, .073, .037}};
    static const double saturated[LAB_N_SCALINGS][LAB_N_WIDTHS] = {{0}, {.011, .126, .415, .675, .830}};
    lab_scores s;
    lab_measure_scores(lab, lab_broken("saturation.scale"), &s);
    lab_answer(lab, "saturated", 100 * s.saturated[LAB_UNSCALED].mean[LAB_N_WIDTHS - 1]);
    lab_figure *figure = lab_figure_begin(
        lab, "jacobian", "How much of a gradient passes the softmax?",
        (lab_axes){.x = "d_k", .y = "norm of diag(p) − p pᵀ", .log_x = true, .y_from_zero = true});
    lab_scores_lines(figure, s.jacobian);
    lab_figure_end(figure, "The mean over rows of six random scores. Divided by √d_k the softmax should let the same "
                           "through at every d_k; undivided, the less the larger d_k is.");
    figure = lab_figure_begin(lab, "saturated", "Rows in which one key has more than 0.99 of the weight",
                              (lab_axes){.x = "d_k", .y = "share of rows", .log_x = true, .y_from_zero = true});
    lab_scores_lines(figure, s.saturated);
    lab_figure_end(figure,
                   "In such a row attention is a choice and no longer an average, and a small change of a score "
                   "changes almost nothing: hardly any gradient says how to choose better.");
    lab_table *table = lab_table_begin(lab, "rows", "Random rows: means and their standard errors",
                                       "d_k\trows\tscaling\tJacobian\ts.e.\tsaturated\ts.e. ");
    for (int w = 0; w < LAB_N_WIDTHS; w++)
        for (int i = 0; i < LAB_N_SCALINGS; i++)
            lab_table_row(table, "%d\t%ld\t%s\t%.4f\t%.4f\t%.4f\t%.4f", lab_widths[w], s.rows[w],
                          i == LAB_SCALED ? "1/√d_k" : "none", s.jacobian[i].mean[w], s.jacobian[i].error[w],
                          s.saturated[i].mean[w], s.saturated[i].error[w]);
    lab_table_end(table, "The six rows of a draw share their keys, so the errors are over draws.");
    compare(lab, "norm of the softmax's Jacobian", s.jacobian, jacobian, 0.012);
    compare(lab, "share of rows with a weight over 0.99", s.saturated, saturated, 0.02);
}

/* ---- Options ---- */

typedef struct saturation_options {
    mg_run_options run;
    const char *d_k; /* a list: "4,16,64"; NULL: no sweep */
} saturation_options;

static void set_defaults(void *own) {
    saturation_options *o = own;
    o->run = mg_run_defaults();
    o->run.train.model.n_layer = 2;
    o->run.train.model.n_embd = 64;
    o->run.train.model.n_head = 1;
    o->run.train.max_iters = 600;
    o->run.eval_interval = 20;
    o->run.eval_iters = 5;
}

static void set_quick(void *own) {
    saturation_options *o = own;
    o->run.train.max_iters = 200;
    o->run.eval_interval = 25;
}

#define ROWS_OF saturation_options
#include "setting_rows.h"
static const mg_setting own_settings[] = {
    {.kind = MG_SETTING_HEADING, .help = "This lab:"},
    {.name = "d-k",
     TEXT(d_k, "LIST"),
     .help = "Also train a pair of models for each d_k of a list, as 4,16,64; each must divide --n-embd"},
    {0},
};
#define OF_TRAIN(rows)                                                                                                 \
    { rows, offsetof(saturation_options, run.train) }
#define OF_RUN(rows)                                                                                                   \
    { rows, offsetof(saturation_options, run) }
static const mg_settings tables[] = {{own_settings, 0},
                                     OF_RUN(mg_data_settings),
                                     OF_TRAIN(mg_model_settings),
                                     OF_TRAIN(mg_training_settings),
                                     OF_RUN(mg_measuring_settings),
                                     OF_RUN(mg_machine_settings),
                                     {NULL, 0}};
const lab_options lab_saturation_options = {tables, sizeof(saturation_options), set_defaults, set_quick};

/* *n numbers of a list, each a d_k that divides the width. */
static mg_status read_widths(const char *list, int width, int *d_k, int *n, mg_error *error) {
    *n = 0;
    for (const char *at = list; at && *at;) {
        char *end;
        long value = strtol(at, &end, 10);
        bool is_number = end != at && (*end == ',' || *end == '\0') && *at != '-' && *at != '+' && *at != ' ';
        if (!is_number || value < 1 || value > width || width % value != 0 || *n == SATURATION_MOST_SWEPT)
            return mg_error_set(error, MG_ERR_INPUT,
                                "--d-k is up to %d numbers that divide --n-embd %d, separated by commas, not '%s'",
                                SATURATION_MOST_SWEPT, width, list);
        d_k[(*n)++] = (int)value;
        at = *end ? end + 1 : end;
    }
    return MG_OK;
}

/* ---- Models ---- */

static const struct {
    const char *init; /* NULL: as the options say */
    double factor;    /* of c_attn's standard deviation, in units of 1/sqrt(C) */
    lab_color color;
} models[N_PAIRED] = {
    [GPT2_SCALED] = {NULL, 0, LAB_GREEN},  [GPT2_UNSCALED] = {NULL, 0, LAB_PURPLE},
    [ONE_SCALED] = {"1/√C", 1, LAB_SKY},   [ONE_UNSCALED] = {"1/√C", 1, LAB_AMBER},
    [TWO_SCALED] = {"2/√C", 2, LAB_GREEN}, [TWO_UNSCALED] = {"2/√C", 2, LAB_PURPLE},
};

const char *saturation_init(mg_lab *lab, const mg_gpt_config *model, int pair) {
    if (models[pair].init) return models[pair].init;
    return lab_format(lab, "%g", model->attn_init_std > 0 ? model->attn_init_std : model->init_std);
}

static void set_up(mg_lab *lab, const saturation_study *s, lab_variant *variant) {
    const mg_gpt_config *usual = &s->run.train.model;
    for (int i = 0; i < s->training.n_variants; i++) {
        bool swept = i >= N_PAIRED, scaled = i % 2 == 0;
        int like = swept ? TWO_SCALED : i, d_k = swept ? s->d_k[(i - N_PAIRED) / 2] : 0;
        const char *which = swept ? lab_format(lab, "d_k %d", d_k) : saturation_init(lab, usual, i);
        variant[i] = (lab_variant){.name = lab_format(lab, "%s, %s", which, scaled ? "scaled" : "unscaled"),
                                   .color = models[like].color,
                                   .options = s->run.train};
        mg_gpt_config *model = &variant[i].options.model;
        if (models[like].factor > 0) model->attn_init_std = models[like].factor / sqrt((double)model->n_embd);
        if (swept) model->n_head = model->n_embd / d_k;
        model->no_scale = !scaled && !lab_broken("saturation.training");
    }
}

/* ---- All of it ---- */

static void tell(mg_lab *lab, const mg_gpt_config *model) {
    lab_hypothesis(lab, "A product of d_k random numbers has standard deviation √d_k. Undivided, the softmax saturates "
                        "as d_k grows, and its Jacobian goes to 0.");
    lab_hypothesis(lab, "So little of a gradient reaches the scores, and training is slow, if queries and keys start "
                        "with unit variance.");
    lab_hypothesis(lab, "The gradients of W_q and W_k need not shrink: the factor that was left out multiplies them "
                        "too.");
    lab_hypothesis(lab, "With GPT-2's small initial weights nothing is saturated at the start.");
    lab_guess(lab, "saturated", "%",
              "At d_k = 1024, not divided: in which share of rows does one key take more than "
              "0.99 of the weight?");
    lab_guess(lab, "slower", "nats",
              "Weights twice as large as unit variance needs, d_k = %d: how much more loss has the "
              "model without the division at the end?",
              model->n_embd / model->n_head);
    lab_did(lab, "Rows of six random queries and keys were put through the softmax at five d_k. Then six models were "
                 "trained on the same windows: three sizes of c_attn's initial weights, each with the division by √d_k "
                 "and without. At each evaluation the gradient of the scores was computed from the captured weights, "
                 "values and gradients, and checked against the tape.");
    lab_exercise(lab, "Show that q·k has variance d_k if all components are independent with mean 0 and variance 1.");
    lab_exercise(lab, "For which p is the norm of diag(p) − p pᵀ largest? And what is it when all six weights are "
                      "equal?");
    lab_exercise(lab, "The gradient norm of W_q need not shrink where rows are saturated. Where in the row does the "
                      "gradient come from? Think of the few rows that are not saturated.");
    lab_exercise(lab, "Adam divides each gradient by its own size. Which of the numbers in the table does it not see?");
    lab_source(lab, "Vaswani et al. 2017, “Attention Is All You Need”, section 3.2.1: “pushing the softmax function "
                    "into regions where it has extremely small gradients”.");
    lab_source(lab, "Radford et al. 2019, “Language Models are Unsupervised Multitask Learners”: initial weights.");
}

static mg_status check_sizes(const mg_gpt_config *model, mg_error *error) {
    if (model->block_size < 2)
        return mg_error_set(error, MG_ERR_INPUT, "--block-size 1 has no row with two keys: give 2 or more");
    if (model->n_embd % model->n_head == 0) return MG_OK;
    return mg_error_set(error, MG_ERR_INPUT, "--n-head %d does not divide --n-embd %d", model->n_head, model->n_embd);
}

static bool is_usual(const mg_train_options *o) {
    saturation_options own;
    set_defaults(&own);
    mg_run_options_resolve(&own.run);
    const mg_train_options *usual = &own.run.train;
    const mg_gpt_config *a = &o->model, *b = &usual->model;
    enum { LEAST_STEPS = 200 };
    return a->n_layer == b->n_layer && a->n_head == b->n_head && a->n_embd == b->n_embd &&
           a->block_size == b->block_size && a->dropout == b->dropout && a->init_std == b->init_std &&
           o->batch_size == usual->batch_size && o->schedule.lr == usual->schedule.lr && o->max_iters >= LEAST_STEPS;
}

static mg_status measure(mg_lab *lab, saturation_study *s, const mg_corpus *corpus, mg_error *error) {
    mg_status status = lab_begin(lab, error);
    if (!status) random_rows(lab);
    if (!status) status = lab_train(lab, &s->training, corpus, &s->run, error);
    if (status) return status;
    saturation_show(lab, s);
    saturation_show_sweep(lab, s);
    return MG_OK;
}

mg_status lab_saturation(mg_lab *lab, mg_error *error) {
    const saturation_options *asked = lab_asked(lab)->own;
    static saturation_study s;
    s = (saturation_study){.run = asked->run};
    mg_run_options_resolve(&s.run);
    const mg_gpt_config *model = &s.run.train.model;
    mg_status status = check_sizes(model, error);
    if (!status) status = read_widths(asked->d_k, model->n_embd, s.d_k, &s.n_swept, error);
    mg_corpus *corpus = NULL;
    if (!status) status = lab_load_corpus(lab, &s.run, &corpus, error);
    if (status) return status;
    s.usual = !asked->run.data.path && is_usual(&s.run.train);
    lab_variant variant[SATURATION_MOST_MODELS];
    s.training = (lab_training){
        .n_variants = N_PAIRED + 2 * s.n_swept, .variant = variant, .watch = saturation_watch, .user = &s.probes};
    tell(lab, model);
    lab_training_settings(lab, &s.run, corpus);
    set_up(lab, &s, variant);
    saturation_probe_prepare(lab, &s.probes, corpus, &s.run, s.training.n_variants);
    status = measure(lab, &s, corpus, error);
    lab_training_free(&s.training);
    mg_corpus_free(corpus);
    return status;
}
