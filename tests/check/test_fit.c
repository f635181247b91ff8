/* Two objects that must fit: what happens when they do not. */
#include "adamw.h"
#include "causality.h"
#include "gpt.h"
#include "kv_cache.h"
#include "operation.h"
#include "sampler.h"

#include "check.h"

#include <stdlib.h>

static mg_gpt_config config_of(int n_layer, int n_embd, int block_size, int vocab_size) {
    mg_gpt_config config = {0};
    config.n_layer = n_layer;
    config.n_embd = n_embd;
    config.block_size = block_size;
    config.vocab_size = vocab_size;
    return config;
}

static mg_gpt *model(int n_layer, int n_embd, int block_size) {
    mg_gpt *gpt;
    mg_gpt_config config = config_of(n_layer, n_embd, block_size, 7);
    assert_int_equal(mg_gpt_new(&gpt, &config, 1, NULL), MG_OK);
    return gpt;
}

static const int ids[] = {1, 2, 3, 4};

static void a_cache_of_another_model_is_refused(void **state) {
    (void)state;
    static const int other[][3] = {{1, 16, 8}, {3, 16, 8}, {2, 8, 8}, {2, 24, 8}, {2, 16, 4}, {2, 16, 16}};
    mg_gpt *gpt = model(2, 16, 8);
    mg_tape *tape = new_tape();
    mg_kv_cache *own, *cache;
    assert_int_equal(mg_kv_cache_new(&own, mg_gpt_get_config(gpt), NULL), MG_OK);
    mg_tape_record(tape, false);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        mg_gpt *small = model(other[i][0], other[i][1], other[i][2]);
        assert_int_equal(mg_kv_cache_new(&cache, mg_gpt_get_config(small), NULL), MG_OK);
        mg_gpt_pass pass = {.cache = &cache};
        assert_operation_fails(mg_gpt_forward(gpt, tape, ids, 1, 4, &pass), "gpt", "the KV cache is for");
        assert_fails(mg_kv_cache_copy(own, cache), "one is for 2 layers");
        assert_fails(mg_kv_cache_copy(cache, own), "one is for");
        assert_int_equal(cache->length, 0);
        mg_kv_cache_free(cache);
        mg_gpt_free(small);
    }
    mg_gpt_pass pass = {.cache = &own};
    mg_gpt_forward(gpt, tape, ids, 1, 4, &pass);
    mg_kv_cache *twice[] = {own, own};
    mg_gpt_pass of_two = {.cache = twice};
    assert_operation_fails(mg_gpt_forward(gpt, tape, ids, 2, 1, &of_two), "gpt",
                           "sequences 0 and 1 have the same KV cache");
    of_two.capture = &(mg_gpt_capture){0};
    assert_operation_fails(mg_gpt_forward(gpt, tape, ids, 2, 1, &of_two), "gpt", "one sequence can be captured, not 2");
    assert_operation_fails(mg_gpt_forward(gpt, tape, ids, 1, 5, &pass), "gpt", "5 tokens after 4 do not fit");
    mg_gpt_set_mask(gpt, mg_lookahead(1));
    assert_operation_fails(mg_gpt_forward(gpt, tape, ids, 1, 1, &pass), "gpt", "this one looks ahead");
    assert_operation_fails(mg_gpt_set_mask(gpt, mg_lookahead(-1)), "gpt", "lookahead is -1");
    mg_kv_cache_copy(own, own);
    assert_int_equal(own->length, 4);
    mg_kv_cache_free(own);
    mg_tape_free(tape);
    mg_gpt_free(gpt);
}

static void ids_and_targets_are_in_range(void **state) {
    (void)state;
    mg_gpt *gpt = model(1, 16, 4);
    mg_tape *tape = new_tape();
    mg_causality causality;
    for (int wrong = -1; wrong <= 7; wrong += 8) {
        const int odd[] = {0, wrong};
        assert_operation_fails(mg_gpt_forward(gpt, tape, odd, 1, 2, NULL), "embedding", "at place 1");
        assert_operation_fails(mg_causality_of_gpt(&causality, gpt, odd, 2, NULL), "causality", "at position 1");
    }
    assert_operation_fails(mg_gpt_loss(gpt, tape, ids, (int[]){0, 7}, 1, 2, NULL, NULL), "cross_entropy", "target 7");
    assert_operation_fails(mg_gpt_loss(gpt, tape, ids, (int[]){0, -2}, 1, 2, NULL, NULL), "cross_entropy", "target -2");
    assert_operation_fails(mg_gpt_forward(gpt, tape, ids, 1, 0, NULL), "gpt", "0 tokens");
    assert_operation_fails(mg_gpt_forward(gpt, tape, ids, 1, 5, NULL), "gpt", "5 tokens");
    assert_operation_fails(mg_gpt_forward(gpt, tape, ids, 1, PTRDIFF_MAX, NULL), "gpt", "do not fit the context of 4");
    assert_operation_fails(mg_gpt_forward(gpt, tape, ids, 0, 4, NULL), "gpt", "a batch of 0");
    assert_operation_fails(mg_gpt_forward(gpt, tape, NULL, 1, 4, NULL), "mg_gpt_forward", "ids is NULL");
    assert_operation_fails(mg_gpt_loss(gpt, tape, ids, NULL, 1, 4, NULL, NULL), "mg_gpt_loss", "targets is NULL");
    assert_operation_fails(mg_causality_of_gpt(&causality, gpt, ids, 5, NULL), "causality", "do not fit");
    assert_operation_fails(mg_causality_of_gpt(&causality, gpt, ids, 0, NULL), "causality", "do not fit");
    mg_tape_free(tape);
    mg_gpt_free(gpt);
}

