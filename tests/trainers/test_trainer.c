/* A run in memory: what may change its numbers, and what may not. */
#include "fixture.h"
#include "parallel.h"
#include "train_settings.h"

#include <stdlib.h>
#include <unistd.h>

static void assert_same_weights(mg_trainer *a, mg_trainer *b) {
    const mg_params *p = mg_gpt_params(mg_trainer_model(a)), *q = mg_gpt_params(mg_trainer_model(b));
    assert_int_equal(p->size, q->size);
    assert_memory_equal(p->values, q->values, (size_t)p->size * sizeof *p->values);
}

static void test_it_learns(void **state) {
    (void)state;
    mg_corpus *corpus = fixture_corpus();
    mg_train_options options = fixture_options();
    options.max_iters = 200;
    mg_trainer *trainer = fixture_trainer(&options, corpus);
    mg_evaluation before, after;
    assert_ok(mg_trainer_evaluate(&before, trainer, MG_VALIDATION, 8, NULL, &fixture_error));
    for (int i = 0; i < 200; i++) fixture_step(trainer);
    assert_ok(mg_trainer_evaluate(&after, trainer, MG_VALIDATION, 8, NULL, &fixture_error));
    assert_close(before.loss, log(33), 0.1); /* a new model guesses */
    assert_less(after.loss, before.loss - 1);
    assert_less(after.floor, after.loss);
    assert_close(before.floor, after.floor, 0); /* the same windows */
    mg_evaluation_free(&before);
    mg_evaluation_free(&after);
    mg_trainer_free(trainer);
    mg_corpus_free(corpus);
}

static void test_micro_batches_make_the_same_step(void **state) {
    (void)state;
    mg_corpus *corpus = fixture_corpus();
    mg_train_options whole = fixture_options(), parts = whole;
    whole.batch_size = 12;
    parts.batch_size = 4;
    parts.grad_accum = 3;
    whole.grad_clip = parts.grad_clip = 0.1; /* so that clipping has something to do */
    mg_trainer *a = fixture_trainer(&whole, corpus), *b = fixture_trainer(&parts, corpus);
    for (int i = 0; i < 3; i++) {
        mg_step of_whole, of_parts;
        assert_ok(mg_trainer_step(a, &of_whole, &fixture_error));
        assert_ok(mg_trainer_step(b, &of_parts, &fixture_error));
        assert_close(of_whole.loss, of_parts.loss, 1e-5);
        assert_close(of_whole.grad_norm, of_parts.grad_norm, 1e-4);
        assert_true(of_whole.grad_norm > 0.1);
        assert_int_equal(of_whole.tokens, of_parts.tokens);
    }
    mg_trainer_free(a);
    mg_trainer_free(b);
    mg_corpus_free(corpus);
}

static void test_evaluating_changes_nothing(void **state) {
    (void)state;
    mg_corpus *corpus = fixture_corpus();
    mg_train_options options = fixture_options();
    options.model.dropout = 0.2;
    mg_trainer *often = fixture_trainer(&options, corpus), *never = fixture_trainer(&options, corpus);
    for (int i = 0; i < 5; i++) {
        mg_evaluation one, two;
        assert_ok(mg_trainer_evaluate(&one, often, MG_VALIDATION, 2, NULL, &fixture_error));
        assert_ok(mg_trainer_evaluate(&two, often, MG_VALIDATION, 2, NULL, &fixture_error));
        assert_memory_equal(one.position_loss, two.position_loss, (size_t)one.n_positions * sizeof(double));
        mg_evaluation_free(&one);
        mg_evaluation_free(&two);
        assert_close(fixture_step(often), fixture_step(never), 0);
    }
    assert_same_weights(often, never);
    mg_trainer_free(often);
    mg_trainer_free(never);
    mg_corpus_free(corpus);
}

static void test_threads_change_nothing(void **state) {
    (void)state;
    mg_corpus *corpus = fixture_corpus();
    mg_train_options options = fixture_options();
    mg_trainer *one = fixture_trainer(&options, corpus), *three = fixture_trainer(&options, corpus);
    mg_set_threads(1);
    for (int i = 0; i < 5; i++) fixture_step(one);
    mg_set_threads(3);
    for (int i = 0; i < 5; i++) fixture_step(three);
    mg_set_threads(0);
    assert_same_weights(one, three);
    mg_trainer_free(one);
    mg_trainer_free(three);
    mg_corpus_free(corpus);
}

