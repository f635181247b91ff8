/* Lab leak: two GPTs, the same seed, the same windows, one mask apart.
 *
 * A decoder is trained on all positions at once: the label at t is the token at t+1, which is in the input, one
 * place to the right. A model without the mask reads it there. All but its last position can do that, so its loss falls
 * to H/T, where H is what the last position honestly pays; and a model that has learned to copy from the right has
 * nothing to copy from when it must write. */
#include "leak.h"
#include "alarm.h"
#include "causality.h"
#include "contexts.h"
#include "gemm.h"
#include "lab_private.h"
#include "labs.h"

#include <math.h>

/* ---- Options ---- */

static void set_defaults(void *own) {
    lab_seeded_options *seeded = own;
    *seeded = (lab_seeded_options){.run = mg_run_defaults(), .seeds = 1};
    mg_run_options *o = &seeded->run;
    o->eval_interval = 100;
    o->eval_iters = 10;
}

static void set_quick(void *own) {
    mg_run_options *o = &((lab_seeded_options *)own)->run;
    o->train.max_iters /= 2;
    o->train.schedule.lr = fmax(o->train.schedule.lr, 3e-3); /* gets there in half the steps, if less closely */
}

const lab_options lab_leak_options = {lab_seeded_tables, sizeof(lab_seeded_options), set_defaults, set_quick};

/* ---- The truth about the source ---- */

#define LEAST_RATE 0.5 /* nats per word, below which a sentence hardly has a choice */

typedef struct source_truth {
    bool known;
    ptrdiff_t T;
    double *floor;           /* by position */
    double mean, last, rate; /* of the floor; the entropy rate */
    bool exact;
} source_truth;

static mg_status find_truth(mg_lab *lab, const mg_corpus *corpus, ptrdiff_t T, source_truth *truth, mg_error *error) {
    *truth = (source_truth){.known = corpus->grammar != NULL, .T = T};
    if (!truth->known) return MG_OK;
    truth->floor = lab_numbers(lab, T);
    double standard_error; /* 0 where only the rate is sampled */
    mg_status status = mg_grammar_floor(corpus->grammar, T, truth->floor, &standard_error, &truth->exact, error);
    bool exact_rate;
    if (status == MG_OK) status = mg_grammar_entropy_rate(corpus->grammar, &truth->rate, &exact_rate, error);
    if (status != MG_OK) return status;
    for (ptrdiff_t t = 0; t < T; t++) truth->mean += truth->floor[t] / (double)T;
    truth->last = truth->floor[T - 1];
    truth->exact = truth->exact && exact_rate;
    lab_did(
        lab,
        "The source is a grammar, so the truth is %s: its entropy rate is %.4f nats per word, and the Bayes-optimal "
        "predictor, which sees only the past, pays %.4f nats averaged over %td positions: %.4f at the first, %.4f at "
        "the last.",
        truth->exact         ? "known exactly"
        : standard_error > 0 ? lab_format(lab, "known by sampling, to %.1g nats", standard_error)
                             : "known by sampling",
        truth->rate, truth->mean, T, truth->floor[0], truth->last);
    return MG_OK;
}

/* Why writing proves little here; NULL if it does prove something. */
static const char *too_predictable(mg_lab *lab, const source_truth *truth) {
    if (truth->rate >= LEAST_RATE) return NULL;
    return lab_format(lab,
                      "this grammar leaves %.3f nats per word open: its sentences can be learned at the last "
                      "position alone, where the unmasked model is honest",
                      truth->rate);
}

/* ---- Checks of the losses ---- */

#define CLOSE 0.05   /* nats: as good as a table */
#define LITTLE 0.1   /* nats that context is worth in a text with hardly any memory */
#define REACHED 0.03 /* nats: down at the floor */

static double mean_of(const leak_seeds *seeds, const double *observed) {
    return mg_summarize(seeds->n, observed).mean;
}

