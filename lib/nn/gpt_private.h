/* A model's parts, for the files that make it and run it. */
#ifndef MASKGRAD_GPT_PRIVATE_H
#define MASKGRAD_GPT_PRIVATE_H

#include "gpt.h"

/* Where a block's parameters are: their names follow "h.N.". */
typedef struct mg_gpt_block {
    mg_tensor *ln_1_weight, *ln_1_bias, *c_attn_weight, *c_attn_bias, *attn_proj_weight, *attn_proj_bias;
    mg_tensor *ln_2_weight, *ln_2_bias, *c_fc_weight, *c_fc_bias, *mlp_proj_weight, *mlp_proj_bias;
} mg_gpt_block;

struct mg_gpt {
    mg_gpt_config config;
    mg_params *params;
    mg_tensor *wte, *wpe, *ln_f_weight, *ln_f_bias;
    mg_gpt_block *h;
    mg_mask *mask; /* (n_layer, n_head) */
};

#endif
