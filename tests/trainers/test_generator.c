/* Generating with and without a cache, to the context's edge and past it. */
#include "fixture.h"
#include "generator.h"

enum { BLOCK = 8, FAR = 30 };

static mg_trainer *trained(mg_corpus **corpus) {
    *corpus = fixture_corpus();
    mg_train_options options = fixture_options();
    mg_trainer *trainer = fixture_trainer(&options, *corpus);
    for (int i = 0; i < 20; i++) fixture_step(trainer);
    return trainer;
}

/* Evaluate it as if its sentences were documents, which leave a full window when they have ended. */
static void see_documents(mg_trainer *trainer, const mg_corpus *corpus) {
    mg_gpt_config seen = *mg_gpt_get_config(mg_trainer_model(trainer));
    seen.documents = true;
    assert_ok(mg_corpus_document_end(corpus, &seen.document_end, &fixture_error));
    mg_gpt_see_as(mg_trainer_model(trainer), &seen);
}

static mg_generator *generator_for(mg_trainer *trainer, bool cache) {
    mg_generator *generator;
    assert_ok(mg_generator_new(&generator, mg_trainer_model(trainer), 33, cache, &fixture_error));
    return generator;
}

static void assert_same_logits(mg_generator *a, mg_generator *b) {
    for (int i = 0; i < 33; i++) assert_close(mg_generator_logits(a)[i], mg_generator_logits(b)[i], 1e-4);
}

static void assert_cached_is_uncached(mg_trainer *trainer, const mg_corpus *corpus) {
    mg_generator *cached = generator_for(trainer, true), *plain = generator_for(trainer, false);
    for (ptrdiff_t length = 1; length <= BLOCK + 2; length++) {
        mg_generator_prompt(cached, corpus->ids, length);
        mg_generator_prompt(plain, corpus->ids, length);
        assert_same_logits(cached, plain);
        for (ptrdiff_t i = length; i < FAR; i++) {
            mg_generator_append(cached, corpus->ids[i]);
            mg_generator_append(plain, corpus->ids[i]);
            assert_same_logits(cached, plain);
        }
    }
    mg_generator_free(cached);
    mg_generator_free(plain);
}

static void test_cached_is_uncached(void **state) {
    (void)state;
    mg_corpus *corpus;
    mg_trainer *trainer = trained(&corpus);
    assert_cached_is_uncached(trainer, corpus);
    see_documents(trainer, corpus);
    assert_cached_is_uncached(trainer, corpus);
    mg_trainer_free(trainer);
    mg_corpus_free(corpus);
}

/* What the window is: the last block of tokens, computed on its own. */
static void test_the_window_slides_by_one(void **state) {
    (void)state;
    mg_corpus *corpus;
    mg_trainer *trainer = trained(&corpus);
    mg_generator *cached = generator_for(trainer, true), *fresh = generator_for(trainer, false);
    mg_generator_prompt(cached, corpus->ids, 1);
    for (ptrdiff_t i = 1; i < FAR; i++) {
        mg_generator_append(cached, corpus->ids[i]);
        ptrdiff_t length = i + 1 < BLOCK ? i + 1 : BLOCK;
        mg_generator_prompt(fresh, corpus->ids + i + 1 - length, length);
        assert_same_logits(cached, fresh);
    }
    mg_generator_free(cached);
    mg_generator_free(fresh);
    mg_trainer_free(trainer);
    mg_corpus_free(corpus);
}

typedef struct text {
    int ids[FAR];
    int n, limit;
} text;

static bool collect(int id, void *user) {
    text *t = user;
    t->ids[t->n++] = id;
    return t->n < t->limit;
}

static text sample(mg_generator *generator, uint64_t seed, uint32_t number, int limit) {
    text t = {.limit = limit};
    mg_sampler sampler = {.temperature = 1, .top_p = 1};
    assert_ok(mg_generate(generator, &sampler, seed, number, FAR, collect, &t, &fixture_error));
    return t;
}

