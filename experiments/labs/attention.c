/* Lab attention: a row of attention is a weighted average of values, and its weights are a distribution.
 *
 * First a sum small enough to do with a pencil, then the maps of two models that differ only in their mask (or of
 * a checkpoint), then how flat a row is when keys get longer. */
#include "lab_private.h"
#include "labs.h"
#include "model.h"
#include "operation.h"
#include "scores.h"
#include "subject.h"
#include "training.h"

#include <math.h>
#include <string.h>

/* ---- A sum to follow by hand ---- */

enum { WORDS = 4, D_K = 2, QUERY = 2 };
static const char *const words[WORDS] = {"the", "cat", "sat", "down"};
static const mg_real queries[WORDS][D_K] = {{1, 0}, {0, 1}, {2, 1}, {1, 1}};
static const mg_real keys[WORDS][D_K] = {{0, 1}, {2, 1}, {1, 0}, {3, 2}};
static const mg_real values[WORDS][D_K] = {{1, 0}, {0, 4}, {2, 2}, {9, 9}};

/* The row of mg_attention that the table takes apart. */
typedef struct small_row {
    mg_real weights[WORDS], scores[WORDS], output[D_K];
} small_row;

static small_row attend(void) {
    mg_tape *tape;
    mg_tape_new(&tape, NULL);
    lab_need_memory(tape, "a tape");
    mg_tensor *qkv = mg_constant(tape, 3, (ptrdiff_t[]){1, WORDS, 3 * D_K});
    for (int t = 0; t < WORDS; t++) {
        memcpy(qkv->data + 3 * D_K * t, queries[t], sizeof queries[t]);
        memcpy(qkv->data + 3 * D_K * t + D_K, keys[t], sizeof keys[t]);
        memcpy(qkv->data + 3 * D_K * t + 2 * D_K, values[t], sizeof values[t]);
    }
    mg_real weights[WORDS * WORDS], scores[WORDS * WORDS];
    mg_attention_options options = {
        .n_head = 1, .scale = (mg_real)(1 / sqrt(D_K)), .weights = weights, .scores = scores};
    mg_tensor *out = mg_attention(tape, qkv, &options);
    small_row row;
    memcpy(row.weights, weights + QUERY * WORDS, sizeof row.weights);
    memcpy(row.scores, scores + QUERY * WORDS, sizeof row.scores);
    memcpy(row.output, out->data + QUERY * D_K, sizeof row.output);
    mg_tape_free(tape);
    return row;
}

/* Its own arithmetic, from the numbers above to the output: nothing of mg_attention's. */
static void by_hand(double weights[WORDS], double output[D_K]) {
    double sum = 0;
    for (int j = 0; j <= QUERY; j++) {
        double product = 0;
        for (int k = 0; k < D_K; k++) product += (double)queries[QUERY][k] * (double)keys[j][k];
        sum += weights[j] = exp(product / sqrt(D_K));
    }
    for (int j = 0; j < WORDS; j++) weights[j] = j <= QUERY ? weights[j] / sum : 0;
    for (int k = 0; k < D_K; k++) {
        output[k] = 0;
        for (int j = 0; j <= QUERY; j++) output[k] += weights[j] * (double)values[j][k];
    }
}

