/* Every function of docs/library.md's table, called with what no caller means: null pointers, sizes that are 0,
 * negative or huge, numbers that are not finite. Nothing crashes; a failure names the line of the call, and a status
 * comes with a sentence. */
#include "audit.h"
#include "causality.h"
#include "gemm.h"
#include "generate_text.h"
#include "generator.h"
#include "gpt2_import.h"
#include "gradcheck.h"
#include "operation.h"
#include "ops.h"
#include "parallel.h"
#include "params_file.h"
#include "threads.h"
#include "trainer.h"

#include "check.h"
#include "fixture.h"

#include <limits.h>
#include <stdlib.h>

static mg_error error;
static mg_corpus *corpus;
static mg_trainer *trainer;
static mg_gpt *gpt;
static mg_tape *tape;
static mg_tensor *x, *row; /* (2,3) and (3) */
static int ids[8];

static int make(void **state) {
    (void)state;
    mg_train_options options = fixture_options();
    corpus = fixture_corpus();
    trainer = fixture_trainer(&options, corpus);
    gpt = mg_trainer_model(trainer);
    tape = new_tape();
    x = mg_leaf(tape, 2, (ptrdiff_t[]){2, 3});
    row = mg_leaf(tape, 1, (ptrdiff_t[]){3});
    return 0;
}

static int drop(void **state) {
    (void)state;
    mg_tape_free(tape);
    mg_trainer_free(trainer);
    mg_corpus_free(corpus);
    return 0;
}

/* `call` reaches the failure handler with this file and line, and this text. */
#define fails(call, part) assert_fails_here((void)(call), part)
/* `call` returns a status, and a sentence that has this text. */
#define refuses(call, part)                                                                                            \
    do {                                                                                                               \
        error.message[0] = '\0';                                                                                       \
        assert_int_not_equal(call, MG_OK);                                                                             \
        assert_says(error.message, part);                                                                              \
    } while (0)