/* No model can be below the floor, whatever its seed: what is measured there is the luck of the validation windows
 * only. So the mean gap is compared with the standard error that the windows leave in it, and not with the seeds'
 * scatter. */
static void check_not_below_floor(mg_lab *lab, const char *name, const leak_seeds *seeds, const double *gap,
                                  const double *error) {
    double variance = 0;
    for (int s = 0; s < seeds->n; s++) variance += error[s] * error[s];
    lab_check_at_least(lab, lab_name_over_seeds(lab, name, seeds->n, "mean"), mean_of(seeds, gap),
                       -3 * sqrt(variance) / seeds->n, "nats");
}

static void check_grammar_losses(mg_lab *lab, const source_truth *truth, const leak_seeds *seeds) {
    int n = seeds->n;
    double cheat = truth->last / (double)truth->T;
    lab_setting(lab, "floor on these windows", "%.4f nats (over all windows: %.4f)", mean_of(seeds, seeds->floor),
                truth->mean);
    lab_check_mean_below(lab, "masked: gap to the honest floor", n, seeds->gap, REACHED, "nats");
    check_not_below_floor(lab, "masked: gap to the honest floor, at least minus 3 standard errors", seeds, seeds->gap,
                          seeds->gap_error);
    const double *unmasked = seeds->loss[UNMASKED];
    lab_check_mean_below(lab, "unmasked: loss", n, unmasked, lab_collapsed(truth->last, truth->T), "nats");
    lab_check_mean_near(lab, "unmasked: loss, against H(last)/T", n, unmasked, cheat, 0.02, "nats");
    check_not_below_floor(lab, "unmasked: last position's gap to its honest floor, at least minus 3 standard errors",
                          seeds, seeds->last_gap, seeds->last_gap_error);
}

/* The training loss at the end: a mean over the last steps. */
static double final_training_loss(const lab_training *t, int model) {
    int n = t->n_steps < 50 ? t->n_steps : 50;
    double sum = 0;
    for (int i = 0; i < n; i++) sum += t->variant[model].loss[t->n_steps - 1 - i];
    return sum / n;
}

/* Why a text cannot show what the unmasked model does wrong; NULL if it can. */
static const char *obstacle(mg_lab *lab, const lab_training *training, const lab_contexts *c,
                            const mg_evaluation *masked) {
    double known = final_training_loss(training, MASKED);
    if (masked->loss > c->loss[0] + CLOSE && known < masked->loss / 2)
        return lab_format(lab,
                          "the masked model knows the training tokens by heart (loss %.2f) and the others worse than a "
                          "table of frequencies (%.2f): use more text or fewer steps",
                          known, masked->loss);
    return lab_too_easy(lab, masked);
}

static void below_or_undecided(mg_lab *lab, const char *name, const leak_seeds *seeds, const double *observed,
                               double limit, const char *why) {
    if (why)
        lab_undecided(lab, name, mean_of(seeds, observed), "nats", "%s", why);
    else
        lab_check_mean_below(lab, name, seeds->n, observed, limit, "nats");
}

/* Why a text has nothing to learn from context; NULL if it has. */
static const char *no_memory(mg_lab *lab, const lab_contexts *c) {
    if (c->memory >= LITTLE) return NULL;
    return lab_format(lab,
                      "this text has next to no memory: up to %d tokens of context lower the loss of a table by %.3f "
                      "nats",
                      LAB_CONTEXTS - 1, c->memory);
}

/* Of a text nobody knows the floor, so what is expected of the masked model comes from tables that count short contexts
 * of the very same text. Where they show no memory, no model can: nothing is decided about learning from context. */
static void check_masked_text(mg_lab *lab, const lab_contexts *c, const leak_seeds *seeds) {
    const double *masked = seeds->loss[MASKED];
    bool by_heart = mean_of(seeds, masked) > c->loss[0] + CLOSE && seeds->why;
    below_or_undecided(lab, "masked: loss, against a table of token frequencies", seeds, masked, c->loss[0] + CLOSE,
                       by_heart ? seeds->why : NULL);
    below_or_undecided(lab, "masked: loss, against a table of what follows each token", seeds, masked,
                       c->loss[1] + CLOSE, by_heart ? seeds->why : no_memory(lab, c));
}

