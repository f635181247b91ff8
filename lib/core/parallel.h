/* Loops over fixed tiles. How a loop is cut into tiles depends only on shapes, never on the number of threads, and no
 * two tiles write the same element: so results do not depend on the number of threads. */
#ifndef MASKGRAD_PARALLEL_H
#define MASKGRAD_PARALLEL_H

#include "threads.h"

#include <stddef.h>

typedef void mg_tile_fn(void *context, ptrdiff_t tile, void *workspace);
/* fn(context, 0 … n_tiles-1, workspace), each tile once, on any thread, in any order. A single tile runs on the calling
 * thread. Each thread has workspace_bytes of scratch memory, 64-byte aligned, whose content is undefined.
 *
 * Any thread may call it, inside a tile too. The pool works for one caller at a time; a loop that finds it busy, or
 * that is inside a tile, runs on its own thread, with the same results. A tile must return, not jump away. A failure in
 * a tile reaches the handler when the loop is over, on the calling thread; if several fail, the lowest tile's. */
MG_API void mg_parallel(ptrdiff_t n_tiles, mg_tile_fn *fn, void *context, size_t workspace_bytes);

/* ---- Not installed: between maskgrad's own files ---- */
/* Tile number `tile` of n elements, cut into tiles of `tile_size` consecutive elements. */
typedef struct mg_range {
    ptrdiff_t begin, end;
} mg_range;
static inline ptrdiff_t mg_tile_count(ptrdiff_t n, ptrdiff_t tile_size) {
    return (n + tile_size - 1) / tile_size;
}
static inline mg_range mg_tile_range(ptrdiff_t n, ptrdiff_t tile_size, ptrdiff_t tile) {
    mg_range r = {tile * tile_size, (tile + 1) * tile_size};
    if (r.end > n) r.end = n;
    return r;
}

#endif
