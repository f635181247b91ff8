/* Lab packed: several documents in one window, and a window whose beginning is not masked.
 *
 * Texts shorter than the context are packed: the next one begins where one ends. A causal mask lets each see the ones
 * before it. An interval of keys that begins with the document makes them strangers. The other end of the interval
 * gives the prefix language model (Raffel et al. 2020): the first P positions see each other, so their labels are
 * readable, and a loss over them measures nothing. */
#include "packed.h"
#include "contexts.h"
#include "lab_private.h"
#include "labs.h"

#include <math.h>

enum { CAUSAL, DOCUMENTS, PREFIX, N_MODELS };
/* Shorter halves of a window have no label to read, or no honest position after them. */
enum { LEAST_CONTEXT = 4 };
static const double TOLERANCE = 0.1; /* nats, of the prefix model's loss over all positions */

/* ---- Options ---- */

static void set_defaults(void *own) {
    mg_run_options *o = own;
    *o = mg_run_defaults();
    o->train.max_iters = 1500; /* half of the positions teach the prefix model to read its label */
    o->train.schedule.lr = 3e-3;
    o->eval_interval = 50;
    o->eval_iters = 5;
}

static void set_quick(void *own) {
    mg_run_options *o = own;
    o->train.max_iters /= 2;
}

const lab_options lab_packed_options = {lab_measured_training_tables, sizeof(mg_run_options), set_defaults, set_quick};

static int prefix_of(const mg_run_options *run) {
    return run->train.model.block_size / 2;
}

static void set_masks(lab_variant variant[N_MODELS], const mg_run_options *run) {
    variant[CAUSAL] = (lab_variant){.name = "causal", .color = LAB_MASKED};
    variant[DOCUMENTS] = (lab_variant){.name = "documents", .color = LAB_GREEN};
    variant[PREFIX] = (lab_variant){.name = "prefix", .color = LAB_UNMASKED};
    for (int i = 0; i < N_MODELS; i++) {
        variant[i].options = run->train;
        mg_gpt_config *model = &variant[i].options.model;
        model->mask = mg_lookahead(0);
        model->leak_layer = -1;
        model->leak_lookahead = 0;
        model->documents = false;
    }
    mg_gpt_config *documents = &variant[DOCUMENTS].options.model;
    documents->documents = !lab_broken("packed.documents");
    documents->positions_run_on = lab_broken("packed.positions");
    if (!lab_broken("packed.prefix")) variant[PREFIX].options.model.mask = (mg_mask){MG_MASK_PREFIX, prefix_of(run)};
}

/* ---- What the models lose ---- */

/* The mean over positions begin … end − 1. */
static double mean_loss(const double *loss, ptrdiff_t begin, ptrdiff_t end) {
    double sum = 0;
    for (ptrdiff_t t = begin; t < end; t++) sum += loss[t];
    return sum / (double)(end - begin);
}

static void show_positions(mg_lab *lab, const lab_training *t, const mg_evaluation e[N_MODELS], ptrdiff_t P) {
    lab_figure *figure = lab_figure_begin(
        lab, "positions", "Validation loss by position in the window",
        (lab_axes){.x = "position", .y = "loss (nats per token)", .y_from_zero = true});
    for (int i = 0; i < N_MODELS; i++)
        lab_line(figure, t->variant[i].color, t->variant[i].name, (int)e[i].n_positions, NULL, e[i].position_loss);
    if (e[CAUSAL].position_floor)
        lab_floor_curve(figure, "best honest predictor", (int)e[CAUSAL].n_positions, NULL, e[CAUSAL].position_floor);
    lab_vertical(figure, "last of the prefix", (double)(P - 1));
    lab_figure_end(figure, "In the prefix each position sees its label, except the last: its label is the first token "
                           "after the prefix. From there on the three models face the same task.");
}

