/* Lab multihead, second part: data that needs two relations at once.
 *
 * Symbols are drawn uniformly, and at each position two questions are asked: which symbol stood 1 place back, and which
 * one 3 places back? The model is one layer of causal attention and a linear reader, with nothing else to help:
 *
 *     logits (2 questions × M symbols) = [heads] W^O U,   q, k from wte + wpe,   v from wte only
 *
 * One head gives o = Σ_j p_j v(x_j), and the reader is linear in o. Take two sequences in which a and b, 1 and 3 places
 * back, are exchanged. Before normalizing, place and symbol weigh E_place · F_symbol, and the reader's preference for a
 * over b is E_1 X + E_3 Y + R in the one and E_1 Y + E_3 X + R in the other, with X > Y if it knows the symbols at all.
 * To name the symbol 1 back in both takes E_1 > E_3, to name the one 3 back E_3 > E_1: of these four answers one is
 * wrong, whatever was learned. The symbols differ 7 times in 8, so at most 1 − 7/32 = 78.1% can be right. Two heads
 * answer both.
 *
 * The argument has two loopholes, and both are trained too. Positions in the values add a term to R that the reader can
 * turn either way, and an MLP is no linear reader. */
#include "adamw.h"
#include "lab_private.h"
#include "multihead.h"
#include "operation.h"
#include "subject.h"
#include "training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { M = 8, T = 16, C = 64, B = 32, QUESTIONS = 2, MOST_BACK = 3, EVALUATIONS = 40, CURVE = 60 };
static const int back[QUESTIONS] = {1, MOST_BACK};

typedef struct variant {
    const char *name;
    lab_color color;
    int n_head;
    bool output_projection, mlp, placed_values; /* the last: positions are in the values too */

    mg_params *params;
    double curve[CURVE];                       /* training loss, means over steps/CURVE steps */
    lab_mean loss, question[QUESTIONS], right; /* right: share of the questions */
} variant;

/* ---- The model ---- */

static int specs_of(const variant *v, mg_param_spec *specs) {
    int n = 0;
    specs[n++] = (mg_param_spec){"wte", 2, {M, C}};
    specs[n++] = (mg_param_spec){"wpe", 2, {T, C}};
    specs[n++] = (mg_param_spec){"c_qk", 2, {C, 2 * C}};
    specs[n++] = (mg_param_spec){"c_v", 2, {C, C}};
    specs[n++] = (mg_param_spec){"reader", 2, {C, QUESTIONS * M}};
    if (v->output_projection) specs[n++] = (mg_param_spec){"c_proj", 2, {C, C}};
    if (v->mlp) {
        specs[n++] = (mg_param_spec){"c_fc", 2, {C, 4 * C}};
        specs[n++] = (mg_param_spec){"mlp_proj", 2, {4 * C, C}};
    }
    return n;
}

/* Unit variance of everything that is computed: N(0, 1/rows) for matrices, N(0, 1/2) for the two embeddings that add
 * up. One stream per place in the table, so that variants begin alike where they have the same parameters. */
static mg_status init(const mg_lab *lab, variant *v, mg_error *error) {
    mg_param_spec specs[8];
    int n = specs_of(v, specs);
    mg_status status = mg_params_new(&v->params, n, specs, true, error);
    for (int i = 0; i < n && !status; i++) {
        mg_tensor *x = &v->params->param[i].tensor;
        double std = i < 2 ? sqrt(0.5) : 1 / sqrt((double)x->dim[0]);
        mg_rng rng = {lab_asked(lab)->seed, MG_STREAM_LAB, 100 + (uint32_t)i};
        for (ptrdiff_t k = 0; k < mg_size(x); k++) x->data[k] = (mg_real)(std * mg_rng_normal(rng, (uint64_t)k));
    }
    return status;
}

static mg_tensor *parameter(variant *v, const char *name) {
    return &mg_params_find(v->params, name)->tensor;
}

