/* FNV-1a, 64 bits (Fowler, Noll, Vo): for tables and to distinguish files, not against an adversary. */
#ifndef MASKGRAD_HASH_H
#define MASKGRAD_HASH_H

#include <stddef.h>
#include <stdint.h>

#define MG_FNV_START 0xcbf29ce484222325u

/* The hash of what was hashed before and these bytes; MG_FNV_START begins. */
static inline uint64_t mg_fnv1a(uint64_t hash, const void *bytes, size_t length) {
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < length; i++) hash = (hash ^ byte[i]) * 0x100000001b3u;
    return hash;
}

#endif
