/* Lab cache, third part: the model without the mask.
 *
 * The library refuses to give it a cache. To see what the refusal prevents, the cache is built by hand: a key that is
 * computed when its token arrives has seen that token and the ones before it, for the later ones are not there yet, and
 * a cache never computes it again. That is to say: token by token, the weights of an unmasked model with a cache
 * compute what the same weights compute under the causal mask. Without a cache every key is made anew from all the
 * tokens. */
#include "cache.h"
#include "generator.h"
#include "kv_cache.h"
#include "lab_private.h"
#include "operation.h"

#include <math.h>
#include <string.h>

enum { MOST_T = 32, SAMPLES = 8, FEW = 2 };

/* ---- The keys ---- */

/* keys[layer] gets the keys (n,C) of a pass over n tokens. */
static void take_keys(mg_gpt *gpt, mg_tape *tape, const int *ids, int n, mg_real *const *keys) {
    const mg_gpt_config *c = mg_gpt_get_config(gpt);
    mg_tensor **qkv = mg_tape_alloc(tape, (size_t)c->n_layer, sizeof *qkv, "what to look at");
    mg_gpt_capture capture = {.qkv = qkv};
    mg_gpt_forward(gpt, tape, ids, 1, n, &(mg_gpt_pass){.capture = &capture});
    for (int layer = 0; layer < c->n_layer; layer++)
        for (int t = 0; t < n; t++)
            memcpy(keys[layer] + (ptrdiff_t)t * c->n_embd, qkv[layer]->data + (ptrdiff_t)t * 3 * c->n_embd + c->n_embd,
                   (size_t)c->n_embd * sizeof(mg_real));
    mg_tape_reset(tape);
}

static double relative_change(ptrdiff_t n, const mg_real *before, const mg_real *after) {
    double change = 0, size = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        change += ((double)after[i] - (double)before[i]) * ((double)after[i] - (double)before[i]);
        size += (double)after[i] * (double)after[i];
    }
    return size > 0 ? sqrt(change / size) : sqrt(change);
}

/* moved[layer]: how far a key is from what it was when its token arrived, once all T tokens are there; relative to its
 * length, mean over the tokens but the last. */
static void moved_keys(mg_lab *lab, mg_gpt *gpt, const int *ids, int T, double *moved) {
    const mg_gpt_config *c = mg_gpt_get_config(gpt);
    size_t size = (size_t)T * (size_t)c->n_embd;
    mg_real **then = mg_arena_alloc(lab->arena, (size_t)c->n_layer, sizeof *then, "keys");
    mg_real **now = mg_arena_alloc(lab->arena, (size_t)c->n_layer, sizeof *now, "keys");
    for (int layer = 0; layer < c->n_layer; layer++) {
        then[layer] = mg_arena_alloc(lab->arena, size, sizeof(mg_real), "keys");
        now[layer] = mg_arena_alloc(lab->arena, size, sizeof(mg_real), "keys");
        moved[layer] = 0;
    }
    mg_tape *tape = lab_inference_tape();
    take_keys(gpt, tape, ids, T, now);
    for (int t = 0; t < T - 1; t++) {
        take_keys(gpt, tape, ids, t + 1, then);
        for (int layer = 0; layer < c->n_layer; layer++)
            moved[layer] += relative_change(c->n_embd, then[layer] + (ptrdiff_t)t * c->n_embd,
                                            now[layer] + (ptrdiff_t)t * c->n_embd) /
                            (T - 1);
    }
    mg_tape_free(tape);
}

static double largest_of(int n, const double *x) {
    double largest = 0;
    for (int i = 0; i < n; i++) largest = lab_larger(largest, x[i]);
    return largest;
}

/* What must move without the mask moves only if anything flows, which a model of the user's need not let. */
static void check_moves(mg_lab *lab, const char *name, double moved, double limit, const char *unit) {
    if (lab_asked(lab)->checkpoint && moved <= limit)
        lab_undecided(lab, name, moved, unit, "hardly anything flows between this model's positions");
    else
        lab_check_above(lab, name, moved, limit, unit);
}

