/* GPT-2's tokenizer: byte-pair encoding (Sennrich, Haddow and Birch 2016) on bytes (Radford et al. 2019).
 *
 * The vocabulary follows from the merges: ids 0–255 are the bytes in the order of byte_alphabet.h, the i-th merge,
 * counted from 0, makes id 256 + i, and <|endoftext|> comes last (50256 with OpenAI's 50,000 merges).
 *
 * Every byte string has ids, and decodes to itself. Those of valid UTF-8 are GPT-2's, <|endoftext|> in a text being
 * text; bytes that belong to no character, which GPT-2 does not know, are encoded by the same merges, each longest run
 * of them on its own. Encoding takes O(n log n) whatever the text. */
#ifndef MASKGRAD_BPE_H
#define MASKGRAD_BPE_H

#include "tokenizer.h"

/* A tokenizer of the kind GPT2 from the content of a merges.txt: a first line "#version: …", which may be missing, then
 * one merge per line, two tokens with one space between them, each a byte or the result of an earlier line. Refused
 * (MG_ERR_FORMAT), with the line: not two tokens, a character outside the byte alphabet, a token that no earlier line
 * makes, a merge that is there already or makes a token that is there already; also a git-lfs pointer instead of the
 * file, and a file without merges. */
mg_status mg_tokenizer_new_gpt2(mg_tokenizer **tokenizer, const char *merges, size_t length, mg_error *error);
/* The same with the ids of a vocabulary in which other tokens come before, between or after those of the merges, which
 * keep their order; <|endoftext|> may be anywhere, or missing. Trainers of tokenizers put special tokens first. */
mg_status mg_tokenizer_new_gpt2_as(mg_tokenizer **tokenizer, const char *merges, size_t length, int n_tokens,
                                   const mg_token *tokens, mg_error *error);
bool mg_tokenizer_has_own_ids(const mg_tokenizer *tokenizer); /* whether it was made so */
/* The merges as they were given, to be stored with a model; 0-terminated. NULL and 0 for other kinds. */
const char *mg_tokenizer_merges(const mg_tokenizer *tokenizer, size_t *length);
/* The same from a file, which errors name. */
mg_status mg_tokenizer_load_gpt2(mg_tokenizer **tokenizer, const char *path, mg_error *error);

#endif
