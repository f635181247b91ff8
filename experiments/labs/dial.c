/* Lab dial: the mask opened one token at a time, and in only one head.
 *
 * The label at t is the token at t + 1, so one token ahead is all it takes. More of the future adds nothing to what
 * can be known; it only makes the label harder to find. */
#include "contexts.h"
#include "lab_private.h"
#include "labs.h"
#include "seeds.h"
#include "training.h"

#include <math.h>
#include <stdio.h>

enum { CAUSAL, ONE, TWO, FOUR, ALL, LEAK, N_MODELS };

static const struct {
    const char *name;
    int lookahead;
} dials[N_MODELS] = {
    [CAUSAL] = {"causal", 0},
    [ONE] = {"1 ahead", 1},
    [TWO] = {"2 ahead", 2},
    [FOUR] = {"4 ahead", 4},
    [ALL] = {"no mask", MG_LOOKAHEAD_ALL},
    [LEAK] = {"one head, 1 ahead", 0},
};
enum { COLLAPSED_AT_PERCENT = 50 };
/* In a shorter window looking four tokens ahead is looking at all of it. */
enum { LEAST_CONTEXT = 6 };

/* ---- Options ---- */

static void set_defaults(void *own) {
    lab_seeded_options *seeded = own;
    *seeded = (lab_seeded_options){.run = mg_run_defaults(), .seeds = 1};
    mg_run_options *o = &seeded->run;
    o->train.max_iters = 800; /* at this learning rate all that leak have collapsed well before */
    o->train.schedule.lr = 3e-3;
    o->eval_interval = 50;
    o->eval_iters = 5;
}

static void set_quick(void *own) {
    mg_run_options *o = &((lab_seeded_options *)own)->run;
    o->train.max_iters = o->train.max_iters * 3 / 4;
}

const lab_options lab_dial_options = {lab_seeded_tables, sizeof(lab_seeded_options), set_defaults, set_quick};

static void turn(lab_variant variant[N_MODELS], const mg_train_options *options) {
    static const lab_color colors[N_MODELS] = {LAB_MASKED, LAB_SKY, LAB_GREEN, LAB_AMBER, LAB_UNMASKED, LAB_PURPLE};
    for (int i = 0; i < N_MODELS; i++) {
        variant[i] = (lab_variant){.name = dials[i].name, .color = colors[i], .options = *options};
        mg_gpt_config *model = &variant[i].options.model;
        model->mask = mg_lookahead(dials[i].lookahead);
        model->leak_layer = -1;
        if (i == LEAK && !lab_broken("dial.leak")) {
            model->leak_layer = model->leak_head = 0;
            model->leak_lookahead = 1;
        }
    }
    if (lab_broken("dial.mask")) variant[CAUSAL].options.model.mask = mg_lookahead(1);
}

/* ---- Over seeds ---- */

typedef struct dial_seeds {
    int n;
    double *loss[N_MODELS], *last[N_MODELS]; /* n each: the validation loss, and the last position's */
    double *gap;                             /* of the causal model to the honest floor */
    double *above;                           /* 1 ahead minus the lowest of 2 ahead, 4 ahead and no mask */
    long different_tokens;                   /* of all seeds */
} dial_seeds;

static dial_seeds seeds_of(mg_lab *lab, int n) {
    dial_seeds d = {.n = n, .gap = lab_numbers(lab, n), .above = lab_numbers(lab, n)};
    for (int i = 0; i < N_MODELS; i++) {
        d.loss[i] = lab_numbers(lab, n);
        d.last[i] = lab_numbers(lab, n);
    }
    return d;
}

static void keep_seed(dial_seeds *d, int s, const lab_training *t, const mg_evaluation e[N_MODELS]) {
    for (int i = 0; i < N_MODELS; i++) {
        d->loss[i][s] = e[i].loss;
        d->last[i][s] = e[i].position_loss[e[i].n_positions - 1];
    }
    d->gap[s] = e[CAUSAL].loss - e[CAUSAL].floor;
    d->above[s] = e[ONE].loss - lab_smaller(e[TWO].loss, lab_smaller(e[FOUR].loss, e[ALL].loss));
    d->different_tokens += t->different_tokens;
}

