/* One stretch of consecutive elements of an element-by-element operation, and the loops over it. An operation gives its
 * formula, as an inline function or as an expression, and gets a kernel into which one of these loops is inlined,
 * formula included. */
#ifndef MASKGRAD_ROW_H
#define MASKGRAD_ROW_H

#include "simd.h"

typedef struct mg_row {
    mg_real *to;       /* forward: the result; backward: an operand's gradient */
    const mg_real *g;  /* backward: the result's gradient */
    const mg_real *a;  /* the first operand */
    const mg_real *b;  /* the second operand; of an operation that has only one, backward, the result */
    ptrdiff_t n;       /* elements of the result in this stretch */
    bool one_to;       /* a single element represents all n: a gradient is summed there, an operand repeats */
    bool one_a, one_b; /* never both */
    bool fresh;        /* backward: `to` holds nothing yet */
    mg_real factor;    /* a constant of the operation's */
} mg_row;

typedef void mg_row_fn(mg_row row);
typedef mg_real mg_value_fn(mg_real a, mg_real b, mg_real factor);
typedef mg_real mg_slope_fn(mg_real g, mg_real a, mg_real b, mg_real factor);

/* to = value(a) */
MG_INLINE void mg_row_map(mg_row r, mg_value_fn *value) {
#pragma omp simd
    for (ptrdiff_t i = 0; i < r.n; i++) r.to[i] = value(r.a[i], 0, r.factor);
}

/* to = value(a, b) */
MG_INLINE void mg_row_write(mg_row r, mg_value_fn *value) {
    if (r.one_a) {
        const mg_real a = r.a[0];
#pragma omp simd
        for (ptrdiff_t i = 0; i < r.n; i++) r.to[i] = value(a, r.b[i], r.factor);
    } else if (r.one_b) {
        const mg_real b = r.b[0];
#pragma omp simd
        for (ptrdiff_t i = 0; i < r.n; i++) r.to[i] = value(r.a[i], b, r.factor);
    } else {
#pragma omp simd
        for (ptrdiff_t i = 0; i < r.n; i++) r.to[i] = value(r.a[i], r.b[i], r.factor);
    }
}

/* Σ slope(g, a, b), always in the same order: sums.h. */
MG_INLINE mg_real mg_row_total(mg_row r, mg_slope_fn *slope) {
    double sum = 0;
    if (r.one_a) {
        const mg_real a = r.a[0];
#pragma omp simd reduction(+ : sum)
        for (ptrdiff_t i = 0; i < r.n; i++) sum += (double)slope(r.g[i], a, r.b[i], r.factor);
    } else {
        const mg_real b = r.b[0];
#pragma omp simd reduction(+ : sum)
        for (ptrdiff_t i = 0; i < r.n; i++) sum += (double)slope(r.g[i], r.a[i], b, r.factor);
    }
    return (mg_real)sum;
}

/* to += slope(g, a, b) */
MG_INLINE void mg_row_add(mg_row r, mg_slope_fn *slope) {
    if (r.one_to) {
        r.to[0] = (r.fresh ? 0 : r.to[0]) + mg_row_total(r, slope);
    } else if (r.one_a) {
        const mg_real a = r.a[0];
#pragma omp simd
        for (ptrdiff_t i = 0; i < r.n; i++) r.to[i] = (r.fresh ? 0 : r.to[i]) + slope(r.g[i], a, r.b[i], r.factor);
    } else if (r.one_b) {
        const mg_real b = r.b[0];
#pragma omp simd
        for (ptrdiff_t i = 0; i < r.n; i++) r.to[i] = (r.fresh ? 0 : r.to[i]) + slope(r.g[i], r.a[i], b, r.factor);
    } else {
#pragma omp simd
        for (ptrdiff_t i = 0; i < r.n; i++) r.to[i] = (r.fresh ? 0 : r.to[i]) + slope(r.g[i], r.a[i], r.b[i], r.factor);
    }
}

/* The kernel `name` from an expression: of a, b and factor by the given loop, or of these and g by mg_row_add. */
#define MG_VALUE_KERNEL(name, loop, a, b, expression)                                                                  \
    MG_INLINE mg_real name##_formula(mg_real a, mg_real b, mg_real factor) {                                           \
        (void)a;                                                                                                       \
        (void)b;                                                                                                       \
        (void)factor;                                                                                                  \
        return expression;                                                                                             \
    }                                                                                                                  \
    MG_KERNEL static void name(mg_row row) {                                                                           \
        loop(row, name##_formula);                                                                                     \
    }
#define MG_SLOPE_KERNEL(name, a, b, expression)                                                                        \
    MG_INLINE mg_real name##_formula(mg_real g, mg_real a, mg_real b, mg_real factor) {                                \
        (void)g;                                                                                                       \
        (void)a;                                                                                                       \
        (void)b;                                                                                                       \
        (void)factor;                                                                                                  \
        return expression;                                                                                             \
    }                                                                                                                  \
    MG_KERNEL static void name(mg_row row) {                                                                           \
        mg_row_add(row, name##_formula);                                                                               \
    }

#endif