static void test_masks_begin_alike(void **state) {
    (void)state;
    mg_corpus *corpus = fixture_corpus();
    mg_train_options causal = fixture_options(), none = causal;
    none.model.mask = mg_lookahead(MG_LOOKAHEAD_ALL);
    mg_trainer *a = fixture_trainer(&causal, corpus), *b = fixture_trainer(&none, corpus);
    assert_same_weights(a, b);
    fixture_step(a);
    fixture_step(b);
    const mg_params *p = mg_gpt_params(mg_trainer_model(a)), *q = mg_gpt_params(mg_trainer_model(b));
    assert_memory_not_equal(p->values, q->values, (size_t)p->size * sizeof *p->values);
    mg_trainer_free(a);
    mg_trainer_free(b);
    mg_corpus_free(corpus);
}

/* A checkpoint view copied into a second trainer: uninterrupted = resumed, and not = only the weights. */
static void test_restored_goes_on(void **state) {
    (void)state;
    mg_corpus *corpus = fixture_corpus();
    mg_train_options options = fixture_options();
    mg_trainer *first = fixture_trainer(&options, corpus), *resumed = fixture_trainer(&options, corpus),
               *cold = fixture_trainer(&options, corpus);
    for (int i = 0; i < 7; i++) fixture_step(first);
    mg_checkpoint checkpoint = mg_trainer_checkpoint(first);
    assert_ok(mg_trainer_restore(resumed, &checkpoint, &fixture_error));
    assert_ok(mg_trainer_take_weights(cold, &checkpoint, &fixture_error));
    assert_int_equal(mg_trainer_steps_done(resumed), 7);
    assert_int_equal(mg_trainer_steps_done(cold), 0);
    for (int i = 0; i < 7; i++) {
        assert_close(fixture_step(first), fixture_step(resumed), 0);
        fixture_step(cold);
    }
    assert_same_weights(first, resumed);
    const mg_params *p = mg_gpt_params(mg_trainer_model(first)), *q = mg_gpt_params(mg_trainer_model(cold));
    assert_memory_not_equal(p->values, q->values, (size_t)p->size * sizeof *p->values);
    mg_trainer_free(first);
    mg_trainer_free(resumed);
    mg_trainer_free(cold);
    mg_corpus_free(corpus);
}

/* Each setting that defines a run, with another value than the first run's. */
static const char *const other_values[][2] = {
    {"n-layer", "3"},
    {"n-head", "4"},
    {"n-embd", "32"},
    {"block-size", "7"},
    {"dropout", "0.1"},
    {"init-std", "0.03"},
    {"lookahead", "1"},
    {"attn-init-std", "1"},
    {"leak", "0.1:3"},
    {"no-scale", "false"},
    {"no-output-projection", "false"},
    {"no-positions", "false"},
    {"batch-size", "5"},
    {"grad-accum", "2"},
    {"lr", "0.02"},
    {"min-lr", "0.0005"},
    {"warmup-iters", "3"},
    {"lr-decay-iters", "9"},
    {"weight-decay", "0.2"},
    {"beta1", "0.8"},
    {"beta2", "0.999"},
    {"grad-clip", "0.5"},
    {"seed", "1338"},
};
enum { N_OTHER_VALUES = sizeof other_values / sizeof *other_values };

static const char *other_value(const char *name) {
    for (int i = 0; i < N_OTHER_VALUES; i++)
        if (strcmp(other_values[i][0], name) == 0) return other_values[i][1];
    fail_msg("no other value for the setting %s: a checkpoint that differs in it would pass for the run's", name);
    return NULL;
}

static void refuses(const mg_corpus *corpus, const mg_checkpoint *checkpoint, const mg_train_options *options,
                    const char *name) {
    mg_trainer *trainer = fixture_trainer(options, corpus);
    assert_int_equal(mg_trainer_restore(trainer, checkpoint, &fixture_error), MG_ERR_INPUT);
    assert_says(fixture_error.message, name);
    assert_int_equal(mg_trainer_steps_done(trainer), 0);
    mg_trainer_free(trainer);
}

