#include "broadcast.h"

#include "parallel.h"
#include "sums.h"

/* TILE: elements of the result; LEAST: of a target, so that its columns are summed a few vectors at a time; COLUMNS:
 * that are summed in double together. */
enum { TILE = 16384, LEAST = 256 / sizeof(mg_real), COLUMNS = 512, LAST = MG_MAX_DIM - 1 };

/* The size of x along dimension d of a shape of ndim dimensions. */
static ptrdiff_t aligned_dim(const mg_tensor *x, int ndim, int d) {
    int own = d - (ndim - x->ndim);
    return own < 0 ? 1 : x->dim[own];
}

static void append_dim(mg_broadcast *walk, int *first, ptrdiff_t dim, ptrdiff_t a, ptrdiff_t b) {
    int d = *first;
    bool joins = d <= LAST && a == walk->a[d] * walk->dim[d] && b == walk->b[d] * walk->dim[d];
    if (joins) {
        walk->dim[d] *= dim;
        return;
    }
    *first = --d;
    walk->dim[d] = dim;
    walk->a[d] = a;
    walk->b[d] = b;
}

mg_broadcast mg_broadcast_of(const mg_tape *tape, const mg_op *op, const mg_tensor *a, const mg_tensor *b) {
    mg_broadcast walk = {.ndim = a->ndim > b->ndim ? a->ndim : b->ndim, .dim = {1, 1, 1, 1}};
    ptrdiff_t stride_a = 1, stride_b = 1;
    int first = MG_MAX_DIM;
    for (int d = walk.ndim - 1; d >= 0; d--) {
        ptrdiff_t dim_a = aligned_dim(a, walk.ndim, d), dim_b = aligned_dim(b, walk.ndim, d);
        MG_OP_CHECK(tape, op, dim_a == dim_b || dim_a == 1 || dim_b == 1, "shapes %s and %s do not broadcast",
                    mg_shape(a).text, mg_shape(b).text);
        ptrdiff_t dim = walk.shape[d] = dim_a == 1 ? dim_b : dim_a;
        if (dim > 1) append_dim(&walk, &first, dim, dim_a > 1 ? stride_a : 0, dim_b > 1 ? stride_b : 0);
        stride_a *= dim_a;
        stride_b *= dim_b;
    }
    if (first == MG_MAX_DIM) walk.a[LAST] = walk.b[LAST] = 1; /* a single element */
    walk.out[LAST] = 1;
    for (int d = LAST - 1; d >= 0; d--) walk.out[d] = walk.out[d + 1] * walk.dim[d + 1];
    return walk;
}

typedef struct offsets {
    ptrdiff_t out, a, b;
} offsets;

typedef struct loop {
    const mg_broadcast *walk;
    mg_row row;
    mg_row_fn *kernel;
    bool over[LAST];   /* the outer dimensions that distinguish elements of the target */
    bool over_last;    /* so does the last one */
    ptrdiff_t n;       /* elements of the target */
    ptrdiff_t repeats; /* how many outer positions go to each */
    ptrdiff_t tile;    /* elements of the target in a tile */
} loop;

/* Where the outer position with this number is, counting only the dimensions for which over[d] is `over`. */
static offsets outer_offsets(const loop *l, bool over, ptrdiff_t number) {
    const mg_broadcast *w = l->walk;
    offsets at = {0, 0, 0};
    for (int d = LAST - 1; d >= 0; d--) {
        if (l->over[d] != over) continue;
        ptrdiff_t i = number % w->dim[d];
        number /= w->dim[d];
        at.out += i * w->out[d];
        at.a += i * w->a[d];
        at.b += i * w->b[d];
    }
    return at;
}

/* A stretch of the target: its elements target, target + 1, … and what goes to them. */
typedef struct stretch {
    ptrdiff_t target, outer, column, n; /* n: elements of the result for each repeat */
} stretch;

/* to += what goes to the stretch from some of the repeats. */
static void run_repeats(const loop *l, stretch s, mg_range repeats, mg_real *to, bool fresh) {
    const mg_broadcast *w = l->walk;
    offsets base = outer_offsets(l, true, s.outer);
    for (ptrdiff_t repeat = repeats.begin; repeat < repeats.end; repeat++) {
        offsets more = outer_offsets(l, false, repeat);
        mg_row row = l->row;
        row.to = to;
        if (row.g) row.g += base.out + more.out + s.column;
        row.a += base.a + more.a + s.column * w->a[LAST];
        row.b += base.b + more.b + s.column * w->b[LAST];
        row.n = s.n;
        row.fresh = fresh && repeat == repeats.begin;
        l->kernel(row);
    }
}