/* clang-format off */
static void null_pointers(void **state) {
    (void)state;
    void *nothing = NULL; /* not a constant, of which a compiler would warn */
    mg_gpt_config config = {0};
    mg_sampler sampler = {0};
    size_t n;
    mg_causality causality;
    mg_audit audit;
    mg_audit_model model = {.vocab = 4, .context = 4};
    fails(mg_tape_new(nothing, &error), "tape is NULL");
    fails(mg_tape_record(nothing, true), "tape is NULL");
    fails(mg_tape_reset(nothing), "tape is NULL");
    fails(mg_tape_recycle_gradients(nothing, true), "tape is NULL");
    fails(mg_backward(tape, nothing), "loss is NULL");
    fails(mg_leaf(nothing, 0, NULL), "tape is NULL");
    fails(mg_constant(nothing, 0, NULL), "tape is NULL");
    fails(mg_values(tape, 1, row->dim, nothing), "values is NULL");
    fails(mg_randn(nothing, 0, NULL, (mg_rng){0}), "tape is NULL");
    fails(mg_print(nothing, stderr), "x is NULL");
    fails(mg_size(nothing), "x is NULL");
    fails(mg_shape(nothing), "x is NULL");
    fails(mg_params_new(nothing, 0, NULL, true, &error), "params is NULL");
    fails(mg_params_find(nothing, "a"), "params is NULL");
    fails(mg_params_find(mg_gpt_params(gpt), nothing), "name is NULL");
    fails(mg_params_zero_grad(nothing), "params is NULL");
    fails(mg_params_grad_norm(nothing), "params is NULL");
    fails(mg_params_save("a", nothing, &error), "params is NULL");
    fails(mg_params_load(nothing, mg_gpt_params(gpt), &error), "path is NULL");
    fails(mg_adamw_new(nothing, mg_gpt_params(gpt), 0.9, 0.9, 0, &error), "adamw is NULL");
    fails(mg_adamw_step(nothing, mg_gpt_params(gpt), 1, 1), "adamw is NULL");
    fails(mg_gpt_new(nothing, &config, 0, &error), "gpt is NULL");
    fails(mg_gpt_new_zeros(nothing, &config, true, &error), "gpt is NULL");
    fails(mg_gpt_get_config(nothing), "gpt is NULL");
    fails(mg_gpt_params(nothing), "gpt is NULL");
    fails(mg_gpt_is_causal(nothing), "config is NULL");
    fails(mg_gpt_set_mask(nothing, mg_lookahead(0)), "gpt is NULL");
    fails(mg_gpt_forward(gpt, tape, nothing, 1, 4, NULL), "ids is NULL");
    fails(mg_gpt_loss(gpt, tape, ids, nothing, 1, 4, NULL, NULL), "targets is NULL");
    fails(mg_generate_text(nothing, gpt, corpus->tokenizer, "", 1, NULL, 0, &error), "text is NULL");
    fails(mg_generator_new(nothing, gpt, 1, true, &error), "generator is NULL");
    fails(mg_generator_prompt(nothing, ids, 1), "generator is NULL");
    fails(mg_generator_logits(nothing), "generator is NULL");
    fails(mg_generator_append(nothing, 0), "generator is NULL");
    fails(mg_generate(nothing, &sampler, 0, 0, 1, NULL, NULL, &error), "generator is NULL");
    fails(mg_generate_samples(nothing, &sampler, 0, 0, 1, 1, NULL, NULL, &error), "generator is NULL");
    fails(mg_tokenizer_from_text(nothing, MG_TOKENIZER_CHAR, "a", 1, &error), "tokenizer is NULL");
    fails(mg_tokenizer_size(nothing), "tokenizer is NULL");
    fails(mg_tokenizer_encode(nothing, &n, corpus->tokenizer, "a", 1, &error), "ids is NULL");
    fails(mg_tokenizer_decode(nothing, &n, corpus->tokenizer, ids, 1, &error), "bytes is NULL");
    fails(mg_corpus_load(nothing, &usual, &error), "corpus is NULL");
    fails(mg_corpus_batch(nothing, MG_TRAIN, (mg_rng){0}, 1, 1, ids, ids), "corpus is NULL");
    fails(mg_trainer_new(nothing, &(mg_train_options){0}, corpus, &error), "trainer is NULL");
    fails(mg_trainer_step(trainer, nothing, &error), "step is NULL");
    fails(mg_trainer_steps_done(nothing), "trainer is NULL");
    fails(mg_trainer_model(nothing), "trainer is NULL");
    fails(mg_trainer_checkpoint(nothing), "trainer is NULL");
    fails(mg_trainer_restore(trainer, nothing, &error), "checkpoint is NULL");
    fails(mg_trainer_set_alarm(nothing, &error), "trainer is NULL");
    fails(mg_trainer_say_alarm(trainer, nothing, 1), "text is NULL");
    fails(mg_evaluate(nothing, gpt, corpus, NULL, &error), "evaluation is NULL");
    fails(mg_checkpoint_save(nothing, &(mg_checkpoint){0}, &error), "path is NULL");
    fails(mg_checkpoint_load(nothing, "a", true, &error), "checkpoint is NULL");
    fails(mg_gpt2_import(&(mg_checkpoint){0}, nothing, NULL, &error), "folder is NULL");
    fails(mg_gradcheck(nothing, NULL, NULL, 1, &x, &error), "result is NULL");
    fails(mg_causality_of_gpt(&causality, gpt, nothing, 4, &error), "ids is NULL");
    fails(mg_audit_run(nothing, &model, NULL, &error), "result is NULL");
    fails(mg_audit_run(&audit, &model, NULL, &error), "no logits");
    fails(mg_tape_output(nothing, 0, NULL), "tape is NULL");
    fails(mg_tape_alloc(tape, 1, 1, nothing), "what is NULL");
    fails(mg_tape_append(tape, nothing, x, 0, NULL, NULL), "op is NULL");
    fails(mg_grad(tape, nothing), "x is NULL");
    fails(mg_gemm(1, 1, 1, 1, (mg_matrix){x->data, 1, false}, (mg_matrix){x->data, 1, false}, 0, nothing, 1), "c is NULL");
    fails(mg_gemm(1, 1, 1, 1, (mg_matrix){NULL, 1, false}, (mg_matrix){x->data, 1, false}, 0, x->data, 1), "A is NULL");
}