/* RMSprop's first moment and a sign step are settings, too: a 0 that is meant is not replaced. */
static void test_betas_may_be_0(void **state) {
    (void)state;
    mg_corpus *corpus = fixture_corpus();
    mg_train_options options = {.betas_are_set = true, .beta2 = 0.5};
    mg_trainer *trainer = fixture_trainer(&options, corpus);
    double loss = fixture_step(trainer);
    const mg_adamw *adamw = mg_trainer_checkpoint(trainer).adamw;
    assert_true(adamw->beta1 == 0 && adamw->beta2 == 0.5);
    for (int i = 1; i < 20; i++) fixture_step(trainer);
    assert_less(fixture_step(trainer), 0.9 * loss);
    mg_trainer_free(trainer);
    mg_corpus_free(corpus);
}

/* The checkpoint comes from a file: what defines a run is in it, each setting. */
static void test_another_runs_checkpoint_is_refused(void **state) {
    (void)state;
    mg_corpus *corpus = fixture_corpus();
    mg_train_options options = fixture_options();
    mg_train_options_fill(&options);
    options.model.leak_layer = options.model.leak_head = 0; /* a leak to differ from */
    options.model.leak_lookahead = 1;
    mg_trainer *first = fixture_trainer(&options, corpus), *same = fixture_trainer(&options, corpus);
    fixture_step(first);
    char path[] = "/tmp/maskgrad-test-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    mg_checkpoint saved = mg_trainer_checkpoint(first), loaded;
    assert_ok(mg_checkpoint_save(path, &saved, &fixture_error));
    assert_ok(mg_checkpoint_load(&loaded, path, true, &fixture_error));
    close(file);
    unlink(path);
    assert_ok(mg_trainer_restore(same, &loaded, &fixture_error));

    mg_setting_cursor at = {0};
    int n = 0;
    for (const mg_setting *s; (s = mg_setting_next(&at, mg_train_settings));) {
        mg_train_options other = options;
        if (s->role != MG_ROLE_FIXED) continue;
        assert_ok(mg_setting_set(s, (char *)&other + at.base, other_value(s->name), &fixture_error));
        refuses(corpus, &loaded, &other, s->name);
        n++;
    }
    assert_int_equal(n, N_OTHER_VALUES);

    mg_adamw *adamw = loaded.adamw;
    loaded.adamw = NULL;
    refuses(corpus, &loaded, &options, "optimizer");
    loaded.adamw = adamw;
    loaded.train.data_hash++;
    refuses(corpus, &loaded, &options, "data");
    mg_checkpoint_free(&loaded);
    mg_trainer_free(first);
    mg_trainer_free(same);
    mg_corpus_free(corpus);
}

static void test_nan_stops_before_the_update(void **state) {
    (void)state;
    mg_corpus *corpus = fixture_corpus();
    mg_train_options options = fixture_options();
    mg_trainer *trainer = fixture_trainer(&options, corpus);
    fixture_step(trainer);
    mg_params *params = mg_gpt_params(mg_trainer_model(trainer));
    mg_real held = params->values[0];
    params->values[0] = (mg_real)NAN;
    mg_real second = params->values[1];
    mg_step step;
    assert_int_equal(mg_trainer_step(trainer, &step, &fixture_error), MG_ERR_STATE);
    assert_says(fixture_error.message, "step 1");
    assert_says(fixture_error.message, "not a number");
    assert_int_equal(mg_trainer_steps_done(trainer), 1);
    assert_true(params->values[1] == second);
    params->values[0] = held; /* nothing of the bad step is left: the run continues as if it had not happened */
    mg_trainer *other = fixture_trainer(&options, corpus);
    fixture_step(other);
    assert_close(fixture_step(trainer), fixture_step(other), 0);
    assert_same_weights(trainer, other);
    mg_trainer_free(trainer);
    mg_trainer_free(other);
    mg_corpus_free(corpus);
}

