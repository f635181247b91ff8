/* Lab saturation: what the six models did, shown and checked. */
#include "lab_private.h"
#include "saturation.h"

#include <math.h>

/* ---- Pictures of the training ---- */

static void show_losses(mg_lab *lab, const lab_training *t) {
    lab_figure *figure = lab_figure_begin(lab, "loss",
                                          "Validation loss, queries and keys of unit variance at the start",
                                          (lab_axes){.x = "step", .y = "loss (nats per token)"});
    for (int i = ONE_SCALED; i < N_PAIRED; i++)
        lab_line(figure, t->variant[i].color, t->variant[i].name, t->n_evaluations - 1, t->evaluation_step + 1,
                 t->variant[i].validation + 1);
    lab_figure_end(figure, "Initial weights of c_attn have standard deviation 1/√C or 2/√C, so that scores have a "
                           "variance of 1 (or 16) if divided by √d_k, and d_k times as much if not. Does the loss "
                           "fall more slowly where rows are more saturated?");
    figure = lab_figure_begin(lab, "loss-gpt2", "Validation loss, small initial weights",
                              (lab_axes){.x = "step", .y = "loss (nats per token)"});
    for (int i = GPT2_SCALED; i <= GPT2_UNSCALED; i++)
        lab_line(figure, t->variant[i].color, t->variant[i].name, t->n_evaluations - 1, t->evaluation_step + 1,
                 t->variant[i].validation + 1);
    lab_figure_end(figure,
                   "Weights of 0.02, which are GPT-2's, are so small that scores are near 0 with or without the "
                   "division: at a width of 64 nothing should saturate at the start. What the two curves do "
                   "afterwards is measured, not predicted.");
}

static void show_entropy(mg_lab *lab, const lab_training *t, const saturation_probes *p) {
    double *y = lab_numbers(lab, t->n_evaluations);
    lab_figure *figure = lab_figure_begin(
        lab, "entropy", "How flat the rows of layer 0 stay",
        (lab_axes){.x = "step", .y = "entropy / ln(visible keys)", .y_low = 0, .y_high = 1});
    for (int i = ONE_SCALED; i < N_PAIRED; i++) {
        for (int e = 0; e < t->n_evaluations; e++) y[e] = saturation_at(p, i, e, 0)->entropy;
        lab_line(figure, t->variant[i].color, t->variant[i].name, t->n_evaluations, t->evaluation_step, y);
    }
    lab_figure_end(figure, "1 is a row that looks at all keys alike, 0 one that looks at one key. In a saturated row "
                           "hardly any gradient opens it again: how long do the lines that start low stay low?");
}

static void show_gradients(mg_lab *lab, const mg_gpt_config *model, const saturation_probes *p) {
    static const struct {
        int scaled; /* the unscaled one follows it */
        lab_color color;
    } pairs[] = {{GPT2_SCALED, LAB_SKY}, {ONE_SCALED, LAB_AMBER}, {TWO_SCALED, LAB_PURPLE}};
    enum { N_PAIRS = sizeof pairs / sizeof *pairs };
    static const char *const of_what[] = {"scores", "query W", "key W", "value W"};
    int n_places = 4 * p->n_layer;
    const char **places = lab_memory(lab, (size_t)n_places, sizeof *places);
    double *y = lab_numbers(lab, n_places);
    for (int i = 0; i < n_places; i++) places[i] = lab_format(lab, "%d %s", i / 4, of_what[i % 4]);
    lab_figure *figure = lab_figure_begin(
        lab, "gradients", "Gradients before the first step: without the division / with it",
        (lab_axes){.x = "layer, and gradient of", .y = "ratio of the norms", .y_from_zero = true});
    for (int i = 0; i < N_PAIRS; i++) {
        for (int layer = 0; layer < p->n_layer; layer++) {
            const saturation_numbers *with = saturation_at(p, pairs[i].scaled, 0, layer),
                                     *without = saturation_at(p, pairs[i].scaled + 1, 0, layer);
            y[4 * layer] = without->scores / with->scores;
            y[4 * layer + 1] = without->w_q / with->w_q;
            y[4 * layer + 2] = without->w_k / with->w_k;
            y[4 * layer + 3] = without->w_v / with->w_v;
        }
        lab_bars(figure, pairs[i].color, lab_format(lab, "init %s", saturation_init(lab, model, pairs[i].scaled)),
                 n_places, places, y);
    }
    lab_floor(figure, "no difference", 1);
    lab_figure_end(
        figure,
        "The larger the initial weights, the smaller is the Jacobian without the division; what it is multiplied by, "
        "the gradient from above, differs between the models, too. The gradients of W_q and W_k need not be smaller: "
        "they are multiplied by the factor "
        "that was left out, √d_k = %.3g. Would someone watching gradient norms notice the saturation?",
        sqrt((double)(model->n_embd / model->n_head)));
}

