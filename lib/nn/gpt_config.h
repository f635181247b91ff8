/* What defines a GPT: its sizes, who sees whom, and its initial weights. */
#ifndef MASKGRAD_GPT_CONFIG_H
#define MASKGRAD_GPT_CONFIG_H

#include "error.h"
#include "mask.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct mg_gpt_config {
    int n_layer;        /* blocks; 0: 2 */
    int n_head;         /* attention heads per block, a divisor of n_embd; 0: 4 */
    int n_embd;         /* width; 0: 64 */
    int block_size;     /* context, in tokens; 0: 32 */
    int vocab_size;     /* no default; a trainer takes the size of its corpus's tokenizer for 0 */
    mg_mask mask;       /* of every head; all zeros is causal */
    int leak_layer;     /* one head that looks further than the others: its layer, */
    int leak_head;      /* its number there, */
    int leak_lookahead; /* and how far it sees; 0: there is none */
    /* Texts are packed: a position only sees its own document, whose positions count from 0, and the next document
     * begins after the token document_end. */
    bool documents;
    int document_end;          /* a trainer takes the token that ends those of its corpus */
    bool positions_run_on;     /* positions count on from document to document */
    bool no_scale;             /* scores are not multiplied by 1/sqrt(d_k) */
    bool no_output_projection; /* no W^O: the heads' outputs are only concatenated */
    /* No wpe, a row of which is added to each token. No weight's shape then depends on block_size, which is only how
     * many tokens a window, a pass and a cache hold: the same weights work in a model with another one. */
    bool no_positions;
    double init_std;      /* of the initial weights; 0: 0.02, GPT-2's */
    double attn_init_std; /* of c_attn only; 0: init_std */
    double dropout;       /* of embeddings, attention weights and residual branches, while training */
    double eps;           /* of the layer norms; 0: 1e-5, GPT-2's */
} mg_gpt_config;

/* Whether no query sees past itself, which is what a KV cache needs. */
MG_API bool mg_gpt_is_causal(const mg_gpt_config *config);

/* ---- Not installed: between maskgrad's own files ---- */
/* Replace each 0 by its default. Without a leak, leak_layer is -1 afterwards. */
void mg_gpt_config_fill(mg_gpt_config *config);
/* A filled configuration: MG_ERR_INPUT with the first thing that is wrong, in words that a command-line user
 * understands. */
mg_status mg_gpt_config_check(const mg_gpt_config *config, mg_error *error);
/* MG_ERR_INPUT if the number of a mask is out of its range. */
mg_status mg_mask_check(mg_mask mask, mg_error *error);
/* Of a text of n tokens, how many of the first the next one can do without: those of documents that ended, if positions
 * restart or there are none. Leaving them out changes no later logit but for rounding. */
ptrdiff_t mg_gpt_ended(const mg_gpt_config *config, const int *ids, ptrdiff_t n);
/* What head `head` of layer `layer` sees. */
mg_mask mg_gpt_mask(const mg_gpt_config *config, int layer, int head);

#ifndef MG_LIBRARY /* whose line a failure names: error.h */
MG_CALLED(bool, mg_gpt_is_causal, (config), (config), const mg_gpt_config *config)
#define mg_gpt_is_causal(...) MG_AT(mg_gpt_is_causal, __VA_ARGS__)
#endif

#endif