static void an_optimizer_of_other_parameters_is_refused(void **state) {
    (void)state;
    mg_gpt *gpt = model(1, 16, 4), *larger = model(2, 16, 4), *frozen;
    mg_gpt_config config = config_of(1, 16, 4, 7);
    assert_int_equal(mg_gpt_new_zeros(&frozen, &config, false, NULL), MG_OK);
    mg_adamw *adamw;
    assert_int_equal(mg_adamw_new(&adamw, mg_gpt_params(gpt), 0.9, 0.99, 0, NULL), MG_OK);
    assert_operation_fails(mg_adamw_step(adamw, mg_gpt_params(larger), 1, 1), "adamw", "was made for a block of");
    assert_operation_fails(mg_adamw_step(adamw, mg_gpt_params(frozen), 1, 1), "adamw", "without gradients");
    assert_operation_fails(mg_params_zero_grad(mg_gpt_params(frozen)), "params", "without gradients");
    assert_operation_fails((void)mg_params_grad_norm(mg_gpt_params(frozen)), "params", "without gradients");
    assert_int_equal(adamw->step, 0);
    mg_error error;
    mg_adamw *refused;
    static const double wrong[][3] = {{1, 0.9, 0}, {-0.1, 0.9, 0}, {0.9, 1, 0}, {0.9, NAN, 0}, {0.9, 0.9, -1}};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(mg_adamw_new(&refused, mg_gpt_params(gpt), wrong[i][0], wrong[i][1], wrong[i][2], &error),
                         MG_ERR_INPUT);
        assert_null(refused);
        assert_says(error.message, i < 4 ? "both must be at least 0 and below 1" : "weight_decay is -1");
    }
    mg_adamw_free(adamw);
    mg_gpt_free(gpt);
    mg_gpt_free(larger);
    mg_gpt_free(frozen);
}

/* Every constructor that takes a shape. */
static void refuse_shape(mg_tape *tape, const mg_param_spec *spec) {
    const mg_real one[] = {1};
    mg_params *params;
    mg_tensor *scalar = mg_constant(tape, 0, NULL);
    assert_fails_here(mg_params_new(&params, 1, spec, true, NULL), "");
    assert_fails_here(mg_leaf(tape, spec->ndim, spec->dim), "");
    assert_fails_here(mg_constant(tape, spec->ndim, spec->dim), "");
    assert_fails_here(mg_values(tape, spec->ndim, spec->dim, one), "");
    assert_fails_here(mg_randn(tape, spec->ndim, spec->dim, (mg_rng){0}), "");
    assert_fails_here(mg_tape_output(tape, spec->ndim, spec->dim), "");
    assert_fails_here(mg_reshape(tape, scalar, spec->ndim, spec->dim), "");
}