static void worked_example(mg_lab *lab) {
    small_row row = attend();
    if (lab_broken("attention.sum")) row.output[0] += (mg_real)0.01;
    double weights[WORDS], output[D_K], far = 0;
    by_hand(weights, output);
    lab_table *table = lab_table_begin(lab, "sum", "One row of attention by hand: the query “sat” = (2, 1), d_k = 2",
                                       "key\tq·k / √2\tweight\tvalue\tweight × value");
    for (int j = 0; j < WORDS; j++) {
        far = lab_larger(far, fabs((double)row.weights[j] - weights[j]));
        lab_table_row(table, "%s (%g, %g)\t%.4f\t%.4f\t(%g, %g)\t(%.4f, %.4f)", words[j], (double)keys[j][0],
                      (double)keys[j][1], (double)row.scores[j], (double)row.weights[j], (double)values[j][0],
                      (double)values[j][1], weights[j] * (double)values[j][0], weights[j] * (double)values[j][1]);
    }
    for (int k = 0; k < D_K; k++) far = lab_larger(far, fabs((double)row.output[k] - output[k]));
    lab_table_row(table, "sum\t\t%.4f\t\t(%.4f, %.4f)", weights[0] + weights[1] + weights[2], output[0], output[1]);
    lab_table_row(table, "mg_attention\t\t\t\t(%.4f, %.4f)", (double)row.output[0], (double)row.output[1]);
    lab_table_end(
        table, "The word “down” is the future of “sat”: under the mask its score is −∞, its weight exp(−∞) = 0, and "
               "its value, large as it is, must not contribute. What remains is a weighted average of three values.");
    lab_check_below(lab, "the row by hand: distance from mg_attention", far, 1e-5, "");
}

/* What the models are made of can be read: the lab begins, with what needs no model. */
static mg_status begin(mg_lab *lab, mg_error *error) {
    mg_status status = lab_begin(lab, error);
    if (!status) worked_example(lab);
    return status;
}

/* ---- What a model's heads do on a text ---- */

enum { MOST_TOKENS = 14, MOST_LAYERS = 4 /* with a picture */, MOST_HEADS = 16 };

typedef struct view {
    const char *name;
    mg_gpt *gpt;
    int T;
    const char **labels;
    mg_real *weights; /* (n_layer, n_head, T, T) */
    double sum_error, forbidden, hand_error;
    double largest_output; /* of a head, to which that is relative */
} view;

static mg_real *map_of(const view *v, int layer, int head) {
    const mg_gpt_config *c = mg_gpt_get_config(v->gpt);
    return v->weights + ((ptrdiff_t)layer * c->n_head + head) * v->T * v->T;
}

/* The largest distance of a head's outputs from Σ_j weight_ij · value_j, worked out again from the captured weights
 * and values, relative to the largest output. */
static double hand_error(view *v, const mg_gpt_capture *capture) {
    const mg_gpt_config *c = mg_gpt_get_config(v->gpt);
    int C = c->n_embd, d_k = C / c->n_head;
    double far = 0, largest = 0;
    for (int layer = 0; layer < c->n_layer; layer++)
        for (int i = 0; i < v->T; i++)
            for (int column = 0; column < C; column++) {
                const mg_real *weights = map_of(v, layer, column / d_k) + (ptrdiff_t)i * v->T;
                const mg_real *value = capture->qkv[layer]->data + 2 * C + column;
                double sum = 0, output = (double)capture->heads[layer]->data[(ptrdiff_t)i * C + column];
                for (int j = 0; j < v->T; j++) sum += (double)weights[j] * (double)value[(ptrdiff_t)j * 3 * C];
                far = lab_larger(far, fabs(sum - output));
                largest = lab_larger(largest, fabs(output));
            }
    v->largest_output = largest;
    return far / largest;
}

/* How far rows are from summing to 1, and the largest weight where the mask allows none; NULL: the model's own. */
static void measure_rows(view *v, const mg_mask *mask) {
    const mg_gpt_config *c = mg_gpt_get_config(v->gpt);
    for (int layer = 0; layer < c->n_layer; layer++)
        for (int head = 0; head < c->n_head; head++)
            for (int i = 0; i < v->T; i++) {
                const mg_real *row = map_of(v, layer, head) + (ptrdiff_t)i * v->T;
                mg_interval visible = mg_visible(mask ? *mask : mg_gpt_mask(c, layer, head), i, v->T);
                double sum = 0;
                for (int j = 0; j < v->T; j++) {
                    sum += (double)row[j];
                    if (j < visible.first || j >= visible.end) v->forbidden = lab_larger(v->forbidden, (double)row[j]);
                }
                v->sum_error = lab_larger(v->sum_error, fabs(sum - 1));
            }
}

