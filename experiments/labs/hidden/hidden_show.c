/* The pictures of lab hidden: loss by step, and by the position that is hidden. */
#include "hidden.h"

#include <math.h>

enum { CURVE = 60 /* points */ };

void lab_hidden_show_curves(mg_lab *lab, lab_hidden_model models[N_MODELS], const lab_hidden_truth *x, int steps) {
    lab_figure *figure = lab_figure_begin(
        lab, "loss", "Filling a gap: three models",
        (lab_axes){.x = "step", .y = "loss (nats per hidden token)", .y_from_zero = true});
    int width = steps / CURVE > 1 ? steps / CURVE : 1;
    for (int i = 0; i < N_MODELS; i++) {
        double *at = lab_numbers(lab, steps), *y = lab_numbers(lab, steps);
        int n = lab_smooth(steps, models[i].loss, width, at, y);
        lab_line(figure, models[i].color, models[i].name, n, at, y);
    }
    if (x->known) {
        if (!isnan(x->mean[BOTH])) lab_floor(figure, "H given both sides", x->mean[BOTH]);
        lab_floor(figure, "H given the left", x->mean[LEFT]);
    }
    lab_figure_end(
        figure,
        "Of training, where up to four tokens are hidden at once, so that the curves may end above what one "
        "hidden token costs. Each model can come down to the entropy of a hidden "
        "token given what it sees. A model that sees "
        "more may end lower, honestly. The one whose label was left in its input only has to copy: does it fall to "
        "0?");
}

void lab_hidden_show_positions(mg_lab *lab, const lab_hidden_task *t, lab_hidden_model models[N_MODELS],
                               const lab_hidden_truth *x) {
    lab_figure *figure = lab_figure_begin(lab, "position", "Loss by the position that is hidden",
                                          (lab_axes){.x = "hidden position", .y = "loss (nats)", .y_from_zero = true});
    for (int i = 0; i < N_MODELS; i++)
        lab_line(figure, models[i].color, models[i].name, t->T, NULL, models[i].position_loss);
    if (x->known && !isnan(x->mean[BOTH])) lab_floor_curve(figure, "H given both sides", t->T, NULL, x->position[BOTH]);
    if (x->known) lab_floor_curve(figure, "H given the left", t->T, NULL, x->position[LEFT]);
    lab_figure_end(figure, "At the last position there is nothing after the gap, "
                           "and both sides are worth no more than the "
                           "left one. At the first there is nothing before it.");
}
