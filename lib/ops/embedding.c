/* y[n] = table[ids[n]]:  rows of a (V,C) table. dtable[ids[n]] += dy[n]: an id that comes twice gets both. */
#include "ops.h"
#include "parallel.h"

#include <string.h>

/* Backward is cut along the columns: whatever the ids, no two tiles meet, and a row's terms are added in the order of
 * the tokens. */
enum { TILE_COLUMNS = 64, TILE_ROWS = 256 };

typedef struct job {
    ptrdiff_t n, c;
    const int *ids;
    const mg_real *table, *dy;
    mg_real *y, *dtable;
} job;

static void forward_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const job *j = context;
    mg_range r = mg_tile_range(j->n, TILE_ROWS, tile);
    for (ptrdiff_t i = r.begin; i < r.end; i++)
        memcpy(j->y + i * j->c, j->table + j->ids[i] * j->c, (size_t)j->c * sizeof(mg_real));
}

static void backward_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const job *j = context;
    mg_range r = mg_tile_range(j->c, TILE_COLUMNS, tile);
    for (ptrdiff_t i = 0; i < j->n; i++) {
        mg_real *restrict row = j->dtable + j->ids[i] * j->c;
        const mg_real *restrict dy = j->dy + i * j->c;
        for (ptrdiff_t k = r.begin; k < r.end; k++) row[k] += dy[k];
    }
}

static void embedding_backward(mg_tape *tape, const mg_node *node) {
    mg_tensor *table = node->in[0];
    job j = {.c = table->dim[1], .ids = node->saved, .dy = node->out->grad, .dtable = mg_grad(tape, table)};
    j.n = mg_size(node->out) / j.c;
    if (j.dtable) mg_parallel(mg_tile_count(j.c, TILE_COLUMNS), backward_tile, &j, 0);
}

static const mg_op op = {"embedding", embedding_backward};

mg_tensor *(mg_embedding)(mg_tape *tape, mg_tensor *table, const int *ids, int ndim, const ptrdiff_t *dim) {
    MG_OP_CHECK(tape, &op, table->ndim == 2, "the table is %s; it must be (V, C)", mg_shape(table).text);
    MG_OP_CHECK(tape, &op, ndim >= 1 && ndim < MG_MAX_DIM, "ids have 1 to %d dimensions, not %d", MG_MAX_DIM - 1, ndim);
    ptrdiff_t n = mg_shape_size(ndim, dim), shape[MG_MAX_DIM];
    for (ptrdiff_t i = 0; i < n; i++)
        MG_OP_CHECK(tape, &op, ids[i] >= 0 && ids[i] < table->dim[0], "id %d at place %td is not a row of %s", ids[i],
                    i, mg_shape(table).text);
    memcpy(shape, dim, (size_t)ndim * sizeof *dim);
    shape[ndim] = table->dim[1];
    mg_tensor *y = mg_tape_output(tape, ndim + 1, shape);
    int *kept = mg_tape_alloc(tape, (size_t)n, sizeof *kept, "embedding's ids"); /* the caller may reuse its own */
    memcpy(kept, ids, (size_t)n * sizeof *kept);
    job j = {.n = n, .c = table->dim[1], .ids = kept, .table = table->data, .y = y->data};
    mg_parallel(mg_tile_count(n, TILE_ROWS), forward_tile, &j, 0);
    mg_tape_append(tape, &op, y, 1, &table, kept);
    return y;
}
