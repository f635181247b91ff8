#include "subject.h"
#include "generator.h"
#include "lab_private.h"

#include <math.h>
#include <string.h>

static void set_defaults(void *own) {
    mg_run_options *o = own;
    *o = mg_run_defaults();
}

static const mg_settings tables[] = {{mg_data_settings, 0}, {NULL, 0}};
const lab_options lab_subject_options = {tables, sizeof(mg_run_options), set_defaults, NULL};

enum { MOST_PROMPT = 64 }; /* tokens: a map of more cannot be read */

const char *lab_data_setting(const mg_run_options *run) {
    return run->data.tokens ? "tokens" : run->data.column ? "column" : run->data.merges ? "merges" : NULL;
}

/* ---- The model ---- */

static mg_status load(mg_lab *lab, mg_run_options *run, int least, lab_subject *s, mg_error *error) {
    mg_status status = lab_model_load(lab, least, MOST_PROMPT, &s->loaded, error);
    if (status) return status;
    s->gpt = s->loaded.checkpoint.gpt;
    s->tokenizer = s->loaded.checkpoint.tokenizer;
    const mg_gpt_config *config = mg_gpt_get_config(s->gpt);
    const char *path = lab_asked(lab)->checkpoint;
    if (s->tokenizer && mg_tokenizer_get_kind(s->tokenizer) == MG_TOKENIZER_NONE) s->tokenizer = NULL;
    s->n_ids = s->tokenizer ? mg_tokenizer_size(s->tokenizer) : config->vocab_size;
    const char *about_data = lab_asked(lab)->data ? NULL : lab_data_setting(run);
    if (about_data)
        return mg_error_set(error, MG_ERR_INPUT, "--%s is about the data: give --data FILE too", about_data);
    if (!lab_asked(lab)->data) return MG_OK;
    if (!s->tokenizer)
        return mg_error_set(error, MG_ERR_INPUT,
                            "%s has no tokenizer, so it cannot read --data; without --data its own texts are used",
                            path);
    run->data.tokenizer = s->tokenizer;
    run->train.model.block_size = least;
    return lab_load_corpus(lab, run, &s->corpus, error);
}

static mg_status train(mg_lab *lab, mg_run_options *run, const mg_train_options *shape, lab_subject *s,
                       mg_error *error) {
    run->train = *shape;
    run->train.seed = lab_asked(lab)->seed;
    run->eval_interval = shape->max_iters;
    run->eval_iters = 20;
    mg_run_options_resolve(run);
    mg_status status = lab_load_corpus(lab, run, &s->corpus, error);
    if (status) return status;
    s->variant = (lab_variant){.name = "the model", .color = LAB_MASKED, .options = run->train};
    lab_training training = {.n_variants = 1, .variant = &s->variant};
    status = lab_begin(lab, error);
    if (!status) status = lab_train(lab, &training, s->corpus, run, error);
    if (status) return status;
    s->gpt = mg_trainer_model(s->variant.trainer);
    s->tokenizer = s->corpus->tokenizer;
    s->n_ids = mg_tokenizer_size(s->tokenizer);
    const mg_gpt_config *m = mg_gpt_get_config(s->gpt);
    char mask[128], words[128];
    mg_model_words(m, words, sizeof words);
    mg_mask_words(m, mask, sizeof mask);
    lab_setting(lab, "model", "%s, mask: %s; %lld steps on %s, validation loss %.3f nats", words, mask,
                (long long)shape->max_iters, s->corpus->name, s->variant.validation[training.n_evaluations - 1]);
    return MG_OK;
}

mg_status lab_subject_open(mg_lab *lab, const mg_train_options *shape, int least, lab_subject_check *check,
                           lab_subject *s, mg_error *error) {
    *s = (lab_subject){0};
    mg_run_options run = *(const mg_run_options *)lab_asked(lab)->own;
    bool loads = lab_asked(lab)->checkpoint != NULL;
    mg_status status = loads ? load(lab, &run, least, s, error) : MG_OK;
    if (!status && check) status = check(lab, loads ? mg_gpt_get_config(s->gpt) : &shape->model, error);
    if (status) return status;
    return loads ? lab_begin(lab, error) : train(lab, &run, shape, s, error);
}

