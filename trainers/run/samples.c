#include "samples.h"
#include "atomic_file.h"
#include "generator.h"

#include <stdio.h>

static void add_score(mg_grammar_score *sum, const mg_grammar_score *score) {
    sum->sentences += score->sentences;
    sum->grammatical += score->grammatical;
    sum->words += score->words;
    sum->impossible_words += score->impossible_words;
}

static mg_status write_sample(FILE *out, const mg_corpus *corpus, const int *ids, ptrdiff_t n, mg_error *error) {
    char *text;
    size_t length;
    mg_status status = mg_tokenizer_decode(&text, &length, corpus->tokenizer, ids, (size_t)n, error);
    if (status != MG_OK) return status;
    fwrite(text, 1, length, out);
    fputs("\n---------------\n", out);
    mg_free(text);
    return MG_OK;
}

static mg_status write_sample_and_judge(FILE *out, const mg_corpus *corpus, const int *ids, ptrdiff_t n,
                                        mg_grammar_score *score, mg_error *error) {
    mg_status status = write_sample(out, corpus, ids, n, error);
    if (status != MG_OK || !corpus->grammar) return status;
    mg_grammar_score one;
    mg_grammar_judge(corpus->grammar, ids, n, true, &one);
    add_score(score, &one);
    return MG_OK;
}

static mg_status write_all(FILE *out, mg_generator *generator, const mg_corpus *corpus,
                           const mg_samples_options *options, mg_grammar_score *score, mg_error *error) {
    enum { AT_ONCE = 64 };
    ptrdiff_t n = options->n_tokens, n_samples = options->n_samples;
    size_t room = (size_t)(n_samples < AT_ONCE ? n_samples : AT_ONCE);
    int *ids = mg_alloc(room * (size_t)n, sizeof *ids, "samples", error);
    if (!ids) return MG_ERR_MEMORY;
    int start = mg_tokenizer_start_id(corpus->tokenizer);
    mg_generator_prompt(generator, &start, 1);
    mg_status status = MG_OK;
    for (ptrdiff_t done = 0; done < n_samples && status == MG_OK; done += AT_ONCE) {
        ptrdiff_t some = n_samples - done < AT_ONCE ? n_samples - done : AT_ONCE;
        status = mg_generate_samples_ids(generator, &options->sampler, options->seed, (uint32_t)done, some, n, ids,
                                         error);
        if (status == MG_OK && done == 0 && options->show) options->show(ids, n, options->user);
        for (ptrdiff_t i = 0; i < some && status == MG_OK; i++)
            status = write_sample_and_judge(out, corpus, ids + i * n, n, score, error);
    }
    mg_free(ids);
    return status;
}

mg_status mg_samples_write(const char *path, mg_gpt *gpt, const mg_corpus *corpus, const mg_samples_options *options,
                           mg_grammar_score *score, mg_error *error) {
    *score = (mg_grammar_score){0};
    mg_generator *generator;
    mg_status status = mg_generator_new(&generator, gpt, mg_tokenizer_size(corpus->tokenizer),
                                        mg_gpt_is_causal(mg_gpt_get_config(gpt)), error);
    if (status != MG_OK) return status;
    mg_atomic_text file;
    status = mg_atomic_text_begin(&file, path, error);
    if (status == MG_OK) {
        status = write_all(file.out, generator, corpus, options, score, error);
        status = mg_atomic_text_finish(&file, status, error);
    }
    mg_generator_free(generator);
    return status;
}