static void show_losses(mg_lab *lab, const lab_training *t, const mg_evaluation e[N_MODELS], ptrdiff_t P) {
    lab_table *table = lab_table_begin(lab, "losses", "Validation loss in nats per token",
                                       "mask\tall positions\tlabel readable\tthe others\ttheir floor");
    for (int i = 0; i < N_MODELS; i++) {
        ptrdiff_t T = e[i].n_positions, honest = i == PREFIX ? P - 1 : 0;
        char readable[32] = "–", floor[32] = "–";
        if (honest) snprintf(readable, sizeof readable, "%.4f", mean_loss(e[i].position_loss, 0, honest));
        if (e[i].position_floor) snprintf(floor, sizeof floor, "%.4f", mean_loss(e[i].position_floor, honest, T));
        lab_table_row(table, "%s\t%.4f\t%s\t%.4f\t%s", t->variant[i].name, e[i].loss, readable,
                      mean_loss(e[i].position_loss, honest, T), floor);
    }
    lab_table_end(table, "Compare a column only between positions that face the same task: the loss over all positions "
                         "of a prefix model is low because of what it can read, not because of what it knows.");
}

/* What is low enough is, however it goes on; a model that was still learning has not shown how low it comes. */
static const char *not_yet_low(const lab_training *t, int model, double observed, double limit) {
    if (observed < limit || !lab_still_falling(t->n_steps, t->variant[model].loss)) return NULL;
    return "the loss was still falling when training ended: give more --max-iters";
}

static void check_low(mg_lab *lab, const lab_training *t, int model, const char *name, double observed, double limit,
                      const char *why) {
    if (!why) why = not_yet_low(t, model, observed, limit);
    if (why)
        lab_undecided(lab, name, observed, "nats", "%s", why);
    else
        lab_check_below(lab, name, observed, limit, "nats");
}

/* A loss at honest positions begin … T − 1 is not below what an honest model can reach. */
static void check_honest(mg_lab *lab, const lab_training *t, int model, const char *name, const mg_evaluation *e,
                         const mg_evaluation *causal, ptrdiff_t begin) {
    ptrdiff_t T = e->n_positions;
    double loss = mean_loss(e->position_loss, begin, T);
    if (e->position_floor) {
        double gap = loss - mean_loss(e->position_floor, begin, T);
        lab_check_at_least(lab, lab_format(lab, "%s: gap to the honest floor, at least minus 3 standard errors", name),
                           gap, -3 * mean_loss(e->position_gap_error, begin, T), "nats");
        check_low(lab, t, model, lab_format(lab, "%s: gap to the honest floor", name), gap, 0.15, NULL);
    } else if (e != causal)
        lab_check_at_least(lab, lab_format(lab, "%s: loss, beside the causal model's at the same positions", name),
                           loss, 0.8 * mean_loss(causal->position_loss, begin, T), "nats");
}

static void check_losses(mg_lab *lab, const lab_training *t, const mg_evaluation e[N_MODELS], ptrdiff_t P) {
    check_honest(lab, t, CAUSAL, "causal", &e[CAUSAL], &e[CAUSAL], 0);
    check_honest(lab, t, DOCUMENTS, "documents", &e[DOCUMENTS], &e[CAUSAL], 0);
    check_honest(lab, t, PREFIX, "prefix, positions whose label is not readable", &e[PREFIX], &e[CAUSAL], P - 1);
    check_low(lab, t, PREFIX, "prefix: loss at positions whose label is readable",
              mean_loss(e[PREFIX].position_loss, 0, P - 1), lab_collapsed(0, P), lab_too_easy(lab, &e[CAUSAL]));
    if (!e[CAUSAL].position_floor) return;
    ptrdiff_t T = e[PREFIX].n_positions;
    double predicted = mean_loss(e[PREFIX].position_floor, P - 1, T) * (double)(T - P + 1) / (double)T;
    const char *name = "prefix: loss over all positions, beside the sum of the honest floors over T";
    const char *why = not_yet_low(t, PREFIX, e[PREFIX].loss, predicted + TOLERANCE);
    if (why)
        lab_undecided(lab, name, e[PREFIX].loss, "nats", "%s", why);
    else
        lab_check_near(lab, name, e[PREFIX].loss, predicted, TOLERANCE, "nats");
}

