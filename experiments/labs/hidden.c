/* Lab hidden: when is no mask right?
 *
 * A decoder must not see the tokens after its position, because one of them is
 * its label. A model whose task is to fill a gap (BERT, Devlin et al. 2019) has
 * its label at the gap itself: it may look both ways, if the gap is a gap. The
 * mask is one way to keep a label out of the input, hiding the token is
 * another, and without either the loss means nothing. */
#include "adamw.h"
#include "contexts.h"
#include "gemm.h"
#include "grammar_internal.h"
#include "lab_private.h"
#include "labs.h"
#include "operation.h"
#include "subject.h"

#include <math.h>
#include <string.h>

enum { BOTH, LEFT, SHOWN, N_MODELS };
enum { LEAST_CONTEXT = 4, MOST_HIDDEN = 4 /* in training */, CURVE = 60, EVALUATED = 64 /* windows per batch */ };

#define REACHED 0.05   /* nats: down at the floor */
#define COLLAPSED 0.05 /* nats */
#define WORTH 0.1      /* nats that the other side must be worth, to tell the two apart */

/* ---- Options ---- */

static void set_defaults(void *own) {
    mg_run_options *o = own;
    *o = mg_run_defaults();
    o->train.model.n_embd = 32;
    o->train.model.block_size = 16;
    o->train.batch_size = 64;
    o->train.max_iters = 3000;
    o->train.schedule.lr = 1e-2;
}

static void set_quick(void *own) {
    mg_run_options *o = own;
    o->train.model.block_size = 8;
    o->train.max_iters = 1500;
}

const lab_options lab_hidden_options = {lab_training_tables, sizeof(mg_run_options), set_defaults, set_quick};

/* ---- The task: one token of each window is hidden, and only it is asked for ---- */

typedef struct task {
    const mg_corpus *corpus;
    const mg_train_options *options;
    int T, hidden_id; /* what replaces a hidden token: one id more than the vocabulary has */
} task;

/* (B,T) each. targets: -1 but where a token is hidden; shown: the same windows
 * with nothing hidden. */
typedef struct batch {
    int B, *shown, *hidden, *targets, *at;
} batch;

static batch new_batch(mg_lab *lab, const task *t, int B) {
    size_t n = (size_t)B * (size_t)t->T;
    return (batch){B, lab_memory(lab, n, sizeof(int)), lab_memory(lab, n, sizeof(int)), lab_memory(lab, n, sizeof(int)),
                   lab_memory(lab, (size_t)B, sizeof(int))};
}

/* Windows first … first + B - 1 of a draw. Of each, between 1 and `most` tokens are hidden; at: the last of them. */
static void fill(const task *t, mg_split split, mg_rng windows, ptrdiff_t first, int most, batch *b) {
    mg_rng positions = {windows.seed, MG_STREAM_LAB, windows.step};
    mg_corpus_windows(t->corpus, split, windows, first, b->B, t->T, b->shown, b->targets); /* targets: overwritten */
    memcpy(b->hidden, b->shown, (size_t)b->B * (size_t)t->T * sizeof(int));
    for (int i = 0; i < b->B * t->T; i++) b->targets[i] = -1;
    for (int i = 0; i < b->B; i++) {
        uint64_t index = (uint64_t)(first + i) * (MOST_HIDDEN + 1);
        int n = 1 + (int)mg_rng_below(positions, index, (uint64_t)most);
        for (int k = 1; k <= n; k++) {
            int at = b->at[i] = (int)mg_rng_below(positions, index + (uint64_t)k, (uint64_t)t->T);
            b->targets[i * t->T + at] = b->shown[i * t->T + at];
            b->hidden[i * t->T + at] = t->hidden_id;
        }
    }
}

/* ---- The models ---- */

typedef struct model {
    const char *name;
    lab_color color;
    bool hides; /* the label is not in its input */
    mg_gpt *gpt;
    mg_adamw *adamw;
    double *loss; /* of every training step */
    double curve_x[2 * CURVE], curve[2 * CURVE];
    int n_curve;
    /* After training, on windows of the validation split. */
    lab_mean measured, gap; /* loss, and loss minus the best possible on the same windows */
    double *position_loss;
} model;

static const int *input(const model *m, const batch *b) {
    return m->hides ? b->hidden : b->shown;
}

