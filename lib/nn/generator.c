#include "generator_private.h"

#include "prefill.h"

#include <string.h>

static mg_status allocate(mg_generator *g, bool use_cache, mg_error *error) {
    const mg_gpt_config *config = mg_gpt_get_config(g->gpt);
    size_t T = (size_t)config->block_size, V = (size_t)config->vocab_size;
    mg_tape_new(&g->tape, error);
    g->prompt = mg_alloc(T, sizeof(int), "a prompt", error);
    g->window = mg_alloc(T, sizeof(int), "a window", error);
    g->logits = mg_alloc(V, sizeof(mg_real), "logits", error);
    g->prompt_logits = mg_alloc(V, sizeof(mg_real), "logits", error);
    g->probabilities = mg_alloc(V, sizeof(double), "probabilities", error);
    g->order = mg_alloc(V, sizeof(int), "the order of tokens", error);
    if (!g->tape || !g->prompt || !g->window || !g->logits || !g->prompt_logits || !g->probabilities || !g->order)
        return MG_ERR_MEMORY;
    mg_tape_record(g->tape, false);
    return use_cache ? mg_kv_cache_new(&g->cache, mg_gpt_get_config(g->gpt), error) : MG_OK;
}

mg_status mg_generator_new(mg_generator **generator, mg_gpt *gpt, int n_ids, bool use_cache, mg_error *error) {
    *generator = NULL;
    MG_CHECK(n_ids >= 1, "generator: %d ids to draw from; it must have at least 1", n_ids);
    mg_generator *g = mg_alloc_zero(1, sizeof *g, "a generator", error);
    if (!g) return MG_ERR_MEMORY;
    g->gpt = gpt;
    g->block_size = mg_gpt_get_config(gpt)->block_size;
    int vocab_size = mg_gpt_get_config(gpt)->vocab_size;
    g->n_ids = n_ids < vocab_size ? n_ids : vocab_size;
    mg_status status = allocate(g, use_cache, error);
    if (status != MG_OK) {
        mg_generator_free(g);
        return status;
    }
    *generator = g;
    return MG_OK;
}

void mg_generator_free(mg_generator *generator) {
    if (!generator) return;
    if (generator->tape) mg_tape_free(generator->tape);
    mg_kv_cache_free(generator->cache);
    mg_free(generator->prompt);
    mg_free(generator->window);
    mg_free(generator->logits);
    mg_free(generator->prompt_logits);
    mg_free(generator->probabilities);
    mg_free(generator->order);
    mg_free(generator);
}

/* The logits after the last of n ids: from the whole window, or, with a cache, from what is new in it. */
static void predict(mg_generator *g, const int *ids, ptrdiff_t n) {
    ptrdiff_t done = g->cache ? mg_prefill(g->gpt, g->tape, g->cache, ids, n) : 0;
    mg_gpt_pass pass = {.cache = g->cache ? &g->cache : NULL, .last_only = true};
    mg_tensor *logits = mg_gpt_forward(g->gpt, g->tape, ids + done, 1, n - done, &pass);
    memcpy(g->logits, logits->data, (size_t)mg_size(logits) * sizeof *g->logits);
    mg_tape_reset(g->tape);
}

static void predict_window(mg_generator *g) {
    if (g->cache) mg_kv_cache_clear(g->cache);
    g->holds_prompt = false;
    predict(g, g->window, g->length);
}

static void predict_prompt(mg_generator *g) {
    predict_window(g);
    g->holds_prompt = true;
    g->is_cached = g->cache != NULL;
}

bool mg_make_room(const mg_gpt_config *config, int *window, ptrdiff_t *length, mg_kv_cache *cache) {
    ptrdiff_t ended = mg_gpt_ended(config, window, *length), left = ended > 0 ? ended : 1;
    *length -= left;
    memmove(window, window + left, (size_t)*length * sizeof *window);
    if (!cache || ended == 0) return false;
    mg_kv_cache_drop(cache, ended);
    return true;
}