static void show_seeds(mg_lab *lab, const dial_seeds *d) {
    if (d->n == 1) return;
    lab_table *table = lab_table_begin(lab, "seeds", "Over seeds: mean validation loss in nats ± its standard error",
                                       "mask\tloss\tlast position");
    for (int i = 0; i < N_MODELS; i++)
        lab_table_row(table, "%s\t%s\t%s", dials[i].name, lab_mean_text(lab, d->n, d->loss[i]),
                      lab_mean_text(lab, d->n, d->last[i]));
    lab_table_end(table, "Each seed has its own initial weights and windows of the same data. The pictures are of the "
                         "first seed; the verdicts are on the means.");
}

/* ---- What came out ---- */

/* The first step at which a model's training loss, averaged over ten steps, is below half the reference; −1: never. */
static int collapsed_at(const lab_training *t, int model, double reference) {
    enum { WINDOW = 10 };
    double sum = 0;
    for (int step = 0; step < t->n_steps; step++) {
        sum += t->variant[model].loss[step];
        if (step >= WINDOW) sum -= t->variant[model].loss[step - WINDOW];
        if (step + 1 >= WINDOW && sum / WINDOW < reference * COLLAPSED_AT_PERCENT / 100) return step + 1;
    }
    return -1;
}

static void show_curves(mg_lab *lab, const lab_training *t, double floor, double cheat) {
    lab_figure *figure = lab_figure_begin(lab, "curves", "Validation loss by how far positions look ahead",
                                          (lab_axes){.x = "step", .y = "loss (nats per token)", .y_from_zero = true});
    for (int i = 0; i < N_MODELS; i++)
        lab_line(figure, t->variant[i].color, t->variant[i].name, t->n_evaluations, t->evaluation_step,
                 t->variant[i].validation);
    if (!isnan(floor)) lab_floor(figure, "best honest predictor", floor);
    if (!isnan(cheat)) lab_floor(figure, "best reader of labels", cheat);
    lab_figure_end(
        figure,
        "%sFor all others the lowest loss possible is the same, since the label is one token "
        "ahead and more of the future tells nothing new. Look which get there, and how soon: for 1 ahead the "
        "label is always the last token of those that a position sees, without a mask only its distance "
        "tells it from the others.",
        isnan(floor) ? "The causal model is honest, and how low an honest model can come on this text is not known. "
                     : "The causal model is honest: it can come down to the best honest predictor, but not end below "
                       "it. ");
}

static void show_losses(mg_lab *lab, const lab_training *t, const mg_evaluation e[N_MODELS], double reference) {
    const char *names[N_MODELS];
    double loss[N_MODELS];
    lab_table *table = lab_table_begin(lab, "losses", "Where they end: validation loss in nats",
                                       "mask\tloss\tlast position\tothers\tcollapsed at step");
    for (int i = 0; i < N_MODELS; i++) {
        ptrdiff_t T = e[i].n_positions;
        names[i] = t->variant[i].name;
        loss[i] = e[i].loss;
        double last = e[i].position_loss[T - 1], others = (e[i].loss * (double)T - last) / (double)(T - 1);
        int step = collapsed_at(t, i, reference);
        char when[32] = "never";
        if (step >= 0) snprintf(when, sizeof when, "%d", step);
        lab_table_row(table, "%s\t%.4f\t%.4f\t%.4f\t%s", names[i], loss[i], last, others, when);
    }
    lab_table_end(
        table,
        "The last position of a window has no label to read under any mask: compare its loss with the causal "
        "model's, and with that of the other positions. Collapsed: the training loss, averaged over ten steps, is "
        "below half of %.3f, %s.",
        reference, isnan(e[CAUSAL].floor) ? "where the causal model ended" : "the honest floor");
    lab_figure *figure = lab_figure_begin(lab, "ends", "Validation loss after training",
                                          (lab_axes){.x = "mask", .y = "loss (nats per token)", .y_from_zero = true});
    lab_bars(figure, LAB_GREEN, "validation loss", N_MODELS, names, loss);
    if (!isnan(e[CAUSAL].floor)) lab_floor(figure, "best honest predictor", e[CAUSAL].floor);
    lab_figure_end(figure, "Is the dial a switch, or is there anything between 0 and 1? Compare the model in which one "
                           "head of one layer sees one token ahead with the one that has no mask at all.");
}

