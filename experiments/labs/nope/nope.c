/* Lab nope: where does a model without position embeddings know from where it is?
 *
 * Without the mask, attention is a weighted mean over a set: shuffle the tokens and the predictions are shuffled with
 * them (Lee et al. 2019). A model that is asked for its position in a text of random words can tell the first token by
 * what it is, and the T − 1 others not at all: at best it says each of their positions with probability 1/(T−1), which
 * costs
 *
 *     (1/T) [0 + (T−1) ln(T−1)]
 *
 * With the mask, position i takes its mean over i + 1 tokens. The weight of the first one is about 1/(i+1): a count
 * (Haviv et al. 2022; Kazemnejad et al. 2023, theorem 1). The mask does not only take, it gives. */
#include "nope.h"
#include "lab_private.h"
#include "labs.h"
#include "training.h"

#include <float.h>
#include <math.h>

enum { MASKED, BLIND, PLACED, N_VARIANTS };
enum { LEAST_CONTEXT = 4, MOST_CONTEXT = 200 };

/* ---- Options ---- */

#define ROWS_OF nope_options
#include "setting_rows.h"
/* clang-format off */
static const mg_setting flags[] = {
    {.kind = MG_SETTING_HEADING, .help = "Models and training:"},
    {.name = "n-layer", COUNT(n_layer, 1, 1000), .help = "Transformer blocks"},
    {.name = "n-head", COUNT(n_head, 1, 1000), .help = "Attention heads per block; must divide --n-embd"},
    {.name = "n-embd", COUNT(n_embd, 1, 65536), .help = "Width of the embeddings"},
    {.name = "block-size", COUNT(block_size, LEAST_CONTEXT, MOST_CONTEXT), .help = "Positions to tell apart"},
    {.name = "batch-size", COUNT(batch_size, 1, 100000), .help = "Texts per step"},
    {.name = "max-iters", LONG_COUNT(max_iters, 1, 1000000), .help = "Training steps"},
    {.name = "lr", REAL(lr, 0, DBL_MAX), .open = MG_SETTING_OPEN_MIN, .help = "Highest learning rate"},
    {0},
};
/* clang-format on */

static void set_defaults(void *own) {
    *(nope_options *)own = (nope_options){
        .n_layer = 2, .n_head = 4, .n_embd = 64, .block_size = 16, .batch_size = 32, .max_iters = 800, .lr = 3e-3};
}

static void set_quick(void *own) {
    ((nope_options *)own)->max_iters = 450;
}

static const mg_settings tables[] = {{flags, 0}, {NULL, 0}};
const lab_options lab_nope_options = {tables, sizeof(nope_options), set_defaults, set_quick};

/* ---- Pictures ---- */

static double blind_loss(int T) {
    return (T - 1) * log(T - 1) / T;
}

static void show_curves(mg_lab *lab, const nope_options *o, const nope_variant v[N_VARIANTS]) {
    lab_figure *figure = lab_figure_begin(
        lab, "curves", "Where am I?", (lab_axes){.x = "step", .y = "loss (nats per position)", .y_from_zero = true});
    int n = (int)o->max_iters, width = n / 100 > 1 ? n / 100 : 1;
    double *x = lab_numbers(lab, n), *y = lab_numbers(lab, n);
    for (int i = 0; i < N_VARIANTS; i++)
        lab_line(figure, v[i].color, v[i].name, lab_smooth(n, v[i].curve, width, x, y), x, y);
    lab_floor(figure, "the first known, the others guessed", blind_loss(o->block_size));
    lab_figure_end(figure,
                   "Each model is asked for the number of its position in a text of random words. In theory the "
                   "model without a mask and without position embeddings cannot come below the dashed line, "
                   "however long it trains. Look what one mask changes, and what position embeddings do.");
}

