/* The alarm: it accuses a model that reads its label, by whatever way, and no other. Windows are built here, so that
 * targets can be wrong on purpose. */
#include "adamw.h"
#include "alarm.h"
#include "fixture.h"

#include <stdlib.h>
#include <unistd.h>

static mg_corpus *corpus_of(const char *text, size_t size) {
    char path[] = "/tmp/maskgrad-test-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, size), size);
    close(file);
    mg_data_options options = usual;
    options.path = path;
    mg_corpus *corpus;
    assert_ok(mg_corpus_load(&corpus, &options, &fixture_error));
    unlink(path);
    return corpus;
}

enum { LENGTH = 20000 };
/* Letters a … drawn at random, the first one of `of` times as often as each of the others. */
static mg_corpus *random_letters(int of, int letters, uint64_t seed) {
    static char text[LENGTH];
    for (size_t i = 0; i < LENGTH; i++) {
        int any = (int)mg_rng_below((mg_rng){seed, MG_STREAM_TEST, 0}, i, (uint64_t)of);
        text[i] = (char)('a' + (any < letters ? any : 0));
    }
    return corpus_of(text, LENGTH);
}

/* ---- The arithmetic ---- */

enum { B = 32, T = 4, STEPS = 3000 };

typedef double predictor(const mg_pairs *pairs, int first, int second);

static double the_truth(const mg_pairs *pairs, int first, int second) {
    return mg_pairs_surprisal(pairs, first, second);
}
/* It is certain of what is merely likely: better than the truth until the rare letter comes. */
static double a_gambler(const mg_pairs *pairs, int first, int second) {
    (void)pairs;
    (void)first;
    return second == 0 ? 1e-7 : 16;
}
static double a_guesser(const mg_pairs *pairs, int first, int second) {
    (void)pairs;
    (void)first;
    return second == 0 ? 0.3 : 1.35;
}
static double a_reader(const mg_pairs *pairs, int first, int second) {
    return mg_pairs_surprisal(pairs, first, second) - 0.05;
}

/* The step at which a model is accused whose loss at position 0 is this, and nothing elsewhere; -1: never. */
static int64_t accused_at(const mg_corpus *corpus, predictor *loss_of, uint64_t seed) {
    mg_alarm *alarm;
    mg_pairs *pairs;
    assert_ok(mg_alarm_new(&alarm, corpus, MG_TRAIN, T, &fixture_error));
    assert_ok(mg_pairs_new(&pairs, corpus, MG_TRAIN, T, 1, &fixture_error));
    int ids[B * T], targets[B * T];
    mg_real loss[B * T] = {0};
    for (uint32_t step = 0; step < STEPS; step++) {
        mg_corpus_batch(corpus, MG_TRAIN, (mg_rng){seed, MG_STREAM_BATCH, step}, B, T, ids, targets);
        for (int i = 0; i < B * T; i += T) loss[i] = (mg_real)loss_of(pairs, ids[i], ids[i + 1]);
        mg_alarm_observe(alarm, step, B, ids, targets, loss);
    }
    int64_t raised_at = mg_alarm_read(alarm).raised_at;
    mg_alarm_free(alarm);
    mg_pairs_free(pairs);
    return raised_at;
}

static void test_who_is_accused(void **state) {
    (void)state;
    mg_corpus *rare = random_letters(2000, 2, 1), *even = random_letters(2, 2, 2), *one = random_letters(1, 1, 3);
    for (uint64_t seed = 1; seed <= 5; seed++) {
        assert_int_equal(accused_at(rare, the_truth, seed), -1);
        assert_int_equal(accused_at(rare, a_gambler, seed), -1);
        assert_int_equal(accused_at(even, the_truth, seed), -1);
        assert_int_equal(accused_at(even, a_guesser, seed), -1);
        assert_int_equal(accused_at(one, the_truth, seed), -1); /* a vocabulary of one: nothing to read */
        /* 0.05 nats less at each of 32 windows: 30 nats after 19 steps, whatever the corpus */
        assert_int_equal(accused_at(even, a_reader, seed), 18);
        assert_int_equal(accused_at(rare, a_reader, seed), 18);
    }
    mg_corpus_free(rare);
    mg_corpus_free(even);
    mg_corpus_free(one);
}