static void check(mg_lab *lab, const dial_seeds *d, const mg_evaluation e[N_MODELS]) {
    bool known = !isnan(e[CAUSAL].floor);
    lab_check_zero(lab, "tokens in which the models' batches differed", (double)d->different_tokens, "");
    if (known) {
        lab_check_mean_at_least(lab, "causal: gap to the honest floor, at least minus 3 standard errors", d->n, d->gap,
                                -3 * e[CAUSAL].gap_error, "nats");
        lab_check_mean_below(lab, "causal: gap to the honest floor", d->n, d->gap, 0.1, "nats");
    }
    ptrdiff_t last = e[CAUSAL].n_positions - 1;
    double limit = lab_collapsed(known ? e[CAUSAL].position_floor[last] : e[CAUSAL].position_loss[last], last + 1);
    double honest = mg_summarize(d->n, d->last[CAUSAL]).mean;
    const char *why = lab_too_easy(lab, &e[CAUSAL]);
    for (int i = ONE; i < N_MODELS; i++) {
        const char *loss = lab_format(lab, "%s: loss", dials[i].name);
        if (why)
            lab_undecided(lab, loss, mg_summarize(d->n, d->loss[i]).mean, "nats", "%s", why);
        else
            lab_check_mean_below(lab, loss, d->n, d->loss[i], limit, "nats");
        lab_check_mean_at_least(lab, lab_format(lab, "%s: last position, which has no label to read", dials[i].name),
                                d->n, d->last[i], 0.8 * honest, "nats");
    }
    lab_check_mean_below(lab, "1 ahead: loss minus the lowest of 2 ahead, 4 ahead and no mask", d->n, d->above, 0.03,
                         "nats");
}

/* Too few steps are the commonest reason for a failed check. */
static void advise(mg_lab *lab, const dial_seeds *d, const mg_evaluation *causal, int steps) {
    const char *late = "";
    ptrdiff_t T = causal->n_positions;
    double last = isnan(causal->floor) ? causal->position_loss[T - 1] : causal->position_floor[T - 1];
    for (int i = ONE; i < N_MODELS; i++)
        if (mg_summarize(d->n, d->loss[i]).mean > lab_collapsed(last, T))
            late = lab_format(lab, "%s%s‘%s’", late, *late ? ", " : "", dials[i].name);
    if (*late && !lab_too_easy(lab, causal))
        lab_note(lab,
                 "After %s some models have not found all of their labels yet: %s. Before reading anything else into "
                 "a failed check, train longer (--max-iters) or faster (--lr 3e-3).",
                 mg_count(steps, "step").text, late);
}

static mg_status evaluate_all(mg_lab *lab, const lab_training *t, mg_evaluation e[N_MODELS], mg_error *error) {
    mg_status status = MG_OK;
    for (int i = 0; i < N_MODELS && !status; i++)
        status = mg_trainer_evaluate(&e[i], t->variant[i].trainer, MG_VALIDATION, lab_asked(lab)->quick ? 20 : 60,
                                     lab_stop(lab), error);
    return status;
}

/* Another seed: its own weights and windows, of the same data. */
static mg_status repeat(mg_lab *lab, dial_seeds *d, int s, const mg_run_options *run, const mg_corpus *corpus,
                        mg_error *error) {
    mg_run_options again = *run;
    again.train.seed += (uint64_t)s;
    lab_variant variant[N_MODELS];
    turn(variant, &again.train);
    lab_training t = {.n_variants = N_MODELS, .variant = variant};
    mg_evaluation e[N_MODELS] = {{0}};
    mg_status status = lab_train(lab, &t, corpus, &again, error);
    if (!status) status = evaluate_all(lab, &t, e, error);
    if (!status) keep_seed(d, s, &t, e);
    for (int i = 0; i < N_MODELS; i++) mg_evaluation_free(&e[i]);
    lab_training_free(&t);
    return status;
}