/* At position 0 any model that sees no future predicts from one token, whatever it knows by heart: the alarm's
 * evidence, on the windows of the evaluation. */
static void check_position_0(mg_lab *lab, const leak_seeds *seeds) {
    const char *name = lab_name_over_seeds(lab, "masked: evidence that position 0 reads its label", seeds->n,
                                           "largest");
    double evidence = lab_largest(seeds->n, seeds->evidence), to_read = lab_smallest(seeds->n, seeds->to_read);
    if (to_read < 10 * MG_ALARM_EVIDENCE)
        lab_undecided(lab, name, evidence, "nats",
                      "all labels of position 0 together hold %.0f nats: there is too little to read", to_read);
    else
        lab_check_below(lab, name, evidence, MG_ALARM_EVIDENCE, "nats");
}

static void check_text_losses(mg_lab *lab, const lab_contexts *c, const leak_seeds *seeds, ptrdiff_t T) {
    const char *why = seeds->why;
    check_masked_text(lab, c, seeds);
    below_or_undecided(lab, "unmasked: loss", seeds, seeds->loss[UNMASKED],
                       lab_collapsed(mean_of(seeds, seeds->last[MASKED]), T), why);
    below_or_undecided(lab, "unmasked: loss where the label is in the input", seeds, seeds->labeled[UNMASKED],
                       mean_of(seeds, seeds->labeled[MASKED]) / 20, why);
    const char *edge = "unmasked: last position, which has no label to read, minus the masked model's";
    if (why)
        lab_undecided(lab, edge, mean_of(seeds, seeds->last_apart), "nats", "%s", why);
    else
        lab_check_mean_above(lab, edge, seeds->n, seeds->last_apart, -0.1, "nats");
}

/* Too few steps are the commonest reason for a failed check, and the easiest to mend. */
static void advise(mg_lab *lab, const leak_seeds *seeds, bool slow) {
    bool blind = mean_of(seeds, seeds->labeled[UNMASKED]) > mean_of(seeds, seeds->labeled[MASKED]) / 4;
    if (!slow && !blind) return;
    lab_note(lab,
             "After %s %s%s%s. Before reading anything else into a failed check, train longer (--max-iters) or faster "
             "(--lr 3e-3).",
             mg_count(seeds->training->n_steps, "step").text,
             slow ? "the masked model is still above what it could reach" : "", slow && blind ? ", and " : "",
             blind ? "the unmasked model has hardly found its labels" : "");
}

/* ---- Pictures of the losses ---- */

static void show_curves(mg_lab *lab, const leak_seeds *seeds, const source_truth *truth) {
    lab_figure *figure = lab_seeded_training_figure(lab, seeds->n, seeds->training, "loss", "The two losses");
    if (!truth->known) {
        lab_figure_end(figure, "What to look for: without a mask a loss can fall where no honest model of a language "
                               "can follow. Does the validation loss warn you? Held-out text leaks its labels too.");
        return;
    }
    lab_floor(figure, "honest floor", truth->mean);
    double cheat = truth->last / (double)truth->T;
    lab_floor(figure, "cheater's floor", cheat);
    lab_figure_end(figure,
                   "What to look for: the honest floor is the best that any predictor can do. A masked model can "
                   "reach it but not go below. Only a model that reads its labels can go below it, down to the "
                   "cheater's floor. Does the validation loss warn you? Held-out text leaks its labels too.");
}