/* Not a lower rate, but the file is to blame: the culprit is named, and nothing is learned from it. */
static void test_weights_that_are_no_numbers(void **state) {
    (void)state;
    mg_corpus *corpus = fixture_corpus();
    mg_train_options options = fixture_options();
    mg_trainer *spoiled = fixture_trainer(&options, corpus), *fresh = fixture_trainer(&options, corpus);
    mg_params *params = mg_gpt_params(mg_trainer_model(spoiled));
    const mg_param *last = &params->param[params->n - 1];
    const double values[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        mg_checkpoint checkpoint = mg_trainer_checkpoint(spoiled);
        mg_evaluation e;
        last->tensor.data[mg_size(&last->tensor) - 1] = (mg_real)values[i];
        assert_true(mg_params_find_not_finite(params) == last);
        assert_int_equal(mg_trainer_take_weights(fresh, &checkpoint, &fixture_error), MG_ERR_FORMAT);
        assert_says(fixture_error.message, last->name);
        assert_int_equal(mg_trainer_restore(fresh, &checkpoint, &fixture_error), MG_ERR_FORMAT);
        assert_int_equal(mg_trainer_evaluate(&e, spoiled, MG_VALIDATION, 1, NULL, &fixture_error), MG_ERR_STATE);
        assert_says(fixture_error.message, last->name);
    }
    last->tensor.data[mg_size(&last->tensor) - 1] = 0;
    assert_null(mg_params_find_not_finite(params));

    for (ptrdiff_t i = 0; i < params->size; i++) params->values[i] *= (mg_real)1e20; /* finite, and too large */
    mg_step step;
    assert_int_equal(mg_trainer_step(spoiled, &step, &fixture_error), MG_ERR_STATE);
    assert_says(fixture_error.message, "before the first update");
    mg_trainer_free(spoiled);
    mg_trainer_free(fresh);
    mg_corpus_free(corpus);
}

/* Window k is a function of (seed, k): a batch of 1 and one of 64 measure the same. */
static void test_batches_change_no_window(void **state) {
    (void)state;
    mg_corpus *corpus = fixture_corpus();
    mg_train_options options = fixture_options();
    mg_trainer *trainer = fixture_trainer(&options, corpus);
    for (int i = 0; i < 5; i++) fixture_step(trainer);
    mg_evaluation whole;
    assert_ok(mg_evaluate(&whole, mg_trainer_model(trainer), corpus,
                          &(mg_evaluation_options){.split = MG_VALIDATION, .n_batches = 1, .batch_size = 64, .seed = 7},
                          &fixture_error));
    for (int B = 1; B <= 32; B *= 2) {
        mg_evaluation e;
        assert_ok(mg_evaluate(
            &e, mg_trainer_model(trainer), corpus,
            &(mg_evaluation_options){.split = MG_VALIDATION, .n_batches = 64 / B, .batch_size = B, .seed = 7},
            &fixture_error));
        assert_int_equal(e.n_windows, 64);
        assert_close(e.floor, whole.floor, 1e-12);
        assert_close(e.loss, whole.loss, 1e-6);
        for (ptrdiff_t t = 0; t < e.n_positions; t++) assert_close(e.position_loss[t], whole.position_loss[t], 1e-5);
        mg_evaluation_free(&e);
    }
    mg_evaluation_free(&whole);
    mg_trainer_free(trainer);
    mg_corpus_free(corpus);
}

/* As in the operations: the line is the call's, and a null pointer has a name. */
static void test_failures_name_the_call(void **state) {
    (void)state;
    mg_corpus *corpus = fixture_corpus();
    mg_trainer *trainer;
    mg_step step;
    mg_evaluation evaluation;
    mg_train_options options = fixture_options();
    assert_operation_fails(mg_trainer_new(&trainer, NULL, corpus, NULL), "mg_trainer_new", "options is NULL");
    assert_operation_fails(mg_trainer_new(NULL, &options, corpus, NULL), "mg_trainer_new", "trainer is NULL");
    assert_operation_fails(mg_trainer_step(NULL, &step, NULL), "mg_trainer_step", "trainer is NULL");
    assert_operation_fails(mg_trainer_restore(NULL, NULL, NULL), "mg_trainer_restore", "trainer is NULL");
    assert_operation_fails((void)mg_trainer_model(NULL), "mg_trainer_model", "trainer is NULL");
    assert_operation_fails(mg_evaluate(&evaluation, NULL, corpus, NULL, NULL), "mg_evaluate", "gpt is NULL");
    assert_operation_fails(mg_corpus_load(NULL, &usual, NULL), "mg_corpus_load", "corpus is NULL");
    assert_operation_fails(mg_checkpoint_save("x", NULL, NULL), "mg_checkpoint_save", "checkpoint is NULL");
    trainer = fixture_trainer(&options, corpus);
    assert_operation_fails(mg_trainer_step(trainer, NULL, NULL), "mg_trainer_step", "step is NULL");
    int ids[1], targets[1];
    assert_operation_fails(mg_corpus_batch(corpus, MG_TRAIN, (mg_rng){0}, 1, corpus->n, ids, targets), "corpus", "");
    mg_trainer_free(trainer);
    mg_corpus_free(corpus);
}