/* What a resumed run does: it only leaves out beginnings. */
static void test_a_new_alarm_never_has_more_evidence(void **state) {
    (void)state;
    mg_corpus *corpus = random_letters(20, 2, 3);
    predictor *const models[] = {the_truth, a_gambler, a_guesser, a_reader};
    mg_pairs *pairs;
    assert_ok(mg_pairs_new(&pairs, corpus, MG_TRAIN, T, 1, &fixture_error));
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        mg_alarm *whole, *pieces = NULL;
        assert_ok(mg_alarm_new(&whole, corpus, MG_TRAIN, T, &fixture_error));
        int ids[B * T], targets[B * T];
        mg_real loss[B * T] = {0};
        for (uint32_t step = 0; step < 200; step++) {
            if (step % 37 == 0) {
                mg_alarm_free(pieces);
                assert_ok(mg_alarm_new(&pieces, corpus, MG_TRAIN, T, &fixture_error));
            }
            mg_corpus_batch(corpus, MG_TRAIN, (mg_rng){m, MG_STREAM_BATCH, step}, B, T, ids, targets);
            for (int i = 0; i < B * T; i += T) loss[i] = (mg_real)models[m](pairs, ids[i], ids[i + 1]);
            mg_alarm_observe(whole, step, B, ids, targets, loss);
            mg_alarm_observe(pieces, step, B, ids, targets, loss);
            assert_true(mg_alarm_read(pieces).evidence <= mg_alarm_read(whole).evidence + 1e-9);
        }
        mg_alarm_free(whole);
        mg_alarm_free(pieces);
    }
    mg_pairs_free(pairs);
    mg_corpus_free(corpus);
}

static void test_it_is_raised_once_and_says_its_numbers(void **state) {
    (void)state;
    mg_corpus *corpus = random_letters(2, 2, 2);
    mg_alarm *alarm;
    assert_ok(mg_alarm_new(&alarm, corpus, MG_TRAIN, T, &fixture_error));
    assert_close(mg_alarm_read(alarm).entropy, log(2), 1e-3);
    assert_true(isnan(mg_alarm_read(alarm).first));
    int ids[B * T], targets[B * T], raised = 0;
    mg_real loss[B * T];
    for (int i = 0; i < B * T; i++) loss[i] = (mg_real)(i % T == 0 ? 0.25 : i % T == T - 1 ? 0.75 : 0.5);
    for (uint32_t step = 100; step < 200; step++) {
        mg_corpus_batch(corpus, MG_TRAIN, (mg_rng){1, MG_STREAM_BATCH, step}, B, T, ids, targets);
        if (!mg_alarm_observe(alarm, step, B, ids, targets, loss)) continue;
        raised++;
        mg_alarm_reading r = mg_alarm_read(alarm);
        assert_int_equal(r.raised_at, step);
        assert_int_equal(r.windows, (step - 99) * B);
        assert_close(r.first, 0.25, 1e-12);
        assert_close(r.last, 0.75, 1e-12);
        assert_close(r.mean, 0.5, 1e-12);
        assert_close(r.bound, 0.25 + r.evidence / (double)r.windows, 1e-12);
        assert_less(MG_ALARM_EVIDENCE, r.evidence);
        assert_int_equal(r.cause, MG_CAUSE_RIGHT);
        char text[512];
        mg_gpt_config config = {0};
        assert_says(mg_alarm_say(&r, &config, text, sizeof text), "the last position, with no label to its right");
        config.leak_layer = config.leak_head = 0;
        config.leak_lookahead = 1;
        assert_says(mg_alarm_say(&r, &config, text, sizeof text), "its mask is not causal");
        assert_says(text, "and it is 0.250 (at the last position 0.750)");
        assert_true(strlen(mg_alarm_say(&r, &config, text, 40)) == 39);
    }
    assert_int_equal(raised, 1);
    mg_alarm_free(alarm);
    mg_corpus_free(corpus);
}

/* ---- Models ---- */

typedef struct fault {
    const char *name;
    int lookahead, leak, block_size, shift;
    bool accused;
    mg_alarm_cause cause;
} fault;

/* Windows whose target at t is the token t + shift. */
static void draw(const mg_corpus *corpus, mg_rng rng, int block_size, int shift, int *ids, int *targets) {
    ptrdiff_t n = mg_corpus_tokens(corpus, MG_TRAIN) - block_size - 1;
    for (int b = 0; b < B; b++) {
        const int *window = mg_corpus_ids(corpus, MG_TRAIN) + mg_rng_below(rng, (uint64_t)b, (uint64_t)n);
        for (int t = 0; t < block_size; t++) {
            ids[b * block_size + t] = window[t];
            targets[b * block_size + t] = window[t + shift];
        }
    }
}

