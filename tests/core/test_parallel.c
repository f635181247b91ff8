/* mg_parallel from several threads, inside its own tiles, and with tiles that fail. */
#include "heap.h"
#include "parallel.h"

#include "check.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

enum { TILES = 24, WORDS = 64, ROUNDS = 400, CALLERS = 4 };

/* Each tile leaves a number that takes its workspace to make: two tiles in one workspace would spoil it. */
typedef struct work {
    uint64_t result[TILES];
    uint64_t seed;
} work;

static uint64_t churn(uint64_t *memory, uint64_t seed) {
    for (int i = 0; i < WORDS; i++)
        memory[i] = (i ? memory[i - 1] : seed) * 6364136223846793005u + 1442695040888963407u;
    uint64_t sum = 0;
    for (int i = 0; i < WORDS; i++) sum ^= memory[i] >> i % 7;
    return sum;
}

static void churn_tile(void *context, ptrdiff_t tile, void *workspace) {
    work *w = context;
    w->result[tile] = churn(workspace, w->seed + (uint64_t)tile);
}

static bool is_right(const work *w) {
    uint64_t memory[WORDS];
    for (ptrdiff_t tile = 0; tile < TILES; tile++)
        if (w->result[tile] != churn(memory, w->seed + (uint64_t)tile)) return false;
    return true;
}

static void *call_often(void *argument) {
    work *w = argument;
    uint64_t first = w->seed;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        w->seed = first + round * TILES;
        mg_parallel(TILES, churn_tile, w, sizeof(uint64_t[WORDS]));
        if (!is_right(w)) return w;
    }
    return NULL;
}

static void several_threads_may_call_at_once(void **state) {
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        mg_set_threads(threads);
        pthread_t caller[CALLERS];
        static work w[CALLERS];
        for (int i = 0; i < CALLERS; i++) {
            w[i].seed = (uint64_t)i * 1000000;
            assert_int_equal(pthread_create(&caller[i], NULL, call_often, &w[i]), 0);
        }
        for (int round = 0; round < 20; round++) mg_parallel_release(); /* in the middle of it */
        for (int i = 0; i < CALLERS; i++) {
            void *wrong;
            pthread_join(caller[i], &wrong);
            assert_null(wrong);
        }
    }
    mg_set_threads(0);
    mg_parallel_release();
}

typedef struct nest {
    work inner[TILES];
    bool spoilt[TILES];
    int depth;
} nest;

static void deeper_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)tile;
    nest *n = context;
    memset(workspace, 0xff, 300);
    if (--n->depth > 0) mg_parallel(1, deeper_tile, n, 300);
}

/* The inner loop asks for more than the outer one has, and must not touch that. */
static void nest_tile(void *context, ptrdiff_t tile, void *workspace) {
    nest *n = context;
    memset(workspace, (int)tile, 100);
    n->inner[tile].seed = (uint64_t)tile * 100;
    mg_parallel(TILES, churn_tile, &n->inner[tile], sizeof(uint64_t[WORDS]));
    mg_parallel(1, deeper_tile, &(nest){.depth = 3}, 300);
    const unsigned char *kept = workspace;
    for (int i = 0; i < 100; i++) n->spoilt[tile] |= kept[i] != tile;
}

static void loops_nest_at_every_number_of_threads(void **state) {
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        static nest n;
        memset(&n, 0, sizeof n);
        mg_set_threads(threads);
        mg_parallel(TILES, nest_tile, &n, 100);
        for (int i = 0; i < TILES; i++) {
            assert_true(is_right(&n.inner[i]));
            assert_false(n.spoilt[i]);
        }
    }
    mg_set_threads(0);
    mg_parallel_release();
}

static void fail_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    MG_CHECK(tile < *(const ptrdiff_t *)context, "tile %td fails", tile);
}

static void fail_inside(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    if (tile >= 5) mg_parallel(TILES, fail_tile, context, 64);
}

static pthread_t handled_on;
static void note_thread(mg_failure kind, const char *message, void *user) {
    handled_on = pthread_self();
    check_caught(kind, message, user);
}

static void fails(mg_tile_fn *fn, ptrdiff_t first, const char *message) {
    mg_set_failure_handler(note_thread, NULL);
    if (setjmp(check_jump) == 0) {
        mg_parallel(TILES, fn, &first, 64);
        fail_msg("the loop did not fail");
    }
    mg_set_failure_handler(NULL, NULL);
    assert_says(check_message, message);
    assert_true(pthread_equal(handled_on, pthread_self()));
}

static void a_failure_in_a_tile_is_the_same_on_any_number_of_threads(void **state) {
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        mg_set_threads(threads);
        for (int round = 0; round < 50; round++) {
            fails(fail_tile, 7, ": tile 7 fails");
            fails(fail_inside, 3, ": tile 3 fails");
            work w = {.seed = (uint64_t)round}; /* and what comes after is a loop like any other */
            mg_parallel(TILES, churn_tile, &w, sizeof(uint64_t[WORDS]));
            assert_true(is_right(&w));
        }
    }
    mg_set_threads(0);
    mg_parallel_release();
}

static bool refuse;
static void *maybe_allocate(size_t bytes, void *user) {
    (void)user;
    return refuse ? NULL : aligned_alloc(MG_ALIGNMENT, (bytes / MG_ALIGNMENT + 1) * MG_ALIGNMENT);
}
static void release(void *block, void *user) {
    (void)user;
    free(block);
}

static void refuse_inside(void *context, ptrdiff_t tile, void *workspace) {
    (void)tile;
    (void)workspace;
    refuse = true;
    mg_parallel(2, churn_tile, context, 1 << 20);
}

static void no_memory_for_a_workspace_is_a_failure(void **state) {
    (void)state;
    mg_parallel_release();
    mg_set_allocator(&(mg_allocator){maybe_allocate, release, NULL});
    for (int threads = 1; threads <= 3; threads++) {
        work w = {.seed = 1};
        mg_set_threads(threads);
        refuse = true;
        assert_fails(mg_parallel(TILES, churn_tile, &w, 1 << 20), "out of memory: 1048576 bytes for a thread's");
        refuse = false;
        assert_fails(mg_parallel(1, refuse_inside, &w, 0), "a thread's workspace");
        refuse = false;
        mg_parallel(TILES, churn_tile, &w, 1 << 20);
        assert_true(is_right(&w));
        mg_parallel_release();
    }
    mg_set_allocator(NULL);
    mg_set_threads(0);
}

static void release_inside(void *context, ptrdiff_t tile, void *workspace) {
    (void)context;
    (void)tile;
    (void)workspace;
    mg_parallel_release();
}

static void a_tile_does_not_release_its_own_thread(void **state) {
    (void)state;
    assert_fails(mg_parallel(2, release_inside, NULL, 0), "a tile cannot release");
    assert_fails(mg_set_threads(-1), "0 to 256");
    assert_fails(mg_set_threads(257), "0 to 256");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_threads_may_call_at_once),
        cmocka_unit_test(loops_nest_at_every_number_of_threads),
        cmocka_unit_test(a_failure_in_a_tile_is_the_same_on_any_number_of_threads),
        cmocka_unit_test(no_memory_for_a_workspace_is_a_failure),
        cmocka_unit_test(a_tile_does_not_release_its_own_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