static mg_status measure(mg_lab *lab, lab_training *t, int n_seeds, const mg_run_options *run, const mg_corpus *corpus,
                         mg_error *error) {
    mg_evaluation e[N_MODELS] = {{0}};
    dial_seeds seeds = seeds_of(lab, n_seeds);
    mg_status status = lab_train(lab, t, corpus, run, error);
    if (!status) status = evaluate_all(lab, t, e, error);
    if (!status) keep_seed(&seeds, 0, t, e);
    for (int s = 1; s < n_seeds && !status; s++) status = repeat(lab, &seeds, s, run, corpus, error);
    if (!status) {
        double floor = e[CAUSAL].floor, reference = isnan(floor) ? e[CAUSAL].loss : floor;
        ptrdiff_t T = e[CAUSAL].n_positions;
        double cheat = isnan(floor) ? NAN : e[CAUSAL].position_floor[T - 1] / (double)T;
        lab_answer(lab, "leak", mg_summarize(n_seeds, seeds.loss[LEAK]).mean);
        lab_answer(lab, "causal", mg_summarize(n_seeds, seeds.loss[CAUSAL]).mean);
        show_curves(lab, t, floor, cheat);
        show_losses(lab, t, e, reference);
        show_seeds(lab, &seeds);
        check(lab, &seeds, e);
        advise(lab, &seeds, &e[CAUSAL], t->n_steps);
    }
    for (int i = 0; i < N_MODELS; i++) mg_evaluation_free(&e[i]);
    return status;
}

static void tell(mg_lab *lab, const mg_run_options *run, const mg_corpus *corpus) {
    if (corpus->grammar)
        lab_hypothesis(lab, "The causal model ends at the honest floor or above it.");
    else
        lab_hypothesis(lab, "The causal model is not accused of reading its labels. What the best "
                            "honest predictor loses on this text nobody knows, so that no loss is compared with it.");
    lab_hypothesis(lab, "One token ahead is enough: it is the label. 2, 4 and all tokens ahead end no lower.");
    lab_hypothesis(lab, "One leaky head in one layer is enough: what one head sees, the residual stream carries to the "
                        "output.");
    lab_guess(lab, "leak", "nats",
              "One head of one layer sees one token ahead. What will that model's loss be, per token?");
    lab_guess(lab, "causal", "nats", "And the causal model's?");
    lab_did(lab,
            "Six GPTs with the same initial weights saw the same windows; only the mask differs. The leaky head is "
            "head 0 of layer 0; all other heads are causal.");
    lab_training_settings(lab, run, corpus);
    lab_exercise(lab, "Put the leak into the last layer instead (maskgrad train --leak 1.0:1). Does the loss "
                      "collapse as soon? What comes after a leak in layer 0, but not after one in the last layer?");
    lab_exercise(lab, "Which number in a training log distinguishes an honest model from the one with the leaky "
                      "head? Run `maskgrad lab proof`.");
    lab_exercise(lab,
                 "Which of the leaking models collapses first, which last? What must each learn to find its label?");
    lab_source(lab, "Vaswani et al. 2017, “Attention Is All You Need”, section 3.2.3: the mask.");
    lab_source(lab, "Karpathy's nanochat, issue 844: leaks that validation loss does not show.");
}

mg_status lab_dial(mg_lab *lab, mg_error *error) {
    const lab_seeded_options *own = lab_asked(lab)->own;
    mg_run_options run = own->run;
    mg_run_options_resolve(&run);
    if (run.train.model.block_size < LEAST_CONTEXT)
        return mg_error_set(error, MG_ERR_INPUT,
                            "--block-size %d is too short for this lab: 4 tokens ahead would be the whole window, "
                            "so give %d or more",
                            run.train.model.block_size, LEAST_CONTEXT);
    mg_corpus *corpus;
    mg_status status = lab_load_corpus(lab, &run, &corpus, error);
    if (status) return status;
    lab_variant variant[N_MODELS];
    turn(variant, &run.train);
    lab_training training = {.n_variants = N_MODELS, .variant = variant};
    tell(lab, &run, corpus);
    status = lab_begin(lab, error);
    if (!status) status = measure(lab, &training, own->seeds, &run, corpus, error);
    lab_training_free(&training);
    mg_corpus_free(corpus);
    return status;
}
