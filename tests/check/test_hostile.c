/* Memory that runs out, and memory that is poisoned. Every request that training makes is refused once: each refusal
 * ends in a sentence that names what the memory was for and how much it was, and everything can be freed afterwards. */
#include "adamw.h"
#include "causality.h"
#include "kv_cache.h"
#include "operation.h"
#include "parallel.h"

#include "check.h"

#include <stdlib.h>

enum { B = 2, T = 6, V = 7 };

/* ---- An allocator that refuses one request, and knows what is alive ---- */

typedef struct stingy {
    int requests, refuse; /* the number of the request to refuse; -1: none */
    int alive;
} stingy;

static void *stingy_allocate(size_t bytes, void *user) {
    stingy *s = user;
    if (s->requests++ == s->refuse) return NULL;
    s->alive++;
    size_t rounded = (bytes + MG_ALIGNMENT - 1) / MG_ALIGNMENT * MG_ALIGNMENT;
    return aligned_alloc(MG_ALIGNMENT, rounded ? rounded : MG_ALIGNMENT);
}

static void stingy_release(void *block, void *user) {
    ((stingy *)user)->alive--;
    free(block);
}

/* ---- What is refused ---- */

/* Everything that a scenario makes, so that it can be freed from outside when a refusal jumps out of the middle. */
typedef struct belongings {
    mg_tape *tape;
    mg_gpt *gpt;
    mg_adamw *adamw;
    mg_kv_cache *cache;
    mg_causality causality;
    mg_params *params;
} belongings;

typedef mg_status scenario_fn(belongings *own, mg_error *error);

static const int ids[B * T] = {3, 1, 4, 1, 5, 2, 2, 6, 5, 3, 5, 0};

static mg_status make_model(belongings *own, bool dropout, mg_error *error) {
    mg_gpt_config config = {0};
    config.n_head = 2;
    config.n_embd = 8;
    config.block_size = T;
    config.vocab_size = V;
    config.dropout = dropout ? 0.1 : 0;
    mg_tape_new(&own->tape, error);
    if (!own->tape) return MG_ERR_MEMORY;
    return mg_gpt_new(&own->gpt, &config, 1, error);
}

static mg_status train(belongings *own, mg_error *error) {
    mg_status status = make_model(own, true, error);
    if (status == MG_OK) status = mg_adamw_new(&own->adamw, mg_gpt_params(own->gpt), 0.9, 0.95, 0.1, error);
    if (status != MG_OK) return status;
    for (uint32_t step = 0; step < 2; step++) {
        mg_gpt_pass pass = {.training = true, .dropout_seed = 1, .dropout_step = step};
        mg_backward(own->tape, mg_gpt_loss(own->gpt, own->tape, ids, ids, B, T, &pass, NULL));
        mg_adamw_step(own->adamw, mg_gpt_params(own->gpt), 1e-3, 1);
        mg_tape_reset(own->tape);
    }
    return MG_OK;
}

static mg_status generate(belongings *own, mg_error *error) {
    mg_status status = make_model(own, false, error);
    if (status == MG_OK) status = mg_kv_cache_new(&own->cache, mg_gpt_get_config(own->gpt), error);
    if (status != MG_OK) return status;
    mg_tape_record(own->tape, false);
    mg_gpt_pass pass = {.cache = &own->cache, .last_only = true};
    mg_gpt_forward(own->gpt, own->tape, ids, 1, T - 1, &pass);
    mg_gpt_forward(own->gpt, own->tape, ids, 1, 1, &pass);
    return MG_OK;
}

/* A tape that grows chunk after chunk, of which any may be refused. */
static mg_status grow(belongings *own, mg_error *error) {
    const mg_param_spec specs[] = {{"a", 2, {64, 64}}, {"b", 1, {64}}};
    mg_tape_new(&own->tape, error);
    if (!own->tape || mg_params_new(&own->params, 2, specs, true, error) != MG_OK) return MG_ERR_MEMORY;
    mg_tensor *x = &own->params->param[0].tensor;
    for (int i = 0; i < 200; i++) x = mg_gelu(own->tape, mg_linear(own->tape, x, x, NULL));
    mg_backward(own->tape, mg_sum(own->tape, x, MG_ALL_AXES));
    return MG_OK;
}

static void free_all(belongings *own) {
    mg_causality_free(&own->causality);
    mg_kv_cache_free(own->cache);
    mg_adamw_free(own->adamw);
    mg_params_free(own->params);
    mg_gpt_free(own->gpt);
    mg_tape_free(own->tape);
    mg_parallel_release();
}

static mg_failure failed_as;

static void jump_out(mg_failure kind, const char *message, void *user) {
    (void)user;
    failed_as = kind;
    snprintf(check_message, sizeof check_message, "%s", message);
    longjmp(check_jump, 1);
}

