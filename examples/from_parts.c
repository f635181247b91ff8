/* What tiny_gpt.c does, from its parts: a training loop of one's own, and a proof that the model sees no future. */
#include <maskgrad/maskgrad.h>

#include <string.h>

enum { BLOCK = 32, STEPS = 150 };

static const char text[] = "she sells sea shells by the sea shore . ";

/* Each window of BLOCK tokens is a row; the target of a token is the one after it, around the end of the text. */
static double train_step(mg_gpt *gpt, mg_tape *tape, mg_adamw *adamw, const int *tokens, int n) {
    int ids[sizeof text * BLOCK], targets[sizeof text * BLOCK];
    for (int i = 0; i < n * BLOCK; i++) {
        ids[i] = tokens[(i / BLOCK + i % BLOCK) % n];
        targets[i] = tokens[(i / BLOCK + i % BLOCK + 1) % n];
    }
    mg_tensor *loss = mg_gpt_loss(gpt, tape, ids, targets, n, BLOCK, NULL, NULL);
    mg_backward(tape, loss);
    double norm = mg_params_grad_norm(mg_gpt_params(gpt)), value = (double)loss->data[0];
    mg_adamw_step(adamw, mg_gpt_params(gpt), 3e-3, mg_clip_scale(norm, 1)); /* clears the gradients too */
    mg_tape_reset(tape);
    return value;
}

int main(void) {
    mg_error error;
    mg_tokenizer *tokenizer;
    int *tokens;
    size_t n;
    if (mg_tokenizer_from_text(&tokenizer, MG_TOKENIZER_CHAR, text, strlen(text), &error) ||
        mg_tokenizer_encode(&tokens, &n, tokenizer, text, strlen(text), &error))
        return fprintf(stderr, "%s\n", error.message), 1;
    mg_gpt_config config = {.block_size = BLOCK, .vocab_size = mg_tokenizer_size(tokenizer)};
    mg_tape *tape;
    mg_gpt *gpt;
    mg_adamw *adamw;
    if (mg_tape_new(&tape, &error) || mg_gpt_new(&gpt, &config, 1337, &error) ||
        mg_adamw_new(&adamw, mg_gpt_params(gpt), 0.9, 0.99, 0.1, &error))
        return fprintf(stderr, "%s\n", error.message), 1;
    for (int step = 0; step <= STEPS; step++) {
        double loss = train_step(gpt, tape, adamw, tokens, (int)n);
        if (step % 50 == 0) printf("step %3d: loss %.4f\n", step, loss);
    }

    mg_causality causality;
    char *more;
    if (mg_causality_of_gpt(&causality, gpt, tokens, BLOCK, &error) ||
        mg_generate_text(&more, gpt, tokenizer, "she sells", 23, &(mg_sampler){.temperature = 0}, 1, &error))
        return fprintf(stderr, "%s\n", error.message), 1;
    printf("%s\nshe sells%s\n", causality.reason, more);

    mg_free(more);
    mg_causality_free(&causality);
    mg_adamw_free(adamw);
    mg_gpt_free(gpt);
    mg_tape_free(tape);
    mg_free(tokens);
    mg_tokenizer_free(tokenizer);
    return 0;
}