static void show_prompt(mg_generator *g) {
    memcpy(g->window, g->prompt, (size_t)g->prompt_length * sizeof *g->window);
    g->length = g->prompt_length;
}

static void check_id(const mg_generator *g, int id) {
    int vocab_size = mg_gpt_get_config(g->gpt)->vocab_size;
    MG_CHECK(id >= 0 && id < vocab_size, "generator: id %d is not below the vocabulary's %d", id, vocab_size);
}

void mg_generator_prompt(mg_generator *g, const int *ids, ptrdiff_t n) {
    MG_CHECK(n >= 1, "generator: a prompt must have at least one token");
    for (ptrdiff_t i = 0; i < n; i++) check_id(g, ids[i]);
    ptrdiff_t kept = n < g->block_size ? n : g->block_size;
    memcpy(g->prompt, ids + (n - kept), (size_t)kept * sizeof *ids);
    g->prompt_length = kept;
    show_prompt(g);
    predict_prompt(g);
    memcpy(g->prompt_logits, g->logits, (size_t)mg_gpt_get_config(g->gpt)->vocab_size * sizeof *g->logits);
}

void mg_generator_rewind(mg_generator *g) {
    show_prompt(g);
    if (g->cache && !(g->holds_prompt && mg_kv_cache_cut(g->cache, g->prompt_length))) predict_prompt(g);
    memcpy(g->logits, g->prompt_logits, (size_t)mg_gpt_get_config(g->gpt)->vocab_size * sizeof *g->logits);
}

const mg_real *mg_generator_logits(const mg_generator *g) {
    return g->logits;
}

void mg_generator_append(mg_generator *g, int id) {
    check_id(g, id);
    MG_CHECK(g->length > 0, "generator: there is no prompt yet");
    if (g->length == g->block_size) {
        g->is_cached = mg_make_room(mg_gpt_get_config(g->gpt), g->window, &g->length, g->is_cached ? g->cache : NULL);
        g->holds_prompt = false;
    }
    g->window[g->length++] = id;
    if (g->is_cached)
        predict(g, &id, 1);
    else
        predict_window(g);
}

mg_status mg_generator_check(const mg_generator *g, const mg_sampler *sampler, ptrdiff_t n, mg_error *error) {
    MG_CHECK(g->prompt_length > 0, "generator: there is no prompt yet");
    MG_CHECK(n >= 0, "generator: %td tokens; it must be 0 or more", n);
    return mg_sampler_check(sampler, error);
}

mg_status mg_generate(mg_generator *g, const mg_sampler *sampler, uint64_t seed, uint32_t sample, ptrdiff_t n,
                      mg_token_fn *on_token, void *user, mg_error *error) {
    mg_status status = mg_generator_check(g, sampler, n, error);
    MG_CHECK(on_token, "generator: on_token is NULL");
    if (status != MG_OK) return status;
    mg_rng rng = {seed, MG_STREAM_SAMPLE, sample};
    mg_generator_rewind(g);
    for (ptrdiff_t i = 0; i < n; i++) {
        status = mg_gpt_check_logits(g->gpt, g->logits, g->n_ids, error);
        if (status != MG_OK) return status;
        mg_sampler_probabilities(sampler, g->logits, g->n_ids, g->probabilities, g->order);
        int id = mg_sampler_draw(g->probabilities, g->n_ids, rng, (uint64_t)i);
        if (!on_token(id, user)) break;
        if (i + 1 < n) mg_generator_append(g, id);
    }
    return MG_OK;
}

static bool collect(int id, void *user) {
    int **next = user;
    *(*next)++ = id;
    return true;
}

mg_status mg_generate_ids(mg_generator *g, const mg_sampler *sampler, uint64_t seed, uint32_t sample, ptrdiff_t n,
                          int *ids, mg_error *error) {
    return mg_generate(g, sampler, seed, sample, n, collect, &ids, error);
}