static void look(mg_lab *lab, view *v, const int *ids, const mg_mask *mask) {
    const mg_gpt_config *c = mg_gpt_get_config(v->gpt);
    mg_tape *tape;
    mg_tape_new(&tape, NULL);
    lab_need_memory(tape, "a tape");
    mg_tape_record(tape, false);
    mg_gpt_capture capture = {
        .weights = lab_reals(lab, (ptrdiff_t)c->n_layer * c->n_head * v->T * v->T),
        .qkv = mg_tape_alloc(tape, (size_t)c->n_layer, sizeof(mg_tensor *), "captured queries, keys and values"),
        .heads = mg_tape_alloc(tape, (size_t)c->n_layer, sizeof(mg_tensor *), "captured outputs of heads")};
    mg_gpt_forward(v->gpt, tape, ids, 1, v->T, &(mg_gpt_pass){.capture = &capture});
    v->weights = capture.weights;
    measure_rows(v, mask);
    v->hand_error = hand_error(v, &capture);
    mg_tape_free(tape);
}

static void check_view(mg_lab *lab, const view *v, const char *forbidden) {
    const char *name = lab_format(lab, "%s: largest distance of a row's sum from 1, over all heads", v->name);
    lab_check_below(lab, name, v->sum_error, 1e-5, "");
    name = lab_format(lab, "%s: outputs against Σ weight × value, relative", v->name);
    if (v->largest_output == 0)
        lab_undecided(lab, name, v->hand_error, "", "every output of every head is 0");
    else
        lab_check_below(lab, name, v->hand_error, 1e-5, "");
    if (!forbidden) return;
    lab_check_zero(lab, lab_format(lab, "%s: %s", v->name, forbidden), v->forbidden, "");
}

static void panel(lab_heatmap *map, const view *v, int layer, int head) {
    const mg_gpt_config *c = mg_gpt_get_config(v->gpt);
    const char *title = lab_format(map->lab, "%s%shead %d", v->name, *v->name ? ", " : "", head);
    mg_mask mask = mg_gpt_mask(c, layer, head);
    lab_heatmap_panel(map, (lab_panel){.title = title,
                                       .n_rows = v->T,
                                       .n_columns = v->T,
                                       .values = map_of(v, layer, head),
                                       .row_labels = v->labels,
                                       .column_labels = v->labels,
                                       .masked = true,
                                       .mask = mask});
}

static lab_heatmap *begin_map(mg_lab *lab, const char *what, int layer) {
    return lab_heatmap_begin(lab, lab_format(lab, "layer-%d", layer),
                             lab_format(lab, "Attention in layer %d%s", layer, what),
                             (lab_scale){.unit = "weight", .low = 0, .high = 1, .rows = "query", .columns = "key"});
}

/* What can be read off a map, head by head. */
static void head_table(mg_lab *lab, int n, const view *views) {
    lab_table *table = lab_table_begin(lab, "heads", "The heads in numbers",
                                       "model\tlayer\thead\tentropy (nats)\ton itself\ton the next\ton the past");
    for (int i = 0; i < n; i++) {
        const view *v = &views[i];
        const mg_gpt_config *c = mg_gpt_get_config(v->gpt);
        for (int layer = 0; layer < c->n_layer; layer++)
            for (int head = 0; head < c->n_head; head++) {
                double entropy = 0, self = 0, next = 0, past = 0;
                for (int q = 0; q < v->T; q++) {
                    const mg_real *row = map_of(v, layer, head) + (ptrdiff_t)q * v->T;
                    entropy += lab_entropy(v->T, row) / v->T;
                    self += (double)row[q] / v->T;
                    if (q + 1 < v->T) next += (double)row[q + 1] / (v->T - 1);
                    for (int k = 0; k < q; k++) past += (double)row[k] / v->T;
                }
                lab_table_row(table, "%s\t%d\t%d\t%.3f\t%.3f\t%.3f\t%.3f", v->name, layer, head, entropy, self, next,
                              past);
            }
    }
    lab_table_end(table, "Means over the rows of this one text. The next token, where there is one, is the label.");
}

/* ---- Two models, one mask apart ---- */

enum { MASKED, UNMASKED, N_MODELS };

