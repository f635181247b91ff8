/* y = x/2 · (1 + tanh u),  u = √(2/π) · (x + 0.044715 x³)
 *
 * Hendrycks & Gimpel 2016, "Gaussian error linear units", the tanh form, which is GPT-2's. With t = tanh u,
 *
 *     dy/dx = (1 + t)/2 + x/2 · (1 − t²) · du/dx,   du/dx = √(2/π) · (1 + 3 · 0.044715 x²)
 *
 * The backward computes t again: that is cheaper than reading it back from memory. */
#include "elementwise.h"
#include "ops.h"

#define SQRT_2_OVER_PI ((mg_real)0.79788456080286535588)
#define CUBIC ((mg_real)0.044715)
#define HALF ((mg_real)0.5)

MG_INLINE mg_real tanh_u(mg_real x) {
    return mg_tanh_real(SQRT_2_OVER_PI * (x + CUBIC * x * x * x));
}

MG_INLINE mg_real value(mg_real x, mg_real unused, mg_real factor) {
    (void)unused;
    (void)factor;
    return HALF * x * (1 + tanh_u(x));
}

MG_INLINE mg_real slope(mg_real g, mg_real x, mg_real y, mg_real factor) {
    (void)y;
    (void)factor;
    mg_real t = tanh_u(x);
    return g * HALF * (1 + t + x * (1 - t * t) * SQRT_2_OVER_PI * (1 + 3 * CUBIC * x * x));
}

MG_KERNEL static void forward(mg_row row) {
    mg_row_map(row, value);
}

MG_KERNEL static void backward(mg_row row) {
    mg_row_add(row, slope);
}

static void gelu_backward(mg_tape *tape, const mg_node *node) {
    mg_elementwise_gradient(tape, node, backward);
}

static const mg_op op = {"gelu", gelu_backward};

mg_tensor *(mg_gelu)(mg_tape *tape, mg_tensor *x) {
    return mg_elementwise(tape, &op, x, forward, NULL);
}
