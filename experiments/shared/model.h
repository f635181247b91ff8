/* A trained model that a lab looks into: --checkpoint, --prompt, and the maps of its attention. */
#ifndef MASKGRAD_LAB_MODEL_H
#define MASKGRAD_LAB_MODEL_H

#include "checkpoint.h"
#include "lab.h"

enum { LAB_LEAST_TO_SEE = 2 }; /* tokens: the map of one has one entry, which is 1 */

typedef struct lab_model {
    mg_checkpoint checkpoint;
    int *ids; /* T of them, at most the context and at most what the lab asked for */
    int T;
    const char **labels; /* T tokens, or ids where the checkpoint has no tokenizer */
} lab_model;

/* The checkpoint that the user named, or the one in the run folder that the user named. The ids are the prompt's;
 * without a prompt they are drawn from the vocabulary by the seed, which is enough to ask who sees whom. A context
 * shorter than `least` is refused (MG_ERR_INPUT), weights that are not finite are too (MG_ERR_FORMAT); other errors as
 * of mg_checkpoint_load and mg_tokenizer_encode. */
mg_status lab_model_load(mg_lab *lab, int least, int most, lab_model *model, mg_error *error);
void lab_model_free(lab_model *model);

/* The ids of --prompt, which was given: its first `most` ones, with a note if there are more. ids has room for them.
 * Fewer than two are refused (MG_ERR_INPUT). */
mg_status lab_encode_prompt(mg_lab *lab, const mg_tokenizer *tokenizer, int most, int *ids, int *T, mg_error *error);

/* (n_layer, n_head, T, T), as long as the lab lives: the attention weights of T ids. */
mg_real *lab_attention_maps(mg_lab *lab, mg_gpt *gpt, const int *ids, int T);

/* What a lab on a checkpoint can and cannot say, as a note. */
void lab_model_note_limits(mg_lab *lab, const char *what);

#endif