static mg_run_options small_training(const mg_lab *lab) {
    mg_run_options run = *(const mg_run_options *)lab_asked(lab)->own;
    run.train.seed = lab_asked(lab)->seed;
    run.train.model.n_head = 2;
    run.train.max_iters = 500;
    run.train.schedule.lr = 3e-3;
    run.eval_interval = 250;
    run.eval_iters = 5;
    mg_run_options_resolve(&run);
    return run;
}

static double most_on_the_label(const view *v) {
    const mg_gpt_config *c = mg_gpt_get_config(v->gpt);
    double most = 0;
    for (int layer = 0; layer < c->n_layer; layer++)
        for (int head = 0; head < c->n_head; head++) {
            double mean = 0;
            const mg_real *map = map_of(v, layer, head);
            for (int q = 0; q + 1 < v->T; q++) mean += (double)map[(ptrdiff_t)q * v->T + q + 1] / (v->T - 1);
            most = lab_larger(most, mean);
        }
    return most;
}

/* On data of the user's, a few hundred steps need not be enough for a head to find the label. */
static void check_looks_ahead(mg_lab *lab, const char *name, double weight, double least) {
    if (lab_asked(lab)->data && !(weight > least))
        lab_undecided(lab, name, weight, "", "the model has not found its labels in the few steps of this lab");
    else
        lab_check_above(lab, name, weight, least, "");
}

static void show_two(mg_lab *lab, const view views[N_MODELS]) {
    const mg_gpt_config *c = mg_gpt_get_config(views[MASKED].gpt);
    for (int layer = 0; layer < c->n_layer; layer++) {
        lab_heatmap *map = begin_map(lab, ", masked and not", layer);
        for (int head = 0; head < c->n_head; head++)
            for (int i = 0; i < N_MODELS; i++) panel(map, &views[i], layer, head);
        if (layer == 0)
            lab_heatmap_end(map, "A row is a query and sums to 1. Masked, a row ends at the diagonal: the first token "
                                 "can only look at itself. Not masked, weight may lie anywhere; strong cells one place "
                                 "right of the diagonal are a head that reads the next token, which is the label. The "
                                 "last token has nothing to its right: compare its row.");
        else
            lab_heatmap_end(map, "The same text, layer %d.", layer);
    }
    head_table(lab, N_MODELS, views);
    check_view(lab, &views[MASKED], "largest weight above the diagonal");
    check_view(lab, &views[UNMASKED], NULL);
    check_looks_ahead(lab, "unmasked: largest weight above the diagonal", views[UNMASKED].forbidden, 0.1);
    lab_answer(lab, "label", most_on_the_label(&views[UNMASKED]));
    check_looks_ahead(lab, "unmasked: mean weight on the label, of the head that looks there most",
                      most_on_the_label(&views[UNMASKED]), 0.5);
}

static mg_status text_to_look_at(mg_lab *lab, const mg_corpus *corpus, int most, int *ids, int *T, mg_error *error) {
    const char *prompt = lab_asked(lab)->prompt;
    *T = most;
    if (!prompt) {
        memcpy(ids, corpus->ids + corpus->n_train, (size_t)most * sizeof *ids);
        return MG_OK;
    }
    return lab_encode_prompt(lab, corpus->tokenizer, most, ids, T, error);
}

