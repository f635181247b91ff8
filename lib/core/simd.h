/* Loops that the compiler turns into vector code, built several times and chosen at run time for the processor.
 *
 * MG_KERNEL in front of a function builds it for AVX-512, AVX2 and the baseline; the program takes the best when it
 * starts. In such a function `#pragma omp simd` loops may call mg_exp_real, mg_tanh_real and mg_log_real, which glibc's
 * libmvec computes many lanes at a time (at most 4 ulp off). Elsewhere, for other compilers, it is plain C. In portable
 * arithmetic no loop is `omp simd`, for that reorders sums; what is not a sum becomes vectors without it. */
#ifndef MASKGRAD_SIMD_H
#define MASKGRAD_SIMD_H

#include "arithmetic.h"
#include "tensor.h"

#include <float.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(MG_NO_CLONES) && !defined(MG_PORTABLE)
#define MG_CLONES
#define MG_KERNEL __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define MG_KERNEL
#endif
/* A helper that is inlined into each clone. */
#define MG_INLINE static inline __attribute__((always_inline))

#if !defined(MG_PORTABLE) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#pragma omp declare simd notinbranch
extern float expf(float);
#pragma omp declare simd notinbranch
extern double exp(double);
#pragma omp declare simd notinbranch
extern float tanhf(float);
#pragma omp declare simd notinbranch
extern double tanh(double);
#pragma omp declare simd notinbranch
extern float logf(float);
#pragma omp declare simd notinbranch
extern double log(double);
#endif

#ifdef MG_DOUBLE
#define mg_exp_real mg_exp_double
#define mg_tanh_real mg_tanh_double
#define mg_log_real mg_log_double
#define mg_sqrt_real sqrt
#define MG_REAL_MAX DBL_MAX
#else
#define mg_exp_real mg_exp_float
#define mg_tanh_real mg_tanh_float
#define mg_log_real mg_log_float
#define mg_sqrt_real sqrtf
#define MG_REAL_MAX FLT_MAX
#endif

/* The greatest of n reals, ignoring NaN; −inf if there is none. */
MG_INLINE mg_real mg_greatest(ptrdiff_t n, const mg_real *x) {
    mg_real max = -(mg_real)INFINITY;
#pragma omp simd reduction(max : max)
    for (ptrdiff_t i = 0; i < n; i++) max = x[i] > max ? x[i] : max;
    if (max > -MG_REAL_MAX) return max;
    max = -(mg_real)INFINITY; /* some compilers begin such a loop with the least finite number */
    for (ptrdiff_t i = 0; i < n; i++) max = x[i] > max ? x[i] : max;
    return max;
}

#endif