static mg_gpt *model_of(const mg_corpus *corpus, const fault *f) {
    mg_gpt_config config = {0};
    config.n_embd = 16;
    config.n_head = 2;
    config.block_size = f->block_size;
    config.vocab_size = mg_tokenizer_size(corpus->tokenizer);
    config.mask = mg_lookahead(f->lookahead);
    if (f->leak) {
        config.leak_layer = config.leak_head = 0;
        config.leak_lookahead = f->leak;
    }
    mg_gpt *gpt;
    assert_ok(mg_gpt_new(&gpt, &config, 1, &fixture_error));
    return gpt;
}

static mg_alarm_reading train(mg_gpt *gpt, const mg_corpus *corpus, const fault *f, int steps) {
    mg_adamw *adamw;
    mg_alarm *alarm;
    mg_params *params = mg_gpt_params(gpt);
    assert_ok(mg_adamw_new(&adamw, params, 0.9, 0.99, 0, &fixture_error));
    assert_ok(mg_alarm_new(&alarm, corpus, MG_TRAIN, f->block_size, &fixture_error));
    mg_tape *tape = new_tape();
    int ids[B * 16], targets[B * 16];
    mg_real loss[B * 16];
    for (int step = 0; step < steps; step++) {
        draw(corpus, (mg_rng){1, MG_STREAM_BATCH, (uint32_t)step}, f->block_size, f->shift, ids, targets);
        mg_backward(tape, mg_gpt_loss(gpt, tape, ids, targets, B, f->block_size, NULL, loss));
        mg_tape_reset(tape);
        mg_adamw_step(adamw, params, 1e-2, 1);
        mg_params_zero_grad(params);
        mg_alarm_observe(alarm, step, B, ids, targets, loss);
    }
    mg_alarm_reading reading = mg_alarm_read(alarm);
    mg_tape_free(tape);
    mg_adamw_free(adamw);
    mg_alarm_free(alarm);
    return reading;
}

static const fault faults[] = {
    {"honest", 0, 0, 8, 1, false, 0},
    {"honest, one token", 0, 0, 1, 1, false, 0},
    {"no mask, one token: nothing to its right", MG_LOOKAHEAD_ALL, 0, 1, 1, false, 0},
    {"no mask", MG_LOOKAHEAD_ALL, 0, 8, 1, true, MG_CAUSE_RIGHT},
    {"no mask, two tokens", MG_LOOKAHEAD_ALL, 0, 2, 1, true, MG_CAUSE_RIGHT},
    {"one ahead", 1, 0, 8, 1, true, MG_CAUSE_RIGHT},
    {"one head", 0, 1, 8, 1, true, MG_CAUSE_RIGHT},
    {"not shifted", 0, 0, 8, 0, true, MG_CAUSE_UNSHIFTED},
    {"not shifted, one token", 0, 0, 1, 0, true, MG_CAUSE_UNSHIFTED},
    {"not shifted, no mask", MG_LOOKAHEAD_ALL, 0, 8, 0, true, MG_CAUSE_UNSHIFTED},
};

static void judge(const mg_corpus *corpus, const fault *f, int steps) {
    mg_gpt *gpt = model_of(corpus, f);
    mg_alarm_reading r = train(gpt, corpus, f, steps);
    char text[512];
    if ((r.raised_at >= 0) != f->accused || (f->accused && r.cause != f->cause))
        fail_msg("%s: alarm at %lld, cause %s: %s", f->name, (long long)r.raised_at, mg_alarm_cause_name(r.cause),
                 mg_alarm_say(&r, mg_gpt_get_config(gpt), text, sizeof text));
    mg_gpt_free(gpt);
}

static void test_faults(void **state) {
    (void)state;
    mg_corpus *four = random_letters(4, 4, 1), *two = random_letters(2, 2, 1);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        judge(four, &faults[i], 200);
        judge(two, &faults[i], 200);
    }
    mg_corpus_free(four);
    mg_corpus_free(two);
}

/* A text of which the next token says little and the one after it nearly all. */
static void test_shifted_twice(void **state) {
    (void)state;
    static char text[LENGTH];
    for (size_t i = 0; i < LENGTH; i++)
        text[i] = (char)(i % 2 ? '0' + (int)mg_rng_below((mg_rng){1, MG_STREAM_TEST, 0}, i, 10)
                               : 'a' + (int)(i / 2 % 26));
    mg_corpus *corpus = corpus_of(text, LENGTH);
    judge(corpus, &(fault){"shifted twice", 0, 0, 8, 2, true, MG_CAUSE_SHIFTED_TWICE}, 200);
    judge(corpus, &(fault){"honest", 0, 0, 8, 1, false, 0}, 200);
    mg_corpus_free(corpus);
}

