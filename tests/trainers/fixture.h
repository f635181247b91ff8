/* A small corpus and a small model that trains in milliseconds. */
#ifndef MASKGRAD_TESTS_FIXTURE_H
#define MASKGRAD_TESTS_FIXTURE_H

#include "trainer.h"

#include "check.h"

static mg_error fixture_error;
#define assert_ok(call)                                                                                                \
    do {                                                                                                               \
        if ((call) != MG_OK) {                                                                                         \
            print_error("%s: %s\n", #call, fixture_error.message);                                                     \
            _fail(__FILE__, __LINE__);                                                                                 \
        }                                                                                                              \
    } while (0)

static mg_corpus *fixture_corpus(void) {
    mg_data_options options = mg_data_defaults();
    mg_corpus *corpus;
    options.path = MASKGRAD_SOURCE_DIR "/datasets/data/frases.csv";
    options.grammar_size = 5000;
    assert_ok(mg_corpus_load(&corpus, &options, &fixture_error));
    return corpus;
}

static mg_train_options fixture_options(void) {
    mg_train_options options = mg_train_defaults();
    options.model.n_layer = 2;
    options.model.n_head = 2;
    options.model.n_embd = 16;
    options.model.block_size = 8;
    options.batch_size = 4;
    options.max_iters = 20;
    options.schedule.lr = 1e-2;
    options.schedule.warmup_iters = 2;
    return options;
}

static mg_trainer *fixture_trainer(const mg_train_options *options, const mg_corpus *corpus) {
    mg_trainer *trainer;
    assert_ok(mg_trainer_new(&trainer, options, corpus, &fixture_error));
    return trainer;
}

static double fixture_step(mg_trainer *trainer) {
    mg_step step;
    assert_ok(mg_trainer_step(trainer, &step, &fixture_error));
    return step.loss;
}

#endif
