/* A small checkpoint to save and load, and files to save it in. */
#ifndef MASKGRAD_TESTS_FIXTURE_H
#define MASKGRAD_TESTS_FIXTURE_H

#include "checkpoint.h"
#include "rng.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

/* A folder of this test program's own; the group's setup makes it, the group's teardown empties and removes it. */
static char fixture_folder[64];
static int fixture_setup(void **state) {
    (void)state;
    snprintf(fixture_folder, sizeof fixture_folder, "/tmp/maskgrad-checkpoints-XXXXXX");
    return mkdtemp(fixture_folder) ? 0 : -1;
}
static int fixture_teardown(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", fixture_folder);
    return system(command);
}

typedef struct fixture_name {
    char path[128];
} fixture_name;
__attribute__((unused)) static fixture_name in_folder(const char *name) {
    fixture_name file;
    snprintf(file.path, sizeof file.path, "%s/%s", fixture_folder, name);
    return file;
}

/* Uniform in [-1, 1), without a function whose last bit could differ from machine to machine. */
static void fill(mg_real *block, const mg_params *params, uint32_t step) {
    for (int i = 0; i < params->n; i++) {
        mg_rng rng = {7, MG_STREAM_TEST, step + (uint32_t)i};
        mg_real *value = block + params->param[i].offset;
        for (ptrdiff_t j = 0; j < mg_size(&params->param[i].tensor); j++)
            value[j] = (float)(2 * mg_rng_uniform(rng, (uint64_t)j) - 1);
    }
}

/* All that a checkpoint can have, with values that no default has. */
static void fixture_make(mg_checkpoint *c, mg_gpt_config config) {
    static const mg_token tokens[] = {{"\n", 1}, {" ", 1}, {"a", 1}, {"\xc3\xa7", 2}, {"\xf0\x9f\x98\x80", 4}};
    *c = (mg_checkpoint){0};
    config.vocab_size = 5;
    assert_ok(mg_gpt_new_zeros(&c->gpt, &config, true, &fixture_error));
    assert_ok(mg_tokenizer_new(&c->tokenizer, MG_TOKENIZER_CHAR, 5, tokens, &fixture_error));
    const mg_params *params = mg_gpt_params(c->gpt);
    assert_ok(mg_adamw_new(&c->adamw, params, 0.875, 0.9375, 0.0625, &fixture_error));
    c->adamw->step = 41;
    c->adamw->eps = 1e-7;
    fill(params->values, params, 0);
    fill(c->adamw->m, params, 1000);
    fill(c->adamw->v, params, 2000);
    c->train = (mg_train_state){
        .step = 42,
        .tokens = 1234567890123,
        .seed = UINT64_MAX - 4,
        .data_hash = 0xfedcba9876543210u,
        .best_loss = 1.25,
        .schedule = {.lr = 3e-4, .min_lr = 3e-5, .warmup_iters = 10, .decay_iters = 100},
        .grad_clip = 1.5,
        .batch_size = 12,
        .grad_accum = 3,
    };
}

static mg_gpt_config fixture_config(void) {
    mg_gpt_config config = {0};
    config.n_layer = 1;
    config.n_head = 2;
    config.n_embd = 4;
    config.block_size = 3;
    config.mask = mg_lookahead(MG_LOOKAHEAD_ALL);
    config.leak_layer = 0;
    config.leak_head = 1;
    config.leak_lookahead = 2;
    config.no_scale = true;
    config.dropout = 0.125;
    config.attn_init_std = 0.25;
    return config;
}

static void assert_same_block(const mg_params *params, const mg_real *a, const mg_real *b) {
    for (int i = 0; i < params->n; i++) {
        ptrdiff_t offset = params->param[i].offset, n = mg_size(&params->param[i].tensor);
        if (memcmp(a + offset, b + offset, (size_t)n * sizeof *a) == 0) continue;
        print_error("%s differs\n", params->param[i].name);
        fail();
    }
}

