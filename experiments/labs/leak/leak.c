/* Lab leak: two GPTs, the same seed, the same windows, one mask apart.
 *
 * A decoder is trained on all positions at once: the label at t is the token at t+1, which is in the input, one
 * place to the right. A model without the mask reads it there. All but its last position can do that, so its loss falls
 * to H/T, where H is what the last position honestly pays; and a model that has learned to copy from the right has
 * nothing to copy from when it must write. */
#include "leak.h"
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

static mg_status find_truth(mg_lab *lab, const mg_corpus *corpus, ptrdiff_t T, leak_truth *truth, mg_error *error) {
    *truth = (leak_truth){.known = corpus->grammar != NULL, .T = T};
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
static const char *too_predictable(mg_lab *lab, const leak_truth *truth) {
    if (truth->rate >= LEAST_RATE) return NULL;
    return lab_format(lab,
                      "this grammar leaves %.3f nats per word open: its sentences can be learned at the last "
                      "position alone, where the unmasked model is honest",
                      truth->rate);
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
        if (!corpus->grammar && !seeds->why) seeds->why = leak_obstacle(lab, training, contexts, &e[MASKED]);
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
    if (!status) status = leak_find_influence(seeds, s, corpus, found, error);
    if (!status) status = leak_write(lab, seeds, s, corpus, &writing, error);
    for (int i = 0; i < N_MODELS; i++) mg_causality_free(&found[i]);
    lab_training_free(&seeds->training[s]);
    return status;
}

static mg_status write(mg_lab *lab, leak_seeds *seeds, const mg_corpus *corpus, const leak_truth *truth,
                       const lab_contexts *contexts, mg_error *error) {
    leak_writing *writing;
    mg_status status = leak_write(lab, seeds, 0, corpus, &writing, error);
    if (status) return status;
    const char *why = truth->known ? too_predictable(lab, truth)
                      : seeds->why ? seeds->why
                                   : leak_no_memory(lab, contexts);
    leak_show_writing(lab, seeds, corpus, writing, why);
    leak_seeds_show(lab, seeds, truth->known);
    return MG_OK;
}

static mg_status measure(mg_lab *lab, leak_seeds *seeds, const mg_run_options *run, const mg_corpus *corpus,
                         mg_error *error) {
    lab_contexts contexts = lab_contexts_of(lab, corpus);
    leak_truth truth;
    mg_status status = find_truth(lab, corpus, run->train.model.block_size, &truth, error);
    if (!status) status = train(lab, seeds, 0, run, corpus, &contexts, error);
    if (status) return status;
    for (int s = 1; s < seeds->n && !status; s++) {
        status = repeat(lab, seeds, s, run, corpus, &contexts, error);
        if (status) seeds->n = s; /* shown are those that were finished */
    }
    if (!status) leak_check_losses(lab, seeds, &truth, &contexts);
    if (!status || status == MG_ERR_STOPPED) leak_show_losses(lab, seeds, &truth);
    if (!status) status = leak_show_influence(lab, seeds, corpus, error);
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
