#include "rng.h"
#include "arithmetic.h"

static uint64_t join(uint32_t high, uint32_t low) {
    return (uint64_t)high << 32 | low;
}

static double unit(uint64_t bits) {
    return (double)(bits >> 11) * 0x1p-53;
}

double mg_rng_uniform(mg_rng rng, uint64_t index) {
    uint32_t w[4];
    mg_rng_words(rng, index, w);
    return unit(join(w[0], w[1]));
}

uint64_t mg_rng_below(mg_rng rng, uint64_t index, uint64_t n) {
    uint32_t w[4];
    mg_rng_words(rng, index, w);
    /* floor(r * n / 2^64) for a 64-bit r, in 32-bit halves: the carry of the low product is what matters of it. */
    uint64_t low = (uint64_t)w[1] * (n & 0xffffffffu), high = (uint64_t)w[0] * (n & 0xffffffffu);
    uint64_t low2 = (uint64_t)w[1] * (n >> 32), high2 = (uint64_t)w[0] * (n >> 32);
    uint64_t middle = (low >> 32) + (high & 0xffffffffu) + (low2 & 0xffffffffu);
    return high2 + (high >> 32) + (low2 >> 32) + (middle >> 32);
}

double mg_rng_normal(mg_rng rng, uint64_t index) {
    uint32_t w[4];
    mg_rng_words(rng, index, w);
    double radius = sqrt(-2.0 *
                         mg_log_double(1.0 - unit(join(w[0], w[1])))); /* 1 - u is in (0, 1]: the logarithm is finite */
    return radius * mg_cos_double(6.283185307179586476925286766559 * unit(join(w[2], w[3])));
}
