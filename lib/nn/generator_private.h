/* A generator's parts, for the files that generate. */
#ifndef MASKGRAD_GENERATOR_PRIVATE_H
#define MASKGRAD_GENERATOR_PRIVATE_H

#include "generator.h"
#include "kv_cache.h"

struct mg_generator {
    mg_gpt *gpt;
    mg_tape *tape;
    int n_ids;
    ptrdiff_t block_size;
    int *prompt; /* the last block_size ids of it */
    ptrdiff_t prompt_length;
    int *window; /* what the next token is predicted from */
    ptrdiff_t length;
    mg_kv_cache *cache; /* NULL: everything is recomputed for each token */
    bool holds_prompt;  /* the cache begins with the prompt's keys and values: nothing left the window since */
    bool is_cached;     /* the cache holds the window, whose positions did not change since */
    mg_real *logits, *prompt_logits; /* vocab_size */
    double *probabilities;
    int *order;
};

/* Make room in a full window: what ended leaves it (mg_gpt_ended), or else its first token, and then all positions
 * change. `cache` holds the window, or is NULL. Returns whether it still does. */
bool mg_make_room(const mg_gpt_config *config, int *window, ptrdiff_t *length, mg_kv_cache *cache);
/* What must hold before n tokens are drawn: a prompt, a count, a sampler (MG_ERR_INPUT). */
mg_status mg_generator_check(const mg_generator *generator, const mg_sampler *sampler, ptrdiff_t n, mg_error *error);

#endif