static void show_table(mg_lab *lab, const lab_training *t, const saturation_probes *p) {
    lab_table *table = lab_table_begin(lab, "training", "The models before the first step and after the last",
                                       "init, scaling\tstep\tlayer\tentropy\t>0.99\t|d S|\t|d W_q|\t|d W_k|\t|d W_v|");
    for (int i = 0; i < N_PAIRED; i++)
        for (int end = 0; end < 2; end++)
            for (int layer = 0; layer < p->n_layer; layer++) {
                int e = end ? t->n_evaluations - 1 : 0;
                const saturation_numbers *n = saturation_at(p, i, e, layer);
                lab_table_row(table, "%s\t%g\t%d\t%.3f\t%.3f\t%.4f\t%.4f\t%.4f\t%.4f", t->variant[i].name,
                              t->evaluation_step[e], layer, n->entropy, n->saturated, n->scores, n->w_q, n->w_k,
                              n->w_v);
            }
    lab_table_end(
        table,
        "Entropy is the mean over rows, as a share of ln(visible keys); >0.99, the share of rows with a weight "
        "above that. Norms are of the gradients of the mean loss over %d windows, the same for all; S are "
        "the scores.",
        SATURATION_PROBE);
}

/* ---- What is checked about the training ---- */

static double sum_over_layers(const saturation_probes *p, int model, double (*what)(const saturation_numbers *)) {
    double sum = 0;
    for (int layer = 0; layer < p->n_layer; layer++) sum += what(saturation_at(p, model, 0, layer));
    return sum;
}

static double entropy_of(const saturation_numbers *n) {
    return n->entropy;
}
static double jacobian_of(const saturation_numbers *n) {
    return n->jacobian;
}
static double scores_of(const saturation_numbers *n) {
    return n->scores;
}
static double w_qk_of(const saturation_numbers *n) {
    return hypot(n->w_q, n->w_k);
}

static double ratio(const saturation_probes *p, int scaled, double (*what)(const saturation_numbers *)) {
    return sum_over_layers(p, scaled + 1, what) / sum_over_layers(p, scaled, what);
}

double saturation_late_loss(const lab_training *t, int model) {
    int n = t->n_evaluations / 4 > 0 ? t->n_evaluations / 4 : 1;
    double sum = 0;
    for (int e = t->n_evaluations - n; e < t->n_evaluations; e++) sum += t->variant[model].validation[e];
    return sum / n;
}

/* Undivided, at the start; scores of less than a half are near 0, and rows of them nearly flat. */
static double deviation_of_scores(const mg_gpt_config *model) {
    double init = model->attn_init_std > 0 ? model->attn_init_std : model->init_std;
    return init * init * model->n_embd * sqrt((double)(model->n_embd / model->n_head));
}

/* What holds before the first step, at any settings at which rows of random scores saturate, and on any data. The
 * gradient of the scores itself is no such thing: it is the Jacobian times what comes from above, and rows that average
 * less leave larger outputs, whose gradients are others. But what W_q and W_k get of it has a factor √d_k more. */
