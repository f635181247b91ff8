/* Lab leak, second half: what the two models write.
 *
 * While the window is not full, the last position of a text is one that in training had its label to its right. Once it
 * is full, the last position is the window's last, the one that never had: the unmasked model then writes honestly. So
 * the first window and the rest are judged apart. */
#include "generator.h"
#include "lab_private.h"
#include "leak.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SAMPLES = 48, WINDOWS = 3, SHOWN = 3 };
#define TEMPERATURE 0.8 /* nanoGPT's, for both */

/* All samples of one model: sample k holds the ids that follow the start. */
typedef struct writing {
    int *ids;        /* (SAMPLES, length) */
    ptrdiff_t first; /* tokens written before the window was full */
    ptrdiff_t length;
} writing;
struct leak_writing {
    writing of[N_MODELS];
};

static mg_status write_samples(mg_lab *lab, mg_trainer *trainer, uint64_t seed, const mg_corpus *corpus, writing *w,
                               mg_error *error) {
    mg_gpt *gpt = mg_trainer_model(trainer);
    const mg_gpt_config *config = mg_gpt_get_config(gpt);
    w->first = config->block_size - 1; /* the start takes a place */
    w->length = WINDOWS * config->block_size - 1;
    w->ids = mg_arena_alloc(lab->arena, (size_t)(SAMPLES * w->length), sizeof(int), "a lab's samples");
    mg_generator *generator;
    mg_status status = mg_generator_new(&generator, gpt, mg_tokenizer_size(corpus->tokenizer), mg_gpt_is_causal(config),
                                        error);
    if (status) return status;
    int start = mg_tokenizer_start_id(corpus->tokenizer);
    mg_generator_prompt(generator, &start, 1);
    enum { AT_ONCE = 16 };
    for (uint32_t done = 0; done < SAMPLES && !status; done += AT_ONCE) {
        status = mg_generate_samples_ids(generator, &(mg_sampler){.temperature = TEMPERATURE, .top_p = 1}, seed, done,
                                         AT_ONCE, w->length, w->ids + done * w->length, error);
        lab_progress(lab, "writing", done + AT_ONCE, SAMPLES, "texts");
        if (!status) status = lab_interrupted(lab, error);
    }
    mg_generator_free(generator);
    return status;
}

/* ---- Judged by the grammar ---- */

typedef struct grammar_verdict {
    int sentences[2], grammatical[2]; /* in the first window, and after it */
} grammar_verdict;

static double share(const grammar_verdict *v, int part) {
    return v->sentences[part] ? (double)v->grammatical[part] / v->sentences[part] : NAN;
}

/* "98.4%", or a dash where there is no whole sentence. */
static const char *percent(char *text, size_t size, double part) {
    if (isnan(part))
        snprintf(text, size, "-");
    else
        snprintf(text, size, "%.1f%%", 100 * part);
    return text;
}

static grammar_verdict judge(const mg_grammar *grammar, const writing *w) {
    grammar_verdict v = {{0}, {0}};
    for (int sample = 0; sample < SAMPLES; sample++) {
        const int *ids = w->ids + sample * w->length;
        for (int part = 0; part < 2; part++) {
            mg_grammar_score score;
            if (part == 0)
                mg_grammar_judge(grammar, ids, w->first, true, &score);
            else
                mg_grammar_judge(grammar, ids + w->first, w->length - w->first, false, &score);
            v.sentences[part] += score.sentences;
            v.grammatical[part] += score.grammatical;
        }
    }
    return v;
}

/* The control: words drawn from the training text one by one, by a writer who knows no grammar. */
static writing scatter_words(mg_lab *lab, const mg_corpus *corpus, const writing *like) {
    writing w = *like;
    size_t n = (size_t)(SAMPLES * w.length);
    w.ids = mg_arena_alloc(lab->arena, n, sizeof(int), "scattered words");
    mg_rng rng = {lab_asked(lab)->seed, MG_STREAM_LAB, 4};
    for (size_t i = 0; i < n; i++) w.ids[i] = corpus->ids[mg_rng_below(rng, i, (uint64_t)corpus->n_train)];
    return w;
}

enum { MOST_BY_CHANCE = 20, LEAST_WELL = 95 }; /* % */

static void grammar_row(lab_table *table, const char *name, const mg_grammar *grammar, const writing *w) {
    grammar_verdict v = judge(grammar, w);
    char before[16], after[16];
    lab_table_row(table, "%s\t%d of %d\t%s\t%d of %d\t%s", name, v.grammatical[0], v.sentences[0],
                  percent(before, sizeof before, share(&v, 0)), v.grammatical[1], v.sentences[1],
                  percent(after, sizeof after, share(&v, 1)));
}