static mg_status new_model(mg_lab *lab, const task *t, model *m, mg_error *error) {
    mg_gpt_config config = t->options->model;
    config.vocab_size = t->hidden_id + 1;
    config.mask = mg_lookahead(MG_LOOKAHEAD_ALL);
    if (m->color == LAB_MASKED || (m->hides && lab_broken("hidden.mask"))) config.mask = mg_lookahead(0);
    m->loss = lab_numbers(lab, t->options->max_iters);
    m->position_loss = lab_numbers(lab, t->T);
    mg_status status = mg_gpt_new(&m->gpt, &config, t->options->seed, error);
    if (status) return status;
    return mg_adamw_new(&m->adamw, mg_gpt_params(m->gpt), t->options->beta1, t->options->beta2,
                        t->options->weight_decay, error);
}

static mg_status step_model(const task *t, model *m, mg_tape *tape, const batch *b, int step, mg_error *error) {
    mg_gpt_pass pass = {.training = true, .dropout_seed = t->options->seed, .dropout_step = (uint32_t)step};
    mg_tensor *loss = mg_gpt_loss(m->gpt, tape, input(m, b), b->targets, b->B, t->T, &pass, NULL);
    m->loss[step] = (double)loss->data[0];
    mg_backward(tape, loss);
    mg_params *params = mg_gpt_params(m->gpt);
    double norm = mg_params_grad_norm(params);
    mg_tape_reset(tape);
    if (!isfinite(m->loss[step]) || !isfinite(norm))
        return mg_error_set(error, MG_ERR_STATE,
                            "the training diverged at step %d: the loss of the "
                            "model '%s' is %g; try a lower --lr",
                            step, m->name, m->loss[step]);
    mg_adamw_step(m->adamw, params, mg_lr_at(&t->options->schedule, step), mg_clip_scale(norm, t->options->grad_clip));
    return MG_OK;
}

static mg_status train(mg_lab *lab, const task *t, model models[N_MODELS], mg_error *error) {
    int steps = (int)t->options->max_iters;
    batch b = new_batch(lab, t, t->options->batch_size * t->options->grad_accum);
    mg_tape *tape;
    mg_tape_new(&tape, NULL);
    lab_need_memory(tape, "a tape");
    mg_tape_recycle_gradients(tape, true);
    mg_status status = MG_OK;
    for (int step = 0; step < steps && !status; step++) {
        fill(t, MG_TRAIN, (mg_rng){t->options->seed, MG_STREAM_BATCH, (uint32_t)step}, 0, MOST_HIDDEN, &b);
        for (int i = 0; i < N_MODELS && !status; i++) status = step_model(t, &models[i], tape, &b, step, error);
        if (!status && (step % 20 == 0 || step + 1 == steps))
            lab_progress(lab, "training", step + 1, steps, "loss %.3f with both sides", models[BOTH].loss[step]);
        if (!status) status = lab_interrupted(lab, error);
    }
    mg_tape_free(tape);
    return status;
}

/* ---- Measured ---- */

/* What a window's hidden token costs at best, in nats: given both sides, and
 * given the left one. */
static double best_loss(const mg_grammar *g, const int *window, int T, int at, bool both, double *p) {
    mg_grammar_hidden_word(g, window, both ? T : at + 1, at, p);
    return -log(p[window[at]]);
}

