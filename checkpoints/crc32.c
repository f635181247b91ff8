#include "crc32.h"

void mg_crc32_begin(mg_crc32 *crc) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t value = byte;
        for (int bit = 0; bit < 8; bit++) value = value & 1 ? value >> 1 ^ 0xEDB88320u : value >> 1;
        crc->table[0][byte] = value;
    }
    for (int slice = 1; slice < 8; slice++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t before = crc->table[slice - 1][byte];
            crc->table[slice][byte] = before >> 8 ^ crc->table[0][before & 0xFF];
        }
    crc->state = 0xFFFFFFFFu;
}

static uint32_t load32(const unsigned char *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

void mg_crc32_add(mg_crc32 *crc, const void *bytes, size_t length) {
    const unsigned char *p = bytes;
    const uint32_t(*t)[256] = (const uint32_t(*)[256])crc->table;
    uint32_t state = crc->state;
    for (; length >= 8; p += 8, length -= 8) {
        uint32_t low = state ^ load32(p), high = load32(p + 4);
        state = t[7][low & 0xFF] ^ t[6][low >> 8 & 0xFF] ^ t[5][low >> 16 & 0xFF] ^ t[4][low >> 24] ^
                t[3][high & 0xFF] ^ t[2][high >> 8 & 0xFF] ^ t[1][high >> 16 & 0xFF] ^ t[0][high >> 24];
    }
    for (; length > 0; p++, length--) state = state >> 8 ^ t[0][(state ^ *p) & 0xFF];
    crc->state = state;
}

uint32_t mg_crc32_value(const mg_crc32 *crc) {
    return ~crc->state;
}
