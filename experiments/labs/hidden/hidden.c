/* Lab hidden: when is no mask right?
 *
 * A decoder must not see the tokens after its position, because one of them is
 * its label. A model whose task is to fill a gap (BERT, Devlin et al. 2019) has
 * its label at the gap itself: it may look both ways, if the gap is a gap. The
 * mask is one way to keep a label out of the input, hiding the token is
 * another, and without either the loss means nothing. */
#include "hidden.h"
#include "contexts.h"
#include "gemm.h"
#include "lab_private.h"
#include "labs.h"

enum { LEAST_CONTEXT = 4 };

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
            LAB_MOST_HIDDEN);
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

static mg_status measure(mg_lab *lab, const lab_hidden_task *t, lab_hidden_model models[N_MODELS], mg_error *error) {
    lab_hidden_truth x;
    int steps = (int)t->options->max_iters;
    mg_status status = lab_hidden_find_truth(lab, t, &x, error);
    for (int i = 0; i < N_MODELS && !status; i++) status = lab_hidden_new_model(lab, t, &models[i], error);
    if (!status) status = lab_hidden_train(lab, t, models, error);
    if (!status) status = lab_hidden_evaluate(lab, t, models, lab_asked(lab)->quick ? 100 : 400, error);
    if (status) return status;
    lab_hidden_show_curves(lab, models, &x, steps);
    lab_hidden_show_positions(lab, t, models, &x);
    lab_hidden_show_reach(lab, t, models);
    lab_hidden_check(lab, models, &x, steps);
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
    lab_hidden_task t = {corpus, &run.train, run.train.model.block_size, mg_tokenizer_size(corpus->tokenizer)};
    lab_hidden_model models[N_MODELS] = {
        {.name = "both sides", .color = LAB_GREEN, .hides = !lab_broken("hidden.shown")},
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
