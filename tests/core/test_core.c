#include "gemm.h"
#include "operation.h"
#include "parallel.h"
#include "rng.h"

#include "check.h"

#include <stdlib.h>

static mg_arena *new_arena(void) {
    mg_arena *arena;
    assert_int_equal(mg_arena_new(&arena, NULL), MG_OK);
    return arena;
}

static void rng_is_a_function_of_its_arguments(void **state) {
    (void)state;
    mg_rng rng = {1337, MG_STREAM_TEST, 5};
    assert_true(mg_rng_uniform(rng, 7) == mg_rng_uniform(rng, 7));
    assert_true(mg_rng_uniform(rng, 7) != mg_rng_uniform(rng, 8));
    mg_rng other = {1337, MG_STREAM_TEST, 6};
    assert_true(mg_rng_uniform(rng, 7) != mg_rng_uniform(other, 7));
}

/* Random123's known answer for philox4x32-10: counter and key all zeros. */
static void philox_known_answer(void **state) {
    (void)state;
    uint32_t words[4];
    mg_rng_words((mg_rng){0, 0, 0}, 0, words);
    assert_int_equal(words[0], 0x6627e8d5);
    assert_int_equal(words[1], 0xe169c58d);
    assert_int_equal(words[2], 0xbc57ac4c);
    assert_int_equal(words[3], 0x9b00dbd8);
}

static void moments_of_the_draws(void **state) {
    (void)state;
    enum { N = 100000 };
    mg_rng rng = {1, MG_STREAM_TEST, 0};
    double u = 0, n = 0, n2 = 0, n4 = 0;
    int below[7] = {0};
    for (int i = 0; i < N; i++) {
        double x = mg_rng_normal(rng, (uint64_t)i);
        u += mg_rng_uniform(rng, (uint64_t)i);
        n += x;
        n2 += x * x;
        n4 += x * x * x * x;
        below[mg_rng_below(rng, (uint64_t)i, 7)]++;
    }
    assert_close(u / N, 0.5, 0.004); /* about four standard errors each */
    assert_close(n / N, 0, 0.013);
    assert_close(n2 / N, 1, 0.018);
    assert_close(n4 / N, 3, 0.13);
    for (int i = 0; i < 7; i++) assert_close(below[i], N / 7.0, 450);
    assert_int_equal(mg_rng_below(rng, 3, 1), 0);
}

static void arena_aligns_reuses_and_counts(void **state) {
    (void)state;
    mg_arena *arena = new_arena();
    void *first = NULL;
    size_t requests = 0;
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 100; i++) {
            void *block = mg_arena_alloc(arena, i * 1000 + 1, 3, "a test");
            assert_int_equal((uintptr_t)block % MG_ALIGNMENT, 0);
            if (i == 0 && round == 1) first = block;
            if (i == 0 && round > 1) assert_ptr_equal(block, first);
        }
        mg_arena_reset(arena);
        if (round == 0) requests = mg_allocation_count();
        assert_int_equal(mg_allocation_count(), requests); /* later rounds allocate nothing */
    }
    assert_true(mg_arena_peak(arena) >= 100 * 99 / 2 * 3000);
    assert_fails(mg_arena_alloc(arena, SIZE_MAX / 4, 8, "a huge thing"), "a huge thing");
    mg_arena_free(arena);
}

static size_t bytes_held, most_held;
static void *counting_allocate(size_t bytes, void *user) {
    (void)user;
    size_t *block = aligned_alloc(64, (bytes + 127) / 64 * 64);
    *block = bytes;
    bytes_held += bytes;
    if (bytes_held > most_held) most_held = bytes_held;
    return (char *)block + 64;
}
static void counting_release(void *block, void *user) {
    (void)user;
    bytes_held -= *(size_t *)((char *)block - 64);
    free((char *)block - 64);
}

/* Rounds of ever other sizes, as a text that is read again after each new token: memory follows the need. */
static void an_arena_of_growing_rounds_stays_small(void **state) {
    (void)state;
    mg_set_allocator(&(mg_allocator){counting_allocate, counting_release, NULL});
    mg_arena *arena = new_arena();
    for (size_t round = 1; round <= 300; round++) {
        for (size_t i = 0; i < 40; i++) mg_arena_alloc(arena, round * (i % 7 + 1), 1000, "a test");
        mg_arena_reset(arena);
    }
    assert_true(most_held < 2 * mg_arena_peak(arena));
    mg_arena_free(arena);
    mg_set_allocator(NULL);
    assert_int_equal(bytes_held, 0);
}