/* ids (B,T) to logits (B,T,QUESTIONS,M). maps: (B, n_head, T, T) or NULL. */
static mg_tensor *forward(variant *v, mg_tape *tape, const int *ids, mg_real *maps) {
    int *positions = mg_tape_alloc(tape, T, sizeof *positions, "positions");
    for (int t = 0; t < T; t++) positions[t] = t;
    mg_tensor *symbols = mg_embedding(tape, parameter(v, "wte"), ids, 2, (ptrdiff_t[]){B, T});
    mg_tensor *x = mg_add(tape, symbols, mg_embedding(tape, parameter(v, "wpe"), positions, 1, (ptrdiff_t[]){T}));
    mg_tensor *parts[] = {mg_linear(tape, x, parameter(v, "c_qk"), NULL),
                          mg_linear(tape, v->placed_values ? x : symbols, parameter(v, "c_v"), NULL)};
    mg_attention_options options = {.n_head = v->n_head, .scale = (mg_real)(1 / sqrt((double)C / v->n_head))};
    options.weights = maps;
    mg_tensor *o = mg_attention(tape, mg_concat(tape, 2, parts, 2), &options);
    if (v->output_projection) o = mg_linear(tape, o, parameter(v, "c_proj"), NULL);
    if (v->mlp)
        o = mg_linear(tape, mg_gelu(tape, mg_linear(tape, o, parameter(v, "c_fc"), NULL)), parameter(v, "mlp_proj"),
                      NULL);
    return mg_reshape(tape, mg_linear(tape, o, parameter(v, "reader"), NULL), 4, (ptrdiff_t[]){B, T, QUESTIONS, M});
}

/* ---- The data ---- */

typedef struct batch {
    int ids[B * T], targets[B * T * QUESTIONS];
} batch;

/* The first positions, from which a question would look past the beginning, are not asked. */
static void draw(const mg_lab *lab, uint32_t stream, int number, batch *b) {
    mg_rng rng = {lab_asked(lab)->seed, MG_STREAM_LAB, stream + (uint32_t)number};
    for (int i = 0; i < B * T; i++) b->ids[i] = (int)mg_rng_below(rng, (uint64_t)i, M);
    for (int i = 0; i < B * T; i++)
        for (int q = 0; q < QUESTIONS; q++)
            b->targets[i * QUESTIONS + q] = i % T < MOST_BACK ? -1 : b->ids[i - back[q]];
}

enum { TRAINING = 1000, EVALUATION = 1000000 }; /* streams of batches */

/* ---- Training and evaluation ---- */

static mg_status train(mg_lab *lab, variant *v, int steps, mg_error *error) {
    mg_status status = init(lab, v, error);
    if (status) return status;
    mg_adamw *adamw;
    status = mg_adamw_new(&adamw, v->params, 0.9, 0.99, 0, error);
    if (status) return status;
    mg_lr_schedule schedule = {.lr = 3e-3, .min_lr = 3e-4, .warmup_iters = 20, .decay_iters = steps};
    mg_tape *tape;
    mg_tape_new(&tape, NULL);
    lab_need_memory(tape, "a tape");
    for (int step = 0; step < steps && !status; step++) {
        batch b;
        draw(lab, TRAINING, step, &b);
        mg_tensor *loss = mg_cross_entropy(tape, forward(v, tape, b.ids, NULL), b.targets, -1, NULL);
        mg_backward(tape, loss);
        v->curve[step * CURVE / steps] += (double)loss->data[0] * CURVE / steps;
        mg_adamw_step(adamw, v->params, mg_lr_at(&schedule, step), mg_clip_scale(mg_params_grad_norm(v->params), 1));
        mg_tape_reset(tape);
        status = lab_interrupted(lab, error);
    }
    mg_tape_free(tape);
    mg_adamw_free(adamw);
    return status;
}