static mg_status train_two(mg_lab *lab, mg_error *error) {
    mg_run_options run = small_training(lab);
    mg_corpus *corpus;
    mg_status status = lab_load_corpus(lab, &run, &corpus, error);
    if (status) return status;
    lab_variant variant[N_MODELS] = {{.name = "masked", .color = LAB_MASKED, .options = run.train},
                                     {.name = "unmasked", .color = LAB_UNMASKED, .options = run.train}};
    variant[MASKED].options.model.mask = mg_lookahead(lab_broken("attention.mask") ? 1 : 0);
    variant[UNMASKED].options.model.mask = mg_lookahead(MG_LOOKAHEAD_ALL);
    lab_training training = {.n_variants = N_MODELS, .variant = variant};
    lab_setting(lab, "models", "2 layers, 2 heads, width 64, trained for %lld steps on %s",
                (long long)run.train.max_iters, corpus->name);
    int ids[MOST_TOKENS], T = 0;
    status = mg_corpus_check(corpus, MOST_TOKENS, error);
    if (!status) status = text_to_look_at(lab, corpus, MOST_TOKENS, ids, &T, error);
    if (!status) status = begin(lab, error);
    if (!status) status = lab_train(lab, &training, corpus, &run, error);
    if (!status) {
        const char **labels = lab_token_labels(lab, corpus->tokenizer, ids, T);
        view views[N_MODELS];
        for (int i = 0; i < N_MODELS; i++) {
            views[i] = (view){
                .name = variant[i].name, .gpt = mg_trainer_model(variant[i].trainer), .T = T, .labels = labels};
            look(lab, &views[i], ids, &(mg_mask){0});
        }
        show_two(lab, views);
    }
    lab_training_free(&training);
    mg_corpus_free(corpus);
    return status;
}

/* ---- A checkpoint ---- */

static mg_status show_checkpoint(mg_lab *lab, mg_error *error) {
    lab_model model;
    mg_status status = lab_model_load(lab, LAB_LEAST_TO_SEE, MOST_TOKENS, &model, error);
    if (!status) status = begin(lab, error);
    if (status) {
        lab_model_free(&model);
        return status;
    }
    view v = {.name = "checkpoint", .gpt = model.checkpoint.gpt, .T = model.T, .labels = model.labels};
    const mg_gpt_config *c = mg_gpt_get_config(v.gpt);
    look(lab, &v, model.ids, NULL);
    int shown = c->n_layer < MOST_LAYERS ? c->n_layer : MOST_LAYERS;
    for (int i = 0; i < shown; i++) {
        /* The first and the last, and some between. */
        int layer = shown < c->n_layer ? i * (c->n_layer - 1) / (shown - 1) : i;
        lab_heatmap *map = begin_map(lab, "", layer);
        for (int head = 0; head < c->n_head && head < MOST_HEADS; head++) panel(map, &v, layer, head);
        lab_heatmap_end(map, "Each panel is a head, each row a query that sums to 1.");
    }
    if (shown < c->n_layer || c->n_head > MOST_HEADS)
        lab_note(lab,
                 "%d of %d layers have a picture, each of %d of its %d heads; the table has all. For another layer: "
                 "maskgrad lab heads --layer N.",
                 shown, c->n_layer, c->n_head < MOST_HEADS ? c->n_head : MOST_HEADS, c->n_head);
    head_table(lab, 1, &v);
    check_view(lab, &v, "largest weight where the mask allows none");
    lab_model_free(&model);
    return MG_OK;
}

/* ---- Entropy against d_k ---- */

static void entropy_of_rows(mg_lab *lab) {
    static const double expected[LAB_N_SCALINGS][LAB_N_WIDTHS] = {{1.491, 1.472, 1.468, 1.470, 1.464},
                                                                  {1.101, 0.579, 0.279, 0.132, 0.064}};
    lab_scores s;
    lab_measure_scores(lab, lab_broken("attention.scale"), &s);
    lab_answer(lab, "flat", s.entropy[LAB_UNSCALED].mean[LAB_N_WIDTHS - 1]);
    lab_figure *figure = lab_figure_begin(
        lab, "entropy", "How flat is a row of attention?",
        (lab_axes){.x = "d_k", .y = "mean entropy of a row (nats)", .log_x = true, .y_from_zero = true});
    lab_scores_lines(figure, s.entropy);
    lab_floor(figure, "all six weights equal, ln 6", log(LAB_SCORE_TOKENS));
    lab_figure_end(figure, "Queries and keys are random, six of each, nothing is masked. A product of d_k numbers has "
                           "variance d_k; divided by √d_k its variance is 1 at every d_k, and rows should be as flat "
                           "at 1024 as at 4. Undivided, how near to 0 does the line come? There one key takes all.");
    lab_table *table = lab_table_begin(lab, "entropies", "Mean entropy of a row, and its standard error",
                                       "d_k\trows\tscaled\ts.e.\tunscaled\ts.e. ");
    for (int w = 0; w < LAB_N_WIDTHS; w++)
        lab_table_row(table, "%d\t%ld\t%.4f\t%.4f\t%.4f\t%.4f", lab_widths[w], s.rows[w], s.entropy[LAB_SCALED].mean[w],
                      s.entropy[LAB_SCALED].error[w], s.entropy[LAB_UNSCALED].mean[w],
                      s.entropy[LAB_UNSCALED].error[w]);
    lab_table_end(table, "The six rows of a draw share their keys, so the errors are over draws.");
    for (int scaling = 0; scaling < LAB_N_SCALINGS; scaling++)
        for (int w = 0; w < LAB_N_WIDTHS; w++) {
            const char *name = lab_format(lab, "mean entropy of a row, %s, d_k = %d",
                                          scaling == LAB_SCALED ? "divided by √d_k" : "not divided", lab_widths[w]);
            lab_check_near(lab, name, s.entropy[scaling].mean[w], expected[scaling][w], 0.015, "nats");
        }
}

