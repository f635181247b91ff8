/* Sums over micro-batches whose bits do not depend on who computes which of them, nor when: the parentheses are those
 * of one binary tree,
 *
 *     sum(0…n) = sum(0…p) + sum(p…n),  p the largest power of two below n
 *
 * so that any run of micro-batches is a few nodes of the tree, which can be added up by themselves. Done in order, the
 * tree of n holds at most log2(n) blocks besides the one that is being computed. */
#ifndef MASKGRAD_SUM_TREE_H
#define MASKGRAD_SUM_TREE_H

#include "tensor.h"

/* The sum of micro-batches begin … begin+count-1; count is a power of two until the tree is finished. */
typedef struct mg_sum_node {
    ptrdiff_t begin, count;
    mg_real *block; /* (size) */
} mg_sum_node;

enum { MG_SUM_NODES = 2 * 64 }; /* of a run of micro-batches: two of each size */

typedef struct mg_sum_tree {
    ptrdiff_t size; /* numbers in a block */
    int n, n_zeros;
    mg_sum_node node[MG_SUM_NODES]; /* from left to right, without gaps */
    mg_real *zeros[MG_SUM_NODES];   /* blocks that hold 0 and belong to no node */
} mg_sum_tree;

/* Add the next node. Nodes that are siblings become their parent at once: the right one's block is then among the
 * zeros. */
void mg_sum_tree_add(mg_sum_tree *tree, mg_sum_node node);
/* Add up what is left, from right to left: one node, which is returned. Where the nodes were those of micro-batches
 * 0 … n-1, it is their sum. */
mg_sum_node mg_sum_tree_finish(mg_sum_tree *tree);
/* The count of the first of the nodes that mg_sum_tree_add leaves of micro-batches begin … end-1. */
ptrdiff_t mg_sum_first_node(ptrdiff_t begin, ptrdiff_t end);
/* How many blocks a tree holds while the last of begin … end-1 is being computed, at most. */
int mg_sum_most_blocks(ptrdiff_t begin, ptrdiff_t end);

/* The same tree over n numbers. */
double mg_sum_doubles(const double *x, ptrdiff_t n);

#endif
