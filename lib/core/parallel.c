/* A pool of threads that take tiles as they become free, spin for some microseconds when there are none, then sleep.
 *
 * A training step has about a hundred loops with little between them, so the threads must be awake when the next one
 * comes. But other programs want the processors too: the caller must not wait for a thread that they keep from running,
 * so it takes whatever tiles no other thread has begun; and a thread that spins for long keeps the processor from the
 * very thread that it waits for. OpenMP's loops, with a fixed share per thread and a millisecond of spinning, took ten
 * times as long as one thread on a busy machine. */
#define _GNU_SOURCE
#include "parallel.h"
#include "failure.h"
#include "gemm.h"
#include "heap.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { MOST_THREADS = 256, SPINS = 2000 };

/* What is to be done. Written by the caller between two jobs, read by workers at any time: what they read counts only
 * if the ticket they then draw is one of this job. */
typedef struct job {
    _Atomic ptrdiff_t n_tiles, tiles_per_ticket;
    _Atomic(mg_tile_fn *) fn;
    _Atomic(void *) context;
    atomic_uint n_tickets;
    atomic_int threads; /* that may take part, including the caller */
} job;

/* What went wrong in a loop: in the first of its tiles that failed, whatever thread it ran on. */
typedef struct failed {
    ptrdiff_t tile; /* -1: none */
    mg_trap trap;
} failed;

/* The box of tickets: 32 bits of generation, odd while the caller writes a new job, then how many tickets are gone from
 * the back and from the front, 16 bits each. A ticket is drawn by one compare-and-swap of all three, so a late worker
 * never draws one of a job it does not know. */
enum { MOST_TICKETS = 0xffff };
static inline unsigned generation_of(uint64_t box) {
    return (unsigned)(box >> 32);
}

static struct pool {
    pthread_t worker[MOST_THREADS];
    int n_workers; /* that are ready */
    job job;
    _Atomic uint64_t box;
    atomic_uint finished; /* tickets whose tiles are done */
    atomic_int sleepers;  /* workers that sleep or are about to */
    atomic_bool caller_sleeps, quit;
    failed failed;         /* of the job; under `mutex` */
    pthread_mutex_t owner; /* held by the one thread whose job this is */
    pthread_mutex_t mutex;
    pthread_cond_t wake, done;
} pool = {.owner = PTHREAD_MUTEX_INITIALIZER,
          .mutex = PTHREAD_MUTEX_INITIALIZER,
          .wake = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};

static atomic_int thread_count;
static _Thread_local bool inside; /* a tile */

/* Scratch memory: for the pool's threads, and for loops that run without the pool. */
typedef struct space {
    void *memory;
    size_t bytes;
    struct space *next;
} space;
static space workspace[MOST_THREADS];
static space *spare_spaces; /* under pool.mutex */

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
    int threads = thread_count;
    if (threads == 0) {
        int n = processors();
        thread_count = threads = n < MOST_THREADS ? n : MOST_THREADS;
    }
    return threads;
}

/* ---- Waiting ---- */

static void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static bool is_new(unsigned seen) {
    unsigned generation = generation_of(atomic_load(&pool.box));
    return generation != seen && generation % 2 == 0;
}

/* A worker goes to sleep only if, with `sleepers` already raised, there is no new job; the caller publishes the job
 * first and then looks at `sleepers`. All accesses are sequentially consistent, so one of the two sees the other's. */
static void wait_for_work(unsigned seen) {
    for (int i = 0; i < SPINS; i++) {
        if (is_new(seen)) return;
        pause_briefly();
    }
    pthread_mutex_lock(&pool.mutex);
    atomic_fetch_add(&pool.sleepers, 1);
    while (!is_new(seen)) pthread_cond_wait(&pool.wake, &pool.mutex);
    atomic_fetch_sub(&pool.sleepers, 1);
    pthread_mutex_unlock(&pool.mutex);
}

static void wait_for_workers(unsigned n_tickets) {
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load(&pool.finished) == n_tickets) return;
        pause_briefly();
    }
    pthread_mutex_lock(&pool.mutex);
    atomic_store(&pool.caller_sleeps, true);
    while (atomic_load(&pool.finished) < n_tickets) pthread_cond_wait(&pool.done, &pool.mutex);
    atomic_store(&pool.caller_sleeps, false);
    pthread_mutex_unlock(&pool.mutex);
}

static void report_done(unsigned n_tickets) {
    if (atomic_fetch_add(&pool.finished, 1) + 1 < n_tickets || !atomic_load(&pool.caller_sleeps)) return;
    pthread_mutex_lock(&pool.mutex);
    pthread_cond_signal(&pool.done);
    pthread_mutex_unlock(&pool.mutex);
}