static mg_status evaluate(mg_lab *lab, const task *t, model models[N_MODELS], int n_batches, mg_error *error) {
    const mg_grammar *g = t->corpus->grammar;
    int n = n_batches * EVALUATED;
    batch b = new_batch(lab, t, EVALUATED);
    double *p = lab_numbers(lab, t->hidden_id), *loss[N_MODELS], *gap[N_MODELS];
    double *count = lab_numbers(lab, t->T);
    mg_real *token_loss = lab_reals(lab, (ptrdiff_t)EVALUATED * t->T);
    for (int i = 0; i < N_MODELS; i++) loss[i] = lab_numbers(lab, n), gap[i] = lab_numbers(lab, n);
    mg_tape *tape = lab_inference_tape();
    mg_status status = MG_OK;
    for (int k = 0; k < n_batches && !status; k++) {
        fill(t, MG_VALIDATION, (mg_rng){t->options->seed, MG_STREAM_EVAL, 0}, (ptrdiff_t)k * EVALUATED, 1, &b);
        for (int w = 0; w < EVALUATED; w++) count[b.at[w]]++;
        for (int i = 0; i < N_MODELS; i++) {
            mg_gpt_loss(models[i].gpt, tape, input(&models[i], &b), b.targets, EVALUATED, t->T, NULL, token_loss);
            mg_tape_reset(tape);
            for (int w = 0; w < EVALUATED; w++) {
                int at = b.at[w], place = k * EVALUATED + w;
                loss[i][place] = (double)token_loss[(ptrdiff_t)w * t->T + at];
                models[i].position_loss[at] += loss[i][place];
                if (g) gap[i][place] = loss[i][place] - best_loss(g, b.shown + w * t->T, t->T, at, i != LEFT, p);
            }
        }
        status = lab_interrupted(lab, error);
    }
    mg_tape_free(tape);
    for (int i = 0; i < N_MODELS; i++) {
        models[i].measured = lab_mean_of(n, loss[i]);
        models[i].gap = lab_mean_of(n, gap[i]);
        for (int at = 0; at < t->T; at++) models[i].position_loss[at] /= count[at];
    }
    return status;
}

/* ---- The truth ---- */

typedef struct truth {
    bool known;
    double *position[2]; /* BOTH, LEFT: by hidden position */
    double mean[2];
} truth;

static mg_status find_truth(mg_lab *lab, const task *t, truth *x, mg_error *error) {
    const mg_grammar *g = t->corpus->grammar;
    *x = (truth){.known = g != NULL, .mean = {NAN, NAN}};
    if (!g) return MG_OK;
    bool exact, exact_left;
    double standard_error, *after = lab_numbers(lab, t->T);
    for (int i = 0; i < 2; i++) x->position[i] = lab_numbers(lab, t->T);
    mg_status status = mg_grammar_hidden_entropy(g, t->T, x->position[BOTH], &exact, error);
    if (!status) status = mg_grammar_floor(g, t->T, after, &standard_error, &exact_left, error);
    if (status) return status;
    double *p = lab_numbers(lab, mg_grammar_words(g));
    x->position[LEFT][0] = mg_grammar_predict(g, g->stationary, p);
    memcpy(x->position[LEFT] + 1, after, (size_t)(t->T - 1) * sizeof *after);
    for (int i = 0; i < 2; i++) {
        x->mean[i] = 0;
        for (int at = 0; at < t->T; at++) x->mean[i] += x->position[i][at] / t->T;
    }
    if (!exact) x->mean[BOTH] = NAN;
    lab_did(lab,
            "The source is a grammar, so the truth is known: given all other words, a hidden one has %s of entropy on "
            "average over all positions and windows (forward-backward over the states), given those before it %s%.4f.",
            exact ? lab_format(lab, "%.4f nats", x->mean[BOTH])
                  : "what the table says of the windows at hand (there are too many beliefs to list them all)",
            exact_left ? "" : "about ", x->mean[LEFT]);
    return MG_OK;
}

/* ---- Pictures ---- */

static void show_curves(mg_lab *lab, model models[N_MODELS], const truth *x, int steps) {
    lab_figure *figure = lab_figure_begin(
        lab, "loss", "Filling a gap: three models",
        (lab_axes){.x = "step", .y = "loss (nats per hidden token)", .y_from_zero = true});
    int width = steps / CURVE > 1 ? steps / CURVE : 1;
    for (int i = 0; i < N_MODELS; i++) {
        double *at = lab_numbers(lab, steps), *y = lab_numbers(lab, steps);
        int n = lab_smooth(steps, models[i].loss, width, at, y);
        lab_line(figure, models[i].color, models[i].name, n, at, y);
    }
    if (x->known) {
        if (!isnan(x->mean[BOTH])) lab_floor(figure, "H given both sides", x->mean[BOTH]);
        lab_floor(figure, "H given the left", x->mean[LEFT]);
    }
    lab_figure_end(
        figure,
        "Of training, where up to four tokens are hidden at once, so that the curves may end above what one "
        "hidden token costs. Each model can come down to the entropy of a hidden "
        "token given what it sees. A model that sees "
        "more may end lower, honestly. The one whose label was left in its input only has to copy: does it fall to "
        "0?");
}

