/* Lab saturation: what dies without 1/sqrt(d_k), and what does not.
 *
 * The softmax's Jacobian diag(p) − p pᵀ vanishes where one weight is 1. The gradient of the scores goes through it, so
 * it shrinks when rows saturate. But scores = scale · q kᵀ, so the gradient of q is scale · (gradient of the scores) ·
 * k: a model without the scale multiplies by 1 where the other multiplies by 1/8. Which of the two wins is measured. */
#include "labs.h"
#include "scores.h"
#include "training.h"

#include <math.h>
#include <stdio.h>

/* ---- Random rows ---- */

/* What is expected is far from 0, or it is small and so is its scatter. */
static void compare(mg_lab *lab, const char *what, const lab_means measured[LAB_N_SCALINGS],
                    const double expected[LAB_N_SCALINGS][LAB_N_WIDTHS], double tolerance) {
    for (int scaling = 0; scaling < LAB_N_SCALINGS; scaling++)
        for (int w = 0; w < LAB_N_WIDTHS; w++) {
            char name[128];
            snprintf(name, sizeof name, "%s, %s, d_k = %d", what,
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

/* ---- Models ---- */

enum { GPT2_SCALED, GPT2_UNSCALED, ONE_SCALED, ONE_UNSCALED, TWO_SCALED, TWO_UNSCALED, N_MODELS };
enum { WIDTH = 64, N_LAYER = 2, PROBE = 16 /* windows */ };

static const struct {
    const char *name;
    double init; /* of c_attn, in units of 1/sqrt(C); 0: GPT-2's 0.02 */
    lab_colour colour;
} models[N_MODELS] = {
    [GPT2_SCALED] = {"0.02, scaled", 0, LAB_GREEN}, [GPT2_UNSCALED] = {"0.02, unscaled", 0, LAB_PURPLE},
    [ONE_SCALED] = {"1/√C, scaled", 1, LAB_SKY},    [ONE_UNSCALED] = {"1/√C, unscaled", 1, LAB_AMBER},
    [TWO_SCALED] = {"2/√C, scaled", 2, LAB_GREEN},  [TWO_UNSCALED] = {"2/√C, unscaled", 2, LAB_PURPLE},
};

/* What a probe finds in a layer: means and norms over the same windows at each call. */
typedef struct layer_numbers {
    double entropy; /* mean over rows, as a share of ln(visible keys) */
    double scores;  /* norm of the gradient of the scaled scores */
    double w_q, w_k, w_v;
    double tape_error; /* distance of the gradient of q from scale · dS · k, relative: the derivation, checked */
} layer_numbers;

typedef struct probes {
    int *ids, *targets; /* PROBE windows */
    ptrdiff_t T;
    layer_numbers *of[N_MODELS]; /* by evaluation, then by layer */
} probes;

static double norm_of_columns(const mg_tensor *w, ptrdiff_t from, ptrdiff_t to) {
    double sum = 0;
    for (ptrdiff_t i = 0; i < w->dim[0]; i++)
        for (ptrdiff_t j = from; j < to; j++) {
            double g = (double)w->grad[i * w->dim[1] + j];
            sum += g * g;
        }
    return sqrt(sum);
}

/* One row of one head: with p its weights and g = d loss / d output, dP_j = g · v_j and, through the Jacobian,
 * dS_j = p_j (dP_j − Σ_k p_k dP_k). qkv and output are those of the window; d_k is C, there is one head. */
static void score_gradient(const mg_real *p, const mg_real *g, const mg_real *qkv, ptrdiff_t visible, double *ds) {
    double mean = 0;
    for (ptrdiff_t j = 0; j < visible; j++) {
        const mg_real *value = qkv + j * 3 * WIDTH + 2 * WIDTH;
        ds[j] = 0;
        for (int k = 0; k < WIDTH; k++) ds[j] += (double)g[k] * (double)value[k];
        mean += (double)p[j] * ds[j];
    }
    for (ptrdiff_t j = 0; j < visible; j++) ds[j] = (double)p[j] * (ds[j] - mean);
}

/* |scale · Σ_j dS_j k_j − the tape's gradient of q|², and |the tape's|² into *size. */
static double query_error(const double *ds, ptrdiff_t visible, double scale, const mg_real *qkv, const mg_real *dq,
                          double *size) {
    double error = 0;
    for (int k = 0; k < WIDTH; k++) {
        double sum = 0;
        for (ptrdiff_t j = 0; j < visible; j++) sum += scale * ds[j] * (double)qkv[j * 3 * WIDTH + WIDTH + k];
        error += (sum - (double)dq[k]) * (sum - (double)dq[k]);
        *size += (double)dq[k] * (double)dq[k];
    }
    return error;
}

static layer_numbers look_at_layer(const mg_gpt_capture *capture, mg_gpt *gpt, int layer, ptrdiff_t T) {
    const mg_tensor *qkv = capture->qkv[layer], *heads = capture->heads[layer];
    double scale = mg_gpt_get_config(gpt)->scale ? 1 / sqrt(WIDTH) : 1;
    double entropy = 0, scores = 0, error = 0, size = 0, ds[256];
    MG_CHECK(T <= 256, "the saturation lab looks at 256 tokens at most");
    for (ptrdiff_t b = 0; b < PROBE; b++)
        for (ptrdiff_t i = 0; i < T; i++) {
            ptrdiff_t row = b * T + i, visible = mg_visible(mg_lookahead(0), i, T).end;
            const mg_real *p = capture->weights + ((layer * PROBE + b) * T + i) * T;
            const mg_real *window = qkv->data + b * T * 3 * WIDTH;
            if (visible > 1) entropy += lab_entropy(visible, p) / log((double)visible);
            score_gradient(p, heads->grad + row * WIDTH, window, visible, ds);
            for (ptrdiff_t j = 0; j < visible; j++) scores += ds[j] * ds[j];
            error += query_error(ds, visible, scale, window, qkv->grad + row * 3 * WIDTH, &size);
        }
    char name[MG_PARAM_NAME];
    snprintf(name, sizeof name, "h.%d.attn.c_attn.weight", layer);
    const mg_tensor *w = &mg_params_find(mg_gpt_params(gpt), name)->tensor;
    return (layer_numbers){.entropy = entropy / (double)(PROBE * (T - 1)),
                           .scores = sqrt(scores),
                           .w_q = norm_of_columns(w, 0, WIDTH),
                           .w_k = norm_of_columns(w, WIDTH, 2 * (ptrdiff_t)WIDTH),
                           .w_v = norm_of_columns(w, 2 * (ptrdiff_t)WIDTH, 3 * (ptrdiff_t)WIDTH),
                           .tape_error = sqrt(error / size)};
}

static void probe(const probes *p, mg_gpt *gpt, mg_real *weights, layer_numbers *to) {
    mg_tape *tape;
    mg_tape_new(&tape, NULL);
    lab_need_memory(tape, "a tape");
    mg_tensor *qkv[N_LAYER], *heads[N_LAYER];
    mg_gpt_capture capture = {.weights = weights, .qkv = qkv, .heads = heads};
    mg_tensor *loss = mg_gpt_loss(gpt, tape, p->ids, p->targets, PROBE, p->T, &(mg_gpt_pass){.capture = &capture},
                                  NULL);
    mg_backward(tape, loss);
    for (int layer = 0; layer < N_LAYER; layer++) to[layer] = look_at_layer(&capture, gpt, layer, p->T);
    mg_params_zero_grad(mg_gpt_params(gpt));
    mg_tape_free(tape);
}

static void watch(mg_lab *lab, const lab_training *t, void *user) {
    probes *p = user;
    mg_real *weights = lab_reals(lab, (ptrdiff_t)N_LAYER * PROBE * p->T * p->T);
    for (int i = 0; i < N_MODELS; i++)
        probe(p, mg_trainer_model(t->variant[i].trainer), weights,
              p->of[i] + (ptrdiff_t)(t->n_evaluations - 1) * N_LAYER);
}

/* ---- Pictures of the training ---- */

static const layer_numbers *at(const probes *p, int model, int evaluation, int layer) {
    return p->of[model] + (ptrdiff_t)evaluation * N_LAYER + layer;
}

static void show_losses(mg_lab *lab, const lab_training *t) {
    lab_figure *figure = lab_figure_begin(lab, "loss",
                                          "Validation loss, queries and keys of unit variance at the start",
                                          (lab_axes){.x = "step", .y = "loss (nats per token)"});
    for (int i = ONE_SCALED; i < N_MODELS; i++)
        lab_line(figure, models[i].colour, models[i].name, t->n_evaluations - 1, t->evaluation_step + 1,
                 t->variant[i].validation + 1);
    lab_figure_end(figure, "Initial weights of c_attn have standard deviation 1/√C or 2/√C, so that scores have a "
                           "variance of 1 (or 16) if divided by √d_k, and of 64 (or 1024) if not. Does the loss "
                           "fall more slowly where rows are more saturated?");
    figure = lab_figure_begin(lab, "loss-gpt2", "Validation loss, GPT-2's initial weights",
                              (lab_axes){.x = "step", .y = "loss (nats per token)"});
    for (int i = GPT2_SCALED; i <= GPT2_UNSCALED; i++)
        lab_line(figure, models[i].colour, models[i].name, t->n_evaluations - 1, t->evaluation_step + 1,
                 t->variant[i].validation + 1);
    lab_figure_end(figure, "GPT-2 starts with weights of 0.02, so small that scores are near 0 with or without the "
                           "division: at this width nothing should saturate at the start. What the two curves do "
                           "afterwards is measured, not predicted.");
}

static void show_entropy(mg_lab *lab, const lab_training *t, const probes *p) {
    double y[512];
    int n = t->n_evaluations < 512 ? t->n_evaluations : 512;
    lab_figure *figure = lab_figure_begin(
        lab, "entropy", "How flat the rows of layer 0 stay",
        (lab_axes){.x = "step", .y = "entropy / ln(visible keys)", .y_low = 0, .y_high = 1});
    for (int i = ONE_SCALED; i < N_MODELS; i++) {
        for (int e = 0; e < n; e++) y[e] = at(p, i, e, 0)->entropy;
        lab_line(figure, models[i].colour, models[i].name, n, t->evaluation_step, y);
    }
    lab_figure_end(figure, "1 is a row that looks at all keys alike, 0 one that looks at one key. In a saturated row "
                           "hardly any gradient opens it again: how long do the lines that start low stay low?");
}

static void show_gradients(mg_lab *lab, const probes *p) {
    static const char *const places[] = {"0 scores", "0 W_q", "0 W_k", "0 W_v", "1 scores", "1 W_q", "1 W_k", "1 W_v"};
    static const struct {
        int scaled; /* the unscaled one follows it */
        lab_colour colour;
        const char *label;
    } pairs[] = {{GPT2_SCALED, LAB_SKY, "init 0.02"},
                 {ONE_SCALED, LAB_AMBER, "init 1/√C"},
                 {TWO_SCALED, LAB_PURPLE, "init 2/√C"}};
    enum { N_PLACES = sizeof places / sizeof *places, N_PAIRS = sizeof pairs / sizeof *pairs };
    lab_figure *figure = lab_figure_begin(
        lab, "gradients", "Gradients before the first step: without the division / with it",
        (lab_axes){.x = "layer, and of what", .y = "ratio of the norms", .y_from_zero = true});
    for (int i = 0; i < N_PAIRS; i++) {
        double y[N_PLACES];
        for (int layer = 0; layer < N_LAYER; layer++) {
            const layer_numbers *with = at(p, pairs[i].scaled, 0, layer),
                                *without = at(p, pairs[i].scaled + 1, 0, layer);
            y[4 * layer] = without->scores / with->scores;
            y[4 * layer + 1] = without->w_q / with->w_q;
            y[4 * layer + 2] = without->w_k / with->w_k;
            y[4 * layer + 3] = without->w_v / with->w_v;
        }
        lab_bars(figure, pairs[i].colour, pairs[i].label, N_PLACES, places, y);
    }
    lab_floor(figure, "no difference", 1);
    lab_figure_end(
        figure,
        "The Jacobian says: the larger the initial weights, the more of the gradient of the scores is lost without the "
        "division. The gradients of W_q and W_k need not be smaller: they are multiplied by the factor "
        "that was left out, 8 at d_k = 64. Would someone watching gradient norms notice the saturation?");
}

static void show_table(mg_lab *lab, const lab_training *t, const probes *p) {
    lab_table *table = lab_table_begin(lab, "training", "The models before the first step and after the last",
                                       "init, scaling\tstep\tlayer\tentropy\t|d scores|\t|d W_q|\t|d W_k|\t|d W_v|");
    for (int i = 0; i < N_MODELS; i++)
        for (int end = 0; end < 2; end++)
            for (int layer = 0; layer < N_LAYER; layer++) {
                int e = end ? t->n_evaluations - 1 : 0;
                const layer_numbers *n = at(p, i, e, layer);
                lab_table_row(table, "%s\t%g\t%d\t%.3f\t%.4f\t%.4f\t%.4f\t%.4f", models[i].name, t->evaluation_step[e],
                              layer, n->entropy, n->scores, n->w_q, n->w_k, n->w_v);
            }
    lab_table_end(table,
                  "Entropy is the mean over rows, as a share of ln(visible keys). Norms are of the gradients of "
                  "the mean loss over %d windows, the same for all.",
                  PROBE);
}

/* ---- What is checked about the training ---- */

static double sum_over_layers(const probes *p, int model, double (*what)(const layer_numbers *)) {
    double sum = 0;
    for (int layer = 0; layer < N_LAYER; layer++) sum += what(at(p, model, 0, layer));
    return sum;
}

static double entropy_of(const layer_numbers *n) {
    return n->entropy;
}
static double scores_of(const layer_numbers *n) {
    return n->scores;
}
static double w_qk_of(const layer_numbers *n) {
    return hypot(n->w_q, n->w_k);
}

static double ratio(const probes *p, int scaled, double (*what)(const layer_numbers *)) {
    return sum_over_layers(p, scaled + 1, what) / sum_over_layers(p, scaled, what);
}

/* The mean validation loss of the last quarter of the evaluations: a single one is noisy. */
static double late_loss(const lab_training *t, int model) {
    int n = t->n_evaluations / 4 > 0 ? t->n_evaluations / 4 : 1;
    double sum = 0;
    for (int e = t->n_evaluations - n; e < t->n_evaluations; e++) sum += t->variant[model].validation[e];
    return sum / n;
}

static void check_training(mg_lab *lab, const lab_training *t, const probes *p) {
    double error = 0;
    for (int i = 0; i < N_MODELS; i++)
        for (int e = 0; e < t->n_evaluations; e++)
            for (int layer = 0; layer < N_LAYER; layer++) error = lab_larger(error, at(p, i, e, layer)->tape_error);
    lab_answer(lab, "slower", late_loss(t, TWO_UNSCALED) - late_loss(t, TWO_SCALED));
    lab_check_zero(lab, "tokens in which the models' batches differed", (double)t->different_tokens, "");
    lab_check_below(lab, "gradient of q from the scores' gradient by hand, against the tape's: relative error", error,
                    1e-3, "");
    lab_check_below(lab, "2/√C, at the start: entropy unscaled / scaled", ratio(p, TWO_SCALED, entropy_of), 0.5, "");
    lab_check_below(lab, "2/√C, at the start: gradient of the scores unscaled / scaled",
                    ratio(p, TWO_SCALED, scores_of), 0.95, "");
    lab_check_above(lab, "2/√C, at the start: gradient of W_q and W_k unscaled / scaled, which does not shrink",
                    ratio(p, TWO_SCALED, w_qk_of), 1, "");
    lab_check_above(lab, "0.02, at the start: entropy unscaled / scaled, nothing saturates",
                    ratio(p, GPT2_SCALED, entropy_of), 0.95, "");
    lab_check_above(lab, "2/√C: loss unscaled − scaled, mean of the last quarter",
                    late_loss(t, TWO_UNSCALED) - late_loss(t, TWO_SCALED), 0.03, "nats");
    lab_note(lab,
             "Loss, mean of the last quarter of the evaluations, unscaled minus scaled: %+.3f nats at GPT-2's "
             "initial weights, %+.3f at 1/√C, %+.3f at 2/√C.",
             late_loss(t, GPT2_UNSCALED) - late_loss(t, GPT2_SCALED),
             late_loss(t, ONE_UNSCALED) - late_loss(t, ONE_SCALED),
             late_loss(t, TWO_UNSCALED) - late_loss(t, TWO_SCALED));
}

/* ---- All of it ---- */

static mg_run_options run_options(const mg_lab *lab) {
    mg_run_options run = mg_run_defaults();
    run.train.seed = lab_asked(lab)->seed;
    run.data.path = lab_asked(lab)->data;
    run.train.model.n_layer = N_LAYER;
    run.train.model.n_embd = WIDTH;
    run.train.model.n_head = 1;
    run.train.max_iters = lab_asked(lab)->quick ? 200 : 600;
    run.eval_interval = lab_asked(lab)->quick ? 25 : 20;
    run.eval_iters = 5;
    mg_run_options_resolve(&run);
    return run;
}

static void set_up(lab_variant variant[N_MODELS], const mg_train_options *options) {
    for (int i = 0; i < N_MODELS; i++) {
        variant[i] = (lab_variant){.name = models[i].name, .colour = models[i].colour, .options = *options};
        mg_gpt_config *model = &variant[i].options.model;
        model->attn_init_std = models[i].init / sqrt(WIDTH);
        model->scale = i % 2 == 0 || lab_broken("saturation.training");
    }
}

static void prepare_probes(mg_lab *lab, probes *p, const mg_corpus *corpus, const mg_run_options *run) {
    *p = (probes){.T = run->train.model.block_size};
    int most = (int)(run->train.max_iters / run->eval_interval) + 2;
    p->ids = lab_memory(lab, (size_t)(PROBE * p->T), sizeof(int));
    p->targets = lab_memory(lab, (size_t)(PROBE * p->T), sizeof(int));
    mg_rng rng = {lab_asked(lab)->seed, MG_STREAM_LAB, 2};
    mg_corpus_batch(corpus, MG_VALIDATION, rng, PROBE, p->T, p->ids, p->targets);
    for (int i = 0; i < N_MODELS; i++) p->of[i] = lab_memory(lab, (size_t)most * N_LAYER, sizeof(layer_numbers));
}

static mg_status train_six(mg_lab *lab, mg_error *error) {
    mg_run_options run = run_options(lab);
    mg_corpus *corpus;
    mg_status status = lab_load_corpus(lab, &run, &corpus, error);
    if (status) return status;
    lab_setting(lab, "models", "%d layers, 1 head of d_k = %d, context %d, %lld steps of %d windows of %s", N_LAYER,
                WIDTH, run.train.model.block_size, (long long)run.train.max_iters, run.train.batch_size, corpus->name);
    lab_variant variant[N_MODELS];
    set_up(variant, &run.train);
    probes p;
    prepare_probes(lab, &p, corpus, &run);
    status = lab_begin(lab, error);
    if (!status) random_rows(lab);
    lab_training training = {.n_variants = N_MODELS, .variant = variant, .watch = watch, .user = &p};
    if (!status) status = lab_train(lab, &training, corpus, &run, error);
    if (!status) {
        show_losses(lab, &training);
        show_entropy(lab, &training, &p);
        show_gradients(lab, &p);
        show_table(lab, &training, &p);
        check_training(lab, &training, &p);
    }
    lab_training_free(&training);
    mg_corpus_free(corpus);
    return status;
}

mg_status lab_saturation(mg_lab *lab, mg_error *error) {
    lab_hypothesis(lab, "A product of d_k random numbers has standard deviation √d_k. Undivided, the softmax saturates "
                        "as d_k grows, and its Jacobian goes to 0.");
    lab_hypothesis(lab, "So the gradient of the scores collapses, and training is slow, if queries and keys start with "
                        "unit variance.");
    lab_hypothesis(lab, "The gradients of W_q and W_k need not shrink: the factor that was left out multiplies them "
                        "too.");
    lab_hypothesis(lab, "With GPT-2's small initial weights nothing is saturated at the start.");
    lab_guess(lab, "saturated", "%",
              "At d_k = 1024, not divided: in which share of rows does one key take more than "
              "0.99 of the weight?");
    lab_guess(lab, "slower", "nats",
              "Weights twice as large as unit variance needs, d_k = %d: how much more loss has the "
              "model without the division at the end?",
              WIDTH);
    lab_did(lab, "Rows of six random queries and keys were put through the softmax at five d_k. Then six models were "
                 "trained on the same windows: three sizes of c_attn's initial weights, each with the division by √d_k "
                 "and without. At each evaluation the gradient of the scores was computed from the captured weights, "
                 "values and gradients, and checked against the tape.");
    mg_status status = train_six(lab, error);
    if (status) return status;
    lab_exercise(lab, "Show that q·k has variance d_k if all components are independent with mean 0 and variance 1.");
    lab_exercise(lab, "For which p is the norm of diag(p) − p pᵀ largest? And what is it when all six weights are "
                      "equal?");
    lab_exercise(lab, "The gradient norm of W_q need not shrink where rows are saturated. Where in the row does the "
                      "gradient come from? Think of the few rows that are not saturated.");
    lab_exercise(lab, "Adam divides each gradient by its own size. Which of the numbers in the table does it not see?");
    lab_source(lab, "Vaswani et al. 2017, “Attention Is All You Need”, section 3.2.1: “pushing the softmax function "
                    "into regions where it has extremely small gradients”.");
    lab_source(lab, "Radford et al. 2019, “Language Models are Unsupervised Multitask Learners”: initial weights.");
    return MG_OK;
}