/* ---- Working ---- */

static void note_failure(failed *f, ptrdiff_t tile, const mg_trap *trap) {
    pthread_mutex_lock(&pool.mutex);
    if (f->tile < 0 || tile < f->tile) {
        f->tile = tile;
        f->trap = *trap;
    }
    pthread_mutex_unlock(&pool.mutex);
}

/* A failure in a tile ends here, and mg_parallel raises it again when the loop is over: the handler runs on the thread
 * that called, and may jump away from there. */
static void run_tiles(mg_range tiles, mg_tile_fn *fn, void *context, void *memory, failed *f) {
    bool was_inside = inside;
    volatile ptrdiff_t tile = tiles.begin;
    mg_trap trap, *outer = mg_trap_set(&trap);
    inside = true;
    if (setjmp(trap.jump) == 0)
        for (; tile < tiles.end; tile++) fn(context, tile, memory);
    else
        note_failure(f, tile, &trap);
    inside = was_inside;
    mg_trap_set(outer);
}

/* Draw tickets of this generation until there are none. Even threads draw from the front and odd ones from the back, so
 * that with two of them each finds its rows of the last loop in its own cache. */
static void draw_tickets(int thread, unsigned generation) {
    job *j = &pool.job;
    for (;;) {
        uint64_t box = atomic_load(&pool.box);
        if (generation_of(box) != generation) return;
        unsigned front = box & MOST_TICKETS, back = box >> 16 & MOST_TICKETS, n_tickets = atomic_load(&j->n_tickets);
        ptrdiff_t n_tiles = atomic_load(&j->n_tiles), tiles_per_ticket = atomic_load(&j->tiles_per_ticket);
        mg_tile_fn *fn = atomic_load(&j->fn);
        void *context = atomic_load(&j->context);
        if (thread >= atomic_load(&j->threads) || front + back >= n_tickets) return;
        bool from_front = thread % 2 == 0;
        if (!atomic_compare_exchange_strong(&pool.box, &box, box + (from_front ? 1 : 1 << 16))) continue;
        ptrdiff_t ticket = from_front ? front : n_tickets - 1 - back;
        run_tiles(mg_tile_range(n_tiles, tiles_per_ticket, ticket), fn, context, workspace[thread].memory,
                  &pool.failed);
        report_done(n_tickets);
    }
}

/* Publish a job; returns its generation. Only the caller's thread writes the generation. */
static unsigned put_out(ptrdiff_t n_tiles, mg_tile_fn *fn, void *context, int threads) {
    job *j = &pool.job;
    unsigned generation = generation_of(atomic_load(&pool.box)) + 2;
    atomic_store(&pool.box, (uint64_t)(generation - 1) << 32);
    ptrdiff_t tiles_per_ticket = mg_tile_count(n_tiles, MOST_TICKETS);
    atomic_store(&j->n_tiles, n_tiles);
    atomic_store(&j->tiles_per_ticket, tiles_per_ticket ? tiles_per_ticket : 1);
    atomic_store(&j->n_tickets, tiles_per_ticket ? (unsigned)mg_tile_count(n_tiles, tiles_per_ticket) : 0);
    atomic_store(&j->fn, fn);
    atomic_store(&j->context, context);
    atomic_store(&j->threads, threads);
    atomic_store(&pool.finished, 0);
    pool.failed.tile = -1;
    atomic_store(&pool.box, (uint64_t)generation << 32);
    if (atomic_load(&pool.sleepers) > 0) {
        pthread_mutex_lock(&pool.mutex);
        pthread_cond_broadcast(&pool.wake);
        pthread_mutex_unlock(&pool.mutex);
    }
    return generation;
}

typedef struct start {
    int thread; /* the caller is thread 0 */
    unsigned seen;
} start;
static start starts[MOST_THREADS];

static void *work(void *argument) {
    start s = *(const start *)argument;
    mg_gemm_one_thread();
    pthread_mutex_lock(&pool.mutex);
    pool.n_workers++;
    pthread_cond_signal(&pool.done);
    pthread_mutex_unlock(&pool.mutex);
    for (;;) {
        wait_for_work(s.seen);
        s.seen = generation_of(atomic_load(&pool.box)) & ~1u;
        if (atomic_load(&pool.quit)) return NULL;
        draw_tickets(s.thread, s.seen);
    }
}

/* As many workers as requested, or as the system allows. They start one by one, and each is ready when the next one
 * starts. */
static void start_workers(int wanted) {
    mg_gemm_one_thread();
    while (pool.n_workers < wanted) {
        int n = pool.n_workers;
        starts[n] = (start){n + 1, generation_of(atomic_load(&pool.box))};
        if (pthread_create(&pool.worker[n], NULL, work, &starts[n]) != 0) return;
        pthread_mutex_lock(&pool.mutex);
        while (pool.n_workers == n) pthread_cond_wait(&pool.done, &pool.mutex);
        pthread_mutex_unlock(&pool.mutex);
    }
}