static void show_positions(mg_lab *lab, const task *t, model models[N_MODELS], const truth *x) {
    lab_figure *figure = lab_figure_begin(lab, "position", "Loss by the position that is hidden",
                                          (lab_axes){.x = "hidden position", .y = "loss (nats)", .y_from_zero = true});
    for (int i = 0; i < N_MODELS; i++)
        lab_line(figure, models[i].color, models[i].name, t->T, NULL, models[i].position_loss);
    if (x->known && !isnan(x->mean[BOTH]))
        lab_line(figure, LAB_FLOOR, "H given both sides", t->T, NULL, x->position[BOTH]);
    if (x->known) lab_line(figure, LAB_FLOOR, "H given the left", t->T, NULL, x->position[LEFT]);
    lab_figure_end(figure, "At the last position there is nothing after the gap, "
                           "and both sides are worth no more than the "
                           "left one. At the first there is nothing before it.");
}

/* reach[distance + T - 1]: the largest change of a logit at the gap when the
 * token at that distance changes. */
static void show_reach(mg_lab *lab, const task *t, model models[N_MODELS]) {
    enum { WINDOWS = 16 };
    batch b = new_batch(lab, t, WINDOWS);
    int T = t->T, at = T / 2, *ids = lab_memory(lab, (size_t)T, sizeof *ids), V = t->hidden_id + 1;
    double *distance = lab_numbers(lab, T), after[2] = {0};
    mg_real *before = lab_reals(lab, V);
    mg_tape *tape = lab_inference_tape();
    fill(t, MG_VALIDATION, (mg_rng){t->options->seed, MG_STREAM_EVAL, 1}, 0, 1, &b);
    lab_figure *figure = lab_figure_begin(
        lab, "reach", "How much each token moves the prediction at the gap",
        (lab_axes){.x = "place, seen from the gap", .y = "largest change of a logit", .y_from_zero = true});
    for (int j = 0; j < T; j++) distance[j] = j - at;
    for (int i = 0; i < 2; i++) {
        double *reach = lab_numbers(lab, T);
        for (int w = 0; w < WINDOWS; w++)
            for (int j = -1; j < T; j++) { /* -1: as it is */
                if (j == at) continue;
                memcpy(ids, b.shown + w * T, (size_t)T * sizeof *ids);
                ids[at] = t->hidden_id;
                if (j >= 0) ids[j] = (ids[j] + 1 + w) % t->hidden_id;
                const mg_real *logits = mg_gpt_forward(models[i].gpt, tape, ids, 1, T, NULL)->data + (ptrdiff_t)at * V;
                double change = 0;
                for (int v = 0; v < V; v++) change = lab_larger(change, fabs((double)logits[v] - (double)before[v]));
                if (j < 0) memcpy(before, logits, (size_t)V * sizeof *before);
                if (j >= 0) reach[j] = lab_larger(reach[j], change);
                mg_tape_reset(tape);
            }
        for (int j = at + 1; j < T; j++) after[i] = lab_larger(after[i], reach[j]);
        reach[at] = NAN;
        lab_points(figure, models[i].color, models[i].name, T, distance, reach);
    }
    mg_tape_free(tape);
    lab_figure_end(figure,
                   "Over %d windows. With the causal mask nothing after the gap "
                   "may move the prediction, not by one "
                   "bit; without it both sides may.",
                   WINDOWS);
    lab_check_zero(lab, "left only: how much tokens after the gap move the prediction", after[LEFT], "");
    lab_check_above(lab, "both sides: how much tokens after the gap move the prediction", after[BOTH], 0, "");
}

/* ---- Checks ---- */

/* Where the source is known: the lowest loss possible on the windows that the model was measured on. */
static double lowest(const model *m) {
    return m->measured.mean - m->gap.mean;
}

static double quarter(const model *m, int steps, int number) {
    double sum = 0;
    int begin = (int)((int64_t)steps * number / 4), end = (int)((int64_t)steps * (number + 1) / 4);
    for (int i = begin; i < end; i++) sum += m->loss[i];
    return end > begin ? sum / (end - begin) : NAN;
}