mg_status lab_attention(mg_lab *lab, mg_error *error) {
    if (lab_asked(lab)->checkpoint && lab_asked(lab)->data)
        return mg_error_set(error, MG_ERR_INPUT, "--data trains two models and --checkpoint looks into one: give one");
    const char *about_data = lab_asked(lab)->checkpoint ? lab_data_setting(lab_asked(lab)->own) : NULL;
    if (about_data)
        return mg_error_set(error, MG_ERR_INPUT, "--%s is about the data, and --checkpoint reads none: leave it out",
                            about_data);
    lab_hypothesis(lab, "The output of a head is a weighted average of values: the weights are positive and sum to 1, "
                        "and the sum can be done by hand.");
    lab_hypothesis(lab, "Under the mask no weight lies above the diagonal. Without it a trained model puts weight "
                        "there, and at least one head puts it on the next token, the label.");
    lab_hypothesis(lab, "Divided by √d_k, scores of random queries and keys give rows whose entropy does not depend on "
                        "d_k. Undivided, the entropy goes to 0.");
    if (!lab_asked(lab)->checkpoint)
        lab_guess(lab, "label", "",
                  "Without a mask: which share of its weight does the head that looks at the label "
                  "most put there?");
    lab_guess(lab, "flat", "nats",
              "Six random keys of 1024 numbers, not divided by √d_k: what is the mean entropy of a "
              "row? (All six alike: ln 6 = 1.79. One key takes all: 0.)");
    lab_did(lab,
            "One row was computed by hand, beside mg_attention. %s. Then rows of random queries and keys were "
            "averaged at five d_k.",
            lab_asked(lab)->checkpoint ? "A checkpoint was given a text and its maps were captured"
                                       : "Two small models, one mask apart, were trained on the same windows and given "
                                         "the same text");
    mg_status status = lab_asked(lab)->checkpoint ? show_checkpoint(lab, error) : train_two(lab, error);
    if (status) return status;
    entropy_of_rows(lab);
    lab_exercise(lab, "In the table, change the value of “down”. Which cells change? And which if nothing is masked?");
    lab_exercise(lab, "Double all queries of the table. What happens to the weights, and to the output? And tenfold?");
    lab_exercise(lab, "The entropy of six equal weights is ln 6 = 1.79. Why do scaled rows have less, about 1.5?");
    lab_exercise(lab, "Train a model of your own and look into it: maskgrad lab attention --checkpoint RUN --prompt "
                      "TEXT. What does head 0 of layer 0 look at?");
    lab_source(lab, "Vaswani et al. 2017, “Attention Is All You Need”, section 3.2.1 and its footnote on the variance "
                    "of q·k.");
    lab_source(lab, "Bahdanau, Cho & Bengio 2015, “Neural Machine Translation by Jointly Learning to Align and "
                    "Translate”: maps with tokens on both axes.");
    return MG_OK;
}
