/* Gradients checked against finite differences: whether mg_backward differentiates a function correctly. */
#ifndef MASKGRAD_GRADCHECK_H
#define MASKGRAD_GRADCHECK_H

#include "tape.h"

/* The function under test: from the inputs to a tensor of any shape, on this tape. It must draw the same random numbers
 * in every call. A result of more than one element is contracted with fixed random weights. */
typedef mg_tensor *mg_gradcheck_fn(mg_tape *tape, mg_tensor *const *in, void *user);

typedef struct mg_gradcheck_result {
    double worst;    /* the largest relative error */
    int input;       /* where it is: which input, which element of it, */
    ptrdiff_t index; /* and the two gradients there */
    double analytic, numeric;
} mg_gradcheck_result;

/* Compare the gradients of n_in leaves, which have a gradient buffer and live on another tape. Their values are moved
 * and put back, their gradients overwritten with those of the function.
 *
 * The numeric gradient is the central difference of fourth order with a step of 2⁻¹⁰ (2⁻⁵ in float),
 *
 *     f'(x) ≈ (8 (f(x+h) − f(x−h)) − (f(x+2h) − f(x−2h))) / 12h,
 *
 * so values must be further than 2h from a kink. The relative error is |analytic − numeric| over the largest gradient
 * of the same input (or a ten-thousandth of the largest of any input, if that is more), so that an error counts where
 * all gradients are small, and rounding does not where one of them is 0. */
MG_API mg_status mg_gradcheck(mg_gradcheck_result *result, mg_gradcheck_fn *function, void *user, int n_in,
                              mg_tensor *const *in, mg_error *error);

#ifndef MG_LIBRARY /* whose line a failure names: error.h */
MG_CALLED(mg_status, mg_gradcheck, (result, in), (result, function, user, n_in, in, error), mg_gradcheck_result *result,
          mg_gradcheck_fn *function, void *user, int n_in, mg_tensor *const *in, mg_error *error)
#define mg_gradcheck(...) MG_AT(mg_gradcheck, __VA_ARGS__)
#endif

#endif