/* The same from all repeats, of which there are many, for at most COLUMNS elements of the target: sums.h. */
static void run_blocks(const loop *l, stretch s, ptrdiff_t columns) {
    mg_real block[COLUMNS], *to = l->row.to + s.target;
    double sum[COLUMNS] = {0};
    for (ptrdiff_t i = 0; i < mg_tile_count(l->repeats, MG_BLOCK); i++) {
        run_repeats(l, s, mg_tile_range(l->repeats, MG_BLOCK, i), block, true);
        for (ptrdiff_t k = 0; k < columns; k++) sum[k] += (double)block[k];
    }
    for (ptrdiff_t k = 0; k < columns; k++) to[k] = (mg_real)((l->row.fresh ? 0 : (double)to[k]) + sum[k]);
}

static void run_stretch(const loop *l, ptrdiff_t target, ptrdiff_t outer, ptrdiff_t column, ptrdiff_t n) {
    stretch s = {target, outer, column, n};
    if (l->repeats <= MG_BLOCK) {
        run_repeats(l, s, (mg_range){0, l->repeats}, l->row.to + target, l->row.fresh);
    } else if (l->row.one_to) {
        run_blocks(l, s, 1);
    } else {
        for (; n > 0; n -= s.n, s.target += s.n, s.column += s.n) {
            s.n = n < COLUMNS ? n : COLUMNS;
            run_blocks(l, s, s.n);
        }
    }
}

static void run_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const loop *l = context;
    mg_range range = mg_tile_range(l->n, l->tile, tile);
    ptrdiff_t width = l->walk->dim[LAST];
    if (!l->over_last) {
        for (ptrdiff_t i = range.begin; i < range.end; i++) run_stretch(l, i, i, 0, width);
        return;
    }
    for (ptrdiff_t i = range.begin, n; i < range.end; i += n) {
        ptrdiff_t column = i % width;
        n = width - column < range.end - i ? width - column : range.end - i;
        run_stretch(l, i, i / width, column, n);
    }
}

static void run(const mg_broadcast *walk, const ptrdiff_t *strides, mg_row row, mg_row_fn *kernel) {
    loop l = {.walk = walk, .row = row, .kernel = kernel, .n = 1, .repeats = 1};
    for (int d = 0; d < LAST; d++) {
        l.over[d] = strides[d] != 0;
        *(l.over[d] ? &l.n : &l.repeats) *= walk->dim[d];
    }
    l.over_last = strides[LAST] != 0;
    if (l.over_last) l.n *= walk->dim[LAST];
    l.row.one_to = !l.over_last;
    l.row.one_a = walk->a[LAST] == 0;
    l.row.one_b = walk->b[LAST] == 0;
    ptrdiff_t each = l.over_last ? l.repeats : l.repeats * walk->dim[LAST];
    l.tile = TILE / each > LEAST ? TILE / each : LEAST;
    mg_parallel(mg_tile_count(l.n, l.tile), run_tile, &l, 0);
}

void mg_broadcast_run(const mg_broadcast *walk, mg_row row, mg_row_fn *kernel) {
    run(walk, walk->out, row, kernel);
}

void mg_broadcast_sum(const mg_broadcast *walk, const ptrdiff_t *strides, mg_row row, mg_row_fn *kernel) {
    run(walk, strides, row, kernel);
}

mg_tensor *mg_binary(mg_tape *tape, const mg_op *op, mg_tensor *a, mg_tensor *b, mg_row_fn *kernel) {
    mg_broadcast walk = mg_broadcast_of(tape, op, a, b);
    mg_tensor *y = mg_tape_output(tape, walk.ndim, walk.shape);
    mg_broadcast_run(&walk, (mg_row){.to = y->data, .a = a->data, .b = b->data}, kernel);
    mg_tape_append(tape, op, y, 2, (mg_tensor *[]){a, b}, NULL);
    return y;
}

void mg_binary_gradient(mg_tape *tape, const mg_node *node, int operand, mg_row_fn *kernel) {
    const mg_tensor *a = node->in[0], *b = node->in[1];
    mg_real beta, *to = mg_grad_beta(tape, node->in[operand], &beta);
    if (!to) return;
    mg_broadcast walk = mg_broadcast_of(tape, node->op, a, b);
    mg_row row = {.to = to, .g = node->out->grad, .a = a->data, .b = b->data, .fresh = beta == 0};
    mg_broadcast_sum(&walk, operand == 0 ? walk.a : walk.b, row, kernel);
}
