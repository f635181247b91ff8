/* GPT-2's vocab.json (also encoder.json): a JSON object from each token, written in the byte alphabet, to its id. It
 * follows from merges.txt, so nothing has to be read from it; but whether the two files belong together is checked,
 * since a model with another model's tokens produces gibberish. */
#ifndef MASKGRAD_VOCAB_JSON_H
#define MASKGRAD_VOCAB_JSON_H

#include "tokenizer.h"

#include <stdio.h>

/* MG_OK if the file holds exactly the tokens of this tokenizer (of kind GPT2) with the same ids; else MG_ERR_FORMAT
 * with the first token, by id, on which they differ. */
mg_status mg_vocab_json_check(const char *path, const mg_tokenizer *tokenizer, mg_error *error);
/* A vocabulary with other tokens besides those of the merges, or <|endoftext|> elsewhere: *as is a tokenizer of the
 * same merges with the ids of the file. MG_ERR_FORMAT if its ids have gaps, or the tokens of the merges are not there
 * in their order. */
mg_status mg_vocab_json_read(const char *path, const mg_tokenizer *tokenizer, mg_tokenizer **as, mg_error *error);
/* Print such a file: the tokens in the order of their ids. MG_ERR_MEMORY. */
mg_status mg_vocab_json_write(FILE *out, const mg_tokenizer *tokenizer, mg_error *error);

#endif
