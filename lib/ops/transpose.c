/* y = x with two axes exchanged. dL/dx = dL/dy with the same two exchanged back. */
#include "axis.h"
#include "ops.h"
#include "parallel.h"

enum { TILE = 16384 };

/* from (before, p, middle, q, after) goes to (before, q, middle, p, after). */
typedef struct exchange {
    ptrdiff_t before, p, middle, q, after;
    const mg_real *from;
    mg_real *to;
    mg_real beta; /* 0: write, 1: add */
    ptrdiff_t tile;
} exchange;

/* One run of neighbors in `to`: (p, after) for a fixed place in (before, q, middle). */
static void exchange_run(const exchange *e, ptrdiff_t number) {
    ptrdiff_t middle = number % e->middle, q = number / e->middle % e->q, before = number / e->middle / e->q;
    ptrdiff_t from_p = e->middle * e->q * e->after; /* how far apart neighbors along p are */
    const mg_real *from = e->from + before * e->p * from_p + (middle * e->q + q) * e->after;
    mg_real *to = e->to + number * e->p * e->after;
    for (ptrdiff_t p = 0; p < e->p; p++)
        for (ptrdiff_t i = 0; i < e->after; i++) {
            mg_real value = from[p * from_p + i], *place = &to[p * e->after + i];
            *place = e->beta == 0 ? value : *place + value;
        }
}

static void exchange_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const exchange *e = context;
    mg_range range = mg_tile_range(e->before * e->q * e->middle, e->tile, tile);
    for (ptrdiff_t i = range.begin; i < range.end; i++) exchange_run(e, i);
}

static void run(exchange e) {
    ptrdiff_t each = e.p * e.after;
    e.tile = each < TILE ? TILE / each : 1;
    mg_parallel(mg_tile_count(e.before * e.q * e.middle, e.tile), exchange_tile, &e, 0);
}

static void transpose_backward(mg_tape *tape, const mg_node *node) {
    exchange back = *(const exchange *)node->saved;
    back.to = mg_grad_beta(tape, node->in[0], &back.beta);
    if (!back.to) return;
    back.from = node->out->grad;
    ptrdiff_t p = back.p;
    back.p = back.q;
    back.q = p;
    run(back);
}

static const mg_op op = {"transpose", transpose_backward};

mg_tensor *(mg_transpose)(mg_tape *tape, mg_tensor *x, int axis_a, int axis_b) {
    mg_axis a = mg_axis_of(tape, &op, x, axis_a), b = mg_axis_of(tape, &op, x, axis_b);
    mg_axis first = a.number < b.number ? a : b, second = a.number < b.number ? b : a;
    bool same = first.number == second.number;
    mg_tensor *y = mg_tape_output(tape, x->ndim, x->dim);
    y->dim[a.number] = b.n;
    y->dim[b.number] = a.n;
    exchange *e = mg_tape_alloc(tape, 1, sizeof *e, "the axes of transpose");
    *e = (exchange){.before = first.outer,
                    .p = first.n,
                    .middle = same ? 1 : second.outer / first.outer / first.n,
                    .q = same ? 1 : second.n,
                    .after = second.inner,
                    .from = x->data,
                    .to = y->data};
    run(*e);
    mg_tape_append(tape, &op, y, 1, &x, e);
    return y;
}
