/* The curves of lab leak, and its losses by position. */
#include "lab_private.h"
#include "leak.h"

static void show_curves(mg_lab *lab, const leak_seeds *seeds, const leak_truth *truth) {
    lab_figure *figure = lab_seeded_training_figure(lab, seeds->n, seeds->training, "loss", "The two losses");
    if (!truth->known) {
        lab_figure_end(figure, "What to look for: without a mask a loss can fall where no honest model of a language "
                               "can follow. Does the validation loss warn you? Held-out text leaks its labels too.");
        return;
    }
    lab_floor(figure, "honest floor", truth->mean);
    double cheat = truth->last / (double)truth->T;
    lab_floor(figure, "cheater's floor", cheat);
    lab_figure_end(figure,
                   "What to look for: the honest floor is the best that any predictor can do. A masked model can "
                   "reach it but not go below. Only a model that reads its labels can go below it, down to the "
                   "cheater's floor. Does the validation loss warn you? Held-out text leaks its labels too.");
}

static void show_positions(mg_lab *lab, const leak_seeds *seeds, const leak_truth *truth) {
    int T = (int)truth->T;
    double last = leak_mean_of(seeds, seeds->last[UNMASKED]);
    lab_figure *figure = lab_figure_begin(
        lab, "position", "Loss by position, after training",
        (lab_axes){.x = "position in the window", .y = "loss (nats per token)", .y_from_zero = true});
    for (int i = 0; i < N_MODELS; i++) {
        const lab_variant *v = &seeds->training->variant[i];
        double *mean = lab_numbers(lab, T), *error = lab_numbers(lab, T);
        lab_mean_curve(seeds->n, T, seeds->position[i], mean, error);
        if (seeds->n == 1)
            lab_line(figure, v->color, v->name, T, NULL, mean);
        else
            lab_band(figure, v->color, v->name, T, NULL, mean, error);
    }
    if (truth->known) lab_floor_curve(figure, "honest floor", T, NULL, truth->floor);
    lab_figure_end(figure,
                   "Where a position can read its label, its loss can fall to 0. The last position has no token to its "
                   "right to read, with or without the mask: here the unmasked model pays %.2f nats for it, and %.3f "
                   "on average over all %d. If all other positions were free, the average would be %.3f.",
                   last, leak_mean_of(seeds, seeds->loss[UNMASKED]), T, last / T);
}

void leak_show_losses(mg_lab *lab, const leak_seeds *seeds, const leak_truth *truth) {
    if (seeds->n > 1)
        lab_note(lab, "The lines are means over %d seeds, their bands and bars one standard error of the mean.",
                 seeds->n);
    show_curves(lab, seeds, truth);
    show_positions(lab, seeds, truth);
}
