/* A tokenizer in a checkpoint: the group /tokenizer with the attributes kind and size, and the tokens' bytes. */
#ifndef MASKGRAD_TOKENIZER_H5_H
#define MASKGRAD_TOKENIZER_H5_H

#include "h5.h"
#include "tokenizer.h"

#define MG_TOKENIZER_GROUP "/tokenizer"

mg_status mg_tokenizer_h5_write(const mg_h5 *h5, const mg_tokenizer *tokenizer);
/* The kind; the number of tokens must be at most vocab_size, since a model's vocabulary may be padded. */
mg_status mg_tokenizer_h5_kind(const mg_h5 *h5, int vocab_size, mg_tokenizer_kind *kind);
mg_status mg_tokenizer_h5_read(const mg_h5 *h5, int vocab_size, mg_tokenizer **tokenizer);

#endif
