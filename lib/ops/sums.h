/* Sums of many numbers. A large float sum loses the small terms that are added to it: a million times 0.1 comes out as
 * 100,958. So sums along an axis, over rows, repeats or tokens run in double, in an order that depends only on shapes,
 * and are rounded once. Only where a kernel adds to mg_reals does it do so for MG_BLOCK terms at a time, which doubles
 * then add up: at most 15 roundings of partial sums and one of the result, 16 · 2⁻²⁴ < 1e-6 of Σ |term|. */
#ifndef MASKGRAD_SUMS_H
#define MASKGRAD_SUMS_H

#include "tensor.h"

enum { MG_BLOCK = 16 };

/* Σ x[i] over i < n */
double mg_total(ptrdiff_t n, const mg_real *x);
/* to[k] = factor · Σ_i x[i · stride + k] over i < rows, for k < n; unless fresh, what `to` holds is one more term. */
void mg_sum_rows(ptrdiff_t rows, ptrdiff_t n, const mg_real *x, ptrdiff_t stride, double factor, bool fresh,
                 mg_real *to);

#endif
