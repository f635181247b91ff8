/* Lab channel: how much leak is how much loss?
 *
 * Each label is visible with probability ε, drawn anew for each window and position: a position sees 0 … t, or, where
 * it leaks, its label at t + 1 too. Who sees the label pays nothing; who does not pays at least h_t, the honest floor
 * at position t; and the last position of T never has a label to see. So the lowest loss possible is
 *
 *     L(ε) = (1/T) [ Σ_{t<T−1} (1−ε) h_t + h_{T−1} ],
 *
 * a straight line. A nat of leak is a nat of loss, and the distance to the floor measures the leak:
 *
 *     ε = (L(0) − loss) / ((1/T) Σ_{t<T−1} h_t). */
#include "channel.h"
#include "grammar.h"
#include "lab_private.h"
#include "labs.h"

#include <math.h>

enum { NONE, QUARTER, HALF, THREE_QUARTERS, ALL, N_RUNS };
enum { LEAST_CONTEXT = 4 };
#define TOLERANCE 0.06 /* of the estimate of ε */
#define LEAST_TO_LEAK 0.2

/* ---- Options ---- */

static void set_defaults(void *own) {
    mg_run_options *o = own;
    *o = mg_run_defaults();
    o->train.max_iters = 1200;
    o->train.schedule.lr = 3e-3;
}

static void set_quick(void *own) {
    mg_run_options *o = own;
    o->train.max_iters = 800;
}

const lab_options lab_channel_options = {lab_training_tables, sizeof(mg_run_options), set_defaults, set_quick};

/* ---- Theory ---- */

/* What the honest predictor pays, in nats per token of a window. */
typedef struct honest {
    double *position; /* (T): h_t */
    double labeled;   /* (1/T) Σ_{t<T−1} h_t: all that can leak */
    double loss;      /* (1/T) Σ h_t: the floor */
} honest;

/* h_t of the grammar; of a text, what the model that never sees its label pays. */
static mg_status find_honest(mg_lab *lab, const mg_corpus *corpus, const channel_run *none, int T, honest *h,
                             mg_error *error) {
    double standard_error;
    bool is_exact;
    h->position = lab_numbers(lab, T);
    mg_status status = MG_OK;
    if (corpus->grammar)
        status = mg_grammar_floor(corpus->grammar, T, h->position, &standard_error, &is_exact, error);
    else
        for (int t = 0; t < T; t++) h->position[t] = none->position_loss[t];
    h->labeled = 0;
    for (int t = 0; t + 1 < T; t++) h->labeled += h->position[t] / T;
    h->loss = h->labeled + h->position[T - 1] / T;
    return status;
}

static double theory(const honest *h, double probability) {
    return h->loss - probability * h->labeled;
}

static double estimate(const honest *h, double loss) {
    return (h->loss - loss) / h->labeled;
}

/* ---- Pictures ---- */

static const char *honest_name(const mg_corpus *corpus) {
    return corpus->grammar ? "best honest predictor" : "the model that sees no label";
}

static void show_line(mg_lab *lab, const mg_corpus *corpus, int n, const channel_run *r, const honest *h) {
    double x[N_RUNS], y[N_RUNS], line[N_RUNS];
    for (int i = 0; i < n; i++) {
        x[i] = r[i].probability;
        y[i] = r[i].loss;
        line[i] = theory(h, x[i]);
    }
    lab_figure *figure = lab_figure_begin(lab, "line", "A nat of leak is a nat of loss",
                                          (lab_axes){.x = "ε, the probability that a label is visible",
                                                     .y = "loss (nats per token)",
                                                     .y_from_zero = true});
    lab_line(figure, LAB_SKY, "theory", n, x, line);
    lab_points(figure, LAB_UNMASKED, "measured", n, x, y);
    lab_floor(figure, honest_name(corpus), h->loss);
    lab_figure_end(
        figure, "%s A loss below the dashed line can be read the other way: how much leaks?",
        corpus->grammar
            ? "In theory the points lie on the line, but for the luck of which labels are visible, or a little "
              "above it: no model is perfect."
            : "Of a text nobody knows the line. This one is drawn from what the model that sees no label pays, "
              "which is the first point: do the others lie on it?");
}