static void show_positions(mg_lab *lab, const nope_options *o, const nope_variant v[N_VARIANTS]) {
    lab_figure *figure = lab_figure_begin(lab, "positions", "Loss by position",
                                          (lab_axes){.x = "position", .y = "loss (nats)", .y_from_zero = true});
    for (int i = 0; i < N_VARIANTS; i++)
        lab_line(figure, v[i].color, v[i].name, o->block_size, NULL, v[i].position_loss);
    lab_floor(figure, lab_format(lab, "ln %d", o->block_size - 1), log(o->block_size - 1));
    lab_figure_end(figure, "Position 0 holds a token that no other position holds, so anyone can name it. A model that "
                           "cannot tell the others apart pays the logarithm of their number at each.");
}

static void show_said(mg_lab *lab, const nope_options *o, const nope_variant v[N_VARIANTS]) {
    lab_heatmap *map = lab_heatmap_begin(
        lab, "said", "Which position it says",
        (lab_scale){.unit = "probability", .low = 0, .high = 1, .rows = "true position", .columns = "said"});
    for (int i = MASKED; i <= BLIND; i++)
        lab_heatmap_panel(
            map,
            (lab_panel){.title = v[i].name, .n_rows = o->block_size, .n_columns = o->block_size, .values = v[i].said});
    lab_heatmap_end(map,
                    "Probabilities, averaged over texts. A model that knows where it is has 1 on the diagonal. For "
                    "one that does not, every row but the first is the same.");
}

/* ---- Checks ---- */

/* A model that was still learning when training ended has not shown what it can learn. */
static bool too_short(mg_lab *lab, const nope_options *o, const nope_variant *v, const char *check) {
    if (!lab_still_falling((int)o->max_iters, v->curve)) return false;
    lab_undecided(lab, check, v->loss, "nats", "the loss was still falling when training ended: give more --max-iters");
    return true;
}

static void check_known(mg_lab *lab, const nope_options *o, const nope_variant *v) {
    const char *name = lab_format(lab, "%s: loss", v->name);
    double most = 0.05 * blind_loss(o->block_size);
    /* What is low enough is, however it goes on. */
    if (v->loss < most || !too_short(lab, o, v, name)) lab_check_below(lab, name, v->loss, most, "nats");
}

static void check(mg_lab *lab, const nope_options *o, const nope_variant v[N_VARIANTS]) {
    int T = o->block_size;
    double expected = blind_loss(T);
    const nope_variant *blind = &v[BLIND];
    const char *name = lab_format(lab, "%s: loss, (%d/%d) ln %d in theory", blind->name, T - 1, T, T - 1);
    check_known(lab, o, &v[MASKED]);
    /* Below the line is impossible at any step; above it may be a matter of time. */
    if (blind->loss < expected || !too_short(lab, o, blind, name))
        lab_check_near(lab, name, blind->loss, expected, 0.01, "nats");
    check_known(lab, o, &v[PLACED]);
}

/* Whether every model can be asked. One that diverged knows nothing and proves nothing. */
static bool all_trained(mg_lab *lab, const nope_variant v[N_VARIANTS]) {
    bool all = true;
    for (int i = 0; i < N_VARIANTS; i++) {
        if (isfinite(v[i].loss)) continue;
        lab_undecided(lab, lab_format(lab, "%s: loss", v[i].name), v[i].loss, "nats",
                      "the loss is not a number: give a lower --lr");
        all = false;
    }
    return all;
}

/* ---- All of it ---- */

