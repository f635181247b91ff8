#include "rows.h"

#include "parallel.h"

enum { TILE = 4096 }; /* elements */

typedef struct loop {
    mg_rows rows;
    mg_rows_fn *kernel;
    ptrdiff_t tile;
} loop;

static void run_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const loop *l = context;
    mg_range range = mg_tile_range(l->rows.n, l->tile, tile);
    for (ptrdiff_t i = range.begin; i < range.end; i++) {
        mg_rows row = l->rows;
        row.n = 1;
        row.x += i * row.width;
        row.to += i * row.width;
        if (row.dy) row.dy += i * row.width;
        l->kernel(row);
    }
}

static void run(mg_rows rows, mg_rows_fn *kernel) {
    loop l = {rows, kernel, rows.width < TILE ? TILE / rows.width : 1};
    mg_parallel(mg_tile_count(rows.n, l.tile), run_tile, &l, 0);
}

static mg_rows rows_of(const mg_tensor *x) {
    ptrdiff_t width = x->dim[x->ndim - 1];
    return (mg_rows){.n = mg_size(x) / width, .width = width, .x = x->data};
}

mg_tensor *mg_rowwise(mg_tape *tape, const mg_op *op, mg_tensor *x, mg_rows_fn *kernel) {
    MG_OP_CHECK(tape, op, x->ndim >= 1, "shape %s has no rows: it needs at least one dimension", mg_shape(x).text);
    mg_tensor *y = mg_tape_output(tape, x->ndim, x->dim);
    mg_rows rows = rows_of(x);
    rows.to = y->data;
    run(rows, kernel);
    mg_tape_append(tape, op, y, 1, &x, NULL);
    return y;
}

void mg_rowwise_gradient(mg_tape *tape, const mg_node *node, mg_rows_fn *kernel) {
    mg_rows rows = rows_of(node->out);
    mg_real beta;
    rows.to = mg_grad_beta(tape, node->in[0], &beta);
    if (!rows.to) return;
    rows.dy = node->out->grad;
    rows.fresh = beta == 0;
    run(rows, kernel);
}