/* Why a loss that is too high by `excess` says nothing yet; NULL if it does: it falls slowly, and would not get there
 * in as many steps again, not even as fast as it fell last. A young model's loss falls by fits and starts. */
static const char *too_early(mg_lab *lab, const model *m, int steps, double excess) {
    static const double FAST = 0.1; /* nats per quarter */
    double fell = quarter(m, steps, 2) - quarter(m, steps, 3);
    if (steps < 4) return "too few steps";
    if (fell < FAST && excess > 4 * fell) return NULL;
    return lab_format(lab,
                      "too few steps: the loss still fell by %.3f nats from the third quarter of the training to the "
                      "last",
                      fell);
}

static void check_below(mg_lab *lab, const model *m, int steps, const char *name, double observed, double limit) {
    const char *why = observed < limit ? NULL : too_early(lab, m, steps, observed - limit);
    if (why)
        lab_undecided(lab, name, observed, "nats", "%s", why);
    else
        lab_check_below(lab, name, observed, limit, "nats");
}

static void check_floor(mg_lab *lab, const model *m, const truth *x, int steps, const char *sides) {
    const char *gap = lab_format(lab, "%s: gap to the entropy given %s", m->name, sides);
    const char *below = lab_format(lab, "%s: the same, at least minus 3 standard errors", m->name);
    if (!x->known) {
        lab_undecided(lab, gap, m->measured.mean, "nats", "the source is a text: nobody knows its entropy");
        return;
    }
    check_below(lab, m, steps, gap, m->gap.mean, REACHED);
    lab_check_at_least(lab, below, m->gap.mean, -3 * m->gap.error, "nats");
}

/* A loss that is much lower with both sides is no proof: the other model may not have learned what the left one says.
 */
static void check_other_side(mg_lab *lab, model models[N_MODELS], const truth *x, int steps) {
    const char *name = "both sides: loss, against what the left one allows";
    double left = lowest(&models[LEFT]), worth = left - lowest(&models[BOTH]);
    if (!x->known)
        lab_undecided(lab, name, models[BOTH].measured.mean, "nats",
                      "the source is a text: nobody knows what the left one allows; the model that sees it only loses "
                      "%.4f nats",
                      models[LEFT].measured.mean);
    else if (worth < WORTH)
        lab_undecided(lab, name, models[BOTH].measured.mean, "nats",
                      "in this source the tokens after a gap say little about it "
                      "that those before do not: %.3f nats",
                      lab_larger(0, worth));
    else
        check_below(lab, &models[BOTH], steps, name, models[BOTH].measured.mean, left - WORTH / 2);
}

static void check(mg_lab *lab, model models[N_MODELS], const truth *x, int steps) {
    check_floor(lab, &models[BOTH], x, steps, "both sides");
    check_floor(lab, &models[LEFT], x, steps, "the left");
    check_other_side(lab, models, x, steps);
    const char *shown = "not hidden: loss";
    double easiest = x->known ? lowest(&models[BOTH]) : models[BOTH].measured.mean;
    if (easiest < 2 * COLLAPSED)
        lab_undecided(lab, shown, models[SHOWN].measured.mean, "nats",
                      "this source is too easy: an honest model comes as low");
    else
        check_below(lab, &models[SHOWN], steps, shown, models[SHOWN].measured.mean, COLLAPSED);
    lab_table *table = lab_table_begin(lab, "losses", "Loss on held-out windows, in nats per hidden token",
                                       "model\tloss\t± s.e.\tbest possible\tgap");
    for (int i = 0; i < N_MODELS; i++)
        if (x->known)
            lab_table_row(table, "%s\t%.4f\t%.4f\t%.4f\t%.4f", models[i].name, models[i].measured.mean,
                          models[i].measured.error, i == SHOWN ? 0 : models[i].measured.mean - models[i].gap.mean,
                          i == SHOWN ? models[i].measured.mean : models[i].gap.mean);
        else
            lab_table_row(table, "%s\t%.4f\t%.4f\t-\t-", models[i].name, models[i].measured.mean,
                          models[i].measured.error);
    lab_table_end(table, "Best possible: by the forward-backward algorithm on "
                         "the very same windows, so that luck of the "
                         "draw cancels.");
    lab_answer(lab, "both", models[BOTH].measured.mean);
    lab_answer(lab, "left", models[LEFT].measured.mean);
    lab_answer(lab, "shown", models[SHOWN].measured.mean);
}

