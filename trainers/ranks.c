/* A sum of `size` numbers over P ranks sends (P-1)/P of them twice per rank, as a ring's or Rabenseifner's does
 * (Thakur, Rabenseifner & Gropp 2005), but with the same parentheses for each P. */
#include "ranks.h"
#include "clock.h"
#include "parallel.h"

#include <stdio.h>
#include <string.h>

/* The messages of one exchange. */
typedef struct mail {
    mg_message sent[MG_MOST_RANKS], received[MG_MOST_RANKS];
    int n_sent, n_received;
} mail;

static void put(mg_message *list, int *n, int rank, void *bytes, size_t size) {
    if (size > 0) list[(*n)++] = (mg_message){rank, bytes, size};
}

static mg_status deliver(mg_ranks *ranks, const mail *m, mg_error *error) {
    double begin = mg_seconds();
    mg_status status = ranks->exchange(ranks, m->sent, m->n_sent, m->received, m->n_received, error);
    ranks->seconds += mg_seconds() - begin;
    ranks->broken = status != MG_OK;
    return status;
}

mg_status mg_ranks_gather(mg_ranks *ranks, void *all, size_t size, mg_error *error) {
    mail m = {.n_sent = 0};
    char *part = all;
    for (int rank = 0; rank < ranks->count; rank++) {
        if (rank == ranks->rank) continue;
        put(m.sent, &m.n_sent, rank, part + (size_t)ranks->rank * size, size);
        put(m.received, &m.n_received, rank, part + (size_t)rank * size, size);
    }
    return deliver(ranks, &m, error);
}

mg_status mg_ranks_broadcast(mg_ranks *ranks, void *bytes, size_t size, mg_error *error) {
    mail m = {.n_sent = 0};
    if (ranks->rank > 0) put(m.received, &m.n_received, 0, bytes, size);
    for (int rank = 1; ranks->rank == 0 && rank < ranks->count; rank++) put(m.sent, &m.n_sent, rank, bytes, size);
    return deliver(ranks, &m, error);
}

mg_status mg_ranks_any(mg_ranks *ranks, bool mine, bool *any, mg_error *error) {
    bool all[MG_MOST_RANKS];
    *any = mine;
    if (!mg_ranks_are_many(ranks)) return MG_OK;
    all[ranks->rank] = mine;
    mg_status status = mg_ranks_gather(ranks, all, sizeof *all, error);
    for (int rank = 0; status == MG_OK && rank < ranks->count; rank++) *any = *any || all[rank];
    return status;
}

/* The sentence of rank `from`, to all. */
static mg_status take_sentence(mg_ranks *ranks, int from, mg_error *error) {
    mail m = {.n_sent = 0};
    mg_error said = *error;
    if (ranks->rank != from) put(m.received, &m.n_received, from, &said, sizeof said);
    for (int rank = 0; ranks->rank == from && rank < ranks->count; rank++)
        if (rank != from) put(m.sent, &m.n_sent, rank, &said, sizeof said);
    mg_status status = deliver(ranks, &m, error);
    if (status != MG_OK) return status;
    if (from == 0) {
        *error = said;
        return said.status;
    }
    return mg_error_set(error, said.status, "rank %d: %s", from, said.message);
}

mg_status mg_ranks_agree(mg_ranks *ranks, mg_status mine, mg_error *error) {
    bool failed[MG_MOST_RANKS];
    if (!mg_ranks_are_many(ranks)) return mine;
    failed[ranks->rank] = mine != MG_OK;
    mg_error own = *error;
    mg_status status = mg_ranks_gather(ranks, failed, sizeof *failed, error);
    if (status != MG_OK) return status;
    *error = own;
    for (int rank = 0; rank < ranks->count; rank++)
        if (failed[rank]) return take_sentence(ranks, rank, error);
    return MG_OK;
}

mg_status mg_ranks_same(mg_ranks *ranks, uint64_t hash, const char *what, mg_error *error) {
    uint64_t all[MG_MOST_RANKS];
    if (!mg_ranks_are_many(ranks)) return MG_OK;
    all[ranks->rank] = hash;
    mg_status status = mg_ranks_gather(ranks, all, sizeof *all, error);
    for (int rank = 1; status == MG_OK && rank < ranks->count; rank++)
        if (all[rank] != all[0])
            return mg_error_set(error, MG_ERR_INPUT, "rank %d has other %s than rank 0 (hash %016llx, and %016llx)",
                                rank, what, (unsigned long long)all[rank], (unsigned long long)all[0]);
    return status;
}

/* "1, 2, 4 or 8": the divisors of n that are at most MG_MOST_RANKS. */
static void list_divisors(int n, char *text, size_t size) {
    int divisor[64], n_divisors = 0;
    for (int d = 1; d <= n && d <= MG_MOST_RANKS && n_divisors < 64; d++)
        if (n % d == 0) divisor[n_divisors++] = d;
    size_t at = 0;
    for (int i = 0; i < n_divisors && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%d",
                               i == 0                ? ""
                               : i == n_divisors - 1 ? " or "
                                                     : ", ",
                               divisor[i]);
}

mg_status mg_ranks_check(const mg_ranks *ranks, int n, mg_error *error) {
    if (!mg_ranks_are_many(ranks)) return MG_OK;
    char fits[512];
    list_divisors(n, fits, sizeof fits);
    int count = ranks->count;
    if (count > MG_MOST_RANKS)
        return mg_error_set(error, MG_ERR_INPUT, "%d ranks are too many: at most %d", count, MG_MOST_RANKS);
    if (n % count == 0) return MG_OK;
    return mg_error_set(
        error, MG_ERR_INPUT,
        "%d ranks cannot share the %d micro-batch%s of --grad-accum equally: start %s rank%s, or give a "
        "--grad-accum that %d divides",
        count, n, n == 1 ? "" : "es", fits, n == 1 ? "" : "s", count);
}

