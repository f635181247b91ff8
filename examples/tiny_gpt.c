/* A GPT learns a sentence by heart and says it: corpus in memory, training, proof of causality, sampling with a cache.
 */
#include <maskgrad/maskgrad.h>

#include <stdio.h>
#include <string.h>

enum { BLOCK = 32, STEPS = 150 };

static const char text[] = "she sells sea shells by the sea shore . ";

/* Each window of BLOCK tokens is a row; the target of a token is the one behind it, around the end of the text. */
static double train_step(mg_gpt *gpt, mg_tape *tape, mg_adamw *adamw, const int *tokens, int n) {
    int ids[sizeof text * BLOCK], targets[sizeof text * BLOCK];
    for (int i = 0; i < n * BLOCK; i++) {
        ids[i] = tokens[(i / BLOCK + i % BLOCK) % n];
        targets[i] = tokens[(i / BLOCK + i % BLOCK + 1) % n];
    }
    mg_tensor *loss = mg_gpt_loss(gpt, tape, ids, targets, n, BLOCK, NULL, NULL);
    mg_backward(tape, loss);
    double norm = mg_params_grad_norm(mg_gpt_params(gpt)), value = (double)loss->data[0];
    mg_adamw_step(adamw, mg_gpt_params(gpt), 3e-3, mg_clip_scale(norm, 1));
    mg_tape_reset(tape);
    return value;
}

/* The most likely text behind the prompt, up to the end of the context. */
static void say(mg_gpt *gpt, mg_tape *tape, mg_kv_cache *cache, const mg_tokenizer *tokenizer, int *ids, int n) {
    double probabilities[256];
    int order[256], size = mg_tokenizer_size(tokenizer);
    mg_tape_record(tape, false);
    for (int at = 0; at + n < BLOCK; at += n, n = 1) {
        mg_tensor *logits = mg_gpt_forward(gpt, tape, ids, 1, n, &(mg_gpt_pass){.cache = cache, .last_only = true});
        mg_sampler_probabilities(&(mg_sampler){.temperature = 0, .top_p = 1}, logits->data, size, probabilities, order);
        ids[0] = mg_sampler_draw(probabilities, size, (mg_rng){1, MG_STREAM_SAMPLE, 0}, (uint64_t)at);
        mg_token token = mg_tokenizer_token(tokenizer, ids[0]);
        printf("%.*s", (int)token.length, token.bytes);
        mg_tape_reset(tape);
    }
    printf("\n");
}

int main(void) {
    mg_error error;
    mg_tokenizer *tokenizer;
    int *tokens;
    size_t n;
    if (mg_tokenizer_from_text(&tokenizer, MG_TOKENIZER_CHAR, text, strlen(text), &error) ||
        mg_tokenizer_encode(tokenizer, text, strlen(text), &tokens, &n, &error))
        return fprintf(stderr, "%s\n", error.message), 1;
    mg_gpt_config config = mg_gpt_defaults();
    config.block_size = BLOCK;
    config.vocab_size = mg_tokenizer_size(tokenizer);
    mg_gpt *gpt;
    mg_adamw *adamw;
    mg_kv_cache *cache;
    mg_causality causality;
    mg_tape *tape;
    mg_tape_new(&tape, &error);
    if (!tape || mg_gpt_new(&gpt, &config, 1337, &error) || mg_kv_cache_new(&cache, gpt, &error) ||
        mg_adamw_new(&adamw, mg_gpt_params(gpt), 0.9, 0.99, 0.1, &error))
        return fprintf(stderr, "%s\n", error.message), 1;
    for (int step = 0; step <= STEPS; step++) {
        double loss = train_step(gpt, tape, adamw, tokens, (int)n);
        if (step % 50 == 0) printf("step %3d: loss %.4f\n", step, loss);
    }
    if (mg_causality_of_gpt(&causality, gpt, tokens, BLOCK, &error)) return fprintf(stderr, "%s\n", error.message), 1;
    printf("%s\nshe sells", causality.reason);
    say(gpt, tape, cache, tokenizer, tokens, 9);
    mg_causality_free(&causality);
    mg_kv_cache_free(cache);
    mg_adamw_free(adamw);
    mg_gpt_free(gpt);
    mg_tape_free(tape);
    mg_free(tokens);
    mg_tokenizer_free(tokenizer);
    return 0;
}