static void test_samples_repeat_and_differ(void **state) {
    (void)state;
    mg_corpus *corpus;
    mg_trainer *trainer = trained(&corpus);
    mg_generator *cached = generator_for(trainer, true), *plain = generator_for(trainer, false);
    mg_generator_prompt(cached, corpus->ids, 3);
    mg_generator_prompt(plain, corpus->ids, 3);
    text one = sample(cached, 5, 0, FAR), other = sample(cached, 5, 1, FAR), again = sample(cached, 5, 0, FAR),
         uncached = sample(plain, 5, 0, FAR), seed = sample(cached, 6, 0, FAR), cut = sample(cached, 5, 0, 4);
    assert_int_equal(one.n, FAR);
    assert_memory_equal(one.ids, again.ids, sizeof one.ids);
    assert_memory_equal(one.ids, uncached.ids, sizeof one.ids);
    assert_memory_not_equal(one.ids, other.ids, sizeof one.ids);
    assert_memory_not_equal(one.ids, seed.ids, sizeof one.ids);
    assert_int_equal(cut.n, 4); /* the callback ends it */
    assert_memory_equal(one.ids, cut.ids, 4 * sizeof(int));
    mg_generator_free(cached);
    mg_generator_free(plain);
    mg_trainer_free(trainer);
    mg_corpus_free(corpus);
}

/* ---- Many samples at once ---- */

enum { MANY = 70 /* more than there are seats */ };

typedef struct texts {
    text text[MANY];
    uint32_t first;
    bool all_in_range;
} texts;

/* Samples end at different lengths: where the limit is, and some at a token. */
static bool collect_some(uint32_t sample, int id, void *user) {
    texts *all = user;
    uint32_t i = sample - all->first;
    if (i >= MANY) return all->all_in_range = false;
    return collect(id, &all->text[i]);
}

static void assert_same_as_alone(mg_trainer *trainer, mg_corpus *corpus, bool cache, ptrdiff_t prompt) {
    mg_generator *together = generator_for(trainer, cache), *alone = generator_for(trainer, cache);
    mg_generator_prompt(together, corpus->ids, prompt);
    mg_generator_prompt(alone, corpus->ids, prompt);
    const mg_sampler sampler = {.temperature = 1};
    for (int n_samples = 1; n_samples <= MANY; n_samples += 23) {
        texts all = {.first = 100, .all_in_range = true};
        for (int i = 0; i < MANY; i++) all.text[i].limit = i % 3 == 0 ? FAR : 1 + i % 11;
        assert_ok(
            mg_generate_samples(together, &sampler, 5, all.first, n_samples, FAR, collect_some, &all, &fixture_error));
        assert_true(all.all_in_range);
        for (int i = 0; i < MANY; i++) {
            text one = {0};
            if (i < n_samples) one = sample(alone, 5, all.first + (uint32_t)i, all.text[i].limit);
            assert_int_equal(all.text[i].n, one.n);
            assert_memory_equal(all.text[i].ids, one.ids, (size_t)one.n * sizeof(int));
        }
    }
    int ids[3 * FAR];
    assert_ok(mg_generate_samples_ids(together, &sampler, 5, 7, 3, FAR, ids, &fixture_error));
    for (uint32_t i = 0; i < 3; i++)
        assert_memory_equal(ids + i * FAR, sample(alone, 5, 7 + i, FAR).ids, FAR * sizeof(int));
    mg_generator_free(together);
    mg_generator_free(alone);
}

static void test_samples_side_by_side_are_those_drawn_alone(void **state) {
    (void)state;
    mg_corpus *corpus;
    mg_trainer *trainer = trained(&corpus);
    for (ptrdiff_t prompt = 1; prompt <= BLOCK + 2; prompt += 3)
        for (int cache = 0; cache < 2; cache++) assert_same_as_alone(trainer, corpus, cache, prompt);
    see_documents(trainer, corpus);
    for (int cache = 0; cache < 2; cache++) assert_same_as_alone(trainer, corpus, cache, BLOCK);
    mg_trainer_free(trainer);
    mg_corpus_free(corpus);
}