static void check_start(mg_lab *lab, const mg_gpt_config *model, const saturation_probes *p) {
    enum { LEAST_D_K = 16, N_RATIOS = 3 };
    int d_k = model->n_embd / model->n_head;
    static const char *const names[N_RATIOS] = {
        "2/√C, at the start: entropy unscaled / scaled", "2/√C, at the start: the softmax's Jacobian unscaled / scaled",
        "2/√C, at the start: gradient of W_q and W_k unscaled / scaled, over the same of the scores"};
    const double ratios[N_RATIOS] = {ratio(p, TWO_SCALED, entropy_of), ratio(p, TWO_SCALED, jacobian_of),
                                     ratio(p, TWO_SCALED, w_qk_of) / ratio(p, TWO_SCALED, scores_of)};
    for (int i = 0; i < N_RATIOS && d_k < LEAST_D_K; i++)
        lab_undecided(lab, names[i], ratios[i], "", "d_k = %d is too small for rows to saturate", d_k);
    if (d_k >= LEAST_D_K) {
        lab_check_below(lab, names[0], ratios[0], 0.5, "");
        lab_check_below(lab, names[1], ratios[1], 0.5, "");
        lab_check_above(lab, names[2], ratios[2], 1, "");
    }
    double flat = ratio(p, GPT2_SCALED, entropy_of), deviation = deviation_of_scores(model);
    const char *name = lab_format(lab, "%s, at the start: entropy unscaled / scaled, nothing saturates",
                                  saturation_init(lab, model, GPT2_SCALED));
    if (deviation > 0.5)
        lab_undecided(lab, name, flat, "", "undivided, scores have a standard deviation of %.2g: they are not small",
                      deviation);
    else
        lab_check_above(lab, name, flat, 0.95, "");
}

static void check_training(mg_lab *lab, const saturation_study *s) {
    const lab_training *t = &s->training;
    const saturation_probes *p = &s->probes;
    const mg_gpt_config *model = &s->run.train.model;
    double error = 0;
    for (int i = 0; i < t->n_variants; i++)
        for (int e = 0; e < t->n_evaluations; e++)
            for (int layer = 0; layer < p->n_layer; layer++)
                error = lab_larger(error, saturation_at(p, i, e, layer)->tape_error);
    lab_check_zero(lab, "tokens in which the models' batches differed", (double)t->different_tokens, "");
    lab_check_below(lab, "gradient of q from the scores' gradient by hand, against the tape's: relative error", error,
                    1e-3, "");
    check_start(lab, model, p);
    double slower[N_PAIRED / 2];
    for (int i = 0; i < N_PAIRED / 2; i++)
        slower[i] = saturation_late_loss(t, 2 * i + 1) - saturation_late_loss(t, 2 * i);
    lab_answer(lab, "slower", slower[TWO_SCALED / 2]);
    const char *name = "2/√C: loss unscaled − scaled, mean of the last quarter";
    if (s->usual)
        lab_check_above(lab, name, slower[TWO_SCALED / 2], 0.03, "nats");
    else
        lab_undecided(lab, name, slower[TWO_SCALED / 2], "nats",
                      "how much slower is known only for the lab's own settings and data");
    lab_note(lab,
             "Loss, mean of the last quarter of the evaluations, unscaled minus scaled: %+.3f nats at initial weights "
             "of %s, %+.3f at 1/√C, %+.3f at 2/√C. At 2/√C, before the first step, the gradient of the scores without "
             "the division is %.2f times that with it, and those of W_q and W_k %.2f times.",
             slower[0], saturation_init(lab, model, GPT2_SCALED), slower[1], slower[2], ratio(p, TWO_SCALED, scores_of),
             ratio(p, TWO_SCALED, w_qk_of));
}

void saturation_show(mg_lab *lab, const saturation_study *s) {
    show_losses(lab, &s->training);
    show_entropy(lab, &s->training, &s->probes);
    show_gradients(lab, &s->run.train.model, &s->probes);
    show_table(lab, &s->training, &s->probes);
    check_training(lab, s);
}
