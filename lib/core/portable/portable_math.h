/* exp, log, cos, expm1 and tanh from additions, multiplications and divisions only. IEEE 754 defines each of those to
 * the last bit, so that these functions have the same bits wherever the compiler neither fuses nor reorders them
 * (-ffp-contract=off, no -ffast-math). tests/core/test_portable.c measures how far they are from libm. */
#ifndef MASKGRAD_PORTABLE_MATH_H
#define MASKGRAD_PORTABLE_MATH_H

#include <stdint.h>
#include <string.h>

/* ---- e^x = 2^n e^r,  n = x / ln 2 rounded,  |r| ≤ ln(2) / 2 ----
 *
 * ln 2 is the sum of two numbers, of which the first is so short that n times it is exact. Adding 1.5 · 2^(digits - 1)
 * rounds to an integer and leaves it in the low bits. 2^n is two factors: for a result below the normal numbers one
 * would be too small. e^r is Taylor's series. NaN stays NaN. Inline and without branches, so that a loop of it becomes
 * vectors. */

/* 1.1 ulp at most; the series leaves out r^8 / 8! < 2^-27. */
static inline float mg_portable_expf(float x) {
    const float magic = 0x1.8p23f, high = 0x1.62ep-1f, low = 0x1.0bfbe8p-15f;
    x = x > 89 ? 89 : x;     /* +inf */
    x = x < -104 ? -104 : x; /* 0 */
    float rounded = x * 0x1.715476p+0f + magic, n = rounded - magic, r = (x - n * high) - n * low;
    float q = 1.0f / 2 + r * (1.0f / 6 + r * (1.0f / 24 + r * (1.0f / 120 + r * (1.0f / 720 + r * (1.0f / 5040)))));
    float e = 1 + (r + r * r * q), first, second;
    int32_t bits, zero;
    memcpy(&bits, &rounded, sizeof bits);
    memcpy(&zero, &magic, sizeof zero);
    int32_t half = (bits - zero) >> 1, rest = (bits - zero) - half;
    half = (int32_t)((uint32_t)(half + 127) << 23);
    rest = (int32_t)((uint32_t)(rest + 127) << 23);
    memcpy(&first, &half, sizeof first);
    memcpy(&second, &rest, sizeof second);
    return e * first * second;
}

/* 1 ulp at most; the series leaves out r^14 / 14! < 2^-57. */
static inline double mg_portable_exp(double x) {
    const double magic = 0x1.8p52, high = 0x1.62e42fefap-1, low = 0x1.cf79abc9e3b398p-40;
    x = x > 710 ? 710 : x;
    x = x < -746 ? -746 : x;
    double rounded = x * 0x1.71547652b82fep+0 + magic, n = rounded - magic, r = (x - n * high) - n * low;
    double q = 1.0 / 39916800 + r * (1.0 / 479001600 + r * (1.0 / 6227020800));
    q = 1.0 / 40320 + r * (1.0 / 362880 + r * (1.0 / 3628800 + r * q));
    q = 1.0 / 120 + r * (1.0 / 720 + r * (1.0 / 5040 + r * q));
    q = 1.0 / 2 + r * (1.0 / 6 + r * (1.0 / 24 + r * q));
    double e = 1 + (r + r * r * q), first, second;
    int64_t bits, zero;
    memcpy(&bits, &rounded, sizeof bits);
    memcpy(&zero, &magic, sizeof zero);
    int64_t half = (bits - zero) >> 1, rest = (bits - zero) - half;
    half = (int64_t)((uint64_t)(half + 1023) << 52);
    rest = (int64_t)((uint64_t)(rest + 1023) << 52);
    memcpy(&first, &half, sizeof first);
    memcpy(&second, &rest, sizeof second);
    return e * first * second;
}

/* 1 ulp at most. −inf at 0, NaN below it. */
double mg_portable_log(double x);
/* 2.5 ulp at most, for |x| ≤ 2^20; NaN beyond, where its argument would lose digits. */
double mg_portable_cos(double x);
/* e^x − 1: 3 ulp at most. */
double mg_portable_expm1(double x);
/* 4 ulp at most. */
double mg_portable_tanh(double x);

#endif