void lab_subject_close(lab_subject *s) {
    lab_model_free(&s->loaded);
    mg_trainer_free(s->variant.trainer);
    mg_corpus_free(s->corpus);
    *s = (lab_subject){0};
}

/* ---- Texts ---- */

/* Each text follows the start token, which is left out, and is one token longer than T: the last target. */
static mg_status write_texts(mg_lab *lab, lab_subject *s, lab_text_set *texts, mg_error *error) {
    int T = texts->T;
    mg_generator *generator;
    mg_status status = mg_generator_new(&generator, s->gpt, s->n_ids, mg_gpt_is_causal(mg_gpt_get_config(s->gpt)),
                                        error);
    if (status) return status;
    int *written = mg_arena_alloc(lab->arena, (size_t)T + 1, sizeof *written, "a lab's texts");
    int start = s->tokenizer ? mg_tokenizer_start_id(s->tokenizer) : 0;
    mg_generator_prompt(generator, &start, 1);
    for (int i = 0; i < texts->n && !status; i++) {
        lab_progress(lab, "writing", i, texts->n, "texts");
        status = mg_generate_ids(generator, &(mg_sampler){.temperature = 1, .top_p = 1}, lab_asked(lab)->seed,
                                 (uint32_t)i, T + 1, written, error);
        if (status) break;
        memcpy(texts->ids + (ptrdiff_t)i * T, written, (size_t)T * sizeof *written);
        memcpy(texts->targets + (ptrdiff_t)i * T, written + 1, (size_t)T * sizeof *written);
        status = lab_interrupted(lab, error);
    }
    lab_progress(lab, "writing", texts->n, texts->n, "texts");
    mg_generator_free(generator);
    return status;
}

mg_status lab_subject_texts(mg_lab *lab, lab_subject *s, int n, int T, lab_text_set *texts, mg_error *error) {
    int block_size = mg_gpt_get_config(s->gpt)->block_size;
    *texts = (lab_text_set){.n = n, .T = T < block_size ? T : block_size};
    size_t size = (size_t)n * (size_t)texts->T;
    texts->ids = mg_arena_alloc(lab->arena, size, sizeof(int), "a lab's texts");
    texts->targets = mg_arena_alloc(lab->arena, size, sizeof(int), "a lab's texts");
    if (!s->corpus) {
        texts->source = "written by the model itself";
        return write_texts(lab, s, texts, error);
    }
    mg_status status = mg_corpus_check(s->corpus, texts->T, error);
    if (status) return status;
    texts->source = lab_format(lab, "windows of %s", s->corpus->name);
    mg_rng rng = {lab_asked(lab)->seed, MG_STREAM_LAB, 1};
    mg_corpus_batch(s->corpus, MG_VALIDATION, rng, n, texts->T, texts->ids, texts->targets);
    return MG_OK;
}

const char **lab_subject_labels(mg_lab *lab, const lab_subject *s, const int *ids, int n) {
    if (s->tokenizer) return lab_token_labels(lab, s->tokenizer, ids, n);
    const char **labels = mg_arena_alloc(lab->arena, (size_t)n, sizeof *labels, "a lab's labels");
    for (int i = 0; i < n; i++) labels[i] = lab_format(lab, "%d", ids[i]);
    return labels;
}

int lab_subject_affords(lab_subject *s, int usual, int T) {
    /* About a second of work on one core: 2 operations per parameter and token. */
    double work = 2 * (double)mg_params_count(mg_gpt_params(s->gpt)) * T;
    double most = 4e10 / work;
    return most >= usual ? usual : most <= 2 ? 2 : (int)most;
}

lab_mean lab_mean_of(int n, const double *x) {
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    double mean = sum / n;
    for (int i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
    return (lab_mean){mean, n > 1 ? sqrt(squares / (n - 1) / n) : 0};
}
