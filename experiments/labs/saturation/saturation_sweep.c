/* Lab saturation: pairs of models of one width with another d_k each, so with another number of heads. */
#include "lab_private.h"
#include "saturation.h"

typedef struct curve {
    double *loss, *saturated; /* by d_k; saturated: before the first step */
} curve;

static void show_table(mg_lab *lab, const saturation_study *s, double *d_k, curve of[2]) {
    lab_table *table = lab_table_begin(lab, "sweep", "The sweep: c_attn starts with 2/√C, the width stays",
                                       "d_k\theads\tscaling\tloss\tsaturated at the start\tat the end");
    for (int i = 0; i < s->n_swept; i++) {
        d_k[i] = s->d_k[i];
        for (int unscaled = 0; unscaled < 2; unscaled++) {
            int model = N_PAIRED + 2 * i + unscaled;
            of[unscaled].loss[i] = saturation_late_loss(&s->training, model);
            of[unscaled].saturated[i] = saturation_at(&s->probes, model, 0, 0)->saturated;
            lab_table_row(table, "%d\t%d\t%s\t%.4f\t%.4f\t%.4f", s->d_k[i],
                          s->training.variant[model].options.model.n_head, unscaled ? "none" : "1/√d_k",
                          of[unscaled].loss[i], of[unscaled].saturated[i],
                          saturation_at(&s->probes, model, s->training.n_evaluations - 1, 0)->saturated);
        }
    }
    lab_table_end(table, "Loss: mean of the last quarter of the evaluations. Saturated: share of the rows of layer 0 "
                         "with a weight above 0.99. More heads are narrower; the number of parameters is the same.");
}

static void draw(lab_figure *figure, const saturation_study *s, const double *d_k, const double *scaled,
                 const double *unscaled) {
    lab_line(figure, LAB_GREEN, "divided by √d_k", s->n_swept, d_k, scaled);
    lab_line(figure, LAB_PURPLE, "not divided", s->n_swept, d_k, unscaled);
}

static void check(mg_lab *lab, const saturation_study *s, const double *saturated) {
    int least = 0, most = 0;
    for (int i = 1; i < s->n_swept; i++) {
        if (s->d_k[i] < s->d_k[least]) least = i;
        if (s->d_k[i] > s->d_k[most]) most = i;
    }
    if (s->d_k[most] < 4 * s->d_k[least]) return; /* too near to each other for a prediction */
    lab_check_above(lab,
                    lab_format(lab, "not divided: saturated rows at the start, at d_k = %d minus at d_k = %d",
                               s->d_k[most], s->d_k[least]),
                    saturated[most] - saturated[least], 0, "");
}

void saturation_show_sweep(mg_lab *lab, const saturation_study *s) {
    if (s->n_swept == 0) return;
    double *d_k = lab_numbers(lab, s->n_swept);
    curve of[2];
    for (int i = 0; i < 2; i++) of[i] = (curve){lab_numbers(lab, s->n_swept), lab_numbers(lab, s->n_swept)};
    show_table(lab, s, d_k, of);
    lab_figure *figure = lab_figure_begin(
        lab, "sweep-saturated", "Saturated rows of layer 0 before the first step",
        (lab_axes){.x = "d_k", .y = "share of rows", .log_x = true, .y_from_zero = true});
    draw(figure, s, d_k, of[0].saturated, of[1].saturated);
    lab_figure_end(figure,
                   "Divided, scores spread alike at every d_k; undivided, their spread grows like √d_k, and with "
                   "it the share of rows in which one key takes all.");
    figure = lab_figure_begin(lab, "sweep-loss", "Validation loss at the end, by d_k",
                              (lab_axes){.x = "d_k", .y = "loss (nats per token)", .log_x = true});
    draw(figure, s, d_k, of[0].loss, of[1].loss);
    lab_figure_end(figure, "The distance between the two lines is what the division is worth at this d_k.");
    check(lab, s, of[1].saturated);
}