/* Of options that are all 0, the trainer says what it took instead. */
static void test_zero_is_the_default(void **state) {
    (void)state;
    mg_corpus *corpus = fixture_corpus();
    mg_train_options zeros = {0};
    mg_trainer *trainer = fixture_trainer(&zeros, corpus);
    const mg_train_options *o = mg_trainer_options(trainer);
    assert_true(o->model.n_layer == 2 && o->model.n_head == 4 && o->model.n_embd == 64 && o->model.block_size == 32);
    assert_int_equal(o->model.vocab_size, mg_tokenizer_size(corpus->tokenizer));
    assert_true(mg_gpt_is_causal(&o->model) && !o->model.no_scale && !o->model.no_output_projection);
    assert_true(o->model.init_std == 0.02 && o->model.eps == 1e-5 && o->model.dropout == 0);
    assert_true(o->batch_size == 16 && o->grad_accum == 1 && o->max_iters == 1500);
    assert_true(o->schedule.lr == 1e-3 && o->schedule.min_lr == 0);
    assert_true(o->schedule.warmup_iters == 0 && o->schedule.decay_iters == 1500);
    assert_true(o->weight_decay == 0 && o->grad_clip == 0 && o->beta1 == 0.9 && o->beta2 == 0.99 && o->seed == 0);
    double loss = fixture_step(trainer);
    for (int i = 1; i < 20; i++) fixture_step(trainer);
    assert_less(fixture_step(trainer), 0.9 * loss);
    mg_trainer_free(trainer);
    mg_corpus_free(corpus);
}

static void test_options_that_cannot_be(void **state) {
    (void)state;
    mg_corpus *corpus = fixture_corpus();
    mg_train_options options = fixture_options();
    mg_trainer *trainer;
    options.schedule.min_lr = 1;
    assert_int_equal(mg_trainer_new(&trainer, &options, corpus, &fixture_error), MG_ERR_INPUT);
    assert_says(fixture_error.message, "--min-lr");
    options = fixture_options();
    options.batch_size = options.grad_accum = 1000000;
    assert_int_equal(mg_trainer_new(&trainer, &options, corpus, &fixture_error), MG_ERR_INPUT);
    assert_says(fixture_error.message, "--batch-size");
    static const struct {
        const char *name;
        size_t offset;
    } reals[] = {{"lr", offsetof(mg_train_options, schedule.lr)},
                 {"min_lr", offsetof(mg_train_options, schedule.min_lr)},
                 {"weight_decay", offsetof(mg_train_options, weight_decay)},
                 {"beta1", offsetof(mg_train_options, beta1)},
                 {"beta2", offsetof(mg_train_options, beta2)},
                 {"grad_clip", offsetof(mg_train_options, grad_clip)},
                 {"init_std", offsetof(mg_train_options, model.init_std)}},
      counts[] = {{"warmup_iters", offsetof(mg_train_options, schedule.warmup_iters)},
                  {"decay_iters", offsetof(mg_train_options, schedule.decay_iters)},
                  {"max_iters", offsetof(mg_train_options, max_iters)}},
      sizes[] = {{"batch_size", offsetof(mg_train_options, batch_size)},
                 {"grad_accum", offsetof(mg_train_options, grad_accum)},
                 {"n_layer", offsetof(mg_train_options, model.n_layer)}};
    static const double wrong[] = {-1, -1e-300, NAN, INFINITY, -INFINITY};
#define REFUSED(table, type, value)                                                                                    \
    for (size_t i = 0; i < sizeof(table) / sizeof *(table); i++) {                                                     \
        options = fixture_options();                                                                                   \
        *(type *)((char *)&options + (table)[i].offset) = (type)(value);                                               \
        assert_int_equal(mg_trainer_new(&trainer, &options, corpus, &fixture_error), MG_ERR_INPUT);                    \
        assert_null(trainer);                                                                                          \
        assert_says(fixture_error.message, (table)[i].name);                                                           \
    }
    for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) REFUSED(reals, double, wrong[w])
    REFUSED(counts, int64_t, -1)
    REFUSED(counts, int64_t, INT64_MIN)
    REFUSED(sizes, int, -1)
    REFUSED(sizes, int, INT_MIN)
    options = fixture_options();
    options.model.block_size = 4500;
    assert_int_equal(mg_trainer_new(&trainer, &options, corpus, &fixture_error), MG_ERR_INPUT);
    assert_null(trainer);
    mg_corpus_free(corpus);
}

