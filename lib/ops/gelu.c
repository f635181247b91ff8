/* gelu(x) = x/2 · (1 + tanh(u)),  u = √(2/π) · (x + 0.044715 x³)
 *
 * Hendrycks & Gimpel 2016, "Gaussian error linear units", the tanh form, which is GPT-2's. */
#include "ops.h"
#include "parallel.h"
#include "simd.h"

#define SQRT_2_OVER_PI ((mg_real)0.79788456080286535588)
#define CUBIC ((mg_real)0.044715)

enum { TILE = 8192 };

typedef struct job {
    ptrdiff_t n;
    const mg_real *x, *dy;
    mg_real *y, *dx, beta;
} job;

MG_KERNEL static void forward(ptrdiff_t n, const mg_real *restrict x, mg_real *restrict y) {
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) {
        mg_real t = mg_tanh_real(SQRT_2_OVER_PI * (x[i] + CUBIC * x[i] * x[i] * x[i]));
        y[i] = (mg_real)0.5 * x[i] * (1 + t);
    }
}

/* dy/dx = (1 + t)/2 + x/2 · (1 − t²) · du/dx,  du/dx = √(2/π) · (1 + 3 · 0.044715 x²). t is computed again: that is
 * cheaper than reading it back from memory. */
MG_KERNEL static void backward(ptrdiff_t n, const mg_real *restrict x, const mg_real *restrict dy, mg_real beta,
                               mg_real *restrict dx) {
    for (ptrdiff_t i = 0; beta == 0 && i < n; i++) dx[i] = 0;
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) {
        mg_real t = mg_tanh_real(SQRT_2_OVER_PI * (x[i] + CUBIC * x[i] * x[i] * x[i]));
        mg_real slope = SQRT_2_OVER_PI * (1 + 3 * CUBIC * x[i] * x[i]);
        dx[i] += dy[i] * (mg_real)0.5 * (1 + t + x[i] * (1 - t * t) * slope);
    }
}

static void forward_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const job *j = context;
    mg_range r = mg_tile_range(j->n, TILE, tile);
    forward(r.end - r.begin, j->x + r.begin, j->y + r.begin);
}

static void backward_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const job *j = context;
    mg_range r = mg_tile_range(j->n, TILE, tile);
    backward(r.end - r.begin, j->x + r.begin, j->dy + r.begin, j->beta, j->dx + r.begin);
}

static void gelu_backward(mg_tape *tape, const mg_node *node) {
    mg_tensor *x = node->in[0];
    job j = {.n = mg_size(x), .x = x->data, .dy = node->out->grad};
    j.dx = mg_grad_beta(tape, x, &j.beta);
    if (j.dx) mg_parallel(mg_tile_count(j.n, TILE), backward_tile, &j, 0);
}

static const mg_op op = {"gelu", gelu_backward};

mg_tensor *(mg_gelu)(mg_tape *tape, mg_tensor *x) {
    mg_tensor *y = mg_tape_output(tape, x->ndim, x->dim);
    job j = {.n = mg_size(x), .x = x->data, .y = y->data};
    mg_parallel(mg_tile_count(j.n, TILE), forward_tile, &j, 0);
    mg_tape_append(tape, &op, y, 1, &x, NULL);
    return y;
}
