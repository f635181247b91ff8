/* A pool of threads that wait for work by spinning for some microseconds and then sleep.
 *
 * A training step has about a hundred loops with little between them, so the threads must be awake when the next one
 * comes; and on a machine that others use too, a thread that spins on keeps the processor from the very thread it waits
 * for. OpenMP's runtime spins for a millisecond unless the environment tells it otherwise before the program starts. */
#define _GNU_SOURCE
#include "parallel.h"
#include "heap.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

enum { MOST_THREADS = 256, SPINS = 2000 };

typedef struct job {
    ptrdiff_t n_tiles;
    mg_tile_fn *fn;
    void *context;
    int threads; /* that share the tiles, the caller included */
} job;

static struct pool {
    pthread_t worker[MOST_THREADS];
    int n_workers; /* all of them see every job, and say so, even those that get no tile */
    job job;
    atomic_uint generation; /* of the job; a new one is the call to work */
    atomic_int running;     /* workers that have not finished this generation */
    atomic_int sleepers;    /* workers that sleep or are about to */
    atomic_bool caller_sleeps, quit;
    pthread_mutex_t mutex;
    pthread_cond_t wake, done;
} pool = {.mutex = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

static int thread_count;
static _Thread_local bool inside;
static void *workspace[MOST_THREADS];
static size_t workspace_size[MOST_THREADS];

/* ---- How many ---- */

static int processors(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

void mg_set_threads(int threads) {
    MG_CHECK(threads >= 0 && threads <= MOST_THREADS, "the number of threads is 0 to %d, not %d", MOST_THREADS,
             threads);
    thread_count = threads;
}

int mg_threads(void) {
    if (thread_count == 0) {
        int n = processors();
        thread_count = n < MOST_THREADS ? n : MOST_THREADS;
    }
    return thread_count;
}

/* ---- Waiting ---- */

static void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* A worker goes to sleep only if, with `sleepers` already raised, the generation has not changed; the caller raises the
 * generation first and looks at `sleepers` then. All four are sequentially consistent, so one of the two sees the
 * other's. */
static void wait_for_work(unsigned seen) {
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load(&pool.generation) != seen) return;
        pause_briefly();
    }
    pthread_mutex_lock(&pool.mutex);
    atomic_fetch_add(&pool.sleepers, 1);
    while (atomic_load(&pool.generation) == seen) pthread_cond_wait(&pool.wake, &pool.mutex);
    atomic_fetch_sub(&pool.sleepers, 1);
    pthread_mutex_unlock(&pool.mutex);
}

static void wait_for_workers(void) {
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load(&pool.running) == 0) return;
        pause_briefly();
    }
    pthread_mutex_lock(&pool.mutex);
    atomic_store(&pool.caller_sleeps, true);
    while (atomic_load(&pool.running) > 0) pthread_cond_wait(&pool.done, &pool.mutex);
    atomic_store(&pool.caller_sleeps, false);
    pthread_mutex_unlock(&pool.mutex);
}

static void report_done(void) {
    if (atomic_fetch_sub(&pool.running, 1) > 1 || !atomic_load(&pool.caller_sleeps)) return;
    pthread_mutex_lock(&pool.mutex);
    pthread_cond_signal(&pool.done);
    pthread_mutex_unlock(&pool.mutex);
}

static void call_workers(void) {
    atomic_store(&pool.running, pool.n_workers);
    atomic_fetch_add(&pool.generation, 1);
    if (atomic_load(&pool.sleepers) == 0) return;
    pthread_mutex_lock(&pool.mutex);
    pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.mutex);
}

/* ---- Working ---- */

/* Consecutive tiles for each thread, so that the next loop finds its rows in the same cache. */
static void run_share(const job *j, int thread) {
    ptrdiff_t begin = j->n_tiles * thread / j->threads, end = j->n_tiles * (thread + 1) / j->threads;
    inside = true;
    for (ptrdiff_t tile = begin; tile < end; tile++) j->fn(j->context, tile, workspace[thread]);
    inside = false;
}

static void *work(void *number) {
    int thread = (int)(ptrdiff_t)number + 1; /* the caller is thread 0 */
    unsigned seen = 0;
    for (;;) {
        wait_for_work(seen);
        seen++;
        if (atomic_load(&pool.quit)) return NULL;
        if (thread < pool.job.threads) run_share(&pool.job, thread);
        report_done();
    }
}

/* As many workers as are wanted, or as the system gives. A worker starts at generation 0, so the count starts anew. */
static void start_workers(int wanted) {
    if (wanted <= pool.n_workers) return;
    mg_parallel_release();
    while (pool.n_workers < wanted) {
        int n = pool.n_workers;
        if (pthread_create(&pool.worker[n], NULL, work, (void *)(ptrdiff_t)n) != 0) return;
        pool.n_workers++;
    }
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
    atomic_store(&pool.quit, true);
    call_workers();
    for (int i = 0; i < pool.n_workers; i++) pthread_join(pool.worker[i], NULL);
    pool.n_workers = 0;
    atomic_store(&pool.quit, false);
    atomic_store(&pool.generation, 0);
    atomic_store(&pool.running, 0);
    for (int i = 0; i < MOST_THREADS; i++) {
        mg_free(workspace[i]);
        workspace[i] = NULL;
        workspace_size[i] = 0;
    }
}

static void run_here(ptrdiff_t n_tiles, mg_tile_fn *fn, void *context, void *space) {
    for (ptrdiff_t tile = 0; tile < n_tiles; tile++) fn(context, tile, space);
}

void mg_parallel(ptrdiff_t n_tiles, mg_tile_fn *fn, void *context, size_t workspace_bytes) {
    MG_CHECK(!inside || workspace_bytes == 0, "a parallel loop inside a tile has no workspace");
    if (inside) {
        run_here(n_tiles, fn, context, NULL);
        return;
    }
    int threads = mg_threads();
    if (threads > n_tiles) threads = (int)n_tiles;
    if (threads > 1) start_workers(mg_threads() - 1);
    if (threads > pool.n_workers + 1) threads = pool.n_workers + 1;
    if (workspace_bytes) reserve_workspace(threads > 1 ? threads : 1, workspace_bytes);
    if (threads <= 1) {
        run_here(n_tiles, fn, context, workspace[0]);
        return;
    }
    pool.job = (job){n_tiles, fn, context, threads};
    call_workers();
    run_share(&pool.job, 0);
    wait_for_workers();
}
