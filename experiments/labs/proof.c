/* Lab proof: change one token, look at everything before it.
 *
 * A curve cannot clear a model of reading ahead; changing its input can. Row i, column j of an influence matrix says
 * whether prediction i moves when input j does. A causal model's has nothing above the diagonal: not little, nothing. A
 * model of L layers that each look k ahead has a band of exactly k·L, since what a layer fetches from k ahead, the next
 * layer fetches from there. */
#include "causality.h"
#include "labs.h"
#include "model.h"
#include "training.h"

#include <math.h>
#include <stdio.h>

enum { T = 14, MOST_LAYERS = 4, VOCABULARY = 32, LATE = T - 3 };

/* ---- Models that were never trained: the mask holds for any weights ---- */

static mg_gpt_config config_of(int n_layer, int lookahead) {
    mg_gpt_config config = mg_gpt_defaults();
    config.n_layer = n_layer;
    config.n_embd = 32;
    config.block_size = T;
    config.vocab_size = VOCABULARY;
    config.lookahead = lookahead;
    config.init_std = 0.2; /* ten times GPT-2's, so that what flows is far above rounding */
    return config;
}

static mg_status audit(mg_lab *lab, const mg_gpt_config *config, mg_causality *result, mg_error *error) {
    mg_gpt *gpt;
    mg_status status = mg_gpt_new(&gpt, config, true, error);
    if (status) return status;
    mg_gpt_init(gpt, lab_asked(lab)->seed);
    int ids[T];
    mg_rng rng = {lab_asked(lab)->seed, MG_STREAM_LAB, 1};
    for (int i = 0; i < T; i++) ids[i] = (int)mg_rng_below(rng, (uint64_t)i, VOCABULARY);
    status = mg_causality_of_gpt(result, gpt, ids, T, error);
    mg_gpt_free(gpt);
    return status;
}

/* ---- Reading a result ---- */

typedef enum method { PERTURBATION, GRADIENT, POISON, N_METHODS } method;

static double influence(const mg_causality *c, method m, ptrdiff_t i, ptrdiff_t j) {
    ptrdiff_t at = i * c->T + j;
    switch (m) {
    case PERTURBATION: return c->perturbation[at];
    case GRADIENT: return c->gradient ? c->gradient[at] : NAN;
    case POISON: return c->poison[at];
    case N_METHODS: break;
    }
    return NAN;
}

/* How many positions ahead influence gets: the furthest j − i with an entry that is not 0; −1 if there is none. */
static ptrdiff_t reach(const mg_causality *c, method m) {
    ptrdiff_t furthest = -1;
    for (ptrdiff_t i = 0; i < c->T; i++)
        for (ptrdiff_t j = i; j < c->T; j++)
            if (influence(c, m, i, j) != 0 && j - i > furthest) furthest = j - i;
    return furthest;
}

/* Pairs that differ from a band of `ahead`: an influence outside of it, or none inside. */
static long outside_of_band(const mg_causality *c, ptrdiff_t ahead) {
    long wrong = 0;
    for (ptrdiff_t i = 0; i < c->T; i++)
        for (ptrdiff_t j = 0; j < c->T; j++)
            for (int m = 0; m < N_METHODS; m++) {
                if (m == GRADIENT && !c->gradient) continue;
                wrong += (influence(c, (method)m, i, j) != 0) != (j <= i + ahead);
            }
    return wrong;
}

static double largest(const mg_causality *c, method m, bool future) {
    double most = 0;
    for (ptrdiff_t i = 0; i < c->T; i++)
        for (ptrdiff_t j = 0; j < c->T; j++)
            if ((j > i) == future) most = fmax(most, influence(c, m, i, j));
    return most;
}

static long count_past(const mg_causality *c) {
    long n = 0;
    for (ptrdiff_t i = 0; i < c->T; i++)
        for (ptrdiff_t j = 0; j <= i; j++) n += c->perturbation[i * c->T + j] != 0;
    return n;
}

