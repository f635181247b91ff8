/* How GPT-2 writes bytes as visible characters, in merges.txt and vocab.json: the bytes 33–126, 161–172 and 174–255 as
 * the character of the same number, the other 68, ascending, as U+0100, U+0101, … (a space is Ġ, a newline Ċ). */
#ifndef MASKGRAD_BYTE_ALPHABET_H
#define MASKGRAD_BYTE_ALPHABET_H

#include "error.h"

#include <stddef.h>

typedef struct mg_byte_alphabet {
    unsigned char byte_of_id[256]; /* GPT-2 numbers the bytes in the order of their characters' table: '!' is id 0 */
    int id_of_byte[256];
    int character_of_byte[256];   /* code points, below U+0144 */
    int byte_of_character[0x144]; /* -1: not in the alphabet */
} mg_byte_alphabet;

void mg_byte_alphabet_fill(mg_byte_alphabet *alphabet);
/* The byte that the UTF-8 character at `text` represents, or -1. `length` is what mg_utf8_next returns. */
int mg_byte_alphabet_read(const mg_byte_alphabet *alphabet, const char *text, int length);
/* Write n bytes as characters; `spelled` holds 2 n. Returns how many bytes were written; no 0 is added. */
size_t mg_byte_alphabet_spell(const mg_byte_alphabet *alphabet, const char *bytes, size_t n, char *spelled);

#endif
