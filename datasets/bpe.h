/* GPT-2's tokenizer: byte-pair encoding (Sennrich, Haddow and Birch 2016) on bytes (Radford et al. 2019).
 *
 * The vocabulary follows from the merges: ids 0–255 are the bytes in the order of byte_alphabet.h, the merge on the
 * i-th line makes id 256 + i, and <|endoftext|> comes last (50256 with OpenAI's 50,000 merges). */
#ifndef MASKGRAD_BPE_H
#define MASKGRAD_BPE_H

#include "tokenizer.h"

typedef struct mg_bpe mg_bpe; /* immutable: threads may share it */

/* From the content of a merges.txt: a first line "#version: …", which may be missing, then one merge a line, two tokens
 * with one space between them, each a byte or the result of an earlier line. `name` is what errors call it. Refused
 * (MG_ERR_FORMAT), with the line: not two tokens, a character outside the byte alphabet, a token that no earlier line
 * makes, a merge that is there already or makes a token that is there already; also a git-lfs pointer in the file's
 * place, and no merges at all. */
MG_API mg_status mg_bpe_new(mg_bpe **bpe, const char *merges, size_t length, const char *name, mg_error *error);
MG_API void mg_bpe_free(mg_bpe *bpe);

MG_API int mg_bpe_size(const mg_bpe *bpe);
MG_API mg_token mg_bpe_token(const mg_bpe *bpe, int id);
/* The merges as they were given, to be stored with a model. */
MG_API const char *mg_bpe_merges(const mg_bpe *bpe, size_t *length);

/* ids is allocated (free with mg_free). Every byte string has ids, and their tokens' bytes in a row are the string
 * again; for valid UTF-8 they are those of GPT-2, <|endoftext|> in the text being text. Time is O(n log n) whatever the
 * text. */
MG_API mg_status mg_bpe_encode(const mg_bpe *bpe, const char *text, size_t length, int **ids, size_t *n_ids,
                               mg_error *error);

#endif