static void test_samples_of_nothing_and_of_nan(void **state) {
    (void)state;
    mg_corpus *corpus;
    mg_trainer *trainer = trained(&corpus);
    mg_generator *generator = generator_for(trainer, true);
    const mg_sampler sampler = {.temperature = 1};
    texts all = {.all_in_range = true};
    assert_operation_fails(mg_generate_samples(generator, &sampler, 1, 0, 2, 3, collect_some, &all, NULL), "generator",
                           "no prompt yet");
    mg_generator_prompt(generator, corpus->ids, 1);
    assert_ok(mg_generate_samples(generator, &sampler, 1, 0, 0, 3, collect_some, &all, &fixture_error));
    assert_ok(mg_generate_samples(generator, &sampler, 1, 0, 3, 0, collect_some, &all, &fixture_error));
    assert_int_equal(all.text[0].n, 0);
    assert_operation_fails(mg_generate_samples(generator, &sampler, 1, 0, -1, 3, collect_some, &all, NULL), "generator",
                           "-1 samples");
    mg_gpt_params(mg_trainer_model(trainer))->param[3].tensor.data[0] = (mg_real)NAN;
    mg_generator_prompt(generator, corpus->ids, 1);
    assert_int_equal(mg_generate_samples(generator, &sampler, 1, 0, 3, 4, collect_some, &all, &fixture_error),
                     MG_ERR_STATE);
    assert_says(fixture_error.message, "holds NaN or infinity");
    mg_generator_free(generator);
    mg_trainer_free(trainer);
    mg_corpus_free(corpus);
}

static void test_padding_is_never_drawn(void **state) {
    (void)state;
    mg_corpus *corpus = fixture_corpus();
    mg_train_options options = fixture_options();
    options.model.vocab_size = 64; /* the tokenizer has 33 */
    mg_trainer *trainer = fixture_trainer(&options, corpus);
    mg_generator *generator = generator_for(trainer, true);
    mg_generator_prompt(generator, corpus->ids, 1);
    for (uint32_t number = 0; number < 20; number++) {
        text t = sample(generator, 1, number, FAR);
        for (int i = 0; i < t.n; i++) assert_true(t.ids[i] < 33);
    }
    mg_generator_free(generator);
    mg_trainer_free(trainer);
    mg_corpus_free(corpus);
}

/* A prompt that goes through the cache in parts, since a pass over all of it would take more memory than the model. */
static void test_a_long_prompt_of_a_deep_model(void **state) {
    (void)state;
    enum { LENGTH = 75 };
    mg_gpt_config config = {0};
    config.n_layer = 500;
    config.n_head = 1;
    config.n_embd = 16;
    config.block_size = 80;
    config.vocab_size = 33;
    mg_gpt *gpt;
    mg_generator *cached, *plain;
    assert_ok(mg_gpt_new(&gpt, &config, 1, &fixture_error));
    assert_ok(mg_generator_new(&cached, gpt, 33, true, &fixture_error));
    assert_ok(mg_generator_new(&plain, gpt, 33, false, &fixture_error));
    int ids[LENGTH];
    for (int i = 0; i < LENGTH; i++) ids[i] = i * 7 % 33;
    mg_generator_prompt(cached, ids, LENGTH);
    mg_generator_prompt(plain, ids, LENGTH);
    assert_same_logits(cached, plain);
    mg_generator_append(cached, 1);
    mg_generator_append(plain, 1);
    assert_same_logits(cached, plain);
    mg_generator_free(cached);
    mg_generator_free(plain);
    mg_gpt_free(gpt);
}

static void test_a_model_that_looks_ahead_has_no_cache(void **state) {
    (void)state;
    mg_corpus *corpus = fixture_corpus();
    mg_train_options options = fixture_options();
    options.model.mask = mg_lookahead(1);
    mg_trainer *trainer = fixture_trainer(&options, corpus);
    mg_generator *generator;
    assert_int_equal(mg_generator_new(&generator, mg_trainer_model(trainer), 33, true, &fixture_error), MG_ERR_STATE);
    assert_null(generator);
    assert_says(fixture_error.message, "looks ahead");
    generator = generator_for(trainer, false);
    mg_generator_prompt(generator, corpus->ids, 3);
    assert_int_equal(sample(generator, 1, 0, FAR).n, FAR);
    mg_generator_free(generator);
    mg_trainer_free(trainer);
    mg_corpus_free(corpus);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cached_is_uncached),
        cmocka_unit_test(test_the_window_slides_by_one),
        cmocka_unit_test(test_samples_repeat_and_differ),
        cmocka_unit_test(test_samples_side_by_side_are_those_drawn_alone),
        cmocka_unit_test(test_samples_of_nothing_and_of_nan),
        cmocka_unit_test(test_padding_is_never_drawn),
        cmocka_unit_test(test_a_long_prompt_of_a_deep_model),
        cmocka_unit_test(test_a_model_that_looks_ahead_has_no_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
