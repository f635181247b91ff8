/* The first program: load a text, train a GPT on it, let it write. Usage: tiny_gpt TEXT */
#include <maskgrad/maskgrad.h>

int main(int argc, char **argv) {
    mg_error error;
    mg_corpus *corpus;
    mg_trainer *trainer;
    mg_data_options data = {.path = argc > 1 ? argv[1] : "text.txt"};
    mg_train_options options = {.max_iters = 1000};
    mg_sampler likely = {.temperature = 0.5};
    if (mg_corpus_load(&corpus, &data, &error) || mg_trainer_new(&trainer, &options, corpus, &error))
        return fprintf(stderr, "%s\n", error.message), 1;
    for (mg_step step = {0}; mg_trainer_steps_done(trainer) < options.max_iters;) {
        if (mg_trainer_step(trainer, &step, &error)) return fprintf(stderr, "%s\n", error.message), 1;
        if (step.step % 100 == 0) printf("step %4d: loss %.4f\n", (int)step.step, step.loss);
    }
    char *text;
    if (mg_generate_text(&text, mg_trainer_model(trainer), corpus->tokenizer, "she", 60, &likely, 1, &error))
        return fprintf(stderr, "%s\n", error.message), 1;
    printf("she%s\n", text);
    mg_free(text);
    mg_trainer_free(trainer);
    mg_corpus_free(corpus);
}