static void parameters_have_up_to_four_dimensions(void **state) {
    (void)state;
    const mg_param_spec specs[] = {{"scalar", 0, {0}}, {"cube", 3, {3, 2, 5}}, {"four", 4, {2, 3, 4, 5}}};
    mg_params *params;
    assert_int_equal(mg_params_new(&params, 3, specs, true, NULL), MG_OK);
    assert_int_equal(mg_params_count(params), 1 + 30 + 120);
    for (int i = 0; i < 3; i++) assert_int_equal(params->param[i].tensor.ndim, specs[i].ndim);
    for (int k = 0; k < 4; k++) assert_int_equal(params->param[2].tensor.dim[k], k + 2);
    assert_false(params->param[0].decay);
    assert_true(params->param[2].decay);
    mg_params_free(params);
    const mg_param_spec empty = {"empty", 3, {3, 3, 0}}, five = {"five", 5, {1, 1, 1, 1}}, less = {"less", -1, {0}};
    const mg_param_spec wild[] = {{"a", 1, {0}},
                                  {"b", 1, {-1}},
                                  {"c", 2, {3, PTRDIFF_MIN}},
                                  {"d", 4, {1, 1, 1, -7}},
                                  {"e", 4, {PTRDIFF_MAX, PTRDIFF_MAX, PTRDIFF_MAX, PTRDIFF_MAX}},
                                  {"f", INT_MAX, {1, 1, 1, 1}},
                                  {"g", INT_MIN, {1, 1, 1, 1}}};
    mg_tape *tape = new_tape();
    for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) refuse_shape(tape, &wild[i]);
    assert_fails_here(mg_tape_alloc(tape, SIZE_MAX, 8, "much"), "much");
    assert_fails_here(mg_tape_alloc(tape, SIZE_MAX / 2, 1, "much"), "much");
    mg_tape_free(tape);
    const mg_param_spec huge = {"huge", 2, {PTRDIFF_MAX / 8, 2}}, half = {"half", 1, {PTRDIFF_MAX / 16}};
    assert_fails_here(mg_params_new(&params, 1, &empty, true, NULL), "dimension 2 of a tensor is 0");
    assert_fails_here(mg_params_new(&params, 1, &five, true, NULL), "0 to 4 dimensions, not 5");
    assert_fails_here(mg_params_new(&params, 1, &less, true, NULL), "0 to 4 dimensions, not -1");
    assert_fails_here(mg_params_new(&params, 1, &huge, true, NULL), "more elements than memory");
    const mg_param_spec halves[] = {half, half};
    assert_fails_here(mg_params_new(&params, 2, halves, true, NULL), "more elements than memory");
    assert_fails_here(mg_params_new(&params, -1, &half, true, NULL), "-1 of them");
}

static void a_sampler_is_checked_where_it_is_used(void **state) {
    (void)state;
    double p[2];
    int order[2];
    const mg_real logits[] = {1, 2};
    mg_sampler cold = {.temperature = -1, .top_p = 1}, wide = {.temperature = 1, .top_p = 2},
               few = {.temperature = 1, .top_k = -1, .top_p = 1}, good = {.temperature = 1, .top_p = 1};
    assert_fails(mg_sampler_probabilities(&cold, logits, 2, p, order), "temperature is -1");
    assert_fails(mg_sampler_probabilities(&wide, logits, 2, p, order), "top-p is 2");
    assert_fails(mg_sampler_probabilities(&few, logits, 2, p, order), "top-k is -1");
    double off[2], one[2]; /* top_p 0 is off, as 1 is */
    mg_sampler unset = {.temperature = 1};
    mg_sampler_probabilities(&unset, logits, 2, off, order);
    mg_sampler_probabilities(&good, logits, 2, one, order);
    assert_memory_equal(off, one, sizeof off);
    assert_fails(mg_sampler_probabilities(&good, logits, 0, p, order), "0 logits");
    assert_fails((void)mg_sampler_draw(p, 0, (mg_rng){0}, 0), "0 probabilities");
}

static void a_cache_given_to_attention_has_room(void **state) {
    (void)state;
    mg_real keys[3 * 2], values[3 * 2];
    mg_tape *tape = new_tape();
    mg_tensor *qkv = mg_constant(tape, 3, (ptrdiff_t[]){1, 2, 6}), *two = mg_constant(tape, 3, (ptrdiff_t[]){2, 1, 6});
    mg_cached cache = {keys, values, .capacity = 3, .end = 1};
    mg_attention_options o = {.n_head = 1, .scale = 1, .cache = &cache};
    mg_attention(tape, qkv, &o);
    cache.end = 2;
    assert_operation_fails(mg_attention(tape, qkv, &o), "attention", "2 tokens after 2 do not fit a cache of 3");
    cache.end = -1;
    assert_operation_fails(mg_attention(tape, qkv, &o), "attention", "holds positions 0 to -1");
    cache.end = 1;
    o.mask = &(mg_mask){MG_MASK_PREFIX, 2};
    assert_operation_fails(mg_attention(tape, qkv, &o), "attention", "head 0 looks ahead");
    o.mask = NULL;
    cache.end = 0;
    mg_real weights[2];
    o.weights = weights;
    assert_operation_fails(mg_attention(tape, two, &o), "attention", "of one sequence at a time");
    o.weights = NULL;
    cache.values = NULL;
    assert_operation_fails(mg_attention(tape, qkv, &o), "attention", "the cache has no values");
    mg_tape_free(tape);
}

