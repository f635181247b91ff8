/* Lab speculative: a small model drafts γ tokens, and one pass of a large one judges them all. Why may it?
 *
 * The pass computes what the large model predicts after each drafted token. With the causal mask these are the very
 * predictions that it would make one by one, since no position sees the drafted tokens after it. Without the mask each
 * position reads the token that it should judge. */
#include "speculative.h"
#include "contexts.h"
#include "lab_private.h"
#include "labs.h"
#include "operation.h"

#include <math.h>

enum { TARGET, DRAFT, OPEN, N_MODELS };
enum { LEAST_CONTEXT = 16 };

const int speculative_gammas[SPECULATIVE_GAMMAS] = {1, 2, 4, SPECULATIVE_MOST};
const mg_sampler speculative_sampler = {.temperature = 1, .top_p = 1};

void speculative_predict(const speculative_models *m, mg_gpt *gpt, mg_tape *tape, const int *ids, int T, int n,
                         double *p) {
    ptrdiff_t V = mg_gpt_get_config(gpt)->vocab_size;
    int *order = mg_tape_alloc(tape, (size_t)m->n_ids, sizeof *order, "the order of tokens");
    const mg_real *logits = mg_gpt_forward(gpt, tape, ids, 1, T, NULL)->data + (T - n) * V;
    for (int i = 0; i < n; i++, logits += V, p += m->n_ids)
        mg_sampler_probabilities(&speculative_sampler, logits, m->n_ids, p, order);
    mg_tape_reset(tape);
}

double speculative_overlap(const double *p, const double *q, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += lab_smaller(p[i], q[i]);
    return sum;
}

double speculative_tokens(double alpha, int gamma) {
    double sum = 0;
    for (int i = gamma; i >= 0; i--) sum = 1 + alpha * sum;
    return sum;
}

/* ---- Options ---- */

typedef struct speculative_options {
    mg_run_options run; /* of the target */
    int draft_layers, draft_heads, draft_width;
} speculative_options;

#define ROWS_OF speculative_options
#include "setting_rows.h"

/* clang-format off */
static const mg_setting draft_settings[] = {
    {.kind = MG_SETTING_HEADING, .help = "The draft model (the others are the target's sizes):"},
    {.name = "draft-n-layer", COUNT(draft_layers, 1, 1000), .help = "Its blocks"},
    {.name = "draft-n-head", COUNT(draft_heads, 1, 1000), .help = "Its heads per block; must divide --draft-n-embd"},
    {.name = "draft-n-embd", COUNT(draft_width, 1, 65536), .help = "Its width"},
    {0},
};
/* clang-format on */

static void set_defaults(void *own) {
    speculative_options *o = own;
    *o = (speculative_options){.run = mg_run_defaults(), .draft_layers = 1, .draft_heads = 2, .draft_width = 12};
    o->run.train.model.n_layer = 4;
    o->run.train.model.n_embd = 128;
    o->run.train.max_iters = 700;
    o->run.train.schedule.lr = 3e-3;
    o->run.eval_interval = 100;
    o->run.eval_iters = 5;
}

static void set_quick(void *own) {
    speculative_options *o = own;
    mg_gpt_config small = {0};
    mg_gpt_config_fill(&small);
    o->run.train.model.n_layer = small.n_layer;
    o->run.train.model.n_embd = small.n_embd;
    o->run.train.max_iters = 500;
}

static const mg_settings tables[] = {{mg_data_settings, 0},
                                     MG_SETTINGS_OF_TRAIN(mg_model_settings),
                                     {draft_settings, 0},
                                     MG_SETTINGS_OF_TRAIN(mg_training_settings),
                                     {mg_measuring_settings, 0},
                                     {mg_machine_settings, 0},
                                     {NULL, 0}};
const lab_options lab_speculative_options = {tables, sizeof(speculative_options), set_defaults, set_quick};

/* ---- The story ---- */