/* The share of the questions whose right answer has the largest logit. */
static double share_right(const mg_real *logits, const int *targets) {
    int right = 0;
    for (int i = 0; i < B * T * QUESTIONS; i++) {
        if (targets[i] < 0) continue;
        int best = 0;
        for (int m = 1; m < M; m++)
            if (logits[i * M + m] > logits[i * M + best]) best = m;
        right += best == targets[i];
    }
    return (double)right / (B * (T - MOST_BACK) * QUESTIONS);
}

static void evaluate(const mg_lab *lab, variant *v) {
    double loss[EVALUATIONS], right[EVALUATIONS], question[QUESTIONS][EVALUATIONS] = {{0}};
    mg_tape *tape;
    mg_tape_new(&tape, NULL);
    lab_need_memory(tape, "a tape");
    mg_tape_record(tape, false);
    for (int i = 0; i < EVALUATIONS; i++) {
        batch b;
        mg_real question_loss[B * T * QUESTIONS];
        draw(lab, EVALUATION, i, &b);
        mg_tensor *logits = forward(v, tape, b.ids, NULL);
        loss[i] = (double)mg_cross_entropy(tape, logits, b.targets, -1, question_loss)->data[0];
        right[i] = share_right(logits->data, b.targets);
        for (int k = 0; k < B * T * QUESTIONS; k++)
            question[k % QUESTIONS][i] += (double)question_loss[k] / (B * (T - MOST_BACK));
        mg_tape_reset(tape);
    }
    mg_tape_free(tape);
    v->loss = lab_mean_of(EVALUATIONS, loss);
    v->right = lab_mean_of(EVALUATIONS, right);
    for (int q = 0; q < QUESTIONS; q++) v->question[q] = lab_mean_of(EVALUATIONS, question[q]);
}

/* ---- Pictures ---- */

#define MOST_OF_ONE (1 - 7.0 / 32)

enum { ONE, TWO, FOUR, ONE_BARE, TWO_BARE, FOUR_BARE, ONE_MLP, ONE_PLACED, N_VARIANTS };

static void show_curves(mg_lab *lab, const variant *v, int steps) {
    lab_figure *figure = lab_figure_begin(
        lab, "loss", "Two questions, one head or several",
        (lab_axes){.x = "step", .y = "loss (nats per question)", .y_from_zero = true});
    double x[CURVE];
    for (int i = 0; i < CURVE; i++) x[i] = (i + 0.5) * steps / CURVE;
    static const int shown[] = {ONE, TWO, FOUR, TWO_BARE, ONE_PLACED, ONE_MLP};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        lab_line(figure, v[shown[i]].color, v[shown[i]].name, CURVE, x, v[shown[i]].curve);
    lab_figure_end(figure,
                   "One head with a linear reader cannot go below what its single map leaves it; several heads can "
                   "answer both questions, with or without W^O. So can one head that an MLP reads or whose values know "
                   "their positions: which get there, and how long does each take?");
}

static void show_table(mg_lab *lab, variant *v) {
    lab_table *table = lab_table_begin(lab, "variants", "At the end",
                                       "heads\tparameters\tloss\t± s.e.\t1 back\t3 back\tright, %\t± s.e.");
    for (int i = 0; i < N_VARIANTS; i++)
        lab_table_row(table, "%s\t%td\t%.4f\t%.4f\t%.4f\t%.4f\t%.2f\t%.2f", v[i].name, mg_params_count(v[i].params),
                      v[i].loss.mean, v[i].loss.error, v[i].question[0].mean, v[i].question[1].mean,
                      100 * v[i].right.mean, 100 * v[i].right.error);
    lab_table_end(table,
                  "Nats per question, means over %d fresh batches of %d sequences, with their standard errors. Knowing "
                  "nothing costs ln 8 = %.3f. Placed v: positions are in the values too. One head with a linear reader "
                  "and unplaced values can be right in %.1f%% at most.",
                  EVALUATIONS, B, log(M), 100 * MOST_OF_ONE);
}