static void tell(mg_lab *lab, const nope_options *o) {
    int T = o->block_size;
    lab_hypothesis(lab,
                   "Without the mask and without position embeddings a model is blind to order. It tells the first "
                   "token by what it is; saying where the %d others are costs ln %d each, (%d/%d) ln %d = %.4f on "
                   "average.",
                   T - 1, T - 1, T - 1, T, T - 1, blind_loss(T));
    lab_hypothesis(lab, "The mask gives position: with it, and still without position embeddings, the loss falls to "
                        "nearly 0.");
    lab_hypothesis(lab, "What it gives is a count. The first of i + 1 tokens has a share of about 1/(i+1) of the "
                        "attention, so in a text of one repeated word the steps from a position to the next fall as "
                        "1/i². Where the first token is the same word too, all positions are alike.");
    lab_guess(
        lab, "blind", "nats",
        "Without the mask and without position embeddings: what does saying one's position of %d cost, on average?", T);
    lab_guess(lab, "masked", "nats", "And with the mask, still without position embeddings?");
    lab_did(lab,
            "Three GPTs were trained to say each token's position in texts of a first token and %d random words: "
            "without position embeddings, with the mask and without it; and, as a control, with position embeddings "
            "and no mask. Then the texts were shuffled; and a text of %d equal words was read.",
            T - 1, 256);
    lab_setting(lab, "models", "%s, %s, width %d, %d positions", mg_count(o->n_layer, "layer").text,
                mg_count(o->n_head, "head").text, o->n_embd, T);
    lab_setting(lab, "training", "%s of %s, learning rate %g", mg_count(o->max_iters, "step").text,
                mg_count(o->batch_size, "text").text, o->lr);
    lab_exercise(lab, "Derive the cost of being blind. Why is it not (T−1)/T · ln T, and why does position 0 cost "
                      "nothing? What would it be if the first token were a random word too?");
    lab_exercise(lab, "Give --block-size 64. Which positions become hard for the masked model, and why those? Compare "
                      "with the steps in the last picture.");
    lab_exercise(lab, "`maskgrad lab leak` without position embeddings: `maskgrad train --mask none --no-positions`. "
                      "Every label is in the input. Does the loss collapse? What can the model not find?");
    lab_source(lab, "Haviv, Ram, Press, Izsak & Levy 2022, “Transformer Language Models without Positional Encodings "
                    "Still Learn Positional Information”.");
    lab_source(lab, "Kazemnejad, Padhi, Ramamurthy, Das & Reddy 2023, “The Impact of Positional Encoding on Length "
                    "Generalization in Transformers”: theorem 1.");
    lab_source(lab, "Lee, Lee, Kim, Kosiorek, Choi & Teh 2019, “Set Transformer”: attention without positions is "
                    "permutation-equivariant.");
}

mg_status lab_nope(mg_lab *lab, mg_error *error) {
    const nope_options *o = lab_asked(lab)->own;
    nope_variant v[N_VARIANTS] = {
        [MASKED] = {"masked, no positions", LAB_MASKED, 0, false},
        [BLIND] = {"no mask, no positions", LAB_UNMASKED, MG_LOOKAHEAD_ALL, false},
        [PLACED] = {"no mask, positions", LAB_GREEN, MG_LOOKAHEAD_ALL, true},
    };
    if (lab_broken("nope.mask")) v[BLIND].lookahead = 0;
    if (lab_broken("nope.blind")) v[MASKED].lookahead = MG_LOOKAHEAD_ALL;
    if (lab_broken("nope.positions")) v[BLIND].positions = true;
    mg_gpt_config config = nope_config(o, 0, false);
    mg_gpt_config_fill(&config);
    mg_status status = mg_gpt_config_check(&config, error);
    if (status) return status;
    tell(lab, o);
    status = lab_begin(lab, error);
    for (int i = 0; i < N_VARIANTS && !status; i++) status = nope_train(lab, o, &v[i], error);
    if (!status) {
        lab_answer(lab, "blind", v[BLIND].loss);
        lab_answer(lab, "masked", v[MASKED].loss);
        show_curves(lab, o, v);
    }
    if (!status && all_trained(lab, v)) {
        check(lab, o, v);
        show_positions(lab, o, v);
        show_said(lab, o, v);
        nope_check_order(lab, o, v[MASKED].gpt, v[BLIND].gpt);
        status = nope_check_steps(lab, o, v[MASKED].gpt, error);
    }
    for (int i = 0; i < N_VARIANTS; i++) mg_gpt_free(v[i].gpt);
    return status;
}
