/* Which arithmetic this build has: a build option, MASKGRAD_ARITHMETIC.
 *
 * openblas, the default: OpenBLAS's products, libm and libmvec. The fastest; its last bits depend on the processor, the
 * compiler and the libraries. portable: the products and functions of lib/core/portable, no fused multiply-add, no
 * reordered sum. Slower, and the same bits on every machine. Both have the same names here and in gemm.h. */
#ifndef MASKGRAD_ARITHMETIC_H
#define MASKGRAD_ARITHMETIC_H

#include <math.h>

#ifdef MG_PORTABLE
#include "portable_math.h"
#define MG_ARITHMETIC "portable"
enum { MG_ONE_SUM = 1 }; /* a sum of products is one sum, in order */
#define mg_exp_double mg_portable_exp
#define mg_expm1_double mg_portable_expm1
#define mg_log_double mg_portable_log
#define mg_cos_double mg_portable_cos
#define mg_exp_float mg_portable_expf
#define mg_tanh_double mg_portable_tanh
#define mg_tanh_float(x) ((float)mg_portable_tanh((double)(x)))
#define mg_log_float(x) ((float)mg_portable_log((double)(x)))
#else
#define MG_ARITHMETIC "openblas"
enum { MG_ONE_SUM = 0 };
#define mg_exp_double exp
#define mg_expm1_double expm1
#define mg_log_double log
#define mg_cos_double cos
#define mg_exp_float expf
#define mg_tanh_double tanh
#define mg_tanh_float tanhf
#define mg_log_float logf
#endif

#endif
