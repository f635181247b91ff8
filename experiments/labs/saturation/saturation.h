/* The parts of lab saturation: random rows and the models (saturation.c), what is measured in a model
 * (saturation_probe.c), what is shown and checked (saturation_show.c), and the sweep of d_k (saturation_sweep.c). */
#ifndef MASKGRAD_LAB_SATURATION_H
#define MASKGRAD_LAB_SATURATION_H

#include "lab.h"
#include "training.h"

enum { SATURATION_MOST_SWEPT = 8 };

/* Pairs, the scaled one first: three sizes of c_attn's initial weights, then a pair for each d_k of the sweep. */
enum { GPT2_SCALED, GPT2_UNSCALED, ONE_SCALED, ONE_UNSCALED, TWO_SCALED, TWO_UNSCALED, N_PAIRED };
enum { SATURATION_MOST_MODELS = N_PAIRED + 2 * SATURATION_MOST_SWEPT };

/* What a probe finds in a layer: means and norms over the same windows at each call. */
typedef struct saturation_numbers {
    double entropy;   /* mean over rows, as a share of ln(visible keys) */
    double saturated; /* share of rows with a weight above 0.99 */
    double jacobian;  /* mean over rows of the norm of diag(p) − p pᵀ */
    double scores;    /* norm of the gradient of the scaled scores */
    double w_q, w_k, w_v;
    double tape_error; /* distance of the gradient of q from scale · dS · k, relative: the derivation, checked */
} saturation_numbers;

enum { SATURATION_PROBE = 16 }; /* windows */

typedef struct saturation_probes {
    int *ids, *targets; /* SATURATION_PROBE windows */
    ptrdiff_t T;
    int n_layer;
    double *ds;                                     /* T places to work in */
    saturation_numbers *of[SATURATION_MOST_MODELS]; /* by evaluation, then by layer */
} saturation_probes;

void saturation_probe_prepare(mg_lab *lab, saturation_probes *p, const mg_corpus *corpus, const mg_run_options *run,
                              int n_models);
void saturation_watch(mg_lab *lab, const lab_training *t, void *probes);
static inline const saturation_numbers *saturation_at(const saturation_probes *p, int model, int evaluation,
                                                      int layer) {
    return p->of[model] + (ptrdiff_t)evaluation * p->n_layer + layer;
}

typedef struct saturation_study {
    lab_training training;
    saturation_probes probes;
    mg_run_options run;
    bool usual; /* settings and data are the lab's own, for which it is known how much slower the training is */
    int n_swept, d_k[SATURATION_MOST_SWEPT];
} saturation_study;

/* The standard deviation of c_attn's initial weights in words: 0.02, 1/√C, 2/√C. */
const char *saturation_init(mg_lab *lab, const mg_gpt_config *model, int pair);
/* The mean validation loss of the last quarter of the evaluations: a single one is noisy. */
double saturation_late_loss(const lab_training *t, int model);
void saturation_show(mg_lab *lab, const saturation_study *s);
void saturation_show_sweep(mg_lab *lab, const saturation_study *s);

#endif