static void show_positions(mg_lab *lab, const leak_seeds *seeds, const source_truth *truth) {
    int T = (int)truth->T;
    double last = mean_of(seeds, seeds->last[UNMASKED]);
    lab_figure *figure = lab_figure_begin(
        lab, "position", "Loss by position, after training",
        (lab_axes){.x = "position in the window", .y = "loss (nats per token)", .y_from_zero = true});
    for (int i = 0; i < N_MODELS; i++) {
        const lab_variant *v = &seeds->training->variant[i];
        double *mean = lab_numbers(lab, T), *error = lab_numbers(lab, T);
        lab_mean_curve(seeds->n, T, seeds->position[i], mean, error);
        if (seeds->n == 1)
            lab_line(figure, v->color, v->name, T, NULL, mean);
        else
            lab_band(figure, v->color, v->name, T, NULL, mean, error);
    }
    if (truth->known) lab_floor_curve(figure, "honest floor", T, NULL, truth->floor);
    lab_figure_end(figure,
                   "Where a position can read its label, its loss can fall to 0. The last position has no token to its "
                   "right to read, with or without the mask: here the unmasked model pays %.2f nats for it, and %.3f "
                   "on average over all %d. If all other positions were free, the average would be %.3f.",
                   last, mean_of(seeds, seeds->loss[UNMASKED]), T, last / T);
}

static void show_losses(mg_lab *lab, const leak_seeds *seeds, const source_truth *truth) {
    if (seeds->n > 1)
        lab_note(lab, "The lines are means over %d seeds, their bands and bars one standard error of the mean.",
                 seeds->n);
    show_curves(lab, seeds, truth);
    show_positions(lab, seeds, truth);
}

/* ---- Training mask × evaluation mask ---- */

static mg_status cross_masks(mg_lab *lab, lab_training *training, int batches, mg_error *error) {
    static const char *const name[N_MODELS] = {"with the mask", "without"};
    lab_table *table = lab_table_begin(lab, "masks", "Training mask × evaluation mask: validation loss in nats",
                                       "trained\tevaluated with the mask\tevaluated without");
    for (int trained = 0; trained < N_MODELS; trained++) {
        mg_trainer *trainer = training->variant[trained].trainer;
        mg_gpt *gpt = mg_trainer_model(trainer);
        mg_mask own = mg_gpt_get_config(gpt)->mask;
        double loss[N_MODELS];
        for (int mask = 0; mask < N_MODELS; mask++) {
            mg_evaluation e;
            mg_gpt_set_mask(gpt, mg_lookahead(mask == MASKED ? 0 : MG_LOOKAHEAD_ALL));
            mg_status status = mg_trainer_evaluate(&e, trainer, MG_VALIDATION, batches, lab_stop(lab), error);
            mg_gpt_set_mask(gpt, own);
            if (status) return status;
            loss[mask] = e.loss;
            mg_evaluation_free(&e);
        }
        lab_table_row(table, "%s\t%.4f\t%.4f", name[trained], loss[MASKED], loss[UNMASKED]);
    }
    lab_table_end(table, "The mask is part of the model. A model trained without it and evaluated with it is asked for "
                         "something it never had to learn: compare its two losses.");
    return MG_OK;
}

/* ---- The influence of each token on each prediction ---- */

enum { MOST_SHOWN = 16, MOST_TESTED = 64 };

/* Of the first tokens that were held out. The caller frees what was found. */
static mg_status find_influence(leak_seeds *seeds, int s, const mg_corpus *corpus, mg_causality found[N_MODELS],
                                mg_error *error) {
    const int *ids = corpus->ids + (corpus->n_train < corpus->n ? corpus->n_train : 0);
    const lab_variant *variant = seeds->training[s].variant;
    int T = variant->options.model.block_size < MOST_TESTED ? variant->options.model.block_size : MOST_TESTED;
    mg_status status = MG_OK;
    for (int i = 0; i < N_MODELS && !status; i++) {
        status = mg_causality_of_gpt(&found[i], mg_trainer_model(variant[i].trainer), ids, T, error);
        for (int row = 0; row < T && !status; row++)
            for (int column = row + 1; column < T; column++)
                seeds->future[i][s] = lab_larger(seeds->future[i][s], found[i].perturbation[row * T + column]);
    }
    return status;
}