static void show_positions(mg_lab *lab, int n, const channel_run *r, const honest *h, int T) {
    lab_figure *figure = lab_figure_begin(lab, "positions", "Loss by position",
                                          (lab_axes){.x = "position", .y = "loss (nats)", .y_from_zero = true});
    for (int i = 0; i < n; i++)
        lab_line(figure, r[i].color, lab_format(lab, "ε = %s", r[i].name), T, NULL, r[i].position_loss);
    lab_floor_curve(figure, "honest", T, NULL, h->position);
    lab_figure_end(figure, "A position whose label is visible with probability ε is expected to pay 1 − ε of what an "
                           "honest one pays. The last position has no label in the window, whatever ε is.");
}

static void show_curves(mg_lab *lab, const mg_run_options *run, int n, const channel_run *r, const honest *h) {
    lab_figure *figure = lab_figure_begin(lab, "curves", "Training loss by ε",
                                          (lab_axes){.x = "step", .y = "loss (nats per token)", .y_from_zero = true});
    int steps = (int)run->train.max_iters, width = steps / 100 > 1 ? steps / 100 : 1;
    double *x = lab_numbers(lab, steps), *y = lab_numbers(lab, steps);
    for (int i = 0; i < n; i++)
        lab_line(figure, r[i].color, lab_format(lab, "ε = %s", r[i].name), lab_smooth(steps, r[i].curve, width, x, y),
                 x, y);
    for (int i = 0; i < n; i++)
        lab_floor(figure, lab_format(lab, "theory, ε = %s", r[i].name), theory(h, r[i].probability));
    lab_figure_end(figure,
                   "All begin alike. Each model has to find out what a visible label is, and when there is one; "
                   "its lowest loss possible is a dashed line. Which curve would have told you of a leak?");
}

static void show_table(mg_lab *lab, const mg_corpus *corpus, int n, const channel_run *r, const honest *h) {
    lab_table *table = lab_table_begin(lab, "leaks", "The leak, read from the loss",
                                       "ε\ttheory\tloss\thonest − loss\tε from the loss");
    for (int i = 0; i < n; i++)
        lab_table_row(table, "%.2f\t%.4f\t%.4f\t%.4f\t%.3f", r[i].probability, theory(h, r[i].probability), r[i].loss,
                      h->loss - r[i].loss, estimate(h, r[i].loss));
    lab_table_end(table,
                  "Nats per token. All that can leak is (1/T) Σ h_t over all positions but the last, %.4f nats; the "
                  "last column is honest − loss divided by it. Honest is what %s%s loses, %.4f nats.",
                  h->labeled, corpus->grammar ? "the " : "", honest_name(corpus), h->loss);
}

/* ---- Checks ---- */

static void check_run(mg_lab *lab, const mg_corpus *corpus, const mg_run_options *run, const channel_run *r,
                      const honest *h) {
    const char *name = lab_format(lab, "ε = %s: ε read from the loss", r->name);
    double found = estimate(h, r->loss);
    bool low = found < r->probability - TOLERANCE;
    bool falls = low && lab_still_falling((int)run->train.max_iters, r->curve);
    /* Before a model finds its labels its loss may hardly change for hundreds of steps. */
    bool searches = low && r->probability > 0 && found < r->probability / 4;
    if (falls || searches)
        lab_undecided(lab, name, found, "", "%s: give more --max-iters",
                      falls ? "the loss was still falling when training ended"
                            : "the model has hardly begun to read its labels");
    else
        lab_check_near(lab, name, found, r->probability, TOLERANCE, "");
    if (corpus->grammar)
        lab_check_at_least(
            lab, lab_format(lab, "ε = %s: gap to what its labels allow, at least minus 3 standard errors", r->name),
            r->loss - r->possible, -3 * r->error, "nats");
}

/* Why the losses say nothing; NULL if they do. */
static const char *cannot_decide(int n, const channel_run *r, const honest *h) {
    for (int i = 0; i < n; i++)
        if (!isfinite(r[i].loss)) return "a loss is not a number: give a lower --lr";
    if (h->labeled < LEAST_TO_LEAK) return "an honest model already predicts this text: there is nothing to leak";
    return NULL;
}

static void check(mg_lab *lab, const mg_corpus *corpus, const mg_run_options *run, int n, const channel_run *r,
                  const honest *h) {
    const char *why = cannot_decide(n, r, h);
    for (int i = corpus->grammar ? 0 : 1; i < n; i++) /* of a text, the first one is the measure */
        if (why)
            lab_undecided(lab, lab_format(lab, "ε = %s: ε read from the loss", r[i].name), estimate(h, r[i].loss), "",
                          "%s", why);
        else
            check_run(lab, corpus, run, &r[i], h);
}

