#include "elementwise.h"

#include "parallel.h"

enum { TILE = 16384 };

typedef struct loop {
    mg_row row; /* of all elements */
    mg_row_fn *kernel;
} loop;

static void run_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const loop *l = context;
    mg_range range = mg_tile_range(l->row.n, TILE, tile);
    mg_row row = l->row;
    row.n = range.end - range.begin;
    row.to += range.begin;
    row.a += range.begin;
    if (row.g) row.g += range.begin;
    if (row.b) row.b += range.begin;
    l->kernel(row);
}

static void run(mg_row row, mg_row_fn *kernel) {
    mg_parallel(mg_tile_count(row.n, TILE), run_tile, &(loop){row, kernel}, 0);
}

mg_tensor *mg_elementwise(mg_tape *tape, const mg_op *op, mg_tensor *x, mg_row_fn *kernel, const mg_real *saved) {
    mg_tensor *y = mg_tape_output(tape, x->ndim, x->dim);
    run((mg_row){.to = y->data, .a = x->data, .n = mg_size(x), .factor = saved ? *saved : 0}, kernel);
    mg_tape_append(tape, op, y, 1, &x, saved);
    return y;
}

void mg_elementwise_gradient(mg_tape *tape, const mg_node *node, mg_row_fn *kernel) {
    mg_tensor *x = node->in[0];
    const mg_tensor *y = node->out;
    mg_real beta, *to = mg_grad_beta(tape, x, &beta);
    if (!to) return;
    const mg_real *factor = node->saved;
    run((mg_row){.to = to,
                 .g = y->grad,
                 .a = x->data,
                 .b = y->data,
                 .n = mg_size(x),
                 .fresh = beta == 0,
                 .factor = factor ? *factor : 0},
        kernel);
}
