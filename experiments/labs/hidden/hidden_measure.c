/* The loss of each model of lab hidden on held-out windows, and the lowest that is possible there. */
#include "grammar_internal.h"
#include "hidden.h"
#include "lab_private.h"

#include <math.h>
#include <string.h>

enum { EVALUATED = 64 /* windows per batch */ };

/* What a window's hidden token costs at best, in nats: given both sides, and
 * given the left one. */
static double best_loss(const mg_grammar *g, const int *window, int T, int at, bool both, double *p) {
    mg_grammar_hidden_word(g, window, both ? T : at + 1, at, p);
    return -log(p[window[at]]);
}

mg_status lab_hidden_evaluate(mg_lab *lab, const lab_hidden_task *t, lab_hidden_model models[N_MODELS], int n_batches,
                              mg_error *error) {
    const mg_grammar *g = t->corpus->grammar;
    int n = n_batches * EVALUATED;
    lab_hidden_batch b = lab_hidden_new_batch(lab, t, EVALUATED);
    double *p = lab_numbers(lab, t->hidden_id), *loss[N_MODELS], *gap[N_MODELS];
    double *count = lab_numbers(lab, t->T);
    mg_real *token_loss = lab_reals(lab, (ptrdiff_t)EVALUATED * t->T);
    for (int i = 0; i < N_MODELS; i++) loss[i] = lab_numbers(lab, n), gap[i] = lab_numbers(lab, n);
    mg_tape *tape = lab_inference_tape();
    mg_status status = MG_OK;
    for (int k = 0; k < n_batches && !status; k++) {
        lab_hidden_fill(t, MG_VALIDATION, (mg_rng){t->options->seed, MG_STREAM_EVAL, 0}, (ptrdiff_t)k * EVALUATED, 1,
                        &b);
        for (int w = 0; w < EVALUATED; w++) count[b.at[w]]++;
        for (int i = 0; i < N_MODELS; i++) {
            mg_gpt_loss(models[i].gpt, tape, lab_hidden_input(&models[i], &b), b.targets, EVALUATED, t->T, NULL,
                        token_loss);
            mg_tape_reset(tape);
            for (int w = 0; w < EVALUATED; w++) {
                int at = b.at[w], place = k * EVALUATED + w;
                loss[i][place] = (double)token_loss[(ptrdiff_t)w * t->T + at];
                models[i].position_loss[at] += loss[i][place];
                if (g) gap[i][place] = loss[i][place] - best_loss(g, b.shown + w * t->T, t->T, at, i != LEFT, p);
            }
        }
        status = lab_interrupted(lab, error);
    }
    mg_tape_free(tape);
    for (int i = 0; i < N_MODELS; i++) {
        models[i].measured = lab_mean_of(n, loss[i]);
        models[i].gap = lab_mean_of(n, gap[i]);
        for (int at = 0; at < t->T; at++) models[i].position_loss[at] /= count[at];
    }
    return status;
}

mg_status lab_hidden_find_truth(mg_lab *lab, const lab_hidden_task *t, lab_hidden_truth *x, mg_error *error) {
    const mg_grammar *g = t->corpus->grammar;
    *x = (lab_hidden_truth){.known = g != NULL, .mean = {NAN, NAN}};
    if (!g) return MG_OK;
    bool exact, exact_left;
    double standard_error, *after = lab_numbers(lab, t->T);
    for (int i = 0; i < 2; i++) x->position[i] = lab_numbers(lab, t->T);
    mg_status status = mg_grammar_hidden_entropy(g, t->T, x->position[BOTH], &exact, error);
    if (!status) status = mg_grammar_floor(g, t->T, after, &standard_error, &exact_left, error);
    if (status) return status;
    double *p = lab_numbers(lab, mg_grammar_words(g));
    x->position[LEFT][0] = mg_grammar_predict(g, g->stationary, p);
    memcpy(x->position[LEFT] + 1, after, (size_t)(t->T - 1) * sizeof *after);
    for (int i = 0; i < 2; i++) {
        x->mean[i] = 0;
        for (int at = 0; at < t->T; at++) x->mean[i] += x->position[i][at] / t->T;
    }
    if (!exact) x->mean[BOTH] = NAN;
    lab_did(lab,
            "The source is a grammar, so the truth is known: given all other words, a hidden one has %s of entropy on "
            "average over all positions and windows (forward-backward over the states), given those before it %s%.4f.",
            exact ? lab_format(lab, "%.4f nats", x->mean[BOTH])
                  : "what the table says of the windows at hand (there are too many beliefs to list them all)",
            exact_left ? "" : "about ", x->mean[LEFT]);
    return MG_OK;
}