/* ---- All of it ---- */

static void tell(mg_lab *lab, const mg_run_options *run, const mg_corpus *corpus) {
    lab_hypothesis(lab, "The loss is a straight line in ε: the lowest possible is (1/T)[Σ (1−ε) h_t + h_T], where "
                        "h_t is what an honest predictor pays at position t and the sum leaves out the last position.");
    lab_hypothesis(lab, "So the loss measures the leak: ε is (floor − loss) / ((1/T) Σ h_t).");
    lab_hypothesis(lab, "A label that is hidden from a position cannot reach it through other positions, however many "
                        "layers there are.");
    lab_guess(lab, "half", "nats", "Every other label is visible, at random. What will the loss be, per token?");
    lab_did(lab,
            "GPTs with the same initial weights saw the same windows. Of each position in each window it was drawn "
            "anew whether it sees its label, in training as in the evaluation; no other mask differs.");
    lab_training_settings(lab, run, corpus);
    lab_exercise(lab, "What would the line be if whole windows leaked with probability ε, all positions or none? Would "
                      "the model be the same?");
    lab_exercise(lab, "Your validation loss is 0.1 nats below the best that anyone has published. If it is a leak of "
                      "labels, how many are visible? What would you need to know to say so?");
    lab_exercise(lab, "A leak of ε = 0.05 lowers the loss by how much? How many windows does it take to see that?");
    lab_source(lab, "Elias 1955, “Coding for Two Noisy Channels”: the erasure channel, which passes a symbol with "
                    "probability ε and otherwise says that it did not.");
    lab_source(lab, "Vaswani et al. 2017, “Attention Is All You Need”, section 3.2.3: the mask.");
}

static mg_status measure(mg_lab *lab, const mg_run_options *run, const mg_corpus *corpus, int n, channel_run *r,
                         mg_error *error) {
    int T = run->train.model.block_size;
    honest h;
    mg_status status = channel_prove(lab, error);
    for (int i = 0; i < n && !status; i++)
        status = channel_train(lab, run, corpus, lab_asked(lab)->quick ? 400 : 1200, &r[i], error);
    if (!status) status = find_honest(lab, corpus, &r[0], T, &h, error);
    if (status) return status;
    for (int i = 0; i < n; i++)
        if (r[i].probability == 0.5) lab_answer(lab, "half", r[i].loss);
    check(lab, corpus, run, n, r, &h);
    show_line(lab, corpus, n, r, &h);
    show_table(lab, corpus, n, r, &h);
    show_positions(lab, n, r, &h, T);
    show_curves(lab, run, n, r, &h);
    return MG_OK;
}

mg_status lab_channel(mg_lab *lab, mg_error *error) {
    channel_run all[N_RUNS] = {
        [NONE] = {.name = "0", .probability = 0, .color = LAB_MASKED},
        [QUARTER] = {.name = "1/4", .probability = 0.25, .color = LAB_SKY},
        [HALF] = {.name = "1/2", .probability = 0.5, .color = LAB_GREEN},
        [THREE_QUARTERS] = {.name = "3/4", .probability = 0.75, .color = LAB_AMBER},
        [ALL] = {.name = "1", .probability = 1, .color = LAB_UNMASKED},
    };
    channel_run few[] = {all[NONE], all[HALF], all[ALL]};
    bool quick = lab_asked(lab)->quick;
    channel_run *r = quick ? few : all;
    int n = quick ? 3 : N_RUNS;
    mg_run_options run = *(const mg_run_options *)lab_asked(lab)->own;
    mg_run_options_resolve(&run);
    if (run.train.model.block_size < LEAST_CONTEXT)
        return mg_error_set(error, MG_ERR_INPUT, "--block-size %d is too short for this lab: give %d or more",
                            run.train.model.block_size, LEAST_CONTEXT);
    mg_corpus *corpus;
    mg_status status = lab_load_corpus(lab, &run, &corpus, error);
    if (status) return status;
    tell(lab, &run, corpus);
    status = lab_begin(lab, error);
    if (!status) status = measure(lab, &run, corpus, n, r, error);
    for (int i = 0; i < n; i++) mg_gpt_free(r[i].gpt);
    mg_corpus_free(corpus);
    return status;
}
