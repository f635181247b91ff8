/* Generating text: the window, the cache and the loop. Past the context the window slides by one token, as nanoGPT
 * crops it; the positions of all tokens in it change, so a cache is rebuilt, and cached and uncached logits agree at
 * any length. Without position embeddings too: from the second layer on, keys hold what was seen of the dropped token.
 */
#ifndef MASKGRAD_GENERATOR_H
#define MASKGRAD_GENERATOR_H

#include "gpt.h"
#include "rng.h"
#include "sampler.h"

typedef struct mg_generator mg_generator;

/* Borrows the model. Only ids below n_ids are drawn (a model's vocabulary may be padded beyond its tokenizer's). With
 * use_cache, a model that looks ahead is refused with the reason (MG_ERR_STATE). */
MG_API mg_status mg_generator_new(mg_generator **generator, mg_gpt *gpt, int n_ids, bool use_cache, mg_error *error);
MG_API void mg_generator_free(mg_generator *generator);
/* Start over with a prompt of n >= 1 ids, of which the last block_size count. */
MG_API void mg_generator_prompt(mg_generator *generator, const int *ids, ptrdiff_t n);
/* The logits of the next token, n_ids of them, valid until the next call. */
MG_API const mg_real *mg_generator_logits(const mg_generator *generator);
MG_API void mg_generator_append(mg_generator *generator, int id);

/* Called with each token as it comes; false ends the sample. */
typedef bool mg_token_fn(int id, void *user);
/* Rewind and draw n tokens: token i is a function of (seed, sample, i) and of the tokens before it. MG_ERR_STATE if the
 * model predicts NaN or infinity; the tokens before that were handed on. */
MG_API mg_status mg_generate(mg_generator *generator, const mg_sampler *sampler, uint64_t seed, uint32_t sample,
                             ptrdiff_t n, mg_token_fn *on_token, void *user, mg_error *error);

/* Called with each token of each sample as it comes; false ends that sample. */
typedef bool mg_sample_fn(uint32_t sample, int id, void *user);
/* mg_generate for the samples first … first + n_samples - 1, many of them side by side: one pass draws the next token
 * of each, and where one ends the next begins. Their tokens come interleaved. */
MG_API mg_status mg_generate_samples(mg_generator *generator, const mg_sampler *sampler, uint64_t seed, uint32_t first,
                                     ptrdiff_t n_samples, ptrdiff_t n, mg_sample_fn *on_token, void *user,
                                     mg_error *error);

/* ---- Not installed: between maskgrad's own files ---- */
/* Return to the end of the prompt, whose keys and values are kept unless the window slid: for many samples from one
 * prompt. */
void mg_generator_rewind(mg_generator *generator);
/* The same into ids, which has room for n. */
mg_status mg_generate_ids(mg_generator *generator, const mg_sampler *sampler, uint64_t seed, uint32_t sample,
                          ptrdiff_t n, int *ids, mg_error *error);
/* And many: ids (n_samples,n). */
mg_status mg_generate_samples_ids(mg_generator *generator, const mg_sampler *sampler, uint64_t seed, uint32_t first,
                                  ptrdiff_t n_samples, ptrdiff_t n, int *ids, mg_error *error);

#ifndef MG_LIBRARY /* whose line a failure names: error.h */
MG_CALLED(mg_status, mg_generator_new, (generator, gpt), (generator, gpt, n_ids, use_cache, error),
          mg_generator **generator, mg_gpt *gpt, int n_ids, bool use_cache, mg_error *error)
MG_CALLED_VOID(mg_generator_prompt, (generator, ids), (generator, ids, n), mg_generator *generator, const int *ids,
               ptrdiff_t n)
MG_CALLED(const mg_real *, mg_generator_logits, (generator), (generator), const mg_generator *generator)
MG_CALLED_VOID(mg_generator_append, (generator), (generator, id), mg_generator *generator, int id)
MG_CALLED(mg_status, mg_generate, (generator, sampler), (generator, sampler, seed, sample, n, on_token, user, error),
          mg_generator *generator, const mg_sampler *sampler, uint64_t seed, uint32_t sample, ptrdiff_t n,
          mg_token_fn *on_token, void *user, mg_error *error)
MG_CALLED(mg_status, mg_generate_samples, (generator, sampler),
          (generator, sampler, seed, first, n_samples, n, on_token, user, error), mg_generator *generator,
          const mg_sampler *sampler, uint64_t seed, uint32_t first, ptrdiff_t n_samples, ptrdiff_t n,
          mg_sample_fn *on_token, void *user, mg_error *error)
#define mg_generator_new(...) MG_AT(mg_generator_new, __VA_ARGS__)
#define mg_generator_prompt(...) MG_AT(mg_generator_prompt, __VA_ARGS__)
#define mg_generator_logits(...) MG_AT(mg_generator_logits, __VA_ARGS__)
#define mg_generator_append(...) MG_AT(mg_generator_append, __VA_ARGS__)
#define mg_generate(...) MG_AT(mg_generate, __VA_ARGS__)
#define mg_generate_samples(...) MG_AT(mg_generate_samples, __VA_ARGS__)
#endif

#endif
