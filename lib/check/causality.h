/* Whether a model reads its future: who influences whom, measured in three ways, for every pair of positions.
 *
 *     mg_causality c;
 *     if (mg_causality_of_gpt(&c, gpt, ids, T, &error) == MG_OK && c.verdict == MG_CAUSAL) ...
 *     mg_causality_free(&c);
 *
 * Perturbation changes the input at j and looks for changed bits in row i of the logits. Gradient asks whether logits i
 * depend on input j at all, where a change would drown in rounding. Either convicts. Poison puts NaN in at j: what
 * passes then and not otherwise was multiplied by 0, as a key's value is by a weight that the softmax made 0. That is
 * not a leak, but it is not harmless either, and has its own verdict. Silence proves nothing: a model in which nothing
 * flows even from the past is inconclusive; one that is not repeatable is not judged. */
#ifndef MASKGRAD_CAUSALITY_H
#define MASKGRAD_CAUSALITY_H

#include "gpt.h"
#include "influence.h"

typedef enum mg_causality_verdict {
    MG_CAUSAL,            /* every position is influenced by itself and the past, none by the future */
    MG_LEAKS,             /* row `query` depends on position `key`, which is later */
    MG_INCONCLUSIVE,      /* no leak seen, but the positive control failed too */
    MG_ONLY_POISON_LEAKS, /* no leak, but a NaN at `key` reaches row `query` */
    MG_NOT_REPEATABLE     /* the same input gave different bits: nothing can be concluded */
} mg_causality_verdict;

typedef struct mg_causality {
    ptrdiff_t T;
    double *perturbation;  /* (T,T): row i, column j: the largest change of logits i by a change at j */
    double *gradient;      /* (T,T): |d (a random projection of logits i) / d input j|; NULL if the model has none */
    unsigned char *poison; /* (T,T): whether NaN at j changed a bit of logits i; NULL if the model has none */
    mg_causality_verdict verdict;
    ptrdiff_t query, key; /* the first leak, by rows, or pair that only poison passes; -1 if there is none */
    int layer;            /* of that leak: the first whose output shows it; n_layer: only the logits do; -1: none */
    double largest;       /* entry of perturbation or gradient at any key > query */
    char reason[256];     /* the verdict in one sentence */
} mg_causality;

/* ids (T), T at most block_size; it takes 3 T + 4 forward passes and T backward ones. The model is left as it was, bit
 * for bit, gradients included; nothing of it may be in use elsewhere meanwhile. MG_ERR_MEMORY; *result then holds
 * nothing. An operation inside that runs out of memory goes to the failure handler: if it jumps out, the check's own
 * memory leaks and the model can only be freed. */
MG_API mg_status mg_causality_of_gpt(mg_causality *result, mg_gpt *gpt, const int *ids, ptrdiff_t T, mg_error *error);
MG_API void mg_causality_free(mg_causality *result);

/* ---- Not installed: between maskgrad's own files ---- */
/* How many positions ahead anything can flow through all layers, at most T − 1. */
ptrdiff_t mg_causality_reach(const mg_gpt_config *config, ptrdiff_t T);

/* ---- Any model ---- */

typedef enum mg_change {
    MG_CHANGE_NOTHING,
    MG_CHANGE_TOKEN,     /* another token */
    MG_CHANGE_EMBEDDING, /* what enters the model there, by a random vector */
    MG_CHANGE_POISON     /* to NaN */
} mg_change;

typedef struct mg_causality_model {
    void *user;
    ptrdiff_t T;
    int n_stages;           /* places to look at, at least 1; the last are the logits, those before it layers */
    const ptrdiff_t *width; /* of a row of each stage */
    /* stage[s] (T, width[s]) from the input with `position` changed. */
    void (*forward)(void *user, ptrdiff_t position, mg_change change, mg_real *const *stage);
    /* norm (T): of the gradient of a projection of row `row` with respect to each position's input. NULL: none. */
    void (*gradient)(void *user, ptrdiff_t row, double *norm);
    bool has_poison;    /* forward can do MG_CHANGE_POISON */
    const bool *begins; /* (T): sees nothing before it, as a document's first token does; NULL: only position 0 */
} mg_causality_model;

mg_status mg_causality_check(mg_causality *result, const mg_causality_model *model, mg_error *error);

#ifndef MG_LIBRARY /* whose line a failure names: error.h */
MG_CALLED(mg_status, mg_causality_of_gpt, (result, gpt, ids), (result, gpt, ids, T, error), mg_causality *result,
          mg_gpt *gpt, const int *ids, ptrdiff_t T, mg_error *error)
#define mg_causality_of_gpt(...) MG_AT(mg_causality_of_gpt, __VA_ARGS__)
#endif

#endif
