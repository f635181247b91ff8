/* GPT-2 (Radford et al. 2019): pre-norm blocks, learned positions, tanh GELU, head tied to the token embedding. Without
 * wpe (config.no_positions), only the mask tells a token where it is. */
#ifndef MASKGRAD_GPT_H
#define MASKGRAD_GPT_H

#include "gpt_config.h"
#include "ops.h"
#include "params.h"

typedef struct mg_gpt mg_gpt;
struct mg_kv_cache;

/* A model with random weights, ready to train: N(0, init_std) for matrices, with the projections into the residual
 * stream scaled by 1/sqrt(2 n_layer); gains 1, biases 0. The same seed gives the same weights whatever the mask. Sizes
 * are checked before they are multiplied: MG_ERR_INPUT; MG_ERR_MEMORY. *gpt is NULL then. */
MG_API mg_status mg_gpt_new(mg_gpt **gpt, const mg_gpt_config *config, uint64_t seed, mg_error *error);
/* All zeros, including the gains: for weights that come from elsewhere. `trainable` false leaves out the gradients. */
MG_API mg_status mg_gpt_new_zeros(mg_gpt **gpt, const mg_gpt_config *config, bool trainable, mg_error *error);
MG_API void mg_gpt_free(mg_gpt *gpt);
MG_API const mg_gpt_config *mg_gpt_get_config(const mg_gpt *gpt);
MG_API mg_params *mg_gpt_params(mg_gpt *gpt);
/* Evaluate the same weights under another mask: every head gets it; the leaky head and the documents are
 * dropped. */
MG_API void mg_gpt_set_mask(mg_gpt *gpt, mg_mask mask);

/* What to look at during a pass. Capturing changes no bit of the logits. */
typedef struct mg_gpt_capture {
    mg_real *weights; /* (n_layer, B, n_head, T, T): attention weights, 0 where not visible; or NULL */
    mg_real *scores;  /* the same before the softmax, -inf where not visible; or NULL */
    mg_tensor
        *embedding;    /* set by the pass: what goes into the first block (B,T,C); its grad is there after backward */
    mg_tensor **block; /* n_layer places, or NULL. Set by the pass: what comes out of each block (B,T,C) */
    mg_tensor **qkv;   /* n_layer places, or NULL. Set by the pass: (B,T,3C) */
    mg_tensor *
        *heads; /* n_layer places, or NULL. Set by the pass: the heads' outputs side by side, before W^O (B,T,C) */
} mg_gpt_capture;

/* What to leave out during a pass. */
typedef struct mg_gpt_ablation {
    const unsigned char *heads;  /* n_layer * n_head flags, or NULL: these heads' output is set to 0 */
    const unsigned char *blocks; /* n_layer flags, or NULL: these blocks are skipped */
} mg_gpt_ablation;

typedef struct mg_gpt_pass {
    uint64_t dropout_seed; /* dropout is on if config.dropout > 0 and training is true */
    uint32_t dropout_step;
    bool training;
    bool last_only;                  /* logits of the last position only: (B,1,V) */
    mg_gpt_capture *capture;         /* or NULL */
    const mg_gpt_ablation *ablation; /* or NULL */
    /* (B,T): what each position may see at most, beside the model's mask (attention.h), and the row of wpe that it
     * gets. NULL: as the model's documents say, or all, and 0 … T - 1. Not with a cache. */
    const mg_interval *sequence;
    const int *positions;
    mg_tensor *shift; /* (T,C), added to what enters the first block; or NULL */
    /* For mg_generator: B caches, or NULL. The ids of sequence b continue at the length of cache b, whatever the
     * others' lengths, and are appended to it. What is captured is of one sequence only. */
    struct mg_kv_cache *const *cache;
    bool cache_only; /* fill the caches and return NULL: no logits */
} mg_gpt_pass;

/* ids (B,T), each in [0, vocab_size), T at most block_size. Returns logits (B,T,V) on the tape. `pass` may be NULL. */
MG_API mg_tensor *mg_gpt_forward(mg_gpt *gpt, mg_tape *tape, const int *ids, ptrdiff_t B, ptrdiff_t T,
                                 const mg_gpt_pass *pass);
/* The mean cross-entropy of targets (B,T) in nats, one element; targets of -1 are ignored. With row_loss, B*T places,
 * also each position's. */
MG_API mg_tensor *mg_gpt_loss(mg_gpt *gpt, mg_tape *tape, const int *ids, const int *targets, ptrdiff_t B, ptrdiff_t T,
                              const mg_gpt_pass *pass, mg_real *row_loss);

/* ---- Not installed: between maskgrad's own files ---- */
/* And with the leaky head and the documents of this configuration, as far as it has them. */
void mg_gpt_see_as(mg_gpt *gpt, const mg_gpt_config *config);
/* MG_ERR_STATE if one of n logits is NaN or infinite, with the parameter at fault: the model cannot predict. */
mg_status mg_gpt_check_logits(const mg_gpt *gpt, const mg_real *logits, ptrdiff_t n, mg_error *error);
/* Fill the weights as mg_gpt_new does. */
void mg_gpt_randomize(mg_gpt *gpt, uint64_t seed);
/* The parameters of a configuration in their order, for readers of files. Returns how many; `specs` may be NULL. */
int mg_gpt_specs(const mg_gpt_config *config, mg_param_spec *specs);

#ifndef MG_LIBRARY /* whose line a failure names: error.h */
MG_CALLED(mg_status, mg_gpt_new, (gpt, config), (gpt, config, seed, error), mg_gpt **gpt, const mg_gpt_config *config,
          uint64_t seed, mg_error *error)
MG_CALLED(mg_status, mg_gpt_new_zeros, (gpt, config), (gpt, config, trainable, error), mg_gpt **gpt,
          const mg_gpt_config *config, bool trainable, mg_error *error)
MG_CALLED(const mg_gpt_config *, mg_gpt_get_config, (gpt), (gpt), const mg_gpt *gpt)
MG_CALLED(mg_params *, mg_gpt_params, (gpt), (gpt), mg_gpt *gpt)
MG_CALLED_VOID(mg_gpt_set_mask, (gpt), (gpt, mask), mg_gpt *gpt, mg_mask mask)
MG_CALLED(mg_tensor *, mg_gpt_forward, (gpt, tape, ids), (gpt, tape, ids, B, T, pass), mg_gpt *gpt, mg_tape *tape,
          const int *ids, ptrdiff_t B, ptrdiff_t T, const mg_gpt_pass *pass)
MG_CALLED(mg_tensor *, mg_gpt_loss, (gpt, tape, ids, targets), (gpt, tape, ids, targets, B, T, pass, row_loss),
          mg_gpt *gpt, mg_tape *tape, const int *ids, const int *targets, ptrdiff_t B, ptrdiff_t T,
          const mg_gpt_pass *pass, mg_real *row_loss)
#define mg_gpt_new(...) MG_AT(mg_gpt_new, __VA_ARGS__)
#define mg_gpt_new_zeros(...) MG_AT(mg_gpt_new_zeros, __VA_ARGS__)
#define mg_gpt_get_config(...) MG_AT(mg_gpt_get_config, __VA_ARGS__)
#define mg_gpt_params(...) MG_AT(mg_gpt_params, __VA_ARGS__)
#define mg_gpt_set_mask(...) MG_AT(mg_gpt_set_mask, __VA_ARGS__)
#define mg_gpt_forward(...) MG_AT(mg_gpt_forward, __VA_ARGS__)
#define mg_gpt_loss(...) MG_AT(mg_gpt_loss, __VA_ARGS__)
#endif

#endif