/* ---- All of it ---- */

static void tell(mg_lab *lab, const mg_run_options *run, const mg_corpus *corpus) {
    lab_hypothesis(lab, "A token is hidden, and the model sees both sides: its "
                        "loss falls to H(x | all others), honestly. "
                        "There is no mask, and nothing is wrong with that.");
    lab_hypothesis(lab, "With the causal mask the same task can be done to H(x | "
                        "those before) only: the mask costs what the "
                        "other side is worth.");
    lab_hypothesis(lab, "If the token is not hidden, the loss falls to 0 and "
                        "means nothing: the label is in the input.");
    lab_guess(lab, "both", "nats", "One token is hidden, and both sides are seen. What will the loss be?");
    lab_guess(lab, "left", "nats", "And with the causal mask?");
    lab_guess(lab, "shown", "nats", "And if the token is not hidden?");
    lab_did(lab,
            "Three GPTs with the same initial weights saw the same windows, "
            "and were asked for the same token of each: "
            "hidden, with both sides visible; hidden, with the causal mask; "
            "and left where it is. In training up to "
            "%d tokens of a window are asked for at once; what is measured has one.",
            MOST_HIDDEN);
    lab_training_settings(lab, run, corpus);
    lab_setting(lab, "machine", "%s", mg_blas_name());
    lab_exercise(lab, "BERT hides 15%% of the tokens at once. What does that "
                      "cost, and what does it buy? Find the entropy "
                      "that it comes down to.");
    lab_exercise(lab, "Can the model that sees both sides write? Start from "
                      "hidden tokens only, and fill one after the "
                      "other.");
    lab_exercise(lab, "At which position is the other side worth most? Why there?");
    lab_source(lab, "Devlin et al. 2019, BERT: pre-training of deep "
                    "bidirectional transformers, section 3.1: the masked LM.");
    lab_source(lab, "Rabiner 1989, A tutorial on hidden Markov models, section "
                    "III: forward and backward.");
    lab_source(lab, "Taylor 1953, Cloze procedure: a new tool for measuring readability.");
}

static mg_status measure(mg_lab *lab, const task *t, model models[N_MODELS], mg_error *error) {
    truth x;
    int steps = (int)t->options->max_iters;
    mg_status status = find_truth(lab, t, &x, error);
    for (int i = 0; i < N_MODELS && !status; i++) status = new_model(lab, t, &models[i], error);
    if (!status) status = train(lab, t, models, error);
    if (!status) status = evaluate(lab, t, models, lab_asked(lab)->quick ? 100 : 400, error);
    if (status) return status;
    show_curves(lab, models, &x, steps);
    show_positions(lab, t, models, &x);
    show_reach(lab, t, models);
    check(lab, models, &x, steps);
    return MG_OK;
}

mg_status lab_hidden(mg_lab *lab, mg_error *error) {
    mg_run_options run = *(const mg_run_options *)lab_asked(lab)->own;
    mg_run_options_resolve(&run);
    if (run.train.model.block_size < LEAST_CONTEXT)
        return mg_error_set(error, MG_ERR_INPUT, "--block-size %d is too short for this lab: give %d or more",
                            run.train.model.block_size, LEAST_CONTEXT);
    mg_corpus *corpus;
    mg_status status = lab_load_corpus(lab, &run, &corpus, error);
    if (status) return status;
    task t = {corpus, &run.train, run.train.model.block_size, mg_tokenizer_size(corpus->tokenizer)};
    model models[N_MODELS] = {{.name = "both sides", .color = LAB_GREEN, .hides = !lab_broken("hidden.shown")},
                              {.name = "left only", .color = LAB_MASKED, .hides = true},
                              {.name = "not hidden", .color = LAB_UNMASKED, .hides = lab_broken("hidden.gap")}};
    tell(lab, &run, corpus);
    status = lab_begin(lab, error);
    if (!status) status = measure(lab, &t, models, error);
    for (int i = 0; i < N_MODELS; i++) {
        mg_adamw_free(models[i].adamw);
        mg_gpt_free(models[i].gpt);
    }
    mg_corpus_free(corpus);
    return status;
}