/* ---- Causal and not ---- */

static void show_late_token(mg_lab *lab, const mg_causality *causal, const mg_causality *unmasked) {
    double before[T], after[T];
    for (int i = 0; i < T; i++) {
        before[i] = causal->perturbation[i * T + LATE];
        after[i] = unmasked->perturbation[i * T + LATE];
    }
    lab_figure *figure = lab_figure_begin(
        lab, "late", "One late token is changed: which predictions move?",
        (lab_axes){.x = "position of the prediction", .y = "largest change of a logit", .y_from_zero = true});
    lab_line(figure, LAB_MASKED, "causal", T, NULL, before);
    lab_line(figure, LAB_UNMASKED, "unmasked", T, NULL, after);
    lab_vertical(figure, "the changed token", LATE);
    lab_figure_end(figure, "Under the mask every prediction before the changed token has to stay as it was, to the "
                           "last bit. Without it all of them may move.");
    double moved = 0, least = INFINITY;
    for (int i = 0; i < LATE; i++) {
        moved = fmax(moved, before[i]);
        least = fmin(least, after[i]);
    }
    lab_check_zero(lab, "causal: largest change of any prediction before the changed token", moved, "");
    lab_check_above(lab, "unmasked: smallest change of a prediction before the changed token", least, 1e-4, "");
    lab_check_above(lab, "causal, the control: change of the prediction at the changed token", before[LATE], 0.1, "");
}

static void show_matrices(mg_lab *lab, const mg_causality *causal, const mg_causality *unmasked) {
    struct {
        const char *name, *title, *unit;
        const double *of[2];
    } maps[] = {{"perturbation", "Influence by perturbation", "change", {causal->perturbation, unmasked->perturbation}},
                {"gradient", "Influence by gradient", "norm", {causal->gradient, unmasked->gradient}}};
    for (int m = 0; m < 2; m++) {
        lab_heatmap *map = lab_heatmap_begin(
            lab, maps[m].name, maps[m].title,
            (lab_scale){.unit = maps[m].unit, .log = true, .rows = "prediction", .columns = "input"});
        for (int i = 0; i < 2; i++)
            lab_heatmap_panel(map, (lab_panel){.title = i == 0 ? "causal" : "unmasked",
                                               .n_rows = T,
                                               .n_columns = T,
                                               .values = lab_heat(lab, T * T, maps[m].of[i])});
        lab_heatmap_end(map, m == 0 ? "Each column changes one input and looks at all predictions: the largest change "
                                      "of a logit. What cannot be seen must change it by exactly 0."
                                    : "Each row follows one prediction back to all inputs. It asks the derivative, and "
                                      "so sees a dependence that a change of the input would hide in rounding.");
    }
}

static mg_status causal_and_not(mg_lab *lab, mg_error *error) {
    mg_causality causal = {0}, unmasked = {0};
    mg_gpt_config with = config_of(MOST_LAYERS, lab_broken("proof.mask") ? 1 : 0);
    mg_gpt_config without = config_of(MOST_LAYERS, MG_LOOKAHEAD_ALL);
    mg_status status = audit(lab, &with, &causal, error);
    if (!status) status = audit(lab, &without, &unmasked, error);
    if (!status) {
        show_late_token(lab, &causal, &unmasked);
        show_matrices(lab, &causal, &unmasked);
        lab_check_zero(lab, "causal: influence of the future, by perturbation", largest(&causal, PERTURBATION, true),
                       "");
        lab_check_zero(lab, "causal: influence of the future, by gradient", largest(&causal, GRADIENT, true), "");
        lab_check_zero(lab, "causal: influence of the future, by NaN in the input", largest(&causal, POISON, true), "");
        lab_check_count(lab, "causal, the control: pairs of a prediction and its past that influence",
                        count_past(&causal), T * (T + 1) / 2, "pairs");
        lab_check_count(lab, "unmasked: pairs without influence", outside_of_band(&unmasked, T), 0, "pairs");
        lab_check_above(lab, "unmasked: influence of the future, by perturbation",
                        largest(&unmasked, PERTURBATION, true), 0.1, "");
    }
    mg_causality_free(&causal);
    mg_causality_free(&unmasked);
    return status;
}

