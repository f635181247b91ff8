#include "generate_text.h"
#include "generator.h"

#include "check.h"

static void a_text_is_a_function_of_the_seed(void **state) {
    (void)state;
    mg_tokenizer *tokenizer;
    mg_gpt *gpt;
    mg_gpt_config config = {0};
    config.block_size = 8;
    assert_ok(mg_tokenizer_from_text(&tokenizer, MG_TOKENIZER_CHAR, "abc\n", 4, &fixture_error));
    config.vocab_size = mg_tokenizer_size(tokenizer);
    for (int looks_ahead = 0; looks_ahead < 2; looks_ahead++) { /* with a cache, and without */
        config.mask = mg_lookahead(looks_ahead);
        assert_ok(mg_gpt_new(&gpt, &config, 1, &fixture_error));
        char *a, *b, *c;
        assert_ok(mg_generate_text(&a, gpt, tokenizer, "ab", 30, NULL, 1, &fixture_error));
        assert_ok(mg_generate_text(&b, gpt, tokenizer, "ab", 30, &(mg_sampler){.temperature = 1}, 1, &fixture_error));
        assert_ok(mg_generate_text(&c, gpt, tokenizer, NULL, 30, NULL, 2, &fixture_error));
        assert_string_equal(a, b);
        assert_int_equal(strlen(a), 30);
        assert_true(strcmp(a, c) != 0);
        mg_free(a);
        mg_free(b);
        mg_free(c);
        assert_ok(mg_generate_text(&a, gpt, tokenizer, "", 0, NULL, 1, &fixture_error));
        assert_string_equal(a, "");
        mg_free(a);
        assert_int_equal(mg_generate_text(&a, gpt, tokenizer, "abX", 3, NULL, 1, &fixture_error), MG_ERR_INPUT);
        assert_null(a);
        mg_sampler wrong = {.temperature = -1};
        assert_int_equal(mg_generate_text(&a, gpt, tokenizer, "a", 3, &wrong, 1, &fixture_error), MG_ERR_INPUT);
        mg_gpt_free(gpt);
    }
    config.vocab_size = 2;
    assert_ok(mg_gpt_new(&gpt, &config, 1, &fixture_error));
    char *text;
    assert_int_equal(mg_generate_text(&text, gpt, tokenizer, "a", 3, NULL, 1, &fixture_error), MG_ERR_INPUT);
    assert_says(fixture_error.message, "the tokenizer has 4 tokens");
    mg_gpt_free(gpt);
    mg_tokenizer_free(tokenizer);
}

static void a_generator_takes_only_what_fits(void **state) {
    (void)state;
    mg_gpt *gpt;
    mg_generator *generator;
    mg_gpt_config config = {0};
    config.vocab_size = 5;
    assert_ok(mg_gpt_new(&gpt, &config, 1, &fixture_error));
    assert_fails(mg_generator_new(&generator, gpt, 0, true, &fixture_error), "0 ids to draw from");
    assert_ok(mg_generator_new(&generator, gpt, 5, true, &fixture_error));
    mg_sampler sampler = {.temperature = 1};
    assert_operation_fails(mg_generate(generator, &sampler, 1, 0, 3, NULL, NULL, NULL), "generator", "no prompt yet");
    assert_operation_fails(mg_generator_append(generator, 1), "generator", "no prompt yet");
    assert_operation_fails(mg_generator_prompt(generator, (int[]){0, 5}, 2), "generator", "id 5 is not below");
    assert_operation_fails(mg_generator_prompt(generator, (int[]){-1}, 1), "generator", "id -1 is not below");
    assert_operation_fails(mg_generator_prompt(generator, (int[]){0}, 0), "generator", "at least one token");
    mg_generator_prompt(generator, (int[]){0}, 1);
    assert_operation_fails(mg_generator_append(generator, 5), "generator", "id 5 is not below");
    mg_generator_free(generator);
    mg_gpt_free(gpt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_a_function_of_the_seed),
        cmocka_unit_test(a_generator_takes_only_what_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