/* ---- Scratch memory ---- */

static bool reserve(space *s, size_t bytes, mg_error *error) {
    if (s->bytes >= bytes) return true;
    mg_free(s->memory);
    s->memory = mg_alloc(bytes, 1, "a thread's workspace", error);
    s->bytes = s->memory ? bytes : 0;
    return s->memory != NULL;
}

/* Before the tiles start, so that a refusal reaches the handler before anything is computed. */
static bool reserve_workspace(int threads, size_t bytes, mg_error *error) {
    for (int i = 0; i < threads; i++)
        if (!reserve(&workspace[i], bytes, error)) return false;
    return true;
}

static void put_space(space *s) {
    pthread_mutex_lock(&pool.mutex);
    s->next = spare_spaces;
    spare_spaces = s;
    pthread_mutex_unlock(&pool.mutex);
}

static space *spare_space(void) {
    pthread_mutex_lock(&pool.mutex);
    space *s = spare_spaces;
    if (s) spare_spaces = s->next;
    pthread_mutex_unlock(&pool.mutex);
    return s;
}

static space *take_space(size_t bytes, mg_error *error) {
    space *s = spare_space();
    if (!s) s = mg_alloc_zero(1, sizeof *s, "a thread's workspace", error);
    if (!s || reserve(s, bytes, error)) return s;
    put_space(s);
    return NULL;
}

void mg_parallel_release(void) {
    MG_CHECK(!inside, "parallel: a tile cannot release the threads it runs on");
    pthread_mutex_lock(&pool.owner);
    atomic_store(&pool.quit, true);
    put_out(0, NULL, NULL, 0);
    for (int i = 0; i < pool.n_workers; i++) pthread_join(pool.worker[i], NULL);
    pool.n_workers = 0;
    atomic_store(&pool.quit, false);
    for (int i = 0; i < MOST_THREADS; i++) mg_free(workspace[i].memory);
    memset(workspace, 0, sizeof workspace);
    pthread_mutex_unlock(&pool.owner);
    for (space *s; (s = spare_space());) {
        mg_free(s->memory);
        mg_free(s);
    }
}

/* ---- A loop ---- */

static void raise(const failed *f) {
    if (f->tile >= 0) mg_fail_again(&f->trap);
}

/* On the calling thread: inside a tile, or while the pool works for another thread. */
static void run_here(ptrdiff_t n_tiles, mg_tile_fn *fn, void *context, size_t workspace_bytes) {
    mg_error error;
    failed f;
    f.tile = -1;
    space *s = workspace_bytes ? take_space(workspace_bytes, &error) : NULL;
    if (workspace_bytes && !s) MG_FAIL(MG_FAILURE_MEMORY, "%s", error.message);
    run_tiles((mg_range){0, n_tiles}, fn, context, s ? s->memory : NULL, &f);
    if (s) put_space(s);
    raise(&f);
}

/* On the pool, which the calling thread owns. */
static bool run_on_pool(ptrdiff_t n_tiles, mg_tile_fn *fn, void *context, size_t workspace_bytes, mg_error *error) {
    int threads = mg_threads();
    if (threads > n_tiles) threads = (int)n_tiles;
    if (threads > 1) start_workers(mg_threads() - 1);
    if (threads > pool.n_workers + 1) threads = pool.n_workers + 1;
    if (threads < 1) threads = 1;
    if (workspace_bytes && !reserve_workspace(threads, workspace_bytes, error)) return false;
    if (threads == 1) {
        pool.failed.tile = -1;
        run_tiles((mg_range){0, n_tiles}, fn, context, workspace[0].memory, &pool.failed);
        return true;
    }
    draw_tickets(0, put_out(n_tiles, fn, context, threads));
    wait_for_workers(atomic_load(&pool.job.n_tickets));
    return true;
}

void mg_parallel(ptrdiff_t n_tiles, mg_tile_fn *fn, void *context, size_t workspace_bytes) {
    if (inside || pthread_mutex_trylock(&pool.owner) != 0) {
        run_here(n_tiles, fn, context, workspace_bytes);
        return;
    }
    mg_error error;
    failed f;
    f.tile = -1;
    bool done = run_on_pool(n_tiles, fn, context, workspace_bytes, &error);
    if (done && pool.failed.tile >= 0) f = pool.failed;
    pthread_mutex_unlock(&pool.owner);
    if (!done) MG_FAIL(MG_FAILURE_MEMORY, "%s", error.message);
    raise(&f);
}