static double percent_grammatical(const mg_grammar *grammar, const writing *w) {
    grammar_verdict v = judge(grammar, w);
    return 100 * share(&v, 0);
}

static void check_grammar(mg_lab *lab, const leak_seeds *seeds, const mg_corpus *corpus, const writing *w,
                          const char *why) {
    const lab_training *training = seeds->training;
    lab_table *table = lab_table_begin(lab, "grammar", "Sentences that the grammar could have produced",
                                       "writer\tfirst window\t\tafter it\t");
    for (int i = 0; i < N_MODELS; i++) grammar_row(table, training->variant[i].name, corpus->grammar, &w[i]);
    writing scattered = scatter_words(lab, corpus, &w[0]);
    grammar_row(table, "scattered words", corpus->grammar, &scattered);
    double chance = percent_grammatical(corpus->grammar, &scattered);
    lab_table_end(table,
                  "After the first window an unmasked model may write well: a full window's last position is the one "
                  "that never had a label to read, so it had to learn the language. It is one position in %d, and the "
                  "text it continues from is what it wrote before. Scattered words are drawn from the training text "
                  "one by one: what no knowledge of the grammar gives.",
                  training->variant[0].options.model.block_size);
    const char *masked = "masked: grammatical sentences, first window";
    const char *unmasked = "unmasked: grammatical sentences, first window";
    if (chance > MOST_BY_CHANCE) {
        const char *easy = lab_format(lab, "in this grammar %.1f%% of scattered words are sentences", chance);
        lab_undecided(lab, masked, mg_summarize(seeds->n, seeds->writing[MASKED]).mean, "%", "%s", easy);
        lab_undecided(lab, unmasked, mg_summarize(seeds->n, seeds->writing[UNMASKED]).mean, "%", "%s", easy);
        return;
    }
    lab_check_mean_at_least(lab, masked, seeds->n, seeds->writing[MASKED], LEAST_WELL, "%");
    if (why)
        lab_undecided(lab, unmasked, mg_summarize(seeds->n, seeds->writing[UNMASKED]).mean, "%", "%s", why);
    else
        lab_check_mean_at_most(lab, unmasked, seeds->n, seeds->writing[UNMASKED], MOST_BY_CHANCE, "%");
}

/* ---- Judged by the masked model ---- */

/* Mean loss of the judge on the first window of all samples, each after its start. */
static double judged_loss(mg_lab *lab, mg_gpt *judge, const mg_corpus *corpus, const writing *w) {
    int T = (int)w->first;
    int *ids = mg_arena_alloc(lab->arena, (size_t)T, sizeof(int), "a judged text");
    double sum = 0;
    mg_tape *tape;
    mg_tape_new(&tape, NULL);
    lab_need_memory(tape, "a tape");
    mg_tape_record(tape, false);
    for (int sample = 0; sample < SAMPLES; sample++) {
        const int *text = w->ids + sample * w->length;
        ids[0] = mg_tokenizer_start_id(corpus->tokenizer);
        memcpy(ids + 1, text, (size_t)(T - 1) * sizeof(int));
        sum += (double)mg_gpt_loss(judge, tape, ids, text, 1, T, NULL, NULL)->data[0];
        mg_tape_reset(tape);
    }
    mg_tape_free(tape);
    return sum / SAMPLES;
}

static void check_text(mg_lab *lab, const leak_seeds *seeds, const char *why) {
    double *more = lab_numbers(lab, seeds->n);
    lab_table *table = lab_table_begin(lab, "judged", "The masked model reads both texts",
                                       "text of\tloss (nats per token)\tperplexity");
    for (int i = 0; i < N_MODELS; i++) {
        double loss = seeds->writing[i][0];
        lab_table_row(table, "%s\t%.3f\t%.1f", seeds->training->variant[i].name, loss, exp(loss));
    }
    lab_table_end(table,
                  "No grammar is known here, so the masked model is the judge: how much does it lose on what each "
                  "of the two writes in its first window?");
    const char *name = "unmasked text: how much more it surprises the masked model";
    for (int s = 0; s < seeds->n; s++) more[s] = seeds->writing[UNMASKED][s] - seeds->writing[MASKED][s];
    if (why)
        lab_undecided(lab, name, mg_summarize(seeds->n, more).mean, "nats", "%s", why);
    else
        lab_check_mean_above(lab, name, seeds->n, more, 0.5, "nats");
}

/* ---- Shown ---- */

typedef struct text {
    char *bytes;
    size_t used, size;
} text;

static void append(text *t, const char *bytes, size_t n) {
    if (n >= t->size - t->used) n = t->size - t->used - 1;
    memcpy(t->bytes + t->used, bytes, n);
    t->used += n;
    t->bytes[t->used] = '\0';
}

