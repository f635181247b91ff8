/* Y = op(A) op(B), where op is the identity or the transpose; the leading dimensions broadcast.
 *
 *     Y = A B     dA = dY Bᵀ     dB = Aᵀ dY
 *
 * and where A or B was taken transposed, so is its gradient: dAᵀ = B dYᵀ. Each is again a product of the same kind,
 * summed over the leading positions where its target was repeated. */
#include "gemm.h"
#include "operation.h"
#include "ops.h"
#include "parallel.h"
#include "sums.h"

/* PANEL: products that BLAS adds up by itself. */
enum { PANEL = 512, LEAD = MG_MAX_DIM - 2, TILE_FLOPS = 1 << 18, LEAST_ROWS = 64, MOST_ROW_TILES = 8 };

/* A matrix for each leading position. */
typedef struct stack {
    ptrdiff_t step[LEAD]; /* from a leading position to the next; 0 where the same matrix serves all */
    ptrdiff_t stride;     /* from row to row as it is stored */
    bool transposed;
    const mg_real *data;
} stack;

/* target (m,n) = beta target + Σ left (m,k) · right (k,n) over the leading positions that the target shares. */
typedef struct product {
    ptrdiff_t lead[LEAD];
    ptrdiff_t m, n, k;
    stack left, right, target;
    mg_real *to; /* the target's data */
    mg_real beta;
    ptrdiff_t row_tile, row_tiles;  /* rows of a target in a tile, tiles of a target */
    ptrdiff_t targets, target_tile; /* targets in all, and in a tile */
} product;

typedef struct offsets {
    ptrdiff_t left, right, target;
} offsets;

/* Where the leading position with this number is, counting only dimensions that the target has (or shares). */
static offsets lead_offsets(const product *p, bool shared, ptrdiff_t number) {
    offsets at = {0, 0, 0};
    for (int d = LEAD - 1; d >= 0; d--) {
        if ((p->target.step[d] == 0) != shared) continue;
        ptrdiff_t i = number % p->lead[d];
        number /= p->lead[d];
        at.left += i * p->left.step[d];
        at.right += i * p->right.step[d];
        at.target += i * p->target.step[d];
    }
    return at;
}

static ptrdiff_t shared_positions(const product *p) {
    ptrdiff_t n = 1;
    for (int d = 0; d < LEAD; d++)
        if (p->target.step[d] == 0) n *= p->lead[d];
    return n;
}

/* An element is the sum of one term per leading position that its target shares, times panels of k where k is long. */
static ptrdiff_t panels_of(const product *p) {
    return p->k > MG_BLOCK * PANEL ? mg_tile_count(p->k, PANEL) : 1;
}

static ptrdiff_t terms_of(const product *p) {
    return shared_positions(p) * panels_of(p);
}

/* to = beta to + some of the terms of a target's rows */
static void multiply_terms(const product *p, ptrdiff_t target, mg_range rows, mg_range terms, mg_real beta,
                           mg_real *to) {
    offsets base = lead_offsets(p, false, target);
    ptrdiff_t panels = panels_of(p), row_step = p->left.transposed ? 1 : p->left.stride;
    ptrdiff_t left_step = p->left.transposed ? p->left.stride : 1,
              right_step = p->right.transposed ? 1 : p->right.stride;
    for (ptrdiff_t i = terms.begin; i < terms.end; i++) {
        offsets more = lead_offsets(p, true, i / panels);
        mg_range k = mg_tile_range(p->k, panels > 1 ? PANEL : p->k, i % panels);
        const mg_real *left = p->left.data + base.left + more.left + rows.begin * row_step + k.begin * left_step;
        const mg_real *right = p->right.data + base.right + more.right + k.begin * right_step;
        mg_gemm(rows.end - rows.begin, p->n, k.end - k.begin, 1, (mg_matrix){left, p->left.stride, p->left.transposed},
                (mg_matrix){right, p->right.stride, p->right.transposed}, i == terms.begin ? beta : 1, to, p->n);
    }
}

/* The same of many terms: sums.h. */
static void multiply_blocks(const product *p, ptrdiff_t target, mg_range rows, mg_real *to, double *sum) {
    ptrdiff_t terms = terms_of(p), n = (rows.end - rows.begin) * p->n;
    mg_real *block = (mg_real *)(sum + n);
    for (ptrdiff_t i = 0; i < n; i++) sum[i] = p->beta == 0 ? 0 : (double)to[i];
    for (ptrdiff_t b = 0; b < mg_tile_count(terms, MG_BLOCK); b++) {
        multiply_terms(p, target, rows, mg_tile_range(terms, MG_BLOCK, b), 0, block);
        for (ptrdiff_t i = 0; i < n; i++) sum[i] += (double)block[i];
    }
    for (ptrdiff_t i = 0; i < n; i++) to[i] = (mg_real)sum[i];
}

static void product_tile(void *context, ptrdiff_t tile, void *workspace) {
    const product *p = context;
    mg_range rows = mg_tile_range(p->m, p->row_tile, tile % p->row_tiles);
    mg_range targets = mg_tile_range(p->targets, p->target_tile, tile / p->row_tiles);
    for (ptrdiff_t target = targets.begin; target < targets.end; target++) {
        mg_real *to = p->to + lead_offsets(p, false, target).target + rows.begin * p->n;
        if (terms_of(p) > MG_BLOCK)
            multiply_blocks(p, target, rows, to, workspace);
        else
            multiply_terms(p, target, rows, (mg_range){0, terms_of(p)}, p->beta, to);
    }
}

static ptrdiff_t at_least(ptrdiff_t a, ptrdiff_t b) {
    return a > b ? a : b;
}

