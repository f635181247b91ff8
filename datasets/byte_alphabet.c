#include "byte_alphabet.h"

#include <stdbool.h>

static bool is_its_own_character(int byte) {
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

static void add(mg_byte_alphabet *alphabet, int id, int byte, int character) {
    alphabet->byte_of_id[id] = (unsigned char)byte;
    alphabet->id_of_byte[byte] = id;
    alphabet->character_of_byte[byte] = character;
    alphabet->byte_of_character[character] = byte;
}

void mg_byte_alphabet_fill(mg_byte_alphabet *alphabet) {
    for (int character = 0; character < 0x144; character++) alphabet->byte_of_character[character] = -1;
    int id = 0;
    for (int byte = 0; byte < 256; byte++)
        if (is_its_own_character(byte)) add(alphabet, id++, byte, byte);
    int stand_in = 0x100;
    for (int byte = 0; byte < 256; byte++)
        if (!is_its_own_character(byte)) add(alphabet, id++, byte, stand_in++);
}

int mg_byte_alphabet_read(const mg_byte_alphabet *alphabet, const char *text, int length) {
    const unsigned char *bytes = (const unsigned char *)text;
    int character = length == 1 ? bytes[0] : length == 2 ? (bytes[0] & 0x1F) << 6 | (bytes[1] & 0x3F) : 0x144;
    return character < 0x144 ? alphabet->byte_of_character[character] : -1;
}

size_t mg_byte_alphabet_spell(const mg_byte_alphabet *alphabet, const char *bytes, size_t n, char *spelled) {
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        int character = alphabet->character_of_byte[(unsigned char)bytes[i]];
        if (character < 0x80) {
            spelled[at++] = (char)character;
        } else {
            spelled[at++] = (char)(0xC0 | character >> 6);
            spelled[at++] = (char)(0x80 | (character & 0x3F));
        }
    }
    return at;
}