static void show_keys(mg_lab *lab, const lab_subject *masked, const lab_subject *unmasked, const lab_text_set *text) {
    int n = mg_gpt_get_config(masked->gpt)->n_layer;
    double *moved[2] = {lab_numbers(lab, n), lab_numbers(lab, n)};
    mg_gpt_set_mask(masked->gpt, mg_lookahead(0));
    moved_keys(lab, masked->gpt, text->ids, text->T, moved[0]);
    mg_gpt_set_mask(unmasked->gpt, mg_lookahead(MG_LOOKAHEAD_ALL));
    moved_keys(lab, unmasked->gpt, text->ids, text->T, moved[1]);
    const char **names = mg_arena_alloc(lab->arena, (size_t)n, sizeof *names, "labels");
    for (int layer = 0; layer < n; layer++) names[layer] = lab_format(lab, "layer %d", layer);
    lab_figure *figure = lab_figure_begin(
        lab, "keys", "How far keys move after their token has been read",
        (lab_axes){.x = "layer", .y = "change, relative to the key", .y_from_zero = true});
    lab_bars(figure, LAB_MASKED, "masked", n, names, moved[0]);
    lab_bars(figure, LAB_UNMASKED, "unmasked", n, names, moved[1]);
    lab_figure_end(figure,
                   "Mean over the first %d of %d tokens. Masked keys must stay where they were, and so must those of "
                   "the first layer without a mask, which are made only of their own token and position. From the "
                   "second layer on an unmasked key depends on everything, so that every new token may move it.",
                   text->T - 1, text->T);
    lab_check_below(lab, "masked: how far a key moves, any layer", largest_of(n, moved[0]), 1e-4, "of its length");
    lab_check_below(lab, "unmasked: how far a key of the first layer moves", moved[1][0], 1e-4, "of its length");
    if (n > 1)
        check_moves(lab, "unmasked: how far a key of the last layer moves", moved[1][n - 1], 1e-3, "of its length");
}

/* ---- The logits ---- */

/* The largest difference of a logit of the last position, at any length up to T, between the weights without a mask and
 * the same weights with kept keys. */
static double logit_difference(mg_gpt *gpt, const int *ids, int T) {
    int V = mg_gpt_get_config(gpt)->vocab_size;
    mg_tape *tape = lab_inference_tape();
    double largest = 0;
    for (int n = 1; n <= T; n++) {
        mg_gpt_pass pass = {.last_only = true};
        mg_gpt_set_mask(gpt, mg_lookahead(MG_LOOKAHEAD_ALL));
        const mg_real *anew = mg_gpt_forward(gpt, tape, ids, 1, n, &pass)->data;
        mg_gpt_set_mask(gpt, mg_lookahead(0));
        const mg_real *kept = mg_gpt_forward(gpt, tape, ids, 1, n, &pass)->data;
        for (int v = 0; v < V; v++) largest = lab_larger(largest, fabs((double)anew[v] - (double)kept[v]));
        mg_tape_reset(tape);
    }
    mg_tape_free(tape);
    return largest;
}

/* ---- The texts ---- */

/* ids (samples, n): texts after the start token at temperature 1, with a cache or without, under this lookahead. */
static mg_status write_texts(const mg_lab *lab, const lab_subject *subject, bool cached, int lookahead, int samples,
                             int n, int *ids, mg_error *error) {
    mg_gpt_set_mask(subject->gpt, mg_lookahead(lookahead));
    mg_generator *generator;
    mg_status status = mg_generator_new(&generator, subject->gpt, subject->n_ids, cached, error);
    if (status) return status;
    int start = subject->tokenizer ? mg_tokenizer_start_id(subject->tokenizer) : 0;
    mg_generator_prompt(generator, &start, 1);
    for (uint32_t i = 0; i < (uint32_t)samples && !status; i++)
        status = mg_generate_ids(generator, &(mg_sampler){.temperature = 1, .top_p = 1}, lab_asked(lab)->seed, i, n,
                                 ids + i * (uint32_t)n, error);
    mg_generator_free(generator);
    return status;
}

static int different(int samples, int n, const int *a, const int *b) {
    int count = 0;
    for (int i = 0; i < samples; i++) count += memcmp(a + i * n, b + i * n, (size_t)n * sizeof *a) != 0;
    return count;
}

static const char *words(mg_lab *lab, const lab_subject *subject, const int *ids, int n) {
    char *bytes = NULL;
    size_t length;
    mg_error error;
    if (subject->tokenizer &&
        mg_tokenizer_decode(&bytes, &length, subject->tokenizer, ids, (size_t)n, &error) == MG_OK) {
        const char *copy = lab_format(lab, "%s", bytes);
        mg_free(bytes);
        return copy;
    }
    const char *text = "";
    for (int i = 0; i < n; i++) text = lab_format(lab, "%s%s%d", text, i ? " " : "", ids[i]);
    return text;
}

