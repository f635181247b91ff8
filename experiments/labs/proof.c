/* Lab proof: change one token, look at everything before it.
 *
 * A curve cannot clear a model of reading ahead; changing its input can. Row i, column j of an influence matrix says
 * whether prediction i moves when input j does. A causal model's has nothing above the diagonal: not little, nothing. A
 * model of L layers that each look k ahead has a band of exactly k·L, since what a layer fetches from k ahead, the next
 * layer fetches from there. */
#include "audit.h"
#include "causality.h"
#include "lab_private.h"
#include "labs.h"
#include "model.h"
#include "training.h"

#include <math.h>

enum { T = 14, MOST_LAYERS = 4, VOCABULARY = 32, LATE = T - 3 };

/* ---- Models that were never trained: the mask holds for any weights ---- */

static mg_gpt_config config_of(int n_layer, int lookahead) {
    return (mg_gpt_config){
        .n_layer = n_layer,
        .n_head = 4,
        .n_embd = 32,
        .block_size = T,
        .vocab_size = VOCABULARY,
        .mask = mg_lookahead(lookahead),
        .init_std = 0.2, /* ten times GPT-2's, so that what flows is far above rounding */
    };
}

static mg_status measure(mg_lab *lab, const mg_gpt_config *config, mg_causality *result, mg_error *error) {
    mg_gpt *gpt;
    mg_status status = lab_interrupted(lab, error);
    if (!status) status = mg_gpt_new(&gpt, config, lab_asked(lab)->seed, error);
    if (status) return status;
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
    case POISON: return c->poison ? c->poison[at] : NAN;
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

/* Whether a method that was used says otherwise of a pair. */
static bool contradicted(const mg_causality *c, ptrdiff_t i, ptrdiff_t j, bool influences) {
    for (int m = 0; m < N_METHODS; m++) {
        if ((m == GRADIENT && !c->gradient) || (m == POISON && !c->poison)) continue;
        if ((influence(c, (method)m, i, j) != 0) != influences) return true;
    }
    return false;
}

/* Pairs that differ from a band of `ahead`: an influence outside of it, or none inside. */
static long outside_of_band(const mg_causality *c, ptrdiff_t ahead) {
    long wrong = 0;
    for (ptrdiff_t i = 0; i < c->T; i++)
        for (ptrdiff_t j = 0; j < c->T; j++) wrong += contradicted(c, i, j, j <= i + ahead);
    return wrong;
}

static double largest(const mg_causality *c, method m, bool future) {
    double most = 0;
    for (ptrdiff_t i = 0; i < c->T; i++)
        for (ptrdiff_t j = 0; j < c->T; j++)
            if ((j > i) == future) most = lab_larger(most, influence(c, m, i, j));
    return most;
}

/* Predictions that no token before them moves. */
static long count_silent(const mg_causality *c) {
    long n = 0;
    for (ptrdiff_t i = 1; i < c->T; i++) {
        bool moved = false;
        for (ptrdiff_t j = 0; j < i; j++) moved |= c->perturbation[i * c->T + j] != 0;
        n += !moved;
    }
    return n;
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
    lab_figure_end(figure, "Under the mask every prediction before the changed token must stay as it was, to the "
                           "last bit. Without it all of them may move.");
    double moved = 0, least = INFINITY;
    for (int i = 0; i < LATE; i++) {
        moved = lab_larger(moved, before[i]);
        least = lab_smaller(least, after[i]);
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
                                      "of a logit. An input that a prediction cannot see must change it by exactly 0."
                                    : "Each row traces one prediction back to all inputs, by the derivative: it shows "
                                      "a dependence that rounding would hide from a change of the input.");
    }
}

