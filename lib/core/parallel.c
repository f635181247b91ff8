#include "parallel.h"
#include "heap.h"

#include <omp.h>
#include <stdbool.h>

enum { MOST_THREADS = 256 };

static int thread_count;
static void *workspace[MOST_THREADS];
static size_t workspace_size[MOST_THREADS];

void mg_set_threads(int threads) {
    MG_CHECK(threads >= 0 && threads <= MOST_THREADS, "the number of threads is 0 to %d, not %d", MOST_THREADS,
             threads);
    thread_count = threads;
}

int mg_threads(void) {
    if (thread_count == 0) {
        int processors = omp_get_num_procs();
        thread_count = processors < MOST_THREADS ? processors : MOST_THREADS;
    }
    return thread_count;
}

/* Before the threads start, so that a refusal reaches the handler on the thread that called. */
static void reserve_workspace(int threads, size_t bytes) {
    for (int i = 0; i < threads; i++) {
        if (workspace_size[i] >= bytes) continue;
        mg_error error;
        mg_free(workspace[i]);
        workspace_size[i] = 0;
        workspace[i] = mg_alloc(bytes, 1, "a thread's workspace", &error);
        if (!workspace[i]) mg_fail(MG_FAILURE_MEMORY, __FILE__, __LINE__, "%s", error.message);
        workspace_size[i] = bytes;
    }
}

void mg_parallel_release(void) {
    for (int i = 0; i < MOST_THREADS; i++) {
        mg_free(workspace[i]);
        workspace[i] = NULL;
        workspace_size[i] = 0;
    }
}

void mg_parallel(ptrdiff_t n_tiles, mg_tile_fn *fn, void *context, size_t workspace_bytes) {
    bool nested = omp_in_parallel();
    MG_CHECK(!nested || workspace_bytes == 0, "a parallel loop inside a tile has no workspace");
    int threads = mg_threads();
    if (threads > n_tiles) threads = (int)n_tiles;
    if (threads <= 1 || nested) {
        if (workspace_bytes) reserve_workspace(1, workspace_bytes);
        for (ptrdiff_t tile = 0; tile < n_tiles; tile++) fn(context, tile, nested ? NULL : workspace[0]);
        return;
    }
    if (workspace_bytes) reserve_workspace(threads, workspace_bytes);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (ptrdiff_t tile = 0; tile < n_tiles; tile++) fn(context, tile, workspace[omp_get_thread_num()]);
}
