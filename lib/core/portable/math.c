#include "portable_math.h"

#include <math.h>

/* x = m · 2^e with m in [√½, √2). With f = m − 1 and s = f / (2 + f),
 *     ln m = 2 artanh s = 2s + s R,  R = 2s²/3 + 2s⁴/5 + …,  and  2s = f − s f,
 * whose first term is exact: ln m = f − (f²/2 − s (f²/2 + R)). The series leaves out 2s²²/23 < 2^-58. */
double mg_portable_log(double x) {
    if (isnan(x) || x == (double)INFINITY) return x;
    if (x <= 0) return x < 0 ? (double)NAN : -(double)INFINITY;
    int64_t scaled = x < 0x1p-1022 ? 54 : 0, bits;
    if (scaled) x *= 0x1p54;
    memcpy(&bits, &x, sizeof bits);
    int64_t exponent = (bits >> 52) - 1023;
    bits -= exponent * ((int64_t)1 << 52);
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 0x1.6a09e667f3bcdp+0) {
        m *= 0.5;
        exponent++;
    }
    double e = (double)(exponent - scaled), f = m - 1, s = f / (2 + f), z = s * s, square = 0.5 * f * f;
    double R = 2.0 / 13 + z * (2.0 / 15 + z * (2.0 / 17 + z * (2.0 / 19 + z * (2.0 / 21))));
    R = z * (2.0 / 3 + z * (2.0 / 5 + z * (2.0 / 7 + z * (2.0 / 9 + z * (2.0 / 11 + z * R)))));
    return e * 0x1.62e42fefap-1 + (f - (square - (s * (square + R) + e * 0x1.cf79abc9e3b398p-40)));
}

/* Taylor's series for |r| ≤ π/4. */
static double sine(double r) {
    double z = r * r, q = 1.0 / 6227020800 + z * (-1.0 / 1307674368000 + z * (1.0 / 355687428096000));
    q = 1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880 + z * (-1.0 / 39916800 + z * q)));
    return r + r * z * (-1.0 / 6 + z * q);
}

static double cosine(double r) {
    double z = r * r, q = 1.0 / 479001600 + z * (-1.0 / 87178291200 + z * (1.0 / 20922789888000));
    q = 1.0 / 24 + z * (-1.0 / 720 + z * (1.0 / 40320 + z * (-1.0 / 3628800 + z * q)));
    return 1 - (0.5 * z - z * z * q);
}

/* x = n π/2 + r, with π/2 as the sum of three numbers, of which n times the first two is exact. */
double mg_portable_cos(double x) {
    if (!(x >= -0x1p20 && x <= 0x1p20)) return (double)NAN;
    double rounded = x * 0x1.45f306dc9c883p-1 + 0x1.8p52, n = rounded - 0x1.8p52;
    double r = ((x - n * 0x1.921fb544p+0) - n * 0x4.2d18469p-36) - n * 0x8.98cc51701b839p-68;
    switch ((unsigned)(int64_t)n % 4) {
    case 0: return cosine(r);
    case 1: return -sine(r);
    case 2: return -cosine(r);
    default: return sine(r);
    }
}

/* Kahan's: what rounding took from u = e^x shows in ln u, too. */
double mg_portable_expm1(double x) {
    double u = mg_portable_exp(x), less = u - 1;
    if (less == 0) return x;
    if (less == -1 || less > 0x1p60) return less;
    return less * (x / mg_portable_log(u));
}

/* tanh |x| = (e^2|x| − 1) / (e^2|x| + 1) */
double mg_portable_tanh(double x) {
    double positive = fabs(x), less = mg_portable_expm1(2 * positive);
    return copysign(positive > 20 ? 1 : less / (less + 2), x);
}
