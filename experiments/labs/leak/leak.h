/* The parts of lab leak: training and the rest (leak.c), the losses and what they must be (leak_losses.c,
 * leak_losses_show.c), which token moves which prediction (leak_influence.c), what the models write (leak_text.c), and
 * what is kept of each seed (leak_seeds.c). */
#ifndef MASKGRAD_LAB_LEAK_H
#define MASKGRAD_LAB_LEAK_H

#include "causality.h"
#include "contexts.h"
#include "seeds.h"

enum { MASKED, UNMASKED, N_MODELS };

/* What each of n seeds measured: arrays of n numbers. */
typedef struct leak_seeds {
    int n;
    lab_training *training;                  /* n, each with its two variants */
    double *loss[N_MODELS], *last[N_MODELS]; /* validation losses: all, and the last position's */
    double *labeled[N_MODELS];               /* of the positions whose label is in the input */
    double **position[N_MODELS];             /* n, by position */
    double *floor, *gap, *gap_error;         /* masked, to the honest floor; NaN for a text */
    double *last_gap, *last_gap_error;       /* unmasked, last position to its floor; NaN for a text */
    double *last_apart;                      /* last positions: unmasked minus masked */
    double *evidence, *to_read;              /* at position 0: of the masked model, and of all labels */
    double *future[N_MODELS];                /* largest influence of a later token */
    double *writing[N_MODELS];               /* % grammatical, or nats that the masked model loses */
    const char *why;                         /* a text of a seed that cannot show a leak; or NULL */
    long different_tokens;                   /* of all seeds */
} leak_seeds;

leak_seeds leak_seeds_new(mg_lab *lab, int n, const lab_training *like);
/* What the evaluations of seed s found, all of it but the evidence's control, influence and writing. */
void leak_seeds_keep(mg_lab *lab, leak_seeds *seeds, int s, const mg_evaluation e[N_MODELS]);
/* Of one seed nothing: else a table of means, and one with a row per seed. */
void leak_seeds_show(mg_lab *lab, const leak_seeds *seeds, bool grammar);

/* The source, if it is a grammar. */
typedef struct leak_truth {
    bool known;
    ptrdiff_t T;
    double *floor;           /* by position */
    double mean, last, rate; /* of the floor; the entropy rate */
    bool exact;
} leak_truth;

static inline double leak_mean_of(const leak_seeds *seeds, const double *observed) {
    return mg_summarize(seeds->n, observed).mean;
}

/* Why a text cannot show what the unmasked model does wrong, and why it has nothing to learn from context; NULL if it
 * can, or has. */
const char *leak_obstacle(mg_lab *lab, const lab_training *training, const lab_contexts *c,
                          const mg_evaluation *masked);
const char *leak_no_memory(mg_lab *lab, const lab_contexts *c);
void leak_check_losses(mg_lab *lab, const leak_seeds *seeds, const leak_truth *truth, const lab_contexts *contexts);
void leak_show_losses(mg_lab *lab, const leak_seeds *seeds, const leak_truth *truth);

/* Of the first tokens that were held out, into seeds->future. The caller frees what was found. */
mg_status leak_find_influence(leak_seeds *seeds, int s, const mg_corpus *corpus, mg_causality found[N_MODELS],
                              mg_error *error);
/* Finds, draws and checks that of the first seed. */
mg_status leak_show_influence(mg_lab *lab, leak_seeds *seeds, const mg_corpus *corpus, mg_error *error);

/* Let both models of seed s write, and judge them: by the grammar where the source is one, by the masked model where it
 * is text. */
typedef struct leak_writing leak_writing;
mg_status leak_write(mg_lab *lab, leak_seeds *seeds, int s, const mg_corpus *corpus, leak_writing **writing,
                     mg_error *error);
/* Show the texts of the first seed side by side, and check what all seeds wrote. `why` says why a text cannot tell the
 * two apart; NULL if it can. */
void leak_show_writing(mg_lab *lab, const leak_seeds *seeds, const mg_corpus *corpus, const leak_writing *writing,
                       const char *why);

#endif