/* Where the sentence that starts at `begin` ends: after its "." or at n. */
static ptrdiff_t sentence_end(const int *ids, ptrdiff_t begin, ptrdiff_t n, int period) {
    while (begin < n && ids[begin] != period) begin++;
    return begin < n ? begin + 1 : n;
}

/* A grammar's sentences, one per line, with the linguists' star before those that cannot be. One that repeats is
 * written once, with how often. */
static void append_sentences(text *t, const mg_corpus *corpus, const int *ids, ptrdiff_t n) {
    int period = mg_tokenizer_start_id(corpus->tokenizer);
    for (ptrdiff_t begin = 0, stop, next; begin < n; begin = next) {
        int times = 1;
        stop = next = sentence_end(ids, begin, n, period);
        size_t bytes = (size_t)(stop - begin) * sizeof *ids;
        while (next + stop - begin <= n && memcmp(ids + begin, ids + next, bytes) == 0) {
            next += stop - begin;
            times++;
        }
        mg_grammar_score score;
        mg_grammar_judge(corpus->grammar, ids + begin, stop - begin, true, &score);
        append(t, score.impossible_words ? "* " : "  ", 2);
        for (ptrdiff_t i = begin; i < stop; i++) {
            const char *word = mg_grammar_word(corpus->grammar, ids[i]);
            append(t, word, strlen(word));
            append(t, " ", i + 1 < stop);
        }
        char repeated[32] = "";
        if (times > 1) snprintf(repeated, sizeof repeated, "  × %d", times);
        append(t, repeated, strlen(repeated));
        append(t, "\n", 1);
    }
}

/* A sample on lines of its own; line ends that the model wrote are shown as ↵, several after each other with their
 * number. */
static void append_text(text *t, const mg_corpus *corpus, const int *ids, ptrdiff_t n) {
    char *bytes;
    size_t length;
    if (mg_tokenizer_decode(&bytes, &length, corpus->tokenizer, ids, (size_t)n, NULL) != MG_OK) return;
    for (size_t i = 0, run; i < length; i += run) {
        run = strspn(bytes + i, "\n");
        char line_ends[32] = "";
        if (run > 1) snprintf(line_ends, sizeof line_ends, "↵×%zu ", run);
        if (run == 1) snprintf(line_ends, sizeof line_ends, "↵ ");
        append(t, line_ends, strlen(line_ends));
        if (run == 0) append(t, bytes + i, run = strcspn(bytes + i, "\n"));
    }
    append(t, "\n\n", 2);
    mg_free(bytes);
}

static const char *shown_text(mg_lab *lab, const mg_corpus *corpus, const writing *w) {
    text t = {.size = 1 << 16};
    t.bytes = mg_arena_alloc(lab->arena, t.size, 1, "a lab's text");
    t.bytes[0] = '\0';
    int samples = corpus->grammar ? SHOWN : 2 * SHOWN;
    for (int sample = 0; sample < samples; sample++) {
        const int *ids = w->ids + sample * w->length;
        if (corpus->grammar)
            append_sentences(&t, corpus, ids, w->first);
        else
            append_text(&t, corpus, ids, w->first);
    }
    return t.bytes;
}

mg_status leak_write(mg_lab *lab, leak_seeds *seeds, int s, const mg_corpus *corpus, leak_writing **out,
                     mg_error *error) {
    leak_writing *w = *out = lab_memory(lab, 1, sizeof *w);
    const lab_variant *variant = seeds->training[s].variant;
    for (int i = 0; i < N_MODELS; i++) {
        mg_status status = write_samples(lab, variant[i].trainer, lab_asked(lab)->seed + (uint64_t)s, corpus, &w->of[i],
                                         error);
        if (status) return status;
        seeds->writing[i][s] = corpus->grammar
                                   ? percent_grammatical(corpus->grammar, &w->of[i])
                                   : judged_loss(lab, mg_trainer_model(variant[MASKED].trainer), corpus, &w->of[i]);
    }
    return MG_OK;
}

void leak_show_writing(mg_lab *lab, const leak_seeds *seeds, const mg_corpus *corpus, const leak_writing *w,
                       const char *why) {
    const char *headings[N_MODELS], *texts[N_MODELS];
    for (int i = 0; i < N_MODELS; i++) {
        headings[i] = lab_format(lab, "The %s model writes", seeds->training->variant[i].name);
        texts[i] = shown_text(lab, corpus, &w->of[i]);
    }
    lab_texts(lab,
              corpus->grammar ? "First windows, side by side (*: not a sentence of this grammar)"
                              : "First windows, side by side",
              N_MODELS, headings, texts);
    if (corpus->grammar)
        check_grammar(lab, seeds, corpus, w->of, why);
    else
        check_text(lab, seeds, why);
}
