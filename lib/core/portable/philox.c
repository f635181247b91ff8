#include "philox.h"
#include "rng.h"

void mg_rng_words(mg_rng rng, uint64_t index, uint32_t words[4]) {
    words[0] = (uint32_t)index;
    words[1] = (uint32_t)(index >> 32);
    words[2] = rng.step;
    words[3] = rng.stream;
    mg_philox((uint32_t)rng.seed, (uint32_t)(rng.seed >> 32), words);
}