static void sizes_that_no_tensor_has(void **state) {
    (void)state;
    mg_attention_options attention = {.n_head = 1};
    mg_tensor *qkv = mg_leaf(tape, 3, (ptrdiff_t[]){1, 2, 6});
    mg_matrix a = {x->data, 3, false};
    fails(mg_leaf(tape, -1, x->dim), "0 to 4 dimensions");
    fails(mg_constant(tape, 1, (ptrdiff_t[]){-1}), "dimension 0");
    fails(mg_values(tape, 1, (ptrdiff_t[]){0}, x->data), "dimension 0");
    fails(mg_randn(tape, 2, (ptrdiff_t[]){PTRDIFF_MAX, 2}, (mg_rng){0}), "more elements than memory");
    fails(mg_reshape(tape, x, 1, (ptrdiff_t[]){-6}), "-6");
    fails(mg_transpose(tape, x, 0, INT_MAX), "transpose");
    fails(mg_slice(tape, x, INT_MIN, 0, 1), "slice");
    fails(mg_slice(tape, x, 0, PTRDIFF_MIN, PTRDIFF_MAX), "slice");
    fails(mg_slice(tape, x, 0, 1, 1), "slice");
    fails(mg_concat(tape, 0, &x, 0), "concat");
    fails(mg_concat(tape, INT_MIN, &x, 0), "concat");
    fails(mg_concat(tape, 1, &x, INT_MAX), "concat");
    fails(mg_sum(tape, x, INT_MAX), "sum");
    fails(mg_mean(tape, x, -9), "mean");
    fails(mg_max(tape, x, 2), "max");
    fails(mg_matmul(tape, x, x, false, false), "matmul");
    fails(mg_linear(tape, x, x, NULL), "linear");
    fails(mg_embedding(tape, x, ids, 1, (ptrdiff_t[]){0}), "dimension 0");
    fails(mg_embedding(tape, x, (int[]){INT_MIN}, 1, (ptrdiff_t[]){1}), "embedding");
    fails(mg_cross_entropy(tape, x, (int[]){INT_MAX, 0}, -1, NULL), "cross_entropy");
    fails(mg_layer_norm(tape, row, x, x, 0), "layer_norm");
    fails(mg_dropout(tape, x, -1, (mg_rng){0}), "dropout");
    fails(mg_dropout(tape, x, (mg_real)NAN, (mg_rng){0}), "dropout");
    fails(mg_attention(tape, x, &attention), "attention");
    attention.n_head = INT_MAX;
    fails(mg_attention(tape, qkv, &attention), "heads");
    attention.n_head = -1;
    fails(mg_attention(tape, qkv, &attention), "heads");
    attention = (mg_attention_options){.n_head = 1, .scale = -1};
    fails(mg_attention(tape, qkv, &attention), "scale");
    attention.scale = (mg_real)NAN;
    fails(mg_attention(tape, qkv, &attention), "scale");
    attention = (mg_attention_options){.n_head = 1, .dropout = 1};
    fails(mg_attention(tape, qkv, &attention), "dropout");
    attention = (mg_attention_options){.n_head = 1, .mask = &(mg_mask){MG_MASK_WINDOW, 0}};
    fails(mg_attention(tape, qkv, &attention), "mask");
    fails(mg_tape_output(tape, 1, (ptrdiff_t[]){0}), "dimension 0");
    fails(mg_tape_alloc(tape, SIZE_MAX / 4, 8, "a wild thing"), "a wild thing");
    fails(mg_gemm(-1, 1, 1, 1, a, a, 0, x->data, 3), "negative");
    fails(mg_gemm(1, 1, PTRDIFF_MIN, 1, a, a, 0, x->data, 3), "negative");
    fails(mg_gemm(1, 4, 1, 1, a, a, 0, x->data, 3), "rows of C");
    fails(mg_gemm(2, 1, 4, 1, a, a, 0, x->data, 3), "rows of A");
    fails(mg_gemm(2, 3, 2, 1, a, (mg_matrix){x->data, 2, false}, 0, x->data, 3), "rows of B");
#ifndef MG_PORTABLE
    fails(mg_gemm((ptrdiff_t)INT_MAX + 1, 1, 1, 1, a, a, 0, x->data, 3), "does not fit BLAS");
#endif
    mg_parallel(0, NULL, NULL, 0);
    mg_parallel(-1, NULL, NULL, 0);
}

