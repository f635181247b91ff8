/* config.json, as Hugging Face's transformers writes it beside GPT-2's weights. */
#ifndef MASKGRAD_GPT2_CONFIG_H
#define MASKGRAD_GPT2_CONFIG_H

#include "gpt.h"

/* Fill *config. *tied: whether the head is the token embedding by what the file says. A model that this library would
 * not compute as its author meant it, a size that is missing or no integer: MG_ERR_FORMAT with the key. */
mg_status mg_gpt2_config_read(const char *path, mg_gpt_config *config, bool *tied, mg_error *error);

#endif