/* ---- Lookahead k through L layers ---- */

static mg_status bands(mg_lab *lab, mg_error *error) {
    static const int lookaheads[] = {0, 1, 2, 4};
    enum { N = sizeof lookaheads / sizeof *lookaheads };
    lab_table *table = lab_table_begin(lab, "bands", "How far influence reaches ahead",
                                       "k a layer\tlayers\tk·L\tperturbation\tgradient\tNaN");
    lab_heatmap *map = lab_heatmap_begin(
        lab, "band", "Each layer looks 2 ahead",
        (lab_scale){.unit = "change", .log = true, .rows = "prediction", .columns = "input"});
    long wrong[N] = {0};
    mg_status status = MG_OK;
    for (int k = 0; k < N && !status; k++)
        for (int layers = 1; layers <= MOST_LAYERS && !status; layers++) {
            mg_gpt_config config = config_of(layers, lookaheads[k]);
            ptrdiff_t expected = mg_causality_reach(&config, T);
            if (lab_broken("proof.band") && k > 0 && layers > 1) config.lookahead--;
            mg_causality c = {0};
            status = audit(lab, &config, &c, error);
            if (status) break;
            wrong[k] += outside_of_band(&c, expected);
            lab_table_row(table, "%d\t%d\t%td\t%td\t%td\t%td", lookaheads[k], layers, expected, reach(&c, PERTURBATION),
                          reach(&c, GRADIENT), reach(&c, POISON));
            char title[32];
            snprintf(title, sizeof title, "%d layer%s", layers, layers == 1 ? "" : "s");
            if (lookaheads[k] == 2)
                lab_heatmap_panel(map, (lab_panel){.title = title,
                                                   .n_rows = T,
                                                   .n_columns = T,
                                                   .values = lab_heat(lab, T * T, c.perturbation)});
            mg_causality_free(&c);
        }
    lab_table_end(table,
                  "The furthest column right of the diagonal with an entry that is not 0. A text of %d tokens has "
                  "room for %d.",
                  T, T - 1);
    lab_heatmap_end(map, "By theory one layer sees 2 ahead, two see 4, three 6, four 8, and everything further is "
                         "exactly 0: what a layer fetches from 2 ahead had itself been fetched from 2 ahead of there.");
    for (int k = 0; k < N && !status; k++) {
        char name[128];
        snprintf(name, sizeof name, "lookahead %d, 1 to %d layers: pairs that are not as the band k·L says",
                 lookaheads[k], MOST_LAYERS);
        lab_check_count(lab, name, wrong[k], 0, "pairs");
    }
    return status;
}

/* ---- A planted leak ---- */

static mg_status planted_leak(mg_lab *lab, mg_error *error) {
    mg_gpt_config config = config_of(MOST_LAYERS, 0);
    config.leak_layer = lab_broken("proof.leak") ? -1 : 2;
    config.leak_head = 3;
    config.leak_lookahead = 1;
    mg_causality c = {0};
    mg_status status = audit(lab, &config, &c, error);
    if (status) return status;
    lab_note(lab,
             "A leak was planted: head 3 of layer 2 sees one token ahead, all the others are causal. The method's "
             "word on it: %s.",
             c.reason);
    lab_check_count(lab, "a planted leak: the layer that it is found in", c.layer, 2, "");
    lab_check_count(lab, "a planted leak: how many tokens ahead it is seen to reach", (long)(c.key - c.query), 1, "");
    mg_causality_free(&c);
    return MG_OK;
}

/* ---- A checkpoint ---- */