static mg_status causal_and_not(mg_lab *lab, mg_error *error) {
    mg_causality causal = {0}, unmasked = {0};
    mg_gpt_config with = config_of(MOST_LAYERS, lab_broken("proof.mask") ? 1 : 0);
    mg_gpt_config without = config_of(MOST_LAYERS, MG_LOOKAHEAD_ALL);
    mg_status status = measure(lab, &with, &causal, error);
    if (!status) status = measure(lab, &without, &unmasked, error);
    if (!status) {
        show_late_token(lab, &causal, &unmasked);
        show_matrices(lab, &causal, &unmasked);
        lab_check_zero(lab, "causal: influence of the future, by perturbation", largest(&causal, PERTURBATION, true),
                       "");
        lab_check_zero(lab, "causal: influence of the future, by gradient", largest(&causal, GRADIENT, true), "");
        lab_check_zero(lab, "causal: influence of the future, by NaN in the input", largest(&causal, POISON, true), "");
        lab_check_count(lab, "causal, the control: pairs (prediction, itself or earlier input) with influence",
                        count_past(&causal), T * (T + 1) / 2, "pairs");
        lab_check_count(lab, "unmasked: pairs of which some method sees no influence", outside_of_band(&unmasked, T), 0,
                        "pairs");
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
                                       "k per layer\tlayers\tk·L\tperturbation\tgradient\tNaN");
    lab_heatmap *map = lab_heatmap_begin(
        lab, "band", "Each layer looks 2 ahead",
        (lab_scale){.unit = "change", .log = true, .rows = "prediction", .columns = "input"});
    long wrong[N] = {0};
    mg_status status = MG_OK;
    for (int k = 0; k < N && !status; k++)
        for (int layers = 1; layers <= MOST_LAYERS && !status; layers++) {
            mg_gpt_config config = config_of(layers, lookaheads[k]);
            ptrdiff_t expected = mg_causality_reach(&config, T);
            if (lab_broken("proof.band") && k > 0 && layers > 1) config.mask.n--;
            mg_causality c = {0};
            status = measure(lab, &config, &c, error);
            if (status) break;
            wrong[k] += outside_of_band(&c, expected);
            if (lookaheads[k] == 2 && layers == 3) lab_answer(lab, "reach", (double)reach(&c, PERTURBATION));
            lab_table_row(table, "%d\t%d\t%td\t%td\t%td\t%td", lookaheads[k], layers, expected, reach(&c, PERTURBATION),
                          reach(&c, GRADIENT), reach(&c, POISON));
            const char *title = layers == 1 ? "1 layer" : lab_format(lab, "%d layers", layers);
            if (lookaheads[k] == 2)
                lab_heatmap_panel(map, (lab_panel){.title = title,
                                                   .n_rows = T,
                                                   .n_columns = T,
                                                   .values = lab_heat(lab, T * T, c.perturbation)});
            mg_causality_free(&c);
        }
    lab_table_end(table,
                  "How many positions ahead the furthest influence comes from. In a text of %d tokens that is %d at "
                  "most.",
                  T, T - 1);
    lab_heatmap_end(map, "In theory one layer sees 2 ahead, two see 4, three 6, four 8, and everything further is "
                         "exactly 0: what a layer fetches from 2 ahead was itself fetched from 2 further ahead.");
    for (int k = 0; k < N && !status; k++) {
        const char *name = lab_format(lab, "lookahead %d, 1 to %d layers: pairs that contradict the band k·L",
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
    mg_status status = measure(lab, &config, &c, error);
    if (status) return status;
    lab_note(lab,
             "A leak was planted: head 3 of layer 2 sees one token ahead, all the others are causal. What the method "
             "says: %s.",
             c.reason);
    lab_check_count(lab, "a planted leak: the layer in which it is found", c.layer, 2, "");
    lab_check_count(lab, "a planted leak: how many tokens ahead it reaches", (long)(c.key - c.query), 1, "");
    mg_causality_free(&c);
    return MG_OK;
}

/* ---- A checkpoint ---- */

enum { MOST_TOKENS = 64 /* tested in three ways */, FEW_TOKENS = 24, MOST_LABELS = 24 };

/* Tested in three ways: as many tokens as a second or so of work allows. */
static int affordable(const lab_model *model) {
    double per_pair = 10 * (double)mg_params_count(mg_gpt_params(model->checkpoint.gpt));
    int most = (int)fmin(MOST_TOKENS, fmax(FEW_TOKENS, sqrt(5e10 / per_pair)));
    return model->T < most ? model->T : most;
}

static void show_checkpoint(mg_lab *lab, const lab_model *model, const mg_causality *c) {
    lab_heatmap *map = lab_heatmap_begin(
        lab, "checkpoint", "The checkpoint, by perturbation",
        (lab_scale){.unit = "change", .log = true, .rows = "prediction", .columns = "input"});
    bool labeled = c->T <= MOST_LABELS;
    lab_heatmap_panel(map, (lab_panel){.title = "",
                                       .n_rows = (int)c->T,
                                       .n_columns = (int)c->T,
                                       .values = lab_heat(lab, c->T * c->T, c->perturbation),
                                       .row_labels = labeled ? model->labels : NULL,
                                       .column_labels = labeled ? model->labels : NULL});
    lab_heatmap_end(map, "What the method says: %s.", c->reason);
}

/* Every pair among the first c->T positions, in three ways. A pass needs the control: where nothing flows, nothing can
 * be seen to leak. */
static void judge_pairs(mg_lab *lab, const lab_model *model, const mg_causality *c) {
    const mg_gpt_config *config = mg_gpt_get_config(model->checkpoint.gpt);
    ptrdiff_t expected = mg_causality_reach(config, c->T);
    const char *where = lab_format(lab, "positions 0 to %td, all pairs", c->T - 1);
    const char *future = lab_format(lab, "checkpoint: influence of the future, %s", where);
    const char *control = "checkpoint, the control: predictions that nothing before them moves";
    const char *poison = lab_format(lab, "checkpoint: NaNs of the future that arrive, %s", where);
    if (c->verdict == MG_INCONCLUSIVE || c->verdict == MG_NOT_REPEATABLE) {
        lab_undecided(lab, control, NAN, "", "%s", c->reason);
        lab_undecided(lab, future, c->largest, "", "the control failed");
        return;
    }
    lab_check_count(lab, control, count_silent(c), 0, "");
    if (!mg_gpt_is_causal(config)) {
        ptrdiff_t furthest = reach(c, PERTURBATION);
        lab_check_between(lab, "checkpoint: how far ahead influence reaches", (double)furthest, expected > 0 ? 1 : 0,
                          (double)expected, "tokens");
        return;
    }
    lab_check_zero(lab, future, c->largest, "");
    lab_check_zero(lab, poison, largest(c, POISON, true), "");
}

/* ---- The checkpoint's whole context ---- */

static bool show_calls(void *user, mg_audit_probe probe, long calls, long planned) {
    (void)probe;
    mg_lab *lab = user;
    lab_progress(lab, "auditing", calls, planned, "passes");
    return lab_interrupted(lab, NULL) == MG_OK;
}

enum { SPOILT_FROM = 80 };

/* Spoilt: late positions see the next token. `user` is the model as it is. */
static mg_status spoilt_logits(void *user, const mg_audit_batch *batch, double *to, mg_error *error) {
    const mg_audit_model *model = user;
    mg_status status = model->logits(model->user, batch, to, error);
    ptrdiff_t n = batch->length;
    for (ptrdiff_t i = 0; i < batch->rows * n; i++)
        if (i % n >= SPOILT_FROM && i % n + 1 < n) to[i * batch->n_columns] += batch->ids[i + 1];
    return status;
}

/* The mask must hold at every position of the context, also where the picture above does not reach. */
static mg_status judge_context(mg_lab *lab, const lab_model *model, mg_error *error) {
    mg_audit_gpt *subject;
    mg_audit_model asked;
    mg_status status = mg_audit_gpt_new(&subject, &asked, model->checkpoint.gpt, error);
    if (status) return status;
    mg_audit_model as_it_is = asked;
    if (lab_broken("proof.context")) {
        asked.user = &as_it_is;
        asked.logits = spoilt_logits;
    }
    unsigned wanted = 1U << MG_AUDIT_REPEAT | 1U << MG_AUDIT_MASK | 1U << MG_AUDIT_CONTROL;
    bool prompt = lab_asked(lab)->prompt != NULL;
    /* The full number of cuts of a large model's long context takes minutes. */
    bool affords = 2 * (double)mg_params_count(mg_gpt_params(model->checkpoint.gpt)) * asked.context < 5e10;
    mg_audit_options options = {.seed = lab_asked(lab)->seed,
                                .ids = prompt ? model->ids : NULL,
                                .n_ids = prompt ? model->T : 0,
                                .sequences = 1,
                                .cuts = affords ? 0 : 8,
                                .skip = ~wanted,
                                .progress = show_calls,
                                .user = lab};
    mg_audit audit;
    status = mg_audit_run(&audit, &asked, &options, error);
    if (!status) status = lab_interrupted(lab, error);
    if (!status) {
        lab_progress(lab, "auditing", audit.planned, audit.planned, "passes");
        const mg_audit_finding *mask = &audit.finding[MG_AUDIT_MASK], *control = &audit.finding[MG_AUDIT_CONTROL];
        const char *name = lab_format(
            lab, "checkpoint: influence of the future, %lld of the %lld pairs of its context of %d tokens",
            (long long)audit.looked_at, (long long)audit.pairs, audit.length);
        if (mask->verdict == MG_AUDIT_INCONCLUSIVE || control->verdict != MG_AUDIT_PASS)
            lab_undecided(lab, name, mask->largest, "", "%s",
                          mask->verdict == MG_AUDIT_INCONCLUSIVE ? mask->evidence : control->evidence);
        else
            lab_check_zero(lab, name, mask->largest, "");
        if (mask->verdict == MG_AUDIT_FAIL) lab_note(lab, "In the checkpoint's context %s.", mask->evidence);
    }
    mg_audit_free(&audit);
    mg_audit_gpt_free(subject);
    return status;
}

static mg_status prove_checkpoint(mg_lab *lab, mg_error *error) {
    lab_model model;
    mg_status status = lab_model_load(lab, LAB_LEAST_TO_SEE, MOST_TOKENS, &model, error);
    if (status) return status;
    model.T = affordable(&model);
    mg_causality c = {0};
    status = lab_begin(lab, error);
    if (!status) status = mg_causality_of_gpt(&c, model.checkpoint.gpt, model.ids, model.T, error);
    if (!status) {
        judge_pairs(lab, &model, &c);
        show_checkpoint(lab, &model, &c);
        if (mg_gpt_is_causal(mg_gpt_get_config(model.checkpoint.gpt))) status = judge_context(lab, &model, error);
    }
    if (!status) lab_model_note_limits(lab, "These verdicts are");
    mg_causality_free(&c);
    lab_model_free(&model);
    return status;
}

mg_status lab_proof(mg_lab *lab, mg_error *error) {
    lab_hypothesis(lab,
                   "In a causal model a late token moves no earlier prediction: the change is exactly 0, not small.");
    lab_hypothesis(lab, "Without the mask every token moves every prediction.");
    lab_hypothesis(lab, "If each layer looks k tokens ahead, L layers see exactly k·L ahead.");
    lab_hypothesis(lab, "The method finds a leak of one token in one head, and names the layer.");
    lab_guess(lab, "reach", "tokens", "Each layer looks 2 tokens ahead. How many tokens ahead do 3 layers see?");
    lab_did(lab, "Every input was changed, one at a time, to another token, by a random vector and to NaN, and every "
                 "prediction was traced back to every input by its gradient.");
    if (lab_asked(lab)->checkpoint)
        lab_did(lab, "This was done to the checkpoint first. If it is causal, its whole context was then tested by "
                     "changing all tokens from some position on, and looking for bits that change before it.");
    lab_did(lab, "The lab's own models have random weights: a mask must hold for any weights.");
    lab_setting(lab, "own models", "1 to %d layers, 4 heads, width 32, random weights, %d random tokens", MOST_LAYERS,
                T);
    mg_status status = lab_asked(lab)->checkpoint ? prove_checkpoint(lab, error) : lab_begin(lab, error);
    if (!status) status = causal_and_not(lab, error);
    if (!status) status = bands(lab, error);
    if (!status) status = planted_leak(lab, error);
    if (status) return status;
    lab_exercise(lab,
                 "Two layers look 2 ahead, one looks 5. How wide is the band? Does the order of the layers matter?");
    lab_exercise(lab, "Why is the change exactly 0, though floating point rounds everywhere? What must hold for the "
                      "order of additions?");
    lab_exercise(lab, "A model whose every output is constant passes the first check. Which check does it fail?");
    lab_exercise(lab, "Train with --leak 0.0:1 and run this lab with --checkpoint on it.");
    lab_source(lab, "Every pair must be tested: Olmax, issue 78. Low losses cannot clear a leaking model: nanochat, "
                    "issue 844.");
    lab_source(lab, "Vaswani et al. 2017, “Attention Is All You Need”, section 3.2.3: preserving the auto-regressive "
                    "property.");
    return MG_OK;
}
