/* What a model writes unprompted, and, where the grammar is known, how much of it is grammatical. */
#ifndef MASKGRAD_SAMPLES_H
#define MASKGRAD_SAMPLES_H

#include "corpus.h"
#include "gpt.h"
#include "sampler.h"

typedef struct mg_samples_options {
    int n_samples;
    ptrdiff_t n_tokens; /* each */
    mg_sampler sampler;
    uint64_t seed;
    void (*show)(const int *ids, ptrdiff_t n, void *user); /* called with the first sample; or NULL */
    void *user;
} mg_samples_options;

/* Write them to `path`, one after the other with a line of hyphens between them, from an empty prompt
 * (mg_tokenizer_start_id). *score counts grammatical sentences where corpus->grammar is known, and is empty elsewhere.
 */
mg_status mg_samples_write(const char *path, mg_gpt *gpt, const mg_corpus *corpus, const mg_samples_options *options,
                           mg_grammar_score *score, mg_error *error);

#endif