static void assert_same_tokenizer(const mg_tokenizer *a, const mg_tokenizer *b) {
    assert_int_equal(mg_tokenizer_get_kind(a), mg_tokenizer_get_kind(b));
    assert_int_equal(mg_tokenizer_size(a), mg_tokenizer_size(b));
    for (int id = 0; id < mg_tokenizer_size(a); id++) {
        mg_token s = mg_tokenizer_token(a, id), t = mg_tokenizer_token(b, id);
        assert_int_equal(s.length, t.length);
        assert_memory_equal(s.bytes, t.bytes, s.length);
    }
}

static void assert_same_config(const mg_gpt_config *a, const mg_gpt_config *b) {
    assert_int_equal(a->n_layer, b->n_layer);
    assert_int_equal(a->n_head, b->n_head);
    assert_int_equal(a->n_embd, b->n_embd);
    assert_int_equal(a->block_size, b->block_size);
    assert_int_equal(a->vocab_size, b->vocab_size);
    assert_int_equal(a->mask.kind, b->mask.kind);
    assert_int_equal(a->mask.n, b->mask.n);
    assert_int_equal(a->documents, b->documents);
    assert_int_equal(a->document_end, b->document_end);
    assert_int_equal(a->positions_run_on, b->positions_run_on);
    assert_int_equal(a->leak_layer, b->leak_layer);
    assert_int_equal(a->leak_head, b->leak_head);
    assert_int_equal(a->leak_lookahead, b->leak_lookahead);
    assert_int_equal(a->no_scale, b->no_scale);
    assert_int_equal(a->no_output_projection, b->no_output_projection);
    assert_int_equal(a->no_positions, b->no_positions);
    assert_true(a->init_std == b->init_std && a->attn_init_std == b->attn_init_std);
    assert_true(a->dropout == b->dropout && a->eps == b->eps);
}

static void assert_same_train(const mg_train_state *a, const mg_train_state *b) {
    assert_true(a->step == b->step && a->tokens == b->tokens && a->seed == b->seed && a->data_hash == b->data_hash);
    assert_true(a->best_loss == b->best_loss || (isnan(a->best_loss) && isnan(b->best_loss)));
    assert_true(a->schedule.lr == b->schedule.lr && a->schedule.min_lr == b->schedule.min_lr);
    assert_true(a->schedule.warmup_iters == b->schedule.warmup_iters);
    assert_true(a->schedule.decay_iters == b->schedule.decay_iters);
    assert_true(a->grad_clip == b->grad_clip);
    assert_int_equal(a->batch_size, b->batch_size);
    assert_int_equal(a->grad_accum, b->grad_accum);
}

/* All of it, bit for bit. */
__attribute__((unused)) static void assert_same_checkpoint(mg_checkpoint *a, mg_checkpoint *b) {
    assert_same_config(mg_gpt_get_config(a->gpt), mg_gpt_get_config(b->gpt));
    const mg_params *params = mg_gpt_params(a->gpt);
    assert_same_block(params, params->values, mg_gpt_params(b->gpt)->values);
    assert_same_train(&a->train, &b->train);
    assert_int_equal(!a->tokenizer, !b->tokenizer);
    if (a->tokenizer) assert_same_tokenizer(a->tokenizer, b->tokenizer);
    assert_int_equal(!a->adamw, !b->adamw);
    if (!a->adamw) return;
    assert_same_block(params, a->adamw->m, b->adamw->m);
    assert_same_block(params, a->adamw->v, b->adamw->v);
    assert_true(a->adamw->step == b->adamw->step && a->adamw->eps == b->adamw->eps);
    assert_true(a->adamw->beta1 == b->adamw->beta1 && a->adamw->beta2 == b->adamw->beta2);
    assert_true(a->adamw->weight_decay == b->adamw->weight_decay);
}

/* The usual one. */
__attribute__((unused)) static void fixture_small(mg_checkpoint *c) {
    fixture_make(c, fixture_config());
}

/* A whole file in memory; free with free(). */
__attribute__((unused)) static unsigned char *read_file(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *length = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*length + 1);
    assert_int_equal(fread(bytes, 1, *length, file), *length);
    fclose(file);
    return bytes;
}

__attribute__((unused)) static void write_file(const char *path, const void *bytes, size_t length) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

#endif
