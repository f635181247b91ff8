/* y = x/2 · (1 + tanh u),  u = √(2/π) · (x + 0.044715 x³)
 *
 * Hendrycks & Gimpel 2016, "Gaussian error linear units", the tanh form, which is GPT-2's. (1 + tanh u)/2 is the
 * logistic function of 2u, s = 1/(1 + e^(−2u)), which takes one exponential and loses no digits where tanh u is near
 * −1:
 *
 *     y = x s,   dy/dx = s + x · s · (1 − s) · 2 du/dx,   du/dx = √(2/π) · (1 + 3 · 0.044715 x²)
 *
 * The formulas of mg_gelu and mg_linear_gelu. Far from 0, where s is exactly 0 or 1, the products would be ∞ · 0: in y,
 * x is at least −MG_GELU_FLAT, and beyond ±MG_GELU_FLAT the slope is s. */
#ifndef MASKGRAD_GELU_H
#define MASKGRAD_GELU_H

#include "simd.h"

#define MG_GELU_SLOPE ((mg_real)0.79788456080286535588) /* √(2/π) */
#define MG_GELU_CUBIC ((mg_real)0.044715)
#define MG_GELU_FLAT ((mg_real)64)

MG_INLINE mg_real mg_gelu_logistic(mg_real x) {
    return 1 / (1 + mg_exp_real(-2 * MG_GELU_SLOPE * (x + MG_GELU_CUBIC * x * x * x)));
}

/* Of x and s = mg_gelu_logistic(x), which both take. */
MG_INLINE mg_real mg_gelu_value(mg_real x, mg_real s) {
    return (x < -MG_GELU_FLAT ? -MG_GELU_FLAT : x) * s;
}

MG_INLINE mg_real mg_gelu_slope(mg_real x, mg_real s) {
    mg_real rest = mg_gelu_value(x, s) * (1 - s) * 2 * MG_GELU_SLOPE * (1 + 3 * MG_GELU_CUBIC * x * x);
    return x * x > MG_GELU_FLAT * MG_GELU_FLAT ? s : s + rest;
}

#endif