/* Small matrices go many to a tile, large ones are cut into tiles of rows. */
static void run(product p) {
    ptrdiff_t row_flops = p.n * p.k * shared_positions(&p);
    p.targets = p.lead[0] * p.lead[1] / shared_positions(&p);
    p.row_tile = at_least(TILE_FLOPS / row_flops, at_least(LEAST_ROWS, mg_tile_count(p.m, MOST_ROW_TILES)));
    p.row_tiles = mg_tile_count(p.m, p.row_tile);
    p.target_tile = p.row_tiles > 1 ? 1 : at_least(1, TILE_FLOPS / (row_flops * p.m));
    size_t workspace = terms_of(&p) > MG_BLOCK ? (size_t)(p.row_tile * p.n) * (sizeof(double) + sizeof(mg_real)) : 0;
    mg_parallel(p.row_tiles * mg_tile_count(p.targets, p.target_tile), product_tile, &p, workspace);
}

static stack flipped(stack s) {
    s.transposed = !s.transposed;
    return s;
}

/* left · right into target; if the target is stored transposed, then rightᵀ · leftᵀ. */
static void gradient(const product *like, stack left, stack right, stack target, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k,
                     mg_real *to, mg_real beta) {
    product p = *like;
    bool flip = target.transposed;
    p.left = flip ? flipped(right) : left;
    p.right = flip ? flipped(left) : right;
    p.m = flip ? n : m;
    p.n = flip ? m : n;
    p.k = k;
    p.target = target;
    p.to = to;
    p.beta = beta;
    run(p);
}

static void matmul_backward(mg_tape *tape, const mg_node *node) {
    const product *p = node->saved;
    stack dy = p->target;
    dy.data = node->out->grad;
    mg_real beta, *da = mg_grad_beta(tape, node->in[0], &beta);
    if (da) gradient(p, dy, flipped(p->right), p->left, p->m, p->k, p->n, da, beta); /* dA = dY Bᵀ */
    mg_real *db = mg_grad_beta(tape, node->in[1], &beta);
    if (db) gradient(p, flipped(p->left), dy, p->right, p->k, p->n, p->m, db, beta); /* dB = Aᵀ dY */
}

static const mg_op op = {"matmul", matmul_backward};

/* The size of x along leading dimension d, of which there are `LEAD`, with 1 in front. */
static ptrdiff_t lead_dim(const mg_tensor *x, int d) {
    int own = d - (LEAD - (x->ndim - 2));
    return own < 0 ? 1 : x->dim[own];
}

static stack stack_of(const mg_tensor *x, bool transposed) {
    stack s = {.stride = x->dim[x->ndim - 1], .transposed = transposed, .data = x->data};
    ptrdiff_t step = x->dim[x->ndim - 2] * s.stride;
    for (int d = LEAD - 1; d >= 0; d--) {
        s.step[d] = lead_dim(x, d) > 1 ? step : 0;
        step *= lead_dim(x, d);
    }
    return s;
}

/* One matrix on the right for all on the left is one product: (…,m,k) is (…·m, k). */
static void join_rows(product *p, const mg_tensor *a, const mg_tensor *b) {
    bool one_right = lead_dim(b, 0) == 1 && lead_dim(b, 1) == 1;
    if (p->left.transposed || !one_right) return;
    p->m = mg_size(a) / p->k;
    for (int d = 0; d < LEAD; d++) {
        p->lead[d] = 1;
        p->left.step[d] = p->target.step[d] = 0;
    }
}

static mg_tensor *output(mg_tape *tape, const product *p, int ndim) {
    ptrdiff_t dim[MG_MAX_DIM];
    for (int d = 0; d < ndim - 2; d++) dim[d] = p->lead[LEAD - (ndim - 2) + d];
    dim[ndim - 2] = p->m;
    dim[ndim - 1] = p->n;
    return mg_tape_output(tape, ndim, dim);
}

mg_tensor *(mg_matmul)(mg_tape *tape, mg_tensor *a, mg_tensor *b, bool transpose_a, bool transpose_b) {
    MG_OP_CHECK(tape, &op, a->ndim >= 2 && b->ndim >= 2, "shapes %s and %s are not both matrices", mg_shape(a).text,
                mg_shape(b).text);
    ptrdiff_t m = a->dim[a->ndim - (transpose_a ? 1 : 2)], k = a->dim[a->ndim - (transpose_a ? 2 : 1)];
    ptrdiff_t k_b = b->dim[b->ndim - (transpose_b ? 1 : 2)], n = b->dim[b->ndim - (transpose_b ? 2 : 1)];
    MG_OP_CHECK(tape, &op, k == k_b, "shapes %s%s and %s%s do not fit: %td columns meet %td rows", mg_shape(a).text,
                transpose_a ? " transposed" : "", mg_shape(b).text, transpose_b ? " transposed" : "", k, k_b);
    product *p = mg_tape_alloc(tape, 1, sizeof *p, "the sizes of matmul");
    *p = (product){.m = m, .n = n, .k = k, .left = stack_of(a, transpose_a), .right = stack_of(b, transpose_b)};
    for (int d = 0; d < LEAD; d++) {
        ptrdiff_t lead_a = lead_dim(a, d), lead_b = lead_dim(b, d);
        MG_OP_CHECK(tape, &op, lead_a == lead_b || lead_a == 1 || lead_b == 1,
                    "the leading dimensions of shapes %s and %s do not broadcast", mg_shape(a).text, mg_shape(b).text);
        p->lead[d] = lead_a == 1 ? lead_b : lead_a;
    }
    mg_tensor *y = output(tape, p, a->ndim > b->ndim ? a->ndim : b->ndim);
    p->target = stack_of(y, false);
    p->to = y->data;
    join_rows(p, a, b);
    run(*p);
    mg_tape_append(tape, &op, y, 2, (mg_tensor *[]){a, b}, p);
    return y;
}
