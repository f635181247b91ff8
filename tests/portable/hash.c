/* Trains a GPT and prints a hash of its weights and one of the text that it then writes: the same on every machine, if
 * arithmetic is. No files: the corpus is drawn.
 *
 *     hash toy|char causal|none STEPS
 *
 * prints "toy causal 300 loss 1.234567 weights 0123456789abcdef text 0123456789abcdef". */
#include "hash.h"
#include "adamw.h"
#include "generator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 1337, CORPUS = 20000, WRITTEN = 96, MOST_TOKENS = 512 };

static void stop(const char *message) {
    fprintf(stderr, "hash: %s\n", message);
    exit(1);
}

typedef struct size {
    const char *name;
    int batch;
    mg_gpt_config config;
} size;
static const size sizes[] = {
    {"toy", 16, {.n_layer = 2, .n_head = 4, .n_embd = 64, .block_size = 32, .vocab_size = 28}},
    {"char", 2, {.n_layer = 4, .n_head = 4, .n_embd = 128, .block_size = 64, .vocab_size = 65}},
};

static size size_of(const char *name, const char *mask) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (strcmp(sizes[i].name, name) != 0) continue;
        size s = sizes[i];
        if (strcmp(mask, "none") == 0)
            s.config.mask.n = MG_LOOKAHEAD_ALL;
        else if (strcmp(mask, "causal") != 0)
            stop("the mask is causal or none");
        return s;
    }
    stop("the size is toy or char");
    return sizes[0];
}

/* Each token has three successors. */
static void draw_corpus(int *ids, int vocab_size) {
    mg_rng rng = {SEED, MG_STREAM_LAB, 0};
    ids[0] = 0;
    for (int i = 1; i < CORPUS; i++)
        ids[i] = (5 * ids[i - 1] + 7 * (int)mg_rng_below(rng, (uint64_t)i, 3) + 1) % vocab_size;
}

static void draw_batch(const int *corpus, int64_t step, int B, int T, int *ids, int *targets) {
    mg_rng rng = {SEED, MG_STREAM_BATCH, (uint32_t)step};
    for (int b = 0; b < B; b++) {
        const int *window = corpus + mg_rng_below(rng, (uint64_t)b, (uint64_t)(CORPUS - T));
        memcpy(ids + b * T, window, (size_t)T * sizeof *ids);
        memcpy(targets + b * T, window + 1, (size_t)T * sizeof *ids);
    }
}

/* Returns the last loss. */
static double train(mg_gpt *gpt, const int *corpus, int batch, int64_t steps) {
    mg_error error;
    mg_tape *tape;
    mg_adamw *adamw;
    mg_params *params = mg_gpt_params(gpt);
    static int ids[MOST_TOKENS], targets[MOST_TOKENS];
    int T = mg_gpt_get_config(gpt)->block_size;
    double loss = 0;
    mg_lr_schedule schedule = {.lr = 1e-3, .min_lr = 1e-4, .warmup_iters = 20, .decay_iters = 300};
    if (mg_tape_new(&tape, &error) || mg_adamw_new(&adamw, params, 0.9, 0.99, 0.1, &error)) stop(error.message);
    mg_tape_recycle_gradients(tape, true);
    for (int64_t step = 0; step < steps; step++) {
        draw_batch(corpus, step, batch, T, ids, targets);
        mg_tensor *l = mg_gpt_loss(gpt, tape, ids, targets, batch, T, NULL, NULL);
        loss = (double)l->data[0];
        mg_backward(tape, l);
        mg_tape_reset(tape);
        mg_adamw_step(adamw, params, mg_lr_at(&schedule, step), mg_clip_scale(mg_params_grad_norm(params), 1));
    }
    mg_adamw_free(adamw);
    mg_tape_free(tape);
    return loss;
}

static uint64_t hash_of_text(mg_gpt *gpt, bool use_cache) {
    mg_error error;
    mg_generator *generator;
    int ids[WRITTEN], first = 0;
    mg_sampler sampler = {.temperature = 0.9};
    if (mg_generator_new(&generator, gpt, mg_gpt_get_config(gpt)->vocab_size, use_cache, &error)) stop(error.message);
    mg_generator_prompt(generator, &first, 1);
    if (mg_generate_ids(generator, &sampler, SEED, 0, WRITTEN, ids, &error)) stop(error.message);
    mg_generator_free(generator);
    return mg_fnv1a(MG_FNV_START, ids, sizeof ids);
}

int main(int argc, char **argv) {
    mg_error error;
    mg_gpt *gpt;
    static int corpus[CORPUS];
    if (argc != 4) stop("usage: hash toy|char causal|none STEPS");
    size s = size_of(argv[1], argv[2]);
    draw_corpus(corpus, s.config.vocab_size);
    if (mg_gpt_new(&gpt, &s.config, SEED, &error)) stop(error.message);
    double loss = train(gpt, corpus, s.batch, strtol(argv[3], NULL, 10));
    mg_params *params = mg_gpt_params(gpt);
    uint64_t weights = mg_fnv1a(MG_FNV_START, params->values, (size_t)params->size * sizeof *params->values);
    uint64_t text = hash_of_text(gpt, false);
    if (mg_gpt_is_causal(&s.config) && hash_of_text(gpt, true) != text) stop("the cache changes the text");
    printf("%s %s %s loss %.9g weights %016llx text %016llx\n", argv[1], argv[2], argv[3], loss,
           (unsigned long long)weights, (unsigned long long)text);
    mg_gpt_free(gpt);
    return 0;
}
