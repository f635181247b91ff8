/* The only user of Random123. */
#include "rng.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wpedantic"
#include <Random123/philox.h>
#pragma GCC diagnostic pop

void mg_rng_words(mg_rng rng, uint64_t index, uint32_t words[4]) {
    philox4x32_ctr_t counter = {{(uint32_t)index, (uint32_t)(index >> 32), rng.step, rng.stream}};
    philox4x32_key_t key = {{(uint32_t)rng.seed, (uint32_t)(rng.seed >> 32)}};
    philox4x32_ctr_t drawn = philox4x32(counter, key);
    for (int i = 0; i < 4; i++) words[i] = drawn.v[i];
}
