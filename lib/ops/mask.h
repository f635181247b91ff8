/* THE MASK. A query sees an interval of keys; this file says which. Everything else asks it: forward, backward, cache,
 * the printed triangle, the audit. */
#ifndef MASKGRAD_MASK_H
#define MASKGRAD_MASK_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum mg_mask_kind {
    MG_MASK_LOOKAHEAD, /* a query sees up to n positions past itself: 0 is causal, MG_LOOKAHEAD_ALL is no mask */
    MG_MASK_WINDOW,    /* itself and the n - 1 before it (Beltagy et al. 2020) */
    MG_MASK_PREFIX,    /* the first n positions see each other; those after them are causal (Raffel et al. 2020) */
    MG_MASK_BLOCK,     /* up to the end of its block of n positions */
} mg_mask_kind;

/* The mask of one head; all zeros is the causal mask. */
typedef struct mg_mask {
    mg_mask_kind kind;
    int n; /* 0 or more for LOOKAHEAD and PREFIX, 1 or more for WINDOW and BLOCK */
} mg_mask;

enum { MG_LOOKAHEAD_ALL = INT_MAX };

static inline mg_mask mg_lookahead(int n) {
    mg_mask mask = {MG_MASK_LOOKAHEAD, n};
    return mask;
}

/* The positions first … end - 1. */
typedef struct mg_interval {
    ptrdiff_t first, end;
} mg_interval;

/* The keys that the query at a position sees, of the n_keys there are. It always sees itself, and neither end ever goes
 * back from one query to the next. */
static inline mg_interval mg_visible(mg_mask mask, ptrdiff_t query_position, ptrdiff_t n_keys) {
    mg_interval visible = {0, query_position + 1};
    ptrdiff_t n = mask.n;
    switch (mask.kind) {
    case MG_MASK_LOOKAHEAD: visible.end = n < n_keys ? visible.end + n : n_keys; break;
    case MG_MASK_WINDOW: visible.first = n <= query_position ? visible.end - n : 0; break;
    case MG_MASK_PREFIX: visible.end = query_position < n ? n : visible.end; break;
    case MG_MASK_BLOCK: visible.end = (query_position / n + 1) * n; break;
    }
    if (visible.end > n_keys) visible.end = n_keys;
    return visible;
}

/* ---- Not installed: between maskgrad's own files ---- */
static inline mg_interval mg_intersection(mg_interval a, mg_interval b) {
    mg_interval both = {a.first > b.first ? a.first : b.first, a.end < b.end ? a.end : b.end};
    return both;
}

/* Whether some query sees past itself, whatever the number of keys. */
static inline bool mg_looks_ahead(mg_mask mask) {
    if (mask.kind == MG_MASK_WINDOW) return false;
    return mask.n > (mask.kind == MG_MASK_LOOKAHEAD ? 0 : 1);
}

/* Whether n is one that the kind can have. */
static inline bool mg_mask_is_valid(mg_mask mask) {
    return mask.n >= (mask.kind == MG_MASK_WINDOW || mask.kind == MG_MASK_BLOCK);
}

#endif
