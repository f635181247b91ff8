/* The parts of lab speculative, which share three models that it trained. */
#ifndef MASKGRAD_LAB_SPECULATIVE_H
#define MASKGRAD_LAB_SPECULATIVE_H

#include "speculator.h"
#include "training.h"

typedef struct speculative_models {
    const mg_corpus *corpus;
    mg_gpt *target, *draft; /* causal: a large one and a small one */
    mg_gpt *open;           /* trained without a mask */
    double open_loss;       /* of it where its label is in its input, nats per token */
    int n_ids, start;       /* the vocabulary's size; the id that texts follow */
    int block_size;
} speculative_models;

enum { SPECULATIVE_GAMMAS = 4, SPECULATIVE_MOST = 6 };
extern const int speculative_gammas[SPECULATIVE_GAMMAS]; /* tokens drafted per pass: 1, 2, 4, 6 */

/* Every part numbers its samples from here on, so that no two use the same random numbers. */
enum { SPECULATIVE_SHARE = 0, SPECULATIVE_TEXT = 1 << 24, SPECULATIVE_TIME = 2 << 24 };

extern const mg_sampler speculative_sampler; /* temperature 1 */
/* p (n, n_ids): what the model predicts after each of the last n of T ids, in one pass without a cache. */
void speculative_predict(const speculative_models *m, mg_gpt *gpt, mg_tape *tape, const int *ids, int T, int n,
                         double *p);
/* Σ min(p, q): how often a token drafted from q stays under p. */
double speculative_overlap(const double *p, const double *q, int n);
/* (1 − α^(γ+1)) / (1 − α): tokens per pass if each drafted token stays with probability α by itself. */
double speculative_tokens(double alpha, int gamma);
/* Expected of a text of `length` tokens, drafted gamma at a time: how many drafted tokens are accepted, in how many
 * passes of the target. stays (length + gamma, for the last pass may write more): min(1, q(x)/p(x)) of the text's
 * tokens x, which is how likely it is that x, where it was drafted, was accepted, and not put in the place of another.
 */
void speculative_expect(int gamma, int length, const double *stays, double *accepted, double *passes);

/* speculative_mask.c: one pass against step by step, with the mask and without. */
mg_status lab_speculative_mask(mg_lab *lab, const speculative_models *m, mg_error *error);
/* speculative_share.c: how much is accepted, tokens per pass, and the time. */
mg_status lab_speculative_share(mg_lab *lab, const speculative_models *m, mg_error *error);
/* speculative_text.c: the text against exact distributions. */
mg_status lab_speculative_text(mg_lab *lab, const speculative_models *m, mg_error *error);

#endif