/* What a caller gives besides tensors is its own again when the operation returns. */
static void nothing_but_tensors_is_borrowed(void **state) {
    (void)state;
    mg_tape *tape = new_tape();
    mg_tensor *x = mg_leaf(tape, 2, (ptrdiff_t[]){2, 2});
    mg_real hidden[2] = {0, 1};
    mg_tensor mask = {.ndim = 1, .dim = {2}, .data = hidden};
    mg_tensor *y = mg_masked_fill(tape, x, &mask, 5);
    int rows[] = {1, 1}, targets[] = {0, 1};
    ptrdiff_t dim[] = {2};
    mg_tensor *embedded = mg_embedding(tape, x, rows, 1, dim), *parts[] = {y, embedded};
    mg_tensor *loss = mg_cross_entropy(tape, embedded, targets, -1, NULL), *both = mg_concat(tape, 2, parts, 0);
    hidden[0] = 1;
    hidden[1] = 0;
    mask.dim[0] = 1;
    rows[0] = targets[0] = 77;
    dim[0] = 99;
    parts[0] = NULL;
    mg_backward(tape, mg_sum(tape, both, MG_ALL_AXES));
    static const double expected[] = {1, 0, 3, 2}; /* once where the mask lets it, twice as row 1 of the table */
    for (int i = 0; i < 4; i++) assert_close(x->grad[i], expected[i], 0);
    mg_backward(tape, loss);
    mg_tape_free(tape);
}

static void zero_is_the_default(void **state) {
    (void)state;
    mg_gpt *gpt;
    assert_int_equal(mg_gpt_new(&gpt, &(mg_gpt_config){.vocab_size = 7}, 1, NULL), MG_OK);
    const mg_gpt_config *c = mg_gpt_get_config(gpt);
    assert_true(c->n_layer == 2 && c->n_head == 4 && c->n_embd == 64 && c->block_size == 32);
    assert_true(c->init_std == 0.02 && c->eps == 1e-5 && mg_gpt_is_causal(c));
    const mg_tensor *wte = &mg_params_find(mg_gpt_params(gpt), "wte")->tensor;
    double square = 0;
    for (int i = 0; i < 7 * 64; i++) square += (double)wte->data[i] * (double)wte->data[i] / (7 * 64);
    assert_close(sqrt(square), 0.02, 0.002);
    mg_gpt_free(gpt);
}

static void refused(const mg_gpt_config *config, const char *name) {
    mg_error error;
    mg_gpt *gpt;
    char says[64];
    snprintf(says, sizeof says, "%s is ", name);
    assert_int_equal(mg_gpt_new(&gpt, config, 1, &error), MG_ERR_INPUT);
    assert_null(gpt);
    assert_ptr_equal(strstr(error.message, says), error.message);
    assert_int_equal(mg_gpt_new_zeros(&gpt, config, false, &error), MG_ERR_INPUT);
    assert_null(gpt);
}

static void each_wrong_number_is_called_by_its_name(void **state) {
    (void)state;
#define MEMBER(name)                                                                                                   \
    { #name, offsetof(mg_gpt_config, name) }
    static const struct {
        const char *name;
        size_t offset;
    } ints[] = {MEMBER(n_layer),    MEMBER(n_head),     MEMBER(n_embd),
                MEMBER(block_size), MEMBER(vocab_size), {"lookahead", offsetof(mg_gpt_config, mask.n)}},
      reals[] = {MEMBER(init_std), MEMBER(attn_init_std), MEMBER(dropout), MEMBER(eps)};
    static const double wrong[] = {-3, -1e-300, NAN, INFINITY, -INFINITY};
    static const int negative[] = {-1, INT_MIN};
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        for (size_t w = 0; w < 2; w++) {
            mg_gpt_config config = config_of(1, 16, 4, 7);
            *(int *)((char *)&config + ints[i].offset) = negative[w];
            refused(&config, ints[i].name);
        }
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
            mg_gpt_config config = config_of(1, 16, 4, 7);
            *(double *)((char *)&config + reals[i].offset) = wrong[w];
            refused(&config, reals[i].name);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cache_of_another_model_is_refused),
        cmocka_unit_test(ids_and_targets_are_in_range),
        cmocka_unit_test(an_optimizer_of_other_parameters_is_refused),
        cmocka_unit_test(parameters_have_up_to_four_dimensions),
        cmocka_unit_test(a_sampler_is_checked_where_it_is_used),
        cmocka_unit_test(a_cache_given_to_attention_has_room),
        cmocka_unit_test(nothing_but_tensors_is_borrowed),
        cmocka_unit_test(zero_is_the_default),
        cmocka_unit_test(each_wrong_number_is_called_by_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
