/* Speculative decoding (Leviathan, Kalman & Matias 2023, algorithm 1; Chen et al. 2023): a small model drafts a few
 * tokens, one pass of the large one judges them all, and the text is distributed as if the large one had written it.
 * One pass can judge several tokens only because of the mask: what a causal model predicts after a token does not
 * depend on the drafted tokens that follow. Each model has a KV cache, which is cut back where a draft is rejected.
 *
 * Past the context the window slides by one token, as in generator.h, and every token costs a whole window: nothing is
 * drafted there. A draft model with a shorter context reads the newest tokens that fit; what it is fed can make it
 * guess worse, but not change how the text is distributed. */
#ifndef MASKGRAD_SPECULATOR_H
#define MASKGRAD_SPECULATOR_H

#include "generator.h"

/* What becomes of *id, which was drawn from q (n), under the judge's p (n). Returns whether it stays; if not, *id
 * becomes what takes its place. It may draw at `index` and `index` + 1 of `rng`. */
typedef bool mg_draft_rule(const double *p, const double *q, int n, int *id, mg_rng rng, uint64_t index, void *user);

/* The rule after which *id is distributed as p, whatever q is: x stays with probability min(1, p(x) / q(x)); else a
 * draw from max(0, p − q), normalized, takes its place. So a token stays with probability Σ min(p, q). `user` is
 * unused. */
bool mg_draft_judge(const double *p, const double *q, int n, int *id, mg_rng rng, uint64_t index, void *user);

typedef struct mg_speculation {
    int64_t passes;                    /* of the target; each gives the accepted tokens and one more */
    int64_t drafted, judged, accepted; /* judged: up to the first rejected token of each pass, and with it */
    /* The same without what a text's last pass gives beyond its end: the tokens handed on, the drafted tokens up to the
     * end, and those of them that stayed. */
    int64_t written, used, stayed;
} mg_speculation;

typedef struct mg_speculator mg_speculator;

/* Borrows both models. Drafts up to n_draft tokens per pass. Only ids below n_ids that both models know are drawn.
 * MG_ERR_STATE, with the reason, if one of them looks ahead. */
mg_status mg_speculator_new(mg_speculator **speculator, mg_gpt *target, mg_gpt *draft, int n_ids, int n_draft,
                            mg_error *error);
void mg_speculator_free(mg_speculator *speculator);
/* Another rule than mg_draft_judge: a lab plants wrong ones. */
void mg_speculator_set_rule(mg_speculator *speculator, mg_draft_rule *rule, void *user);
/* Start over with a prompt of n >= 1 ids, of which the last block_size count. */
void mg_speculator_prompt(mg_speculator *speculator, const int *ids, ptrdiff_t n);
/* Whether both models predict numbers after the prompt: the error that a text would end with, before it begins. What
 * the passes read stays in the caches. */
mg_status mg_speculator_check(mg_speculator *speculator, mg_error *error);
/* As mg_generate: the same distribution, but other draws, so another text of it for the same seed; at temperature 0 the
 * same text. */
mg_status mg_speculate(mg_speculator *speculator, const mg_sampler *sampler, uint64_t seed, uint32_t sample,
                       ptrdiff_t n, mg_token_fn *on_token, void *user, mg_error *error);
/* The same into ids, which has room for n. */
mg_status mg_speculate_ids(mg_speculator *speculator, const mg_sampler *sampler, uint64_t seed, uint32_t sample,
                           ptrdiff_t n, int *ids, mg_error *error);
/* All passes since the speculator was made. */
mg_speculation mg_speculator_counts(const mg_speculator *speculator);

#endif