static void models_that_cannot_be(void **state) {
    (void)state;
    static const mg_gpt_config wild[] = {{.vocab_size = 0, .block_size = -1}, {.n_layer = -1, .vocab_size = 5},
        {.n_layer = INT_MAX, .vocab_size = 5}, {.n_embd = INT_MAX, .vocab_size = 5}, {.vocab_size = INT_MIN},
        {.vocab_size = INT_MAX, .n_embd = INT_MAX - INT_MAX % 4, .n_layer = INT_MAX}, {.n_head = 3, .n_embd = 4, .vocab_size = 5},
        {.vocab_size = 5, .dropout = (mg_real)NAN}, {.vocab_size = 5, .init_std = -1}};
    mg_gpt *made;
    for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
        refuses(mg_gpt_new(&made, &wild[i], 0, &error), "");
        assert_true(made == NULL && error.message[0]);
        refuses(mg_gpt_new_zeros(&made, &wild[i], true, &error), "");
        assert_null(made);
    }
    mg_params *params;
    mg_adamw *adamw;
    fails(mg_params_new(&params, -1, NULL, true, &error), "params");
    for (int i = 0; i < 4; i++) refuses(mg_adamw_new(&adamw, mg_gpt_params(gpt), (double[]){-1, 1, NAN, 0}[i], 0, (double[]){0, 0, 0, INFINITY}[i], &error), i < 3 ? "beta1" : "weight_decay");
    fails(mg_gpt_set_mask(gpt, mg_lookahead(INT_MIN)), "lookahead");
    fails(mg_gpt_forward(gpt, tape, ids, 0, 4, NULL), "0 sequences");
    fails(mg_gpt_forward(gpt, tape, ids, -1, 4, NULL), "-1 sequences");
    fails(mg_gpt_forward(gpt, tape, ids, 1, 0, NULL), "0 tokens");
    fails(mg_gpt_forward(gpt, tape, ids, 1, PTRDIFF_MAX, NULL), "do not fit the context");
    fails(mg_gpt_loss(gpt, tape, ids, ids, 1, PTRDIFF_MIN, NULL, NULL), "tokens");
    fails(mg_gpt_forward(gpt, tape, (int[]){INT_MAX}, 1, 1, NULL), "2147483647");
}

static bool take_none(uint32_t sample, int id, void *user) {
    (void)sample, (void)id, (void)user;
    return false;
}

static void generators_that_cannot_write(void **state) {
    (void)state;
    mg_generator *generator;
    char *text;
    mg_sampler sampler = {.temperature = 1}, wild = {.temperature = NAN};
    fails(mg_generator_new(&generator, gpt, INT_MIN, true, &error), "ids to draw from");
    assert_int_equal(mg_generator_new(&generator, gpt, INT_MAX, true, &error), MG_OK); /* "only ids below": all */
    fails(mg_generator_prompt(generator, ids, 0), "at least one token");
    fails(mg_generator_prompt(generator, ids, PTRDIFF_MIN), "at least one token");
    mg_generator_prompt(generator, ids, 1);
    fails(mg_generator_append(generator, -1), "id -1");
    fails(mg_generate(generator, &sampler, 0, 0, -1, NULL, NULL, &error), "-1 tokens");
    fails(mg_generate(generator, &sampler, 0, 0, 1, NULL, NULL, &error), "on_token is NULL");
    fails(mg_generate_samples(generator, &sampler, 0, 0, 1, 1, NULL, NULL, &error), "on_token is NULL");
    fails(mg_generate_samples(generator, &sampler, 0, 0, -1, 1, take_none, NULL, &error), "-1 samples");
    fails(mg_generate_samples(generator, &sampler, 0, UINT32_MAX, 2, 1, take_none, NULL, &error), "numbers end at");
    fails(mg_generate_samples(generator, &sampler, 0, 0, 1, -1, take_none, NULL, &error), "-1 tokens");
    refuses(mg_generate_samples(generator, &wild, 0, 0, 1, 1, take_none, NULL, &error), "temperature");
    mg_generator_free(generator);
    fails(mg_generate_text(&text, gpt, corpus->tokenizer, "", -1, NULL, 0, &error), "-1 tokens");
    refuses(mg_generate_text(&text, gpt, corpus->tokenizer, "", PTRDIFF_MAX, NULL, 0, &error), "");
    refuses(mg_generate_text(&text, gpt, corpus->tokenizer, "", 1, &wild, 0, &error), "temperature");
}