static void tell(mg_lab *lab, const lab_variant variant[N_MODELS], const mg_run_options *run, const mg_corpus *corpus) {
    lab_hypothesis(lab,
                   "With the causal mask, one pass over γ drafted tokens gives the same judgments as γ passes, one "
                   "token after the other.");
    lab_hypothesis(lab, "Without the mask it does not: each position reads the drafted token that it should judge, and "
                        "approves of nearly all of them.");
    lab_hypothesis(lab, "A drafted token stays with probability α = Σ min(p, q), and a pass writes "
                        "(1 − α^(γ+1)) / (1 − α) tokens if they stay independently of each other.");
    lab_hypothesis(lab, "The text is distributed as without drafting, however bad the draft: a drafted x stays with "
                        "probability min(1, p/q), else a draw from max(0, p − q) takes its place.");
    lab_guess(lab, "nonsense", "%", "Words are drawn at random. How many of them does the unmasked model accept?");
    lab_guess(lab, "tokens", "tokens", "%d tokens are drafted per pass. How many does a pass write on average?",
              speculative_gammas[2]);
    lab_guess(lab, "faster", "times", "And how many times faster is the text written?");
    lab_did(lab, "Three GPTs were trained side by side on the same windows: a target, a small draft model, and a model "
                 "without the mask.");
    lab_training_settings(lab, run, corpus);
    static const char *const names[N_MODELS] = {"target", "draft", "without the mask"};
    for (int i = 0; i < N_MODELS; i++) {
        char words[128];
        mg_model_words(&variant[i].options.model, words, sizeof words);
        lab_setting(lab, names[i], "%s", words);
    }
    lab_exercise(lab,
                 "The draft model is not good: --draft-n-embd 4. What happens to α, to the tokens per pass, and to "
                 "the distribution of the text?");
    lab_exercise(lab, "At temperature 0 both models are certain. What is left of the rule, and what is α then?");
    lab_exercise(lab, "Which γ is best, if a step of the draft model takes the share c of one of the target? Find the "
                      "maximum of (1 − α^(γ+1)) / ((1 − α)(γc + 1)) for this run's α and c.");
    lab_source(lab, "Leviathan, Kalman & Matias 2023, Fast inference from transformers via speculative decoding: "
                    "algorithm 1, corollary 3.6, theorem 3.8.");
    lab_source(lab, "Chen et al. 2023, Accelerating large language model decoding with speculative sampling.");
    lab_source(lab, "Stern, Shazeer & Uszkoreit 2018, Blockwise parallel decoding for deep autoregressive models.");
}

/* ---- All of it ---- */

static mg_status measure(mg_lab *lab, lab_training *training, const mg_run_options *run, const mg_corpus *corpus,
                         mg_error *error) {
    mg_status status = lab_train(lab, training, corpus, run, error);
    if (status) return status;
    lab_figure *figure = lab_training_figure(lab, training, "loss", "The three models");
    lab_figure_end(figure,
                   "The larger of the two masked models should end lower: the better the small one imitates it, "
                   "the more of its draft stays. The unmasked one falls below both, as it reads its labels.");
    mg_evaluation e;
    status = mg_trainer_evaluate(&e, training->variant[OPEN].trainer, MG_VALIDATION, run->eval_iters, lab_stop(lab),
                                 error);
    if (status) return status;
    speculative_models m = {.corpus = corpus,
                            .target = mg_trainer_model(training->variant[TARGET].trainer),
                            .draft = mg_trainer_model(training->variant[DRAFT].trainer),
                            .open = mg_trainer_model(training->variant[OPEN].trainer),
                            .open_loss = lab_labeled_loss(&e),
                            .n_ids = mg_tokenizer_size(corpus->tokenizer),
                            .start = mg_tokenizer_start_id(corpus->tokenizer),
                            .block_size = run->train.model.block_size};
    mg_evaluation_free(&e);
    status = lab_speculative_mask(lab, &m, error);
    if (!status) status = lab_speculative_share(lab, &m, error);
    if (!status) status = lab_speculative_text(lab, &m, error);
    return status;
}

static void choose_models(const speculative_options *o, lab_variant variant[N_MODELS]) {
    static const char *const names[N_MODELS] = {"target", "draft", "unmasked"};
    static const lab_color colors[N_MODELS] = {LAB_MASKED, LAB_SKY, LAB_UNMASKED};
    for (int i = 0; i < N_MODELS; i++)
        variant[i] = (lab_variant){.name = names[i], .color = colors[i], .options = o->run.train};
    mg_gpt_config *draft = &variant[DRAFT].options.model, *open = &variant[OPEN].options.model;
    draft->n_layer = o->draft_layers;
    draft->n_head = o->draft_heads;
    draft->n_embd = o->draft_width;
    /* Nothing here depends on its size: small is enough. */
    mg_gpt_config small = {0};
    mg_gpt_config_fill(&small);
    open->n_layer = small.n_layer;
    open->n_head = small.n_head;
    open->n_embd = small.n_embd;
    open->mask = mg_lookahead(MG_LOOKAHEAD_ALL);
}

mg_status lab_speculative(mg_lab *lab, mg_error *error) {
    speculative_options o = *(const speculative_options *)lab_asked(lab)->own;
    mg_run_options_resolve(&o.run);
    if (o.run.train.model.block_size < LEAST_CONTEXT)
        return mg_error_set(error, MG_ERR_INPUT, "--block-size %d is too short for this lab: give %d or more",
                            o.run.train.model.block_size, LEAST_CONTEXT);
    if (o.draft_width % o.draft_heads != 0)
        return mg_error_set(error, MG_ERR_INPUT,
                            "--draft-n-embd is %d and --draft-n-head is %d: the width must be a multiple of the heads",
                            o.draft_width, o.draft_heads);
    mg_corpus *corpus;
    mg_status status = lab_load_corpus(lab, &o.run, &corpus, error);
    if (status) return status;
    lab_variant variant[N_MODELS];
    choose_models(&o, variant);
    lab_training training = {.n_variants = N_MODELS, .variant = variant};
    tell(lab, variant, &o.run, corpus);
    status = lab_begin(lab, error);
    if (!status) status = measure(lab, &training, &o.run, corpus, error);
    lab_training_free(&training);
    mg_corpus_free(corpus);
    return status;
}
