/* The three parts of lab cache. */
#ifndef MASKGRAD_LAB_CACHE_H
#define MASKGRAD_LAB_CACHE_H

#include "subject.h"

/* Weights, and the mask that they are seen with: the lab compares one that a cache serves with one that it does not. */
typedef struct lab_cache_model {
    lab_subject *subject;
    mg_gpt_config seen; /* its mask, leaky head and documents */
    const char *name;   /* "masked", "unmasked", or the mask: "window:8" */
} lab_cache_model;

/* See the weights with its mask; with another's, where both models have the same weights. */
mg_gpt *lab_cache_gpt(const lab_cache_model *model);

/* cache.c: the same logits, whatever the chunks; and how many bytes it takes. */
/* cache_cost.c: scores counted and time measured against the position. */
mg_status lab_cache_cost(mg_lab *lab, const lab_cache_model *served, mg_error *error);
/* cache_unmasked.c: why a model that looks ahead cannot have a cache. Both may have the weights of one subject. */
mg_status lab_cache_unmasked(mg_lab *lab, const lab_cache_model *served, const lab_cache_model *refused,
                             mg_error *error);
/* Whether it is the plain causal mask, of which the lab's formulas in n are. */
bool lab_cache_is_plain(const mg_gpt_config *seen);

#endif
