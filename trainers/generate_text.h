/* Text from a model, in one call. */
#ifndef MASKGRAD_GENERATE_TEXT_H
#define MASKGRAD_GENERATE_TEXT_H

#include "gpt.h"
#include "sampler.h"
#include "tokenizer.h"

/* What the model writes after the prompt (not repeated), n_tokens of it: *text is allocated and 0-terminated, free it
 * with mg_free. The prompt may be NULL or empty; no sampler is temperature 1. The same seed gives the same text. With a
 * KV cache where the model can have one. MG_ERR_INPUT: the prompt does not fit the vocabulary, or the sampler's
 * settings are invalid. */
MG_API mg_status mg_generate_text(char **text, mg_gpt *gpt, const mg_tokenizer *tokenizer, const char *prompt,
                                  ptrdiff_t n_tokens, const mg_sampler *sampler, uint64_t seed, mg_error *error);

#ifndef MG_LIBRARY /* whose line a failure names: error.h */
MG_CALLED(mg_status, mg_generate_text, (text, gpt, tokenizer),
          (text, gpt, tokenizer, prompt, n_tokens, sampler, seed, error), char **text, mg_gpt *gpt,
          const mg_tokenizer *tokenizer, const char *prompt, ptrdiff_t n_tokens, const mg_sampler *sampler,
          uint64_t seed, mg_error *error)
#define mg_generate_text(...) MG_AT(mg_generate_text, __VA_ARGS__)
#endif

#endif
