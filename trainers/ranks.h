/* Several processes that train one model: each a rank, with a number from 0 up. What they do together is here; how
 * messages travel is `exchange`'s, of which trainers/launch has the implementations. NULL, or one rank, is a process by
 * itself. All ranks must make the same calls in the same order. Each call but mg_ranks_agree fails only when another
 * rank cannot be reached (MG_ERR_IO): then the run is over. */
#ifndef MASKGRAD_RANKS_H
#define MASKGRAD_RANKS_H

#include "sum_tree.h"

enum { MG_MOST_RANKS = 1024 };

typedef struct mg_message {
    int rank; /* the other one: to whom, or from whom */
    void *bytes;
    size_t size;
} mg_message;

typedef struct mg_ranks mg_ranks;
struct mg_ranks {
    int rank, count;
    /* Send and receive all of these, in any order; between two ranks messages arrive in the order in which they were
     * sent. */
    mg_status (*exchange)(mg_ranks *ranks, const mg_message *sent, int n_sent, const mg_message *received,
                          int n_received, mg_error *error);
    double seconds; /* spent in exchange so far, waiting for slower ranks included */
    bool broken;    /* an exchange has failed: there will be no other */
    int missing;    /* then the lowest rank that is known to be gone; -1: not known */
    void *user;
};

static inline bool mg_ranks_are_many(const mg_ranks *ranks) {
    return ranks && ranks->count > 1;
}

/* all: `count` parts of `size` bytes, of which this rank's own is filled; afterwards all are. */
mg_status mg_ranks_gather(mg_ranks *ranks, void *all, size_t size, mg_error *error);
/* What rank 0 has in `bytes`, to all. */
mg_status mg_ranks_broadcast(mg_ranks *ranks, void *bytes, size_t size, mg_error *error);
/* Whether any rank says so. */
mg_status mg_ranks_any(mg_ranks *ranks, bool mine, bool *any, mg_error *error);
/* The status of the lowest rank that failed, on all ranks, with its sentence and which rank it was; MG_OK if none did.
 */
mg_status mg_ranks_agree(mg_ranks *ranks, mg_status mine, mg_error *error);
/* MG_ERR_INPUT, on all ranks, unless all have the same hash: "rank 2 has other `what` than rank 0". */
mg_status mg_ranks_same(mg_ranks *ranks, uint64_t hash, const char *what, mg_error *error);

/* MG_ERR_INPUT, with what would fit, unless n micro-batches can be shared equally. */
mg_status mg_ranks_check(const mg_ranks *ranks, int n, mg_error *error);
/* Numbers of scratch memory that mg_ranks_sum needs. */
size_t mg_ranks_sum_scratch(const mg_ranks *ranks, ptrdiff_t n, ptrdiff_t size);
/* The sum over all n micro-batches, of which `tree` holds those of this rank: n/count in a row, by rank. Each rank adds
 * up a slice of the numbers, with the tree's parentheses, and gives it to all. *sum is one of the tree's blocks and no
 * longer its own; the tree is empty. */
mg_status mg_ranks_sum(mg_ranks *ranks, mg_sum_tree *tree, ptrdiff_t n, mg_real *scratch, mg_real **sum,
                       mg_error *error);

#endif
