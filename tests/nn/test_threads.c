/* Several threads, each with its own tape and model, as the documentation allows: the same bits as one after the other.
 */
#include "adamw.h"
#include "gpt.h"
#include "parallel.h"

#include "check.h"

#include <pthread.h>

enum { THREADS = 3, STEPS = 6, B = 4, T = 16, V = 11 };

typedef struct learner {
    uint64_t seed;
    mg_gpt *gpt;
} learner;

static void *learn(void *argument) {
    learner *l = argument;
    mg_gpt_config config = {0};
    config.n_embd = 32;
    config.block_size = T;
    config.vocab_size = V;
    config.dropout = 0.1;
    mg_tape *tape = new_tape();
    mg_adamw *adamw;
    if (mg_gpt_new(&l->gpt, &config, l->seed, NULL)) return NULL;
    if (mg_adamw_new(&adamw, mg_gpt_params(l->gpt), 0.9, 0.99, 0.1, NULL)) return NULL;
    for (uint32_t step = 0; step < STEPS; step++) {
        int ids[B * T], targets[B * T];
        for (uint64_t i = 0; i < B * T; i++) {
            ids[i] = (int)mg_rng_below((mg_rng){l->seed, MG_STREAM_TEST, step}, i, V);
            targets[i] = (ids[i] + 1) % V;
        }
        mg_gpt_pass pass = {.training = true, .dropout_seed = l->seed, .dropout_step = step};
        mg_backward(tape, mg_gpt_loss(l->gpt, tape, ids, targets, B, T, &pass, NULL));
        mg_adamw_step(adamw, mg_gpt_params(l->gpt), 1e-2, 1);
        mg_tape_reset(tape);
    }
    mg_adamw_free(adamw);
    mg_tape_free(tape);
    return l;
}

static void each_thread_trains_a_model_of_its_own(void **state) {
    (void)state;
    learner alone[THREADS], together[THREADS];
    for (int i = 0; i < THREADS; i++) {
        alone[i] = together[i] = (learner){(uint64_t)i, NULL};
        assert_non_null(learn(&alone[i]));
    }
    for (int threads = 1; threads <= 3; threads++) {
        pthread_t thread[THREADS];
        mg_set_threads(threads);
        for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&thread[i], NULL, learn, &together[i]), 0);
        for (int i = 0; i < THREADS; i++) {
            void *done;
            pthread_join(thread[i], &done);
            assert_non_null(done);
            const mg_params *a = mg_gpt_params(alone[i].gpt), *b = mg_gpt_params(together[i].gpt);
            assert_memory_equal(a->values, b->values, (size_t)a->size * sizeof(mg_real));
            mg_gpt_free(together[i].gpt);
        }
    }
    for (int i = 0; i < THREADS; i++) mg_gpt_free(alone[i].gpt);
    mg_set_threads(0);
    mg_parallel_release();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_thread_trains_a_model_of_its_own)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
