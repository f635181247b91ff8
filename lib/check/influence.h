/* Interpreting a map of who moves whom: row i a prediction, column j a token, and what a change of that token did to
 * it. */
#ifndef MASKGRAD_INFLUENCE_H
#define MASKGRAD_INFLUENCE_H

#include "tensor.h"

/* What a map says above its diagonal, where a causal model has nothing. */
typedef struct mg_influence {
    ptrdiff_t query, key; /* the first pair, by rows, in which a later token moves an earlier prediction; -1: none */
    ptrdiff_t reach;      /* the largest key − query of any such pair; 0: none */
    ptrdiff_t pairs;      /* how many there are */
    double largest;       /* of their entries */
    char pattern[128];    /* which predictions see ahead, in words: "every prediction sees 1 token ahead"; "" if none */
} mg_influence;

/* ---- Not installed: between maskgrad's own files ---- */
/* map (T,T), row-major. An entry that is not 0 is an influence, NaN and infinity included. */
mg_influence mg_influence_read(ptrdiff_t T, const double *map);
/* Fills the pattern of *found, whose query and reach are set, from what is known of some rows: reach (T) says how far
 * ahead each sees; 0: nothing; below 0: unknown. */
void mg_influence_describe(ptrdiff_t T, const int *reach, mg_influence *found);
/* The distance at which rows that see ahead come again, from `first` on, which does; 0: they do not, as far as is
 * known. */
ptrdiff_t mg_influence_period(ptrdiff_t T, const int *reach, ptrdiff_t first);

#endif