/* Of one sequence of the evaluation. */
static void show_maps(mg_lab *lab, variant *one, variant *two) {
    batch b;
    draw(lab, EVALUATION, 0, &b);
    mg_tape *tape;
    mg_tape_new(&tape, NULL);
    lab_need_memory(tape, "a tape");
    mg_tape_record(tape, false);
    mg_real *maps = mg_tape_alloc(tape, (size_t)2 * B * T * T, sizeof *maps, "maps");
    lab_heatmap *map = lab_heatmap_begin(
        lab, "maps", "Where the heads look",
        (lab_scale){.unit = "weight", .low = 0, .high = 1, .rows = "query", .columns = "key"});
    lab_panel panel = {.title = "one head", .n_rows = T, .n_columns = T, .values = maps, .masked = true};
    forward(one, tape, b.ids, maps);
    lab_heatmap_panel(map, panel);
    forward(two, tape, b.ids, maps);
    for (int h = 0; h < 2; h++) {
        panel.title = h ? "two heads: head 1" : "two heads: head 0";
        panel.values = maps + (ptrdiff_t)h * T * T;
        lab_heatmap_panel(map, panel);
    }
    mg_tape_free(tape);
    lab_heatmap_end(map, "One head has to look at both places at once, 1 back and 3 back, and can only mix what it "
                         "finds. Of two heads each can take a place of its own: look whether they do.");
}

static void check(mg_lab *lab, variant *v) {
    long more = 0;
    for (int i = 1; i < 3; i++) {
        more += labs((long)(mg_params_count(v[i].params) - mg_params_count(v[ONE].params)));
        more += labs((long)(mg_params_count(v[ONE_BARE + i].params) - mg_params_count(v[ONE_BARE].params)));
    }
    lab_check_count(lab, "parameters in which one, two and four heads differ", more, 0, "");
    lab_check_at_most(lab, "one head: answers that are right, against 78.1 % (and 3 s.e.)", 100 * v[ONE].right.mean,
                      100 * (MOST_OF_ONE + 3 * v[ONE].right.error), "%");
    lab_check_at_most(lab, "one head without W^O: the same", 100 * v[ONE_BARE].right.mean,
                      100 * (MOST_OF_ONE + 3 * v[ONE_BARE].right.error), "%");
    lab_check_at_least(lab, "two heads: answers that are right", 100 * v[TWO].right.mean, 99, "%");
    lab_check_below(lab, "two heads: loss", v[TWO].loss.mean, 0.1, "nats");
    lab_check_below(lab, "two heads without W^O: loss", v[TWO_BARE].loss.mean, 0.1, "nats");
    lab_check_below(lab, "four heads: loss", v[FOUR].loss.mean, 0.1, "nats");
    double error = sqrt(v[ONE].loss.error * v[ONE].loss.error + v[TWO].loss.error * v[TWO].loss.error);
    lab_check_above(lab, "one head's loss minus two heads', in standard errors",
                    (v[ONE].loss.mean - v[TWO].loss.mean) / error, 10, "s.e.");
}

/* The largest difference of a logit between a variant with W^O and the same without it whose reader is W^O U, as a
 * share of the largest logit. */
static mg_status fold_output_projection(const mg_lab *lab, variant *with, double *apart, mg_error *error) {
    variant without = {.n_head = with->n_head};
    mg_param_spec specs[8];
    mg_status status = mg_params_new(&without.params, specs_of(&without, specs), specs, false, error);
    if (status) return status;
    for (int i = 0; i < without.params->n; i++) {
        mg_tensor *to = &without.params->param[i].tensor;
        memcpy(to->data, parameter(with, specs[i].name)->data, (size_t)mg_size(to) * sizeof *to->data);
    }
    mg_tape *tape = lab_inference_tape();
    mg_tensor *folded = mg_matmul(tape, parameter(with, "c_proj"), parameter(with, "reader"), false, false);
    memcpy(parameter(&without, "reader")->data, folded->data, (size_t)mg_size(folded) * sizeof *folded->data);
    batch b;
    draw(lab, EVALUATION, 0, &b);
    const mg_tensor *one = forward(with, tape, b.ids, NULL), *other = forward(&without, tape, b.ids, NULL);
    double largest = 0;
    *apart = 0;
    for (ptrdiff_t i = 0; i < mg_size(one); i++) {
        *apart = lab_larger(*apart, fabs((double)one->data[i] - (double)other->data[i]));
        largest = lab_larger(largest, fabs((double)one->data[i]));
    }
    *apart /= largest;
    mg_tape_free(tape);
    mg_params_free(without.params);
    return MG_OK;
}

