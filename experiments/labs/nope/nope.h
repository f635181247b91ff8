/* What the files of lab nope share: models that are asked where they are, and texts that do not tell. */
#ifndef MASKGRAD_NOPE_H
#define MASKGRAD_NOPE_H

#include "gpt.h"
#include "lab.h"

typedef struct nope_options {
    int n_layer, n_head, n_embd;
    int block_size; /* T: positions to tell apart */
    int batch_size;
    int64_t max_iters;
    double lr;
} nope_options;

/* Ids: the names of the T positions, then the first token of every text, then the words. A position's name is not a
 * word, so that the tied head cannot prefer one position for a word's sake. */
enum { NOPE_WORDS = 8 };
static inline int nope_first(int T) {
    return T;
}
static inline int nope_word(int T, int word) {
    return T + 1 + word;
}

typedef struct nope_variant {
    const char *name;
    lab_color color;
    int lookahead;
    bool positions;

    mg_gpt *gpt;
    double *curve;         /* max_iters: the loss of each step */
    double loss;           /* of the evaluation, in nats per position; NaN: training diverged */
    double *position_loss; /* (T) */
    mg_real *said;         /* (T,T): the mean probability of saying the column's position at the row's */
} nope_variant;

/* ---- nope_task.c ---- */
mg_gpt_config nope_config(const nope_options *options, int lookahead, bool positions);
/* Train to say each position's number, and evaluate on new texts. Free v->gpt, also after an error. */
mg_status nope_train(mg_lab *lab, const nope_options *options, nope_variant *v, mg_error *error);
/* Texts of T tokens: the first token and random words. Text `number` of (seed, stream) is always the same. */
void nope_text(const mg_lab *lab, int T, uint64_t number, int *ids);

/* ---- nope_order.c ---- */
/* Shuffled tokens give the same predictions, shuffled: of the model without a mask, and not of the one with it. */
void nope_check_order(mg_lab *lab, const nope_options *options, mg_gpt *masked, mg_gpt *blind);
/* A text of one repeated word: how far apart neighboring positions are, with another first token and without. */
mg_status nope_check_steps(mg_lab *lab, const nope_options *options, mg_gpt *masked, mg_error *error);

#endif