static void show_texts(mg_lab *lab, const lab_subject *masked, const lab_subject *unmasked, int samples, int n,
                       int *const ids[4]) {
    /* The first sample in which they differ, if there is one. */
    int at = 0;
    for (int i = samples - 1; i >= 0; i--)
        if (memcmp(ids[2] + i * n, ids[3] + i * n, (size_t)n * sizeof(int)) != 0) at = i;
    lab_texts(lab, "The same random draws, with a cache and without", 4,
              (const char *const[]){"masked, cached", "masked, uncached", "unmasked, cached", "unmasked, uncached"},
              (const char *const[]){words(lab, masked, ids[0] + at * n, n), words(lab, masked, ids[1] + at * n, n),
                                    words(lab, unmasked, ids[2] + at * n, n),
                                    words(lab, unmasked, ids[3] + at * n, n)});
}

/* `difference`: of the unmasked model's logits. */
static mg_status compare_texts(mg_lab *lab, lab_subject *masked, const lab_subject *unmasked, double difference,
                               mg_error *error) {
    const mg_gpt_config *c = mg_gpt_get_config(masked->gpt);
    int n = c->block_size - 1 < MOST_T ? c->block_size - 1 : MOST_T;
    int samples = lab_subject_affords(masked, SAMPLES, n * n) < SAMPLES ? FEW : SAMPLES;
    int *ids[4];
    mg_status status = MG_OK;
    for (int i = 0; i < 4 && !status; i++) {
        const lab_subject *subject = i < 2 ? masked : unmasked;
        bool cached = i % 2 == 0 && !lab_broken("cache.nocache");
        int lookahead = i == 3 || (i == 2 && !cached) ? MG_LOOKAHEAD_ALL : 0;
        ids[i] = mg_arena_alloc(lab->arena, (size_t)samples * (size_t)n, sizeof(int), "texts");
        status = write_texts(lab, subject, cached, lookahead, samples, n, ids[i], error);
    }
    if (status) return status;
    show_texts(lab, masked, unmasked, samples, n, ids);
    lab_check_zero(lab, lab_format(lab, "masked: texts of %d that the cache changes", samples),
                   different(samples, n, ids[0], ids[1]), "");
    const char *name = lab_format(lab, "unmasked: texts of %d that the cache changes", samples);
    int changed = different(samples, n, ids[2], ids[3]);
    if (c->n_layer == 1)
        lab_check_zero(lab, "unmasked, with one layer, whose keys do not move: texts that the cache changes", changed,
                       "");
    else if (lab_asked(lab)->checkpoint && changed == 0)
        lab_note(lab, "The cache changed none of %d texts: without the mask its logits differ by at most %.2g.",
                 samples, difference);
    else
        lab_check_at_least(lab, name, changed, 1, "");
    return MG_OK;
}

/* ---- The refusal ---- */

static void show_refusal(mg_lab *lab, const lab_subject *unmasked) {
    mg_gpt_set_mask(unmasked->gpt, mg_lookahead(MG_LOOKAHEAD_ALL));
    mg_kv_cache *cache;
    mg_error refusal = {0};
    mg_status status = mg_kv_cache_new(&cache, mg_gpt_get_config(unmasked->gpt), &refusal);
    lab_check_same_text(lab, "asking for a cache without the mask gives the error", mg_status_name(status),
                        mg_status_name(MG_ERR_STATE));
    mg_kv_cache_free(cache);
    lab_note(lab, "What the library says when a cache is asked for an unmasked model: \"%s\".", refusal.message);
}

mg_status lab_cache_unmasked(mg_lab *lab, lab_subject *masked, lab_subject *unmasked, mg_error *error) {
    lab_text_set text;
    mg_gpt_set_mask(masked->gpt, mg_lookahead(0));
    mg_status status = lab_subject_texts(lab, masked, 1, MOST_T, &text, error);
    if (status) return status;
    show_refusal(lab, unmasked);
    show_keys(lab, masked, unmasked, &text);
    lab_note(lab,
             "An unmasked model's cache is built by hand: token by token, a key that is never computed again has seen "
             "only the tokens up to its own, which is what the same weights compute under the causal mask.");
    double difference = logit_difference(unmasked->gpt, text.ids, text.T);
    if (mg_gpt_get_config(unmasked->gpt)->n_layer > 1)
        check_moves(lab, "unmasked: cached and uncached logits, largest difference", difference, 1e-4, "");
    return compare_texts(lab, masked, unmasked, difference, error);
}