static void sizes_are_checked_before_they_are_multiplied(void **state) {
    (void)state;
    mg_error error;
    assert_null(mg_alloc(SIZE_MAX / 2, 16, "a table", &error));
    assert_int_equal(error.status, MG_ERR_MEMORY);
    assert_says(error.message, "a table");
    mg_tape *tape = new_tape();
    ptrdiff_t huge[4] = {1 << 20, 1 << 20, 1 << 20, 1 << 20}, none[1] = {0};
    assert_fails(mg_leaf(tape, 4, huge), "more elements");
    assert_fails(mg_leaf(tape, 1, none), "at least 1");
    mg_tape_free(tape);
}

typedef struct sum {
    int *seen;
} sum;

static void mark(void *context, ptrdiff_t tile, void *workspace) {
    ((sum *)context)->seen[tile]++;
    if (workspace) memset(workspace, 1, 100);
}

static void every_tile_runs_once(void **state) {
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        mg_set_threads(threads);
        for (int n = 0; n < 20; n++) {
            int seen[20] = {0};
            mg_parallel(n, mark, &(sum){seen}, 100);
            for (int i = 0; i < 20; i++) assert_int_equal(seen[i], i < n);
        }
    }
    mg_set_threads(0);
    mg_parallel_release();
    assert_int_equal(mg_tile_count(10, 4), 3);
    assert_int_equal(mg_tile_range(10, 4, 2).begin, 8);
    assert_int_equal(mg_tile_range(10, 4, 2).end, 10);
}

enum { SIDE = 256, PRODUCTS = 12 };

typedef struct products {
    const mg_real *a;
    mg_real *c; /* (PRODUCTS, SIDE, SIDE) */
} products;

static void multiply(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const products *p = context;
    mg_matrix a = {p->a, SIDE, false};
    mg_gemm(SIDE, SIDE, SIDE, 1, a, a, 0, p->c + tile * SIDE * SIDE, SIDE);
}

/* BLAS on a thread of the pool must not start threads of its own: its sums would come in another order. */
static void a_product_has_the_same_bits_on_every_thread(void **state) {
    (void)state;
    mg_real *a = mg_alloc(SIDE * SIDE, sizeof *a, "a matrix", NULL);
    mg_real *c = mg_alloc(PRODUCTS * SIDE * SIDE, sizeof *c, "its products", NULL);
    mg_rng rng = {1, MG_STREAM_TEST, 0};
    for (uint64_t i = 0; i < SIDE * SIDE; i++) a[i] = (mg_real)mg_rng_normal(rng, i);
    for (int threads = 1; threads <= 4; threads++) {
        mg_set_threads(threads);
        mg_parallel(PRODUCTS, multiply, &(products){a, c}, 0);
        for (int i = 1; i < PRODUCTS; i++) assert_memory_equal(c, c + i * SIDE * SIDE, SIDE * SIDE * sizeof(mg_real));
    }
    mg_set_threads(0);
    mg_parallel_release();
    mg_free(a);
    mg_free(c);
}

static void a_rewound_arena_keeps_what_came_before(void **state) {
    (void)state;
    mg_arena *arena = new_arena();
    for (int round = 0; round < 2; round++) {
        unsigned char *kept = mg_arena_alloc(arena, 1000, 1, "kept");
        memset(kept, 7, 1000);
        mg_arena_mark mark = mg_arena_here(arena);
        void *part = NULL;
        for (int i = 0; i < 3; i++) {
            void *block = mg_arena_alloc(arena, 1 << 19, 1, "a part");
            if (i == 0) part = block;
            if (round > 0) assert_ptr_equal(block, part);
            memset(block, i, 1 << 19);
            memset(mg_arena_alloc(arena, 1 << 19, 1, "another"), i, 1 << 19);
            mg_arena_rewind(arena, mark);
        }
        for (int i = 0; i < 1000; i++) assert_int_equal(kept[i], 7);
        size_t requests = mg_allocation_count();
        mg_arena_reset(arena);
        /* The room for the whole round is asked for once, when the first one ends. */
        assert_int_equal(mg_allocation_count() > requests, round == 0);
    }
    mg_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rng_is_a_function_of_its_arguments),
        cmocka_unit_test(philox_known_answer),
        cmocka_unit_test(moments_of_the_draws),
        cmocka_unit_test(arena_aligns_reuses_and_counts),
        cmocka_unit_test(a_rewound_arena_keeps_what_came_before),
        cmocka_unit_test(an_arena_of_growing_rounds_stays_small),
        cmocka_unit_test(sizes_are_checked_before_they_are_multiplied),
        cmocka_unit_test(every_tile_runs_once),
        cmocka_unit_test(a_product_has_the_same_bits_on_every_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
