/* y[n] = table[ids[n]]:  rows of a (V,C) table. dtable[ids[n]] += dy[n]: an id that comes twice gets both. */
#include "operation.h"
#include "ops.h"
#include "parallel.h"
#include "simd.h"

#include <string.h>

/* Backward is cut along the columns: whatever the ids, no two tiles meet, and a row's terms are added in the order of
 * the tokens, in double (sums.h): the tokens of an id are a chain. */
enum { TILE_COLUMNS = 64, TILE_ROWS = 256 };

typedef struct job {
    ptrdiff_t n, c;
    const int *ids;
    const mg_real *table, *dy;
    mg_real *y, *dtable;
    ptrdiff_t *first, *next; /* backward: an id's first token (V), and a token's successor with its id or −1 (N) */
} job;

static void forward_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const job *j = context;
    mg_range r = mg_tile_range(j->n, TILE_ROWS, tile);
    for (ptrdiff_t i = r.begin; i < r.end; i++)
        memcpy(j->y + i * j->c, j->table + j->ids[i] * j->c, (size_t)j->c * sizeof(mg_real));
}

static void make_chains(const job *j) {
    for (ptrdiff_t i = 0; i < j->n; i++) j->first[j->ids[i]] = -1;
    for (ptrdiff_t i = j->n - 1; i >= 0; i--) {
        j->next[i] = j->first[j->ids[i]];
        j->first[j->ids[i]] = i;
    }
}

/* row += Σ dy over the chain from this token on, in n columns. */
MG_KERNEL static void add_chain(const job *j, ptrdiff_t token, ptrdiff_t column, ptrdiff_t n) {
    mg_real *row = j->dtable + j->ids[token] * j->c + column;
    double sum[TILE_COLUMNS];
    for (ptrdiff_t k = 0; k < n; k++) sum[k] = (double)row[k];
    for (; token >= 0; token = j->next[token]) {
        const mg_real *dy = j->dy + token * j->c + column;
#pragma omp simd
        for (ptrdiff_t k = 0; k < n; k++) sum[k] += (double)dy[k];
    }
    for (ptrdiff_t k = 0; k < n; k++) row[k] = (mg_real)sum[k];
}

static void backward_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const job *j = context;
    mg_range r = mg_tile_range(j->c, TILE_COLUMNS, tile);
    for (ptrdiff_t i = 0; i < j->n; i++)
        if (j->first[j->ids[i]] == i) add_chain(j, i, r.begin, r.end - r.begin);
}

static void embedding_backward(mg_tape *tape, const mg_node *node) {
    mg_tensor *table = node->in[0];
    job j = {.c = table->dim[1], .ids = node->saved, .dy = node->out->grad, .dtable = mg_grad(tape, table)};
    if (!j.dtable) return;
    j.n = mg_size(node->out) / j.c;
    mg_arena_mark mark = mg_tape_mark(tape);
    j.first = mg_tape_alloc(tape, (size_t)table->dim[0], sizeof *j.first, "embedding's first tokens");
    j.next = mg_tape_alloc(tape, (size_t)j.n, sizeof *j.next, "embedding's chains of tokens");
    make_chains(&j);
    mg_parallel(mg_tile_count(j.c, TILE_COLUMNS), backward_tile, &j, 0);
    mg_tape_rewind(tape, mark);
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