static void judge_checkpoint(mg_lab *lab, const lab_model *model, const mg_causality *c) {
    const mg_gpt_config *config = mg_gpt_get_config(model->checkpoint.gpt);
    ptrdiff_t expected = mg_causality_reach(config, c->T);
    lab_heatmap *map = lab_heatmap_begin(
        lab, "checkpoint", "The checkpoint, by perturbation",
        (lab_scale){.unit = "change", .log = true, .rows = "prediction", .columns = "input"});
    lab_heatmap_panel(map, (lab_panel){.title = "",
                                       .n_rows = model->T,
                                       .n_columns = model->T,
                                       .values = lab_heat(lab, c->T * c->T, c->perturbation),
                                       .row_labels = model->labels,
                                       .column_labels = model->labels});
    lab_heatmap_end(map, "The verdict on it: %s.", c->reason);
    ptrdiff_t furthest = reach(c, PERTURBATION);
    if (reach(c, POISON) > furthest) furthest = reach(c, POISON);
    lab_check_above(lab, "checkpoint, the control: largest influence of a token on itself and later",
                    largest(c, PERTURBATION, false), 0, "");
    if (mg_gpt_is_causal(config))
        lab_check_zero(lab, "checkpoint, causal: influence of the future", c->largest, "");
    else
        lab_check_between(lab, "checkpoint: how far ahead influence reaches", (double)furthest, expected > 0 ? 1 : 0,
                          (double)expected, "tokens");
}

static mg_status prove_checkpoint(mg_lab *lab, mg_error *error) {
    enum { MOST_TOKENS = 24 };
    lab_model model;
    mg_status status = lab_model_load(lab, LAB_LEAST_TO_SEE, MOST_TOKENS, &model, error);
    if (status) return status;
    mg_causality c = {0};
    status = mg_causality_of_gpt(&c, model.checkpoint.gpt, model.ids, model.T, error);
    if (!status) judge_checkpoint(lab, &model, &c);
    mg_causality_free(&c);
    lab_model_free(&model);
    return status;
}

mg_status lab_proof(mg_lab *lab, mg_error *error) {
    lab_hypothesis(lab,
                   "In a causal model a late token moves no earlier prediction: the change is exactly 0, not small.");
    lab_hypothesis(lab, "Without the mask every token moves every prediction.");
    lab_hypothesis(lab, "If each layer looks k tokens ahead, L layers see exactly k·L ahead.");
    lab_hypothesis(lab, "The method finds a leak of one token in one head, and tells the layer.");
    lab_did(lab, "Every input was changed, one at a time, by another token, by a random vector and by NaN, and every "
                 "prediction was followed back to every input by its gradient. The models were not trained: a mask "
                 "holds whatever the weights are.");
    lab_setting(lab, "models", "1 to %d layers, 4 heads, width 32, random weights, %d random tokens", MOST_LAYERS, T);
    mg_status status = lab_asked(lab)->checkpoint ? prove_checkpoint(lab, error) : MG_OK;
    if (!status) status = causal_and_not(lab, error);
    if (!status) status = bands(lab, error);
    if (!status) status = planted_leak(lab, error);
    if (status) return status;
    lab_exercise(lab, "Two layers look 2 ahead, one looks 5. How wide is the band? Which order of the layers matters?");
    lab_exercise(lab, "Why is the change exactly 0, though floating point rounds everywhere? What in the order of "
                      "additions must be so for that?");
    lab_exercise(lab, "A model whose every output is constant passes the first check. Which check does it not pass?");
    lab_exercise(lab, "Train with --leak 0.0:1 and run this lab on the --checkpoint.");
    lab_source(lab, "The wish to see every pair: Olmax, issue 78; losses that cleared a leaking model: nanochat, issue "
                    "844.");
    lab_source(lab, "Vaswani et al. 2017, “Attention Is All You Need”, section 3.2.3: preserving the auto-regressive "
                    "property.");
    return MG_OK;
}