/* ---- The sum ---- */

/* How a block of numbers is cut: whole cache lines, so that no two ranks' slices share one. */
static mg_range slice_of(const mg_ranks *ranks, ptrdiff_t size, int rank) {
    enum { UNIT = 64 / sizeof(mg_real) };
    ptrdiff_t slice = mg_tile_count(mg_tile_count(size, ranks->count), UNIT) * UNIT;
    mg_range r = mg_tile_range(size, slice, rank);
    if (r.begin > size) r.begin = size;
    return r;
}

static size_t bytes_of(mg_range r) {
    return (size_t)(r.end - r.begin) * sizeof(mg_real);
}

/* The nodes that each rank's tree has left, from left to right. */
static int nodes_of(const mg_ranks *ranks, ptrdiff_t n, int rank, mg_sum_node *nodes) {
    ptrdiff_t each = n / ranks->count, begin = rank * each, end = begin + each;
    int n_nodes = 0;
    for (ptrdiff_t count; begin < end; begin += count) {
        count = mg_sum_first_node(begin, end);
        nodes[n_nodes++] = (mg_sum_node){begin, count, NULL};
    }
    return n_nodes;
}

size_t mg_ranks_sum_scratch(const mg_ranks *ranks, ptrdiff_t n, ptrdiff_t size) {
    mg_sum_node nodes[MG_SUM_NODES];
    size_t slices = 0;
    for (int rank = 0; rank < ranks->count; rank++)
        if (rank != ranks->rank) slices += (size_t)nodes_of(ranks, n, rank, nodes);
    mg_range first = slice_of(ranks, size, 0);
    return slices * (size_t)(first.end - first.begin);
}

/* This rank's slice of every node of every rank: its own where they are, the others' in scratch. One exchange per node
 * of a rank; a power of two of micro-batches per rank is one node. */
static mg_status collect_slices(mg_ranks *ranks, const mg_sum_tree *own, ptrdiff_t n, mg_real *scratch,
                                mg_sum_tree *slices, mg_error *error) {
    mg_range mine = slice_of(ranks, own->size, ranks->rank);
    mg_status status = MG_OK;
    int most = 0;
    mg_sum_node nodes[MG_SUM_NODES];
    for (int rank = 0; rank < ranks->count; rank++) {
        int n_nodes = nodes_of(ranks, n, rank, nodes);
        if (n_nodes > most) most = n_nodes;
    }
    for (int turn = 0; status == MG_OK && turn < most; turn++) {
        mail m = {.n_sent = 0};
        mg_real *to = scratch;
        for (int rank = 0; rank < ranks->count; rank++) {
            if (rank == ranks->rank) continue;
            int n_nodes = nodes_of(ranks, n, rank, nodes);
            mg_range theirs = slice_of(ranks, own->size, rank);
            if (turn < own->n) put(m.sent, &m.n_sent, rank, own->node[turn].block + theirs.begin, bytes_of(theirs));
            if (turn < n_nodes)
                put(m.received, &m.n_received, rank, to + turn * (mine.end - mine.begin), bytes_of(mine));
            to += n_nodes * (mine.end - mine.begin);
        }
        status = deliver(ranks, &m, error);
    }
    if (status != MG_OK) return status;
    for (int rank = 0; rank < ranks->count; rank++) {
        int n_nodes = nodes_of(ranks, n, rank, nodes);
        for (int i = 0; i < n_nodes; i++) {
            bool is_own = rank == ranks->rank;
            nodes[i].block = is_own ? own->node[i].block + mine.begin : scratch;
            mg_sum_tree_add(slices, nodes[i]);
            slices->n_zeros = 0;
            if (!is_own) scratch += mine.end - mine.begin;
        }
    }
    return MG_OK;
}

/* The slice that this rank has added up, to all, and theirs to this one. */
static mg_status spread_slices(mg_ranks *ranks, mg_real *sum, ptrdiff_t size, mg_error *error) {
    mg_range mine = slice_of(ranks, size, ranks->rank);
    mail m = {.n_sent = 0};
    for (int rank = 0; rank < ranks->count; rank++) {
        if (rank == ranks->rank) continue;
        mg_range theirs = slice_of(ranks, size, rank);
        put(m.sent, &m.n_sent, rank, sum + mine.begin, bytes_of(mine));
        put(m.received, &m.n_received, rank, sum + theirs.begin, bytes_of(theirs));
    }
    return deliver(ranks, &m, error);
}

/* All nodes but the first become zeros. */
static void empty(mg_sum_tree *tree) {
    for (int i = 1; i < tree->n; i++) {
        memset(tree->node[i].block, 0, (size_t)tree->size * sizeof(mg_real));
        tree->zeros[tree->n_zeros++] = tree->node[i].block;
    }
    tree->n = 0;
}

mg_status mg_ranks_sum(mg_ranks *ranks, mg_sum_tree *tree, ptrdiff_t n, mg_real *scratch, mg_real **sum,
                       mg_error *error) {
    mg_range mine = slice_of(ranks, tree->size, ranks->rank);
    mg_sum_tree slices = {.size = mine.end - mine.begin};
    *sum = tree->node[0].block;
    mg_status status = collect_slices(ranks, tree, n, scratch, &slices, error);
    if (status == MG_OK) {
        const mg_real *slice = mg_sum_tree_finish(&slices).block;
        if (slice != *sum + mine.begin) memcpy(*sum + mine.begin, slice, bytes_of(mine));
        status = spread_slices(ranks, *sum, tree->size, error);
    }
    empty(tree);
    return status;
}
