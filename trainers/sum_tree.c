#include "sum_tree.h"
#include "parallel.h"
#include "simd.h"

enum { TILE = 16384 };

typedef struct job {
    mg_real *left, *right;
    ptrdiff_t n;
} job;

MG_KERNEL static void add_and_clear(ptrdiff_t n, mg_real *restrict left, mg_real *restrict right) {
    for (ptrdiff_t i = 0; i < n; i++) {
        left[i] += right[i];
        right[i] = 0;
    }
}

static void add_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const job *j = context;
    mg_range r = mg_tile_range(j->n, TILE, tile);
    add_and_clear(r.end - r.begin, j->left + r.begin, j->right + r.begin);
}

/* The last two nodes become one. */
static void merge(mg_sum_tree *tree) {
    mg_sum_node *left = &tree->node[tree->n - 2], *right = left + 1;
    job j = {left->block, right->block, tree->size};
    mg_parallel(mg_tile_count(tree->size, TILE), add_tile, &j, 0);
    left->count += right->count;
    tree->zeros[tree->n_zeros++] = right->block;
    tree->n--;
}

static bool are_siblings(const mg_sum_node *left, const mg_sum_node *right) {
    return left->count == right->count && left->begin % (2 * left->count) == 0;
}

void mg_sum_tree_add(mg_sum_tree *tree, mg_sum_node node) {
    MG_CHECK(tree->n < MG_SUM_NODES, "sum tree: %d nodes are too many", tree->n + 1);
    tree->node[tree->n++] = node;
    while (tree->n > 1 && are_siblings(&tree->node[tree->n - 2], &tree->node[tree->n - 1])) merge(tree);
}

mg_sum_node mg_sum_tree_finish(mg_sum_tree *tree) {
    while (tree->n > 1) merge(tree);
    tree->n = 0;
    return tree->node[0];
}

ptrdiff_t mg_sum_first_node(ptrdiff_t begin, ptrdiff_t end) {
    ptrdiff_t count = 1;
    while (begin % (2 * count) == 0 && begin + 2 * count <= end) count *= 2;
    return count;
}

int mg_sum_most_blocks(ptrdiff_t begin, ptrdiff_t end) {
    int most = 0;
    mg_sum_tree empty = {0}; /* of blocks without a number */
    for (ptrdiff_t at = begin; at < end; at++) {
        if (empty.n > most) most = empty.n;
        mg_sum_tree_add(&empty, (mg_sum_node){at, 1, NULL});
        empty.n_zeros = 0;
    }
    return most;
}

double mg_sum_doubles(const double *x, ptrdiff_t n) {
    if (n == 1) return x[0];
    ptrdiff_t left = 1;
    while (2 * left < n) left *= 2;
    return mg_sum_doubles(x, left) + mg_sum_doubles(x + left, n - left);
}
