/* The two halves of lab mask: made-up scores (mask.c), and a model's own (mask_model.c). */
#ifndef MASKGRAD_LAB_MASK_WAYS_H
#define MASKGRAD_LAB_MASK_WAYS_H

#include "lab.h"
#include "model.h"

typedef enum lab_mask_way { MINUS_INFINITY, ADD_1E9, ADD_1E4, FILL_1E4, ZERO_BEFORE, ZERO_AFTER, N_WAYS } lab_mask_way;

extern const char *const lab_mask_names[N_WAYS];

enum { LAB_MASK_MOST_KEYS = 64 };
/* The weights of one row of n keys, the first `visible` of them allowed, when the others are masked this way. */
void lab_mask_weigh(lab_mask_way way, int n, int visible, const float *scores, float *weights);

/* --checkpoint: what each way would do to the scores of a trained model, head by head. */
void lab_mask_model(mg_lab *lab, const lab_model *model);

#endif
