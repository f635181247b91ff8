/* Rows of attention made of random queries and keys, with the scores divided by sqrt(d_k) and without: what the labs
 * attention and saturation both measure. */
#ifndef MASKGRAD_LAB_SCORES_H
#define MASKGRAD_LAB_SCORES_H

#include "lab.h"

enum { LAB_SCALED, LAB_UNSCALED, LAB_N_SCALINGS };
enum { LAB_SCORE_TOKENS = 6, LAB_N_WIDTHS = 5 };
extern const int lab_widths[LAB_N_WIDTHS]; /* d_k: 4, 16, 64, 256, 1024 */

typedef struct lab_means {
    double mean[LAB_N_WIDTHS];
    double error[LAB_N_WIDTHS]; /* standard error of the mean */
} lab_means;

typedef struct lab_scores {
    long rows[LAB_N_WIDTHS];
    lab_means entropy[LAB_N_SCALINGS];   /* of a row, in nats */
    lab_means jacobian[LAB_N_SCALINGS];  /* |diag(p) − p pᵀ|, Frobenius, of a row */
    lab_means saturated[LAB_N_SCALINGS]; /* the share of rows with a weight above 0.99 */
} lab_scores;

/* Six queries and six keys of standard normal numbers per draw, no mask, both scalings on the same draws. The six rows
 * of a draw share their keys, so the standard errors are over draws. `spoilt` scales both, for tests. */
void lab_measure_scores(mg_lab *lab, bool spoilt, lab_scores *scores);

/* Σ −p ln p of n weights in nats, with 0 ln 0 = 0. */
double lab_entropy(ptrdiff_t n, const mg_real *weights);
/* |diag(p) − p pᵀ| of n weights p, Frobenius: √(Σp² − 2Σp³ + (Σp²)²). */
double lab_jacobian(ptrdiff_t n, const mg_real *weights);
/* Draw `what` against d_k, both scalings, on a figure with a logarithmic x axis. */
void lab_scores_lines(lab_figure *figure, const lab_means what[LAB_N_SCALINGS]);

#endif