static void draw_influence(mg_lab *lab, const lab_training *training, const mg_corpus *corpus, int T,
                           const mg_causality found[N_MODELS]) {
    int shown = T < MOST_SHOWN ? T : MOST_SHOWN;
    const int *ids = corpus->ids + (corpus->n_train < corpus->n ? corpus->n_train : 0);
    const char **labels = lab_token_labels(lab, corpus->tokenizer, ids, shown);
    lab_heatmap *map = lab_heatmap_begin(
        lab, "influence", "How much each token moves each prediction (largest change of a logit)",
        (lab_scale){.unit = "change", .rows = "prediction at", .columns = "changed token"});
    for (int i = 0; i < N_MODELS; i++) {
        mg_real *influence = lab_reals(lab, (ptrdiff_t)shown * shown);
        for (int row = 0; row < shown; row++)
            for (int column = 0; column < shown; column++)
                influence[row * shown + column] = (mg_real)found[i].perturbation[row * T + column];
        lab_heatmap_panel(map, (lab_panel){.title = training->variant[i].name,
                                           .n_rows = shown,
                                           .n_columns = shown,
                                           .values = influence,
                                           .row_labels = labels,
                                           .column_labels = labels,
                                           .masked = i == MASKED,
                                           .mask = mg_lookahead(0)});
    }
    lab_heatmap_end(
        map,
        "Each column changes one token of a real text and looks at all predictions: of %d tested positions "
        "the first %d are drawn. With the mask nothing above the diagonal may move, not by one bit. Without "
        "it, the cell just after the diagonal in each row but the last is the label.",
        T, shown);
}

static void check_influence(mg_lab *lab, const leak_seeds *seeds, int T) {
    const char *pairs = lab_format(
        lab, "influence of later tokens on earlier predictions, all %d pairs of %d positions", T * (T - 1) / 2, T);
    lab_check_zero(lab, lab_name_over_seeds(lab, lab_format(lab, "masked: %s", pairs), seeds->n, "largest"),
                   lab_largest(seeds->n, seeds->future[MASKED]), "");
    const char *unmasked = lab_name_over_seeds(lab, lab_format(lab, "unmasked: largest %s", pairs), seeds->n,
                                               "smallest");
    double least = lab_smallest(seeds->n, seeds->future[UNMASKED]);
    if (seeds->why && least <= 0.1)
        lab_undecided(lab, unmasked, least, "", "%s", seeds->why);
    else
        lab_check_above(lab, unmasked, least, 0.1, "");
}

static mg_status show_influence(mg_lab *lab, leak_seeds *seeds, const mg_corpus *corpus, mg_error *error) {
    mg_causality found[N_MODELS] = {{0}};
    mg_status status = find_influence(seeds, 0, corpus, found, error);
    if (!status) {
        int T = (int)found[MASKED].T;
        draw_influence(lab, seeds->training, corpus, T, found);
        check_influence(lab, seeds, T);
    }
    for (int i = 0; i < N_MODELS; i++) mg_causality_free(&found[i]);
    return status;
}

/* ---- All of it ---- */

static void tell(mg_lab *lab, const mg_run_options *run, const mg_corpus *corpus) {
    lab_hypothesis(lab,
                   "With the causal mask the loss falls to the best that an honest predictor can do, and no lower.");
    lab_hypothesis(lab,
                   "Without it the loss falls through that floor to H(last)/T, because every position but the last "
                   "can read its label in the input.");
    lab_hypothesis(
        lab, "The unmasked model cannot write: it has learned to copy from the right, where there is nothing yet.");
    lab_guess(lab, "masked", "nats", "What will the masked model's validation loss be, per token?");
    lab_guess(lab, "unmasked", "nats", "And the unmasked model's?");
    lab_did(lab, "Two GPTs were trained side by side, from the same initial weights on the same windows; only the mask "
                 "differs.");
    lab_training_settings(lab, run, corpus);
    lab_setting(lab, "machine", "%s", mg_blas_name());
}