static mg_status measure(mg_lab *lab, lab_training *t, const mg_run_options *run, const mg_corpus *corpus, int end,
                         mg_error *error) {
    mg_evaluation e[N_MODELS] = {{0}};
    mg_status status = lab_train(lab, t, corpus, run, error);
    for (int i = 0; i < N_MODELS && !status; i++)
        status = mg_trainer_evaluate(&e[i], t->variant[i].trainer, MG_VALIDATION, lab_asked(lab)->quick ? 20 : 60,
                                     lab_stop(lab), error);
    if (!status) {
        ptrdiff_t P = prefix_of(run);
        lab_answer(lab, "prefix", e[PREFIX].loss);
        show_losses(lab, t, e, P);
        show_positions(lab, t, e, P);
        lab_check_zero(lab, "tokens in which the models' batches differed", (double)t->different_tokens, "");
        check_losses(lab, t, e, P);
        status = lab_packed_windows(lab, corpus, mg_trainer_model(t->variant[DOCUMENTS].trainer),
                                    mg_trainer_model(t->variant[CAUSAL].trainer), end, error);
    }
    for (int i = 0; i < N_MODELS; i++) mg_evaluation_free(&e[i]);
    return status;
}

/* ---- The lab ---- */

static void tell(mg_lab *lab, const mg_run_options *run, const mg_corpus *corpus) {
    int P = prefix_of(run);
    lab_hypothesis(lab, "Under the mask of documents no token moves a prediction in another document: the influence is "
                        "0, to the last bit. Under the causal mask it is not.");
    lab_hypothesis(
        lab, "What else is packed into the window changes no bit of a document's losses. If positions count from 0 "
             "in each document, they are, but for rounding, those of the document at the beginning of a "
             "window; if positions run on, they are not.");
    lab_hypothesis(lab,
                   "With a prefix of %d of %d positions, the loss collapses where a label is readable, and only there: "
                   "the loss over all positions is the sum of the honest floors after it, over %d.",
                   P, run->train.model.block_size, run->train.model.block_size);
    lab_guess(lab, "prefix", "nats",
              "The first %d of %d positions see each other; the others are causal. What will the loss be, averaged "
              "over all positions?",
              P, run->train.model.block_size);
    lab_guess(lab, "border", "%",
              "Under the causal mask, of all pairs of an earlier token and a later prediction in two different "
              "documents: in how many does the token move the prediction?");
    lab_did(lab,
            "Three GPTs with the same initial weights saw the same windows of documents, packed one after the other; "
            "only the mask differs: causal; each document for itself, positions counting from 0; and causal with a "
            "prefix of %d positions that see each other.",
            P);
    lab_training_settings(lab, run, corpus);
    lab_exercise(lab, "The sentences of a grammar are independent. Does seeing the one before help the causal model? "
                      "Compare its loss with that of the documents' model, and say on which texts it would differ.");
    lab_exercise(lab, "Train with `--mask documents:run-on`. What does a model learn about positions that it cannot "
                      "learn when each document counts from 0? Which one would you rather ask to continue a prompt?");
    lab_exercise(lab, "T5 and others train a prefix model with no loss in the prefix. Which number in this report "
                      "says why?");
    lab_source(lab, "Raffel et al. 2020, “Exploring the Limits of Transfer Learning”, figure 4: prefix masks.");
    lab_source(lab, "Krell et al. 2021, “Efficient Sequence Packing without Cross-contamination”.");
}

mg_status lab_packed(mg_lab *lab, mg_error *error) {
    mg_run_options run = *(const mg_run_options *)lab_asked(lab)->own;
    mg_run_options_resolve(&run);
    if (run.train.model.block_size < LEAST_CONTEXT)
        return mg_error_set(error, MG_ERR_INPUT,
                            "--block-size %d is too short for this lab, which halves it: give %d or more",
                            run.train.model.block_size, LEAST_CONTEXT);
    mg_corpus *corpus;
    mg_status status = lab_load_corpus(lab, &run, &corpus, error);
    if (status) return status;
    int end;
    status = mg_corpus_document_end(corpus, &end, error);
    if (!status) {
        lab_variant variant[N_MODELS];
        set_masks(variant, &run);
        lab_training training = {.n_variants = N_MODELS, .variant = variant};
        tell(lab, &run, corpus);
        status = lab_begin(lab, error);
        if (!status) status = measure(lab, &training, &run, corpus, end, error);
        lab_training_free(&training);
    }
    mg_corpus_free(corpus);
    return status;
}