/* Runs it with one request refused; whether there was such a request. */
static bool refuse(scenario_fn *scenario, int number) {
    static belongings own; /* static: it keeps its values over the jump */
    static mg_error error;
    static stingy s;
    static mg_status status;
    own = (belongings){0};
    s = (stingy){.refuse = number};
    mg_parallel_release();
    mg_set_allocator(&(mg_allocator){stingy_allocate, stingy_release, &s});
    mg_set_failure_handler(jump_out, NULL);
    if (setjmp(check_jump) == 0) {
        status = scenario(&own, &error);
        snprintf(check_message, sizeof check_message, "%s", status == MG_OK ? "" : error.message);
    } else {
        status = MG_ERR_MEMORY;
        assert_int_equal(failed_as, MG_FAILURE_MEMORY);
    }
    mg_set_failure_handler(NULL, NULL);
    free_all(&own);
    mg_set_allocator(NULL);
    assert_int_equal(s.alive, 0);
    if (number < 0 || s.requests <= number) {
        assert_int_equal(status, MG_OK);
        return false;
    }
    if (status != MG_ERR_MEMORY) fail_msg("request %d was refused, and nobody said so", number);
    unsigned long bytes;
    char what[64];
    const char *sentence = strstr(check_message, "out of memory: ");
    if (!sentence || sscanf(sentence, "out of memory: %lu bytes for %63[^\n]", &bytes, what) != 2 || bytes == 0)
        fail_msg("request %d: \"%s\" does not say how much was asked for what", number, check_message);
    return true;
}

static void check_scenario(scenario_fn *scenario, int at_least) {
    int requests = 0;
    while (refuse(scenario, requests)) requests++;
    if (requests < at_least) fail_msg("only %d requests", requests);
    assert_false(refuse(scenario, -1)); /* and afterwards it works */
}

static void training_says_what_it_lacks(void **state) {
    (void)state;
    mg_set_threads(2);
    check_scenario(train, 12);
    mg_set_threads(0);
}

static void generating_says_what_it_lacks(void **state) {
    (void)state;
    check_scenario(generate, 12);
}

static void a_growing_tape_says_what_it_lacks(void **state) {
    (void)state;
    check_scenario(grow, 10);
}

/* The checks of lib/check return MG_ERR_MEMORY for what they ask for themselves. */
static mg_status check_itself(belongings *own, mg_error *error) {
    mg_status status = make_model(own, false, error);
    return status == MG_OK ? mg_causality_of_gpt(&own->causality, own->gpt, ids, T, error) : status;
}

static void the_causality_check_says_what_it_lacks(void **state) {
    (void)state;
    /* After these come requests of operations inside the check, which go to the handler: see causality.h. */
    enum { BEFORE_THE_FIRST_OPERATION = 12 };
    for (int number = 0; number < BEFORE_THE_FIRST_OPERATION; number++) assert_true(refuse(check_itself, number));
}

/* ---- Sizes ---- */

static void sizes_are_checked_before_they_are_multiplied(void **state) {
    (void)state;
    mg_error error;
    assert_null(mg_alloc(SIZE_MAX / 2, 4, "a giant", &error));
    assert_int_equal(error.status, MG_ERR_MEMORY);
    assert_says(error.message, "a giant");
    mg_gpt_config config = {0};
    config.vocab_size = 1 << 24;
    config.n_embd = 1 << 16;
    mg_gpt *gpt;
    assert_int_equal(mg_gpt_new(&gpt, &config, 1, &error), MG_ERR_INPUT);
    assert_null(gpt);
    assert_says(error.message, "parameters");
    mg_tape *tape = new_tape();
    assert_fails(mg_constant(tape, 3, (ptrdiff_t[]){1 << 30, 1 << 30, 1 << 30}), "more elements than memory can");
    mg_tape_free(tape);
}

/* ---- Poison ---- */

static void fresh_memory_is_poisoned(void **state) {
    (void)state;
#ifdef MG_HOSTILE
    mg_real *block = mg_alloc(100, sizeof *block, "a test", NULL);
    for (int i = 0; i < 100; i++) assert_true(isnan(block[i]));
    mg_free(block);
    mg_tape *tape = new_tape();
    for (int round = 0; round < 2; round++) {
        mg_tensor *x = mg_tape_output(tape, 1, (ptrdiff_t[]){100});
        for (int i = 0; i < 100; i++) {
            assert_true(isnan(x->data[i]));
            x->data[i] = 1;
        }
        mg_tape_reset(tape);
    }
    mg_tape_free(tape);
#else
    print_message("this build does not poison memory: configure with MASKGRAD_HOSTILE\n");
    skip();
#endif
}

/* With poison everywhere, a training step leaves only finite numbers: nothing is read before it is written. */
static void training_reads_nothing_unwritten(void **state) {
    (void)state;
    belongings own = {0};
    mg_error error;
    assert_int_equal(train(&own, &error), MG_OK);
    const mg_params *params = mg_gpt_params(own.gpt);
    for (ptrdiff_t i = 0; i < params->size; i++)
        if (!isfinite(params->values[i]) || params->grads[i] != 0)
            fail_msg("place %td is %g", i, (double)params->values[i]);
    free_all(&own);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_says_what_it_lacks),
        cmocka_unit_test(generating_says_what_it_lacks),
        cmocka_unit_test(a_growing_tape_says_what_it_lacks),
        cmocka_unit_test(the_causality_check_says_what_it_lacks),
        cmocka_unit_test(sizes_are_checked_before_they_are_multiplied),
        cmocka_unit_test(fresh_memory_is_poisoned),
        cmocka_unit_test(training_reads_nothing_unwritten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
