/* A small corpus and a small model that trains in milliseconds. */
#ifndef MASKGRAD_TESTS_FIXTURE_H
#define MASKGRAD_TESTS_FIXTURE_H

#include "trainer.h"

#include "check.h"

static const mg_data_options usual = {.validation = 0.1, .seed = 1337};

static mg_corpus *fixture_corpus(void) {
    mg_data_options options = usual;
    mg_corpus *corpus;
    options.path = MASKGRAD_SOURCE_DIR "/datasets/data/frases.csv";
    options.grammar_size = 5000;
    assert_ok(mg_corpus_load(&corpus, &options, &fixture_error));
    return corpus;
}

static mg_train_options fixture_options(void) {
    return (mg_train_options){
        .model = {.n_layer = 2, .n_head = 2, .n_embd = 16, .block_size = 8},
        .batch_size = 4,
        .max_iters = 20,
        .schedule = {.lr = 1e-2, .min_lr = 1e-3, .warmup_iters = 2},
        .weight_decay = 0.1,
        .grad_clip = 1,
        .seed = 1337,
    };
}

static mg_trainer *fixture_trainer(const mg_train_options *options, const mg_corpus *corpus) {
    mg_trainer *trainer;
    assert_ok(mg_trainer_new(&trainer, options, corpus, &fixture_error));
    return trainer;
}

__attribute__((unused)) static double fixture_step(mg_trainer *trainer) {
    mg_step step;
    assert_ok(mg_trainer_step(trainer, &step, &fixture_error));
    return step.loss;
}

#endif