static void data_and_training_that_cannot_be(void **state) {
    (void)state;
    mg_trainer *made;
    mg_corpus *loaded;
    mg_tokenizer *tokenizer;
    size_t n;
    int *encoded;
    char *text;
    mg_train_options wild = fixture_options();
    wild.batch_size = -1;
    refuses(mg_trainer_new(&made, &wild, corpus, &error), "batch_size");
    wild = fixture_options();
    wild.max_iters = INT64_MIN;
    refuses(mg_trainer_new(&made, &wild, corpus, &error), "max_iters");
    wild = fixture_options();
    wild.schedule.lr = NAN;
    refuses(mg_trainer_new(&made, &wild, corpus, &error), "lr");
    refuses(mg_corpus_load(&loaded, &(mg_data_options){.path = ""}, &error), "");
    refuses(mg_corpus_load(&loaded, &(mg_data_options){.path = "/nowhere", .validation = -1}, &error), "");
    refuses(mg_tokenizer_from_text(&tokenizer, MG_TOKENIZER_CHAR, "", 0, &error), "");
    refuses(mg_tokenizer_decode(&text, &n, corpus->tokenizer, (int[]){INT_MIN}, 1, &error), "-2147483648");
    assert_int_equal(mg_tokenizer_encode(&encoded, &n, corpus->tokenizer, "", 0, &error), MG_OK);
    mg_free(encoded);
    fails(mg_corpus_batch(corpus, MG_TRAIN, (mg_rng){0}, 0, 4, ids, ids), "0 windows");
    fails(mg_corpus_batch(corpus, MG_TRAIN, (mg_rng){0}, 1, PTRDIFF_MAX, ids, ids), "windows");
    mg_evaluation evaluation;
    refuses(mg_evaluate(&evaluation, gpt, corpus, &(mg_evaluation_options){.n_batches = -1}, &error), "");
    mg_evaluation_free(&evaluation);
}

static mg_status flat(void *user, const mg_audit_batch *batch, double *logits, mg_error *e) {
    (void)user, (void)e;
    for (int i = 0; i < batch->rows * batch->length * batch->n_columns; i++) logits[i] = 0;
    return MG_OK;
}

static void checks_of_what_cannot_be(void **state) {
    (void)state;
    static const mg_audit_options wild[] = {{.length = -1}, {.length = INT_MAX}, {.full = -1}, {.full = INT_MAX}, {.cuts = -1},
        {.sequences = -1}, {.sequences = INT_MAX}, {.values = -1}, {.values = INT_MAX}, {.n_ids = -1}, {.n_ids = INT_MAX}, {.n_ids = 2}};
    mg_audit audit;
    mg_audit_model model = {.vocab = 4, .context = 4, .logits = flat};
    for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
        refuses(mg_audit_run(&audit, &model, &wild[i], &error), "");
        assert_true(error.message[0]);
        mg_audit_free(&audit);
    }
    static const int sizes[][2] = {{0, 4}, {-1, 4}, {INT_MAX, 4}, {4, 0}, {4, INT_MIN}, {4, INT_MAX}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        model.vocab = sizes[i][0];
        model.context = sizes[i][1];
        refuses(mg_audit_run(&audit, &model, NULL, &error), "");
        mg_audit_free(&audit);
    }
    mg_causality causality;
    fails(mg_causality_of_gpt(&causality, gpt, ids, 0, &error), "0 tokens");
    fails(mg_causality_of_gpt(&causality, gpt, ids, PTRDIFF_MAX, &error), "do not fit");
    fails(mg_causality_of_gpt(&causality, gpt, (int[]){-1}, 1, &error), "id -1");
    assert_non_null(mg_audit_probe_name((mg_audit_probe)0));
}
/* clang-format on */

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_pointers),
        cmocka_unit_test(sizes_that_no_tensor_has),
        cmocka_unit_test(models_that_cannot_be),
        cmocka_unit_test(generators_that_cannot_write),
        cmocka_unit_test(data_and_training_that_cannot_be),
        cmocka_unit_test(checks_of_what_cannot_be),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