static void show_all(mg_lab *lab, variant *v, int steps) {
    lab_progress(lab, "training", N_VARIANTS, N_VARIANTS, "done");
    lab_answer(lab, "one", 100 * v[ONE].right.mean);
    lab_answer(lab, "two", 100 * v[TWO].right.mean);
    check(lab, v);
    show_curves(lab, v, steps);
    show_maps(lab, &v[ONE], &v[TWO]);
    show_table(lab, v);
    lab_note(
        lab,
        "Without W^O the losses differ from those with it by %+.4f (one head), %+.4f (two) and %+.4f (four), as far "
        "as they came in these steps: what can be learned is the same. One head ends at %.4f; with an MLP after it at "
        "%.4f, with "
        "positions in its values at %.4f.",
        v[ONE_BARE].loss.mean - v[ONE].loss.mean, v[TWO_BARE].loss.mean - v[TWO].loss.mean,
        v[FOUR_BARE].loss.mean - v[FOUR].loss.mean, v[ONE].loss.mean, v[ONE_MLP].loss.mean, v[ONE_PLACED].loss.mean);
}

/* ---- All of it ---- */

mg_status lab_multihead_task(mg_lab *lab, mg_error *error) {
    int steps = lab_asked(lab)->quick ? 400 : 1200;
    variant v[N_VARIANTS] = {
        [ONE] = {"1 head", LAB_UNMASKED, 1, true, false},
        [TWO] = {"2 heads", LAB_MASKED, 2, true, false},
        [FOUR] = {"4 heads", LAB_GREEN, 4, true, false},
        [ONE_BARE] = {"1, no W^O", LAB_UNMASKED, 1, false, false},
        [TWO_BARE] = {"2, no W^O", LAB_SKY, 2, false, false},
        [FOUR_BARE] = {"4, no W^O", LAB_GREEN, 4, false, false},
        [ONE_MLP] = {"1 and an MLP", LAB_PURPLE, 1, true, true},
        [ONE_PLACED] = {"1, placed v", LAB_AMBER, 1, true, false, true},
    };
    /* Spoilt: as many heads as it says, but one. */
    if (lab_broken("multihead.one")) v[TWO].n_head = 1;
    lab_did(lab,
            "One layer of causal attention with a linear reader was trained to name, at each position, the symbol 1 "
            "place back and the one 3 places back: with one, two and four heads of the same total width, with W^O "
            "and without. Two more have one head and a way out: an MLP before the reader, or positions in the values.");
    lab_setting(lab, "task", "%d symbols drawn uniformly, windows of %d, questions from position %d on", M, T,
                MOST_BACK);
    lab_setting(lab, "model", "width %d, batches of %d windows, %d steps, AdamW at 3e-3", C, B, steps);
    mg_status status = MG_OK;
    for (int i = 0; i < N_VARIANTS && !status; i++) {
        lab_progress(lab, "training", i, N_VARIANTS, "%s", v[i].name);
        status = train(lab, &v[i], steps, error);
        if (!status) evaluate(lab, &v[i]);
    }
    double apart = NAN;
    if (!status) status = fold_output_projection(lab, &v[TWO], &apart, error);
    if (!status) {
        show_all(lab, v, steps);
        lab_check_below(lab, "two heads: logits with W^O, against those without it and W^O U as the reader", apart,
                        1e-4, "of the largest");
    }
    for (int i = 0; i < N_VARIANTS; i++) mg_params_free(v[i].params);
    return status;
}
