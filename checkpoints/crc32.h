/* CRC-32 as in zlib, PNG and IEEE 802.3 (polynomial 0xEDB88320, reflected), eight bytes at a time (Kounavis and Berry
 * 2005, "slicing-by-8"). Notices every error confined to 32 consecutive bits. */
#ifndef MASKGRAD_CRC32_H
#define MASKGRAD_CRC32_H

#include <stddef.h>
#include <stdint.h>

typedef struct mg_crc32 {
    uint32_t table[8][256];
    uint32_t state;
} mg_crc32;

void mg_crc32_begin(mg_crc32 *crc);
void mg_crc32_add(mg_crc32 *crc, const void *bytes, size_t length);
uint32_t mg_crc32_value(const mg_crc32 *crc); /* of all bytes so far */

#endif
