/* Lab hidden: which tokens of a window move the prediction at the gap. */
#include "hidden.h"

#include <math.h>
#include <string.h>

void lab_hidden_show_reach(mg_lab *lab, const lab_hidden_task *t, lab_hidden_model models[N_MODELS]) {
    enum { WINDOWS = 16 };
    lab_hidden_batch b = lab_hidden_new_batch(lab, t, WINDOWS);
    int T = t->T, at = T / 2, *ids = lab_memory(lab, (size_t)T, sizeof *ids), V = t->hidden_id + 1;
    double *distance = lab_numbers(lab, T), after[2] = {0};
    mg_real *before = lab_reals(lab, V);
    mg_tape *tape = lab_inference_tape();
    lab_hidden_fill(t, MG_VALIDATION, (mg_rng){t->options->seed, MG_STREAM_EVAL, 1}, 0, 1, &b);
    lab_figure *figure = lab_figure_begin(
        lab, "reach", "How much each token moves the prediction at the gap",
        (lab_axes){.x = "place, seen from the gap", .y = "largest change of a logit", .y_from_zero = true});
    for (int j = 0; j < T; j++) distance[j] = j - at;
    for (int i = 0; i < 2; i++) {
        double *reach = lab_numbers(lab, T);
        for (int w = 0; w < WINDOWS; w++)
            for (int j = -1; j < T; j++) { /* -1: as it is */
                if (j == at) continue;
                memcpy(ids, b.shown + w * T, (size_t)T * sizeof *ids);
                ids[at] = t->hidden_id;
                if (j >= 0) ids[j] = (ids[j] + 1 + w) % t->hidden_id;
                const mg_real *logits = mg_gpt_forward(models[i].gpt, tape, ids, 1, T, NULL)->data + (ptrdiff_t)at * V;
                double change = 0;
                for (int v = 0; v < V; v++) change = lab_larger(change, fabs((double)logits[v] - (double)before[v]));
                if (j < 0) memcpy(before, logits, (size_t)V * sizeof *before);
                if (j >= 0) reach[j] = lab_larger(reach[j], change);
                mg_tape_reset(tape);
            }
        for (int j = at + 1; j < T; j++) after[i] = lab_larger(after[i], reach[j]);
        reach[at] = NAN;
        lab_points(figure, models[i].color, models[i].name, T, distance, reach);
    }
    mg_tape_free(tape);
    lab_figure_end(figure,
                   "Over %d windows. With the causal mask nothing after the gap "
                   "may move the prediction, not by one "
                   "bit; without it both sides may.",
                   WINDOWS);
    lab_check_zero(lab, "left only: how much tokens after the gap move the prediction", after[LEFT], "");
    lab_check_above(lab, "both sides: how much tokens after the gap move the prediction", after[BOTH], 0, "");
}