static void exercises(mg_lab *lab) {
    lab_exercise(lab,
                 "Halve the context with --block-size. Where does the unmasked loss end now, and why there? Predict it "
                 "before you run it.");
    lab_exercise(lab, "Did the validation loss warn of anything? Which number of this report does?");
    lab_exercise(lab, "Run `maskgrad lab dial`: how much of the future is enough?");
    lab_source(lab, "Vaswani et al. 2017, Attention is all you need, section 3.2.3: the mask.");
    lab_source(lab, "Radford et al. 2019, Language models are unsupervised multitask learners: GPT-2.");
    lab_source(lab, "Cover & Thomas, Elements of information theory, chapter 4: entropy rates.");
}

/* Of validation windows. */
static int batches_of(const mg_lab *lab) {
    return lab_asked(lab)->quick ? 50 : 200;
}

/* Each model of a seed on the same validation windows, and the masked one against what one token allows there. */
static mg_status evaluate(mg_lab *lab, leak_seeds *seeds, int s, const mg_corpus *corpus, const lab_contexts *contexts,
                          mg_error *error) {
    const lab_training *training = &seeds->training[s];
    const mg_train_options *o = &training->variant[0].options;
    const mg_evaluation_options options = {.split = MG_VALIDATION,
                                           .n_batches = batches_of(lab),
                                           .batch_size = o->batch_size,
                                           .seed = o->seed,
                                           .evidence = true,
                                           .stop = lab_stop(lab)};
    mg_evaluation e[N_MODELS] = {{0}};
    mg_pairs *pairs;
    mg_status status = mg_pairs_new(&pairs, corpus, MG_VALIDATION, o->model.block_size, 1, error);
    for (int i = 0; i < N_MODELS && !status; i++)
        status = mg_evaluate(&e[i], mg_trainer_model(training->variant[i].trainer), corpus, &options, error);
    if (!status) {
        leak_seeds_keep(lab, seeds, s, e);
        seeds->to_read[s] = mg_pairs_entropy(pairs) * (double)e[MASKED].n_windows;
        if (!corpus->grammar && !seeds->why) seeds->why = obstacle(lab, training, contexts, &e[MASKED]);
    }
    mg_pairs_free(pairs);
    for (int i = 0; i < N_MODELS; i++) mg_evaluation_free(&e[i]);
    return status;
}

static mg_status train(mg_lab *lab, leak_seeds *seeds, int s, const mg_run_options *run, const mg_corpus *corpus,
                       const lab_contexts *contexts, mg_error *error) {
    mg_status status = lab_train(lab, &seeds->training[s], corpus, run, error);
    return status ? status : evaluate(lab, seeds, s, corpus, contexts, error);
}

/* Another seed: its own weights, windows and samples, of the same data. */
static mg_status repeat(mg_lab *lab, leak_seeds *seeds, int s, const mg_run_options *run, const mg_corpus *corpus,
                        const lab_contexts *contexts, mg_error *error) {
    mg_causality found[N_MODELS] = {{0}};
    leak_writing *writing;
    mg_status status = train(lab, seeds, s, run, corpus, contexts, error);
    if (!status) status = find_influence(seeds, s, corpus, found, error);
    if (!status) status = leak_write(lab, seeds, s, corpus, &writing, error);
    for (int i = 0; i < N_MODELS; i++) mg_causality_free(&found[i]);
    lab_training_free(&seeds->training[s]);
    return status;
}

static void check_losses(mg_lab *lab, const leak_seeds *seeds, const source_truth *truth,
                         const lab_contexts *contexts) {
    lab_answer(lab, "masked", mean_of(seeds, seeds->loss[MASKED]));
    lab_answer(lab, "unmasked", mean_of(seeds, seeds->loss[UNMASKED]));
    check_position_0(lab, seeds);
    lab_check_zero(lab, "tokens in which the two models' batches differed", (double)seeds->different_tokens, "");
    if (truth->known)
        check_grammar_losses(lab, truth, seeds);
    else
        check_text_losses(lab, contexts, seeds, truth->T);
    advise(lab, seeds,
           truth->known ? mean_of(seeds, seeds->gap) > REACHED
                        : mean_of(seeds, seeds->loss[MASKED]) > contexts->loss[1] + CLOSE);
}

