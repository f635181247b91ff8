#include "axis.h"

#include "ops.h"
#include "parallel.h"
#include "simd.h"
#include "sums.h"

#include <string.h>

enum { TILE = 16384 };

mg_axis mg_axis_of(const mg_tape *tape, const mg_op *op, const mg_tensor *x, int axis) {
    int number = axis < 0 ? axis + x->ndim : axis;
    MG_OP_CHECK(tape, op, number >= 0 && number < x->ndim, "shape %s has no axis %d", mg_shape(x).text, axis);
    mg_axis a = {number, 1, x->dim[number], 1};
    for (int d = 0; d < number; d++) a.outer *= x->dim[d];
    for (int d = number + 1; d < x->ndim; d++) a.inner *= x->dim[d];
    return a;
}

mg_axis mg_axis_to_reduce(const mg_tape *tape, const mg_op *op, const mg_tensor *x, int axis) {
    if (axis == MG_ALL_AXES) return (mg_axis){-1, 1, mg_size(x), 1};
    return mg_axis_of(tape, op, x, axis);
}

mg_tensor *mg_axis_output(mg_tape *tape, const mg_tensor *x, mg_axis axis) {
    int ndim = 0;
    ptrdiff_t dim[MG_MAX_DIM];
    for (int d = 0; d < x->ndim && axis.number >= 0; d++)
        if (d != axis.number) dim[ndim++] = x->dim[d];
    return mg_tape_output(tape, ndim, dim);
}

MG_KERNEL static void add_to(mg_real *restrict to, const mg_real *from, ptrdiff_t n) {
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) to[i] += from[i];
}

MG_KERNEL static void spread_one(mg_real *to, mg_real value, ptrdiff_t n, bool fresh) {
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) to[i] = (fresh ? 0 : to[i]) + value;
}

MG_KERNEL static void spread_row(mg_real *restrict to, mg_real factor, const mg_real *from, ptrdiff_t n, bool fresh) {
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) to[i] = (fresh ? 0 : to[i]) + factor * from[i];
}

/* Both directions go over `outer` in tiles. */
typedef struct loop {
    mg_axis axis;
    double factor;
    const mg_real *from;
    mg_real *to;
    bool fresh;
    ptrdiff_t tile;
} loop;

static void run(loop l, mg_tile_fn *fn) {
    ptrdiff_t each = l.axis.n * l.axis.inner;
    l.tile = each < TILE ? TILE / each : 1;
    mg_parallel(mg_tile_count(l.axis.outer, l.tile), fn, &l, 0);
}

static void sum_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const loop *l = context;
    ptrdiff_t n = l->axis.n, inner = l->axis.inner;
    mg_range range = mg_tile_range(l->axis.outer, l->tile, tile);
    for (ptrdiff_t o = range.begin; o < range.end; o++) {
        const mg_real *x = l->from + o * n * inner;
        mg_real *sum = l->to + o * inner;
        if (inner == 1)
            *sum = (mg_real)(l->factor * mg_total(n, x));
        else
            mg_sum_rows(n, inner, x, inner, l->factor, true, sum);
    }
}

void mg_axis_sum(mg_axis axis, double factor, const mg_real *x, mg_real *sum) {
    run((loop){.axis = axis, .factor = factor, .from = x, .to = sum}, sum_tile);
}

static void spread_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const loop *l = context;
    ptrdiff_t n = l->axis.n, inner = l->axis.inner;
    mg_real factor = (mg_real)l->factor;
    mg_range range = mg_tile_range(l->axis.outer, l->tile, tile);
    for (ptrdiff_t o = range.begin; o < range.end; o++) {
        mg_real *x = l->to + o * n * inner;
        const mg_real *sum = l->from + o * inner;
        if (inner == 1)
            spread_one(x, factor * *sum, n, l->fresh);
        else
            for (ptrdiff_t i = 0; i < n; i++) spread_row(x + i * inner, factor, sum, inner, l->fresh);
    }
}

void mg_axis_spread(mg_axis axis, double factor, const mg_real *sum, mg_real *x, bool fresh) {
    run((loop){.axis = axis, .factor = factor, .from = sum, .to = x, .fresh = fresh}, spread_tile);
}

typedef struct block_loop {
    mg_blocks blocks;
    mg_real *to;
    const mg_real *from;
    bool add;
    ptrdiff_t tile;
} block_loop;

static void blocks_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const block_loop *l = context;
    mg_range range = mg_tile_range(l->blocks.count, l->tile, tile);
    for (ptrdiff_t i = range.begin; i < range.end; i++) {
        mg_real *to = l->to + i * l->blocks.to_stride;
        const mg_real *from = l->from + i * l->blocks.from_stride;
        if (l->add)
            add_to(to, from, l->blocks.size);
        else
            memcpy(to, from, (size_t)l->blocks.size * sizeof *to);
    }
}

static void run_blocks(block_loop l) {
    l.tile = l.blocks.size < TILE ? TILE / l.blocks.size : 1;
    mg_parallel(mg_tile_count(l.blocks.count, l.tile), blocks_tile, &l, 0);
}

void mg_blocks_copy(mg_blocks blocks, mg_real *to, const mg_real *from) {
    run_blocks((block_loop){blocks, to, from, false, 0});
}

void mg_blocks_add(mg_blocks blocks, mg_real *to, const mg_real *from) {
    run_blocks((block_loop){blocks, to, from, true, 0});
}
