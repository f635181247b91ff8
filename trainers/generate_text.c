#include "generate_text.h"
#include "generator.h"

#include <string.h>

typedef struct collector {
    int *ids;
    size_t n;
} collector;

static bool collect(int id, void *user) {
    collector *c = user;
    c->ids[c->n++] = id;
    return true;
}

/* Takes in the prompt, or the id that replaces an empty one. */
static mg_status begin(mg_generator *generator, const mg_tokenizer *tokenizer, const char *prompt, mg_error *error) {
    int start = mg_tokenizer_start_id(tokenizer), *ids = NULL;
    size_t n = 0;
    mg_status status = MG_OK;
    if (prompt && *prompt) status = mg_tokenizer_encode(&ids, &n, tokenizer, prompt, strlen(prompt), error);
    if (status != MG_OK) return status;
    if (n > 0)
        mg_generator_prompt(generator, ids, (ptrdiff_t)n);
    else
        mg_generator_prompt(generator, &start, 1);
    mg_free(ids);
    return MG_OK;
}

mg_status mg_generate_text(char **text, mg_gpt *gpt, const mg_tokenizer *tokenizer, const char *prompt,
                           ptrdiff_t n_tokens, const mg_sampler *sampler, uint64_t seed, mg_error *error) {
    static const mg_sampler plain = {.temperature = 1};
    if (!sampler) sampler = &plain;
    *text = NULL;
    MG_CHECK(n_tokens >= 0, "generate_text: %td tokens", n_tokens);
    const mg_gpt_config *config = mg_gpt_get_config(gpt);
    if (mg_tokenizer_size(tokenizer) > config->vocab_size)
        return mg_error_set(error, MG_ERR_INPUT, "the tokenizer has %d tokens, but the model's vocab_size is %d",
                            mg_tokenizer_size(tokenizer), config->vocab_size);
    mg_status status = mg_sampler_check(sampler, error);
    if (status != MG_OK) return status;
    mg_generator *generator;
    status = mg_generator_new(&generator, gpt, mg_tokenizer_size(tokenizer), mg_gpt_is_causal(config), error);
    if (status != MG_OK) return status;
    collector c = {.ids = mg_alloc((size_t)n_tokens, sizeof *c.ids, "a text", error)};
    status = c.ids ? begin(generator, tokenizer, prompt, error) : MG_ERR_MEMORY;
    if (status == MG_OK) {
        size_t length;
        status = mg_generate(generator, sampler, seed, 0, n_tokens, collect, &c, error);
        if (status == MG_OK) status = mg_tokenizer_decode(text, &length, tokenizer, c.ids, c.n, error);
    }
    mg_free(c.ids);
    mg_generator_free(generator);
    return status;
}
