/* config.json, as Hugging Face's transformers library writes it next to GPT-2's weights. */
#ifndef MASKGRAD_GPT2_CONFIG_H
#define MASKGRAD_GPT2_CONFIG_H

#include "gpt.h"

#include <stdio.h>

/* Fill *config. According to the file, *tied is whether the head is the token embedding, and *end_of_text is
 * eos_token_id, or -1 where it says nothing that can be an id of the vocabulary. MG_ERR_FORMAT with the key for a
 * model that this library would not compute as its author meant it, or a size that is missing or not an integer. */
mg_status mg_gpt2_config_read(const char *path, mg_gpt_config *config, bool *tied, int *end_of_text, mg_error *error);
/* Print such a file: of the mask, the output projection and the positions it says nothing. end_of_text may be -1.
 * MG_ERR_MEMORY. */
mg_status mg_gpt2_config_write(FILE *out, const mg_gpt_config *config, int end_of_text, mg_error *error);

#endif