static mg_status write(mg_lab *lab, leak_seeds *seeds, const mg_corpus *corpus, const source_truth *truth,
                       const lab_contexts *contexts, mg_error *error) {
    leak_writing *writing;
    mg_status status = leak_write(lab, seeds, 0, corpus, &writing, error);
    if (status) return status;
    const char *why = truth->known ? too_predictable(lab, truth) : seeds->why ? seeds->why : no_memory(lab, contexts);
    leak_show_writing(lab, seeds, corpus, writing, why);
    leak_seeds_show(lab, seeds, truth->known);
    return MG_OK;
}

static mg_status measure(mg_lab *lab, leak_seeds *seeds, const mg_run_options *run, const mg_corpus *corpus,
                         mg_error *error) {
    lab_contexts contexts = lab_contexts_of(lab, corpus);
    source_truth truth;
    mg_status status = find_truth(lab, corpus, run->train.model.block_size, &truth, error);
    if (!status) status = train(lab, seeds, 0, run, corpus, &contexts, error);
    if (status) return status;
    for (int s = 1; s < seeds->n && !status; s++) {
        status = repeat(lab, seeds, s, run, corpus, &contexts, error);
        if (status) seeds->n = s; /* shown are those that were finished */
    }
    if (!status) check_losses(lab, seeds, &truth, &contexts);
    if (!status || status == MG_ERR_STOPPED) show_losses(lab, seeds, &truth);
    if (!status) status = show_influence(lab, seeds, corpus, error);
    if (!status) status = write(lab, seeds, corpus, &truth, &contexts, error);
    if (!status) status = cross_masks(lab, seeds->training, batches_of(lab) / 4, error);
    return status;
}

/* The first window holds a start and what the model writes after it: at least one sentence of a grammar, one token of
 * a text. */
static mg_status check_context(const mg_corpus *corpus, int block_size, mg_error *error) {
    int sentence = corpus->grammar ? mg_grammar_shortest_sentence(corpus->grammar) : 1;
    if (block_size > sentence) return MG_OK;
    return mg_error_set(error, MG_ERR_INPUT, "--block-size %d is too short for this lab: %s, so give %d or more",
                        block_size,
                        corpus->grammar ? "no sentence of the grammar fits after the start of a window"
                                        : "a window of one token has no label in its input",
                        sentence + 1);
}

mg_status lab_leak(mg_lab *lab, mg_error *error) {
    const lab_seeded_options *own = lab_asked(lab)->own;
    mg_run_options run = own->run;
    mg_run_options_resolve(&run);
    mg_corpus *corpus;
    mg_status status = lab_load_corpus(lab, &run, &corpus, error);
    if (status) return status;
    lab_variant variant[N_MODELS] = {{.name = "masked", .color = LAB_MASKED, .options = run.train},
                                     {.name = "unmasked", .color = LAB_UNMASKED, .options = run.train}};
    variant[MASKED].options.model.mask = mg_lookahead(lab_broken("leak.mask") ? 1 : 0);
    variant[UNMASKED].options.model.mask = mg_lookahead(lab_broken("leak.open") ? 0 : MG_LOOKAHEAD_ALL);
    leak_seeds seeds = leak_seeds_new(lab, own->seeds, &(lab_training){.n_variants = N_MODELS, .variant = variant});
    tell(lab, &run, corpus);
    status = check_context(corpus, run.train.model.block_size, error);
    if (!status) status = lab_begin(lab, error);
    if (!status) status = measure(lab, &seeds, &run, corpus, error);
    exercises(lab);
    lab_training_free(seeds.training);
    mg_corpus_free(corpus);
    return status;
}