static void test_implausible_losses(void **state) {
    (void)state;
    char text[512];
    mg_gpt_config causal = {0}, none = causal;
    causal.vocab_size = none.vocab_size = 33;
    none.mask = mg_lookahead(MG_LOOKAHEAD_ALL);
    double by_position[] = {1.39, 1.39};
    mg_evaluation e = {.n_positions = 2,
                       .n_windows = 100,
                       .loss = 1.39,
                       .floor = 1.38,
                       .gap_error = 0.001,
                       .evidence = NAN,
                       .shift = 1,
                       .position_loss = by_position};
    assert_null(mg_evaluation_alarm(&e, &causal, text, sizeof text));
    e.loss = 0.2;
    assert_says(mg_evaluation_alarm(&e, &none, text, sizeof text), "mask is not causal");
    assert_says(mg_evaluation_alarm(&e, &causal, text, sizeof text), "shift");
    e.loss = 1.378; /* within what chance does */
    assert_null(mg_evaluation_alarm(&e, &causal, text, sizeof text));
    e.loss = 4;
    assert_says(mg_evaluation_alarm(&e, &causal, text, sizeof text), "ln V");
    e.floor = INFINITY;
    assert_says(mg_evaluation_alarm(&e, &causal, text, sizeof text), "check how they are shifted");
    e.shift_loss = 0.1;
    e.shift = 0;
    assert_says(mg_evaluation_alarm(&e, &causal, text, sizeof text), "not shifted");
    e.shift = 2;
    assert_says(mg_evaluation_alarm(&e, &causal, text, sizeof text), "shifted twice");
    e.floor = NAN; /* a text: a low loss by itself is no crime, since it may be known by heart */
    e.loss = 0.001;
    e.shift = 1;
    assert_null(mg_evaluation_alarm(&e, &causal, text, sizeof text));
    e.evidence = 29.9;
    assert_null(mg_evaluation_alarm(&e, &causal, text, sizeof text));
    e.evidence = 31;
    assert_says(mg_evaluation_alarm(&e, &causal, text, sizeof text), "its loss is 1.700 at best");
    assert_says(mg_evaluation_alarm(&e, &none, text, sizeof text), "its mask is not causal");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_learns),
        cmocka_unit_test(test_micro_batches_make_the_same_step),
        cmocka_unit_test(test_evaluating_changes_nothing),
        cmocka_unit_test(test_threads_change_nothing),
        cmocka_unit_test(test_masks_begin_alike),
        cmocka_unit_test(test_restored_goes_on),
        cmocka_unit_test(test_another_runs_checkpoint_is_refused),
        cmocka_unit_test(test_nan_stops_before_the_update),
        cmocka_unit_test(test_weights_that_are_no_numbers),
        cmocka_unit_test(test_batches_change_no_window),
        cmocka_unit_test(test_failures_name_the_call),
        cmocka_unit_test(test_zero_is_the_default),
        cmocka_unit_test(test_betas_may_be_0),
        cmocka_unit_test(test_options_that_cannot_be),
        cmocka_unit_test(test_implausible_losses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
