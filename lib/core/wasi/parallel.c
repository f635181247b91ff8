/* parallel.h where there are no threads: the tiles one after the other. Each loop has its own scratch memory, since a
 * tile may begin another loop; it is kept for the next one. */
#include "parallel.h"
#include "heap.h"

enum { MOST_DEPTH = 8 };

static struct {
    void *memory;
    size_t bytes;
} workspace[MOST_DEPTH];
static int depth;

void mg_set_threads(int threads) {
    MG_CHECK(threads >= 0 && threads <= 256, "the number of threads is 0 to 256, not %d", threads);
}

int mg_threads(void) {
    return 1;
}

void mg_parallel_release(void) {
    MG_CHECK(depth == 0, "parallel: a tile cannot release the threads it runs on");
    for (int i = 0; i < MOST_DEPTH; i++) {
        mg_free(workspace[i].memory);
        workspace[i].memory = NULL;
        workspace[i].bytes = 0;
    }
}

static void *reserve(size_t bytes) {
    mg_error error;
    MG_CHECK(depth < MOST_DEPTH, "parallel: more than %d loops inside each other", MOST_DEPTH);
    if (bytes <= workspace[depth].bytes) return workspace[depth].memory;
    mg_free(workspace[depth].memory);
    workspace[depth].bytes = 0;
    workspace[depth].memory = mg_alloc(bytes, 1, "a thread's workspace", &error);
    if (!workspace[depth].memory) MG_FAIL(MG_FAILURE_MEMORY, "%s", error.message);
    workspace[depth].bytes = bytes;
    return workspace[depth].memory;
}

void mg_parallel(ptrdiff_t n_tiles, mg_tile_fn *fn, void *context, size_t workspace_bytes) {
    void *memory = reserve(workspace_bytes);
    depth++;
    for (ptrdiff_t tile = 0; tile < n_tiles; tile++) fn(context, tile, memory);
    depth--;
}
