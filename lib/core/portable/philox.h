/* Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011), for any processor: Random123's
 * own headers refuse those they do not know. */
#ifndef MASKGRAD_PHILOX_H
#define MASKGRAD_PHILOX_H

#include <stdint.h>

static inline void mg_philox(uint32_t key0, uint32_t key1, uint32_t counter[4]) {
    for (int round = 0; round < 10; round++, key0 += 0x9e3779b9u, key1 += 0xbb67ae85u) {
        uint64_t even = (uint64_t)0xd2511f53u * counter[0], odd = (uint64_t)0xcd9e8d57u * counter[2];
        counter[0] = (uint32_t)(odd >> 32) ^ counter[1] ^ key0;
        counter[1] = (uint32_t)odd;
        counter[2] = (uint32_t)(even >> 32) ^ counter[3] ^ key1;
        counter[3] = (uint32_t)even;
    }
}

#endif