/* A few lines, until they are known by heart: far below any floor of the language, and honest. */
static void test_memory_is_no_crime(void **state) {
    (void)state;
    static const char text[] =
        "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, "
        "it was the epoch of belief, it was the epoch of incredulity, it was the season of Light, it was the season of "
        "Darkness, it was the spring of hope, it was the winter of despair";
    mg_corpus *corpus = corpus_of(text, sizeof text - 1);
    judge(corpus, &(fault){"by heart", 0, 0, 16, 1, false, 0}, 800);
    judge(corpus, &(fault){"by heart, one head", 0, 1, 16, 1, true, MG_CAUSE_RIGHT}, 400);
    mg_corpus_free(corpus);
}

/* ---- After training ---- */

/* An evaluation's targets are right: it sees that a model reads them, or that it learned others. On either split. */
static void evaluated(const mg_corpus *corpus, const fault *f, const char *says) {
    mg_gpt *gpt = model_of(corpus, f);
    train(gpt, corpus, f, 200);
    for (int split = MG_TRAIN; split <= MG_VALIDATION; split++) {
        mg_evaluation e;
        char text[512];
        const mg_evaluation_options options = {.split = (mg_split)split, .n_batches = 10, .seed = 1, .evidence = true};
        assert_ok(mg_evaluate(&e, gpt, corpus, &options, &fixture_error));
        const char *said = mg_evaluation_alarm(&e, mg_gpt_get_config(gpt), text, sizeof text);
        if (!said != !says) fail_msg("%s: %s", f->name, said ? said : "nothing is said");
        if (says) assert_says(said, says);
        mg_evaluation_free(&e);
    }
    mg_gpt_free(gpt);
}

static void test_evaluation(void **state) {
    (void)state;
    mg_corpus *four = random_letters(4, 4, 1);
    evaluated(four, &(fault){"honest", 0, 0, 8, 1, false, 0}, NULL);
    evaluated(four, &(fault){"honest, one token", 0, 0, 1, 1, false, 0}, NULL);
    evaluated(four, &(fault){"no mask", MG_LOOKAHEAD_ALL, 0, 8, 1, false, 0}, "its mask is not causal");
    evaluated(four, &(fault){"not shifted", 0, 0, 8, 0, false, 0}, "targets that were not shifted");
    evaluated(four, &(fault){"not shifted, one token", 0, 0, 1, 0, false, 0}, "targets that were not shifted");
    evaluated(four, &(fault){"shifted twice", MG_LOOKAHEAD_ALL, 0, 8, 2, false, 0}, "shifted twice");
    mg_corpus_free(four);
}

/* ---- In a trainer ---- */

static void test_watching_changes_no_bit(void **state) {
    (void)state;
    mg_corpus *corpus = fixture_corpus();
    mg_train_options options = fixture_options();
    options.model.mask = mg_lookahead(1);
    options.model.dropout = 0.1;
    options.grad_accum = 3;
    options.batch_size = 8;
    options.max_iters = 100;
    mg_trainer *watched = fixture_trainer(&options, corpus), *alone = fixture_trainer(&options, corpus);
    assert_null(mg_trainer_alarm(alone));
    assert_ok(mg_trainer_set_alarm(watched, &fixture_error));
    int raised = 0;
    for (int i = 0; i < 100; i++) {
        mg_step step;
        assert_ok(mg_trainer_step(watched, &step, &fixture_error));
        assert_close(step.loss, fixture_step(alone), 0);
        raised += step.alarm;
        assert_int_equal(step.alarm, mg_alarm_read(mg_trainer_alarm(watched)).raised_at == i);
    }
    assert_int_equal(raised, 1);
    const mg_params *p = mg_gpt_params(mg_trainer_model(watched)), *q = mg_gpt_params(mg_trainer_model(alone));
    assert_memory_equal(p->values, q->values, (size_t)p->size * sizeof *p->values);
    mg_trainer_free(watched);
    mg_trainer_free(alone);
    mg_corpus_free(corpus);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_accused),
        cmocka_unit_test(test_a_new_alarm_never_has_more_evidence),
        cmocka_unit_test(test_it_is_raised_once_and_says_its_numbers),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_shifted_twice),
        cmocka_unit_test(test_memory_is_no_crime),
        cmocka_unit_test(test_evaluation),
        cmocka_unit_test(test_watching_changes_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
