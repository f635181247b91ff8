/* Lab cache, third part: the model without the mask, or with one that lets a token see past itself.
 *
 * The library refuses to give it a cache. To see what the refusal prevents, the cache is built by hand: a key that is
 * computed when its token arrives has seen that token and the ones before it, for the later ones are not there yet, and
 * a cache never computes it again. That is to say: token by token, the weights of an unmasked model with a cache
 * compute what the same weights compute under the causal mask. Without a cache every key is made recomputed from all the
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

/* The first layer whose keys move: the one after the first that looks ahead; n_layer: none. */
static int first_to_move(const mg_gpt_config *c) {
    for (int head = 0; head < (c->n_layer - 1) * c->n_head; head++)
        if (mg_looks_ahead(mg_gpt_mask(c, head / c->n_head, head % c->n_head))) return head / c->n_head + 1;
    return c->n_layer;
}

static void draw_keys(mg_lab *lab, const lab_cache_model *const model[2], const lab_text_set *text,
                      double *const moved[2]) {
    int n = model[0]->seen.n_layer;
    const char **names = mg_arena_alloc(lab->arena, (size_t)n, sizeof *names, "labels");
    for (int layer = 0; layer < n; layer++) names[layer] = lab_format(lab, "layer %d", layer);
    lab_figure *figure = lab_figure_begin(
        lab, "keys", "How far keys move after their token has been read",
        (lab_axes){.x = "layer", .y = "change, relative to the key", .y_from_zero = true});
    lab_bars(figure, LAB_MASKED, model[0]->name, n, names, moved[0]);
    lab_bars(figure, LAB_UNMASKED, model[1]->name, n, names, moved[1]);
    lab_figure_end(figure,
                   "Mean over the first %d of %d tokens. Keys must stay where they were if no token sees past itself, "
                   "and so must those of the first layer in any case, which are made only of their own token and "
                   "position. After a layer that looks ahead a key depends on later tokens, so that every new token "
                   "may move it.",
                   text->T - 1, text->T);
}

static void show_keys(mg_lab *lab, const lab_cache_model *served, const lab_cache_model *refused,
                      const lab_text_set *text) {
    const lab_cache_model *const model[2] = {served, refused};
    int n = served->seen.n_layer, moves = first_to_move(&refused->seen);
    double *moved[2] = {lab_numbers(lab, n), lab_numbers(lab, n)};
    for (int i = 0; i < 2; i++) moved_keys(lab, lab_cache_gpt(model[i]), text->ids, text->T, moved[i]);
    draw_keys(lab, model, text, moved);
    lab_check_below(lab, lab_format(lab, "%s: how far a key moves, any layer", served->name), largest_of(n, moved[0]),
                    1e-4, "of its length");
    const char *still = moves == 1 ? "a key of the first layer" : lab_format(lab, "a key of layers 0 to %d", moves - 1);
    lab_check_below(lab, lab_format(lab, "%s: how far %s moves", refused->name, still), largest_of(moves, moved[1]),
                    1e-4, "of its length");
    if (moves < n)
        check_moves(lab, lab_format(lab, "%s: how far a key of the last layer moves", refused->name), moved[1][n - 1],
                    1e-3, "of its length");
    else if (n > 1)
        lab_note(lab, "Only the last layer looks ahead, and what it sees enters no key: this model's cache would be "
                      "right, though the library gives none to a model that looks ahead.");
}

/* ---- The logits ---- */

/* What a cache built by hand computes: each token has seen only those before it. */
static lab_cache_model kept(const lab_cache_model *refused) {
    lab_cache_model model = *refused;
    if (mg_looks_ahead(model.seen.mask)) model.seen.mask = mg_lookahead(0);
    model.seen.leak_layer = -1;
    return model;
}

/* The largest difference of a logit of the last position, at any length up to T, between the weights that look ahead
 * and the same weights with kept keys. */
static double logit_difference(const lab_cache_model *refused, const int *ids, int T) {
    const lab_cache_model with_kept = kept(refused);
    int V = refused->seen.vocab_size;
    mg_tape *tape = lab_inference_tape();
    double largest = 0;
    for (int n = 1; n <= T; n++) {
        mg_gpt_pass pass = {.last_only = true};
        const mg_real *recomputed = mg_gpt_forward(lab_cache_gpt(refused), tape, ids, 1, n, &pass)->data;
        const mg_real *old = mg_gpt_forward(lab_cache_gpt(&with_kept), tape, ids, 1, n, &pass)->data;
        for (int v = 0; v < V; v++) largest = lab_larger(largest, fabs((double)recomputed[v] - (double)old[v]));
        mg_tape_reset(tape);
    }
    mg_tape_free(tape);
    return largest;
}

/* ---- The texts ---- */

/* ids (samples, n): texts after the start token at temperature 1, with a cache or without. */
static mg_status write_texts(const mg_lab *lab, const lab_cache_model *model, bool cached, int samples, int n, int *ids,
                             mg_error *error) {
    const lab_subject *subject = model->subject;
    mg_generator *generator;
    mg_status status = mg_generator_new(&generator, lab_cache_gpt(model), subject->n_ids, cached, error);
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

static void show_texts(mg_lab *lab, const lab_cache_model *served, const lab_cache_model *refused, int samples, int n,
                       int *const ids[4]) {
    /* The first sample in which they differ, if there is one. */
    int at = 0;
    for (int i = samples - 1; i >= 0; i--)
        if (memcmp(ids[2] + i * n, ids[3] + i * n, (size_t)n * sizeof(int)) != 0) at = i;
    const char *title[4], *text[4];
    for (int i = 0; i < 4; i++) {
        const lab_cache_model *model = i < 2 ? served : refused;
        title[i] = lab_format(lab, "%s, %s", model->name, i % 2 == 0 ? "cached" : "uncached");
        text[i] = words(lab, model->subject, ids[i] + at * n, n);
    }
    lab_texts(lab, "The same random draws, with a cache and without", 4, title, text);
}

/* `difference`: of the logits of the model that looks ahead. */
static void check_texts(mg_lab *lab, const lab_cache_model *served, const lab_cache_model *refused, double difference,
                        int samples, int n, int *const ids[4]) {
    int changed = different(samples, n, ids[2], ids[3]);
    lab_check_zero(lab, lab_format(lab, "%s: texts of %d that the cache changes", served->name, samples),
                   different(samples, n, ids[0], ids[1]), "");
    if (first_to_move(&refused->seen) == refused->seen.n_layer)
        lab_check_zero(lab, lab_format(lab, "%s, whose keys do not move: texts that the cache changes", refused->name),
                       changed, "");
    else if (lab_asked(lab)->checkpoint && changed == 0)
        lab_note(lab, "The cache changed none of %d texts: its logits differ by at most %.2g.", samples, difference);
    else
        lab_check_at_least(lab, lab_format(lab, "%s: texts of %d that the cache changes", refused->name, samples),
                           changed, 1, "");
}

static mg_status compare_texts(mg_lab *lab, const lab_cache_model *served, const lab_cache_model *refused,
                               double difference, mg_error *error) {
    const lab_cache_model with_kept = kept(refused);
    int n = served->seen.block_size - 1 < MOST_T ? served->seen.block_size - 1 : MOST_T;
    int samples = lab_subject_affords(served->subject, SAMPLES, n * n) < SAMPLES ? FEW : SAMPLES;
    int *ids[4];
    mg_status status = MG_OK;
    for (int i = 0; i < 4 && !status; i++) {
        bool cached = i % 2 == 0 && !lab_broken("cache.nocache");
        const lab_cache_model *model = i < 2 ? served : cached ? &with_kept : refused;
        ids[i] = mg_arena_alloc(lab->arena, (size_t)samples * (size_t)n, sizeof(int), "texts");
        status = write_texts(lab, model, cached, samples, n, ids[i], error);
    }
    if (status) return status;
    show_texts(lab, served, refused, samples, n, ids);
    check_texts(lab, served, refused, difference, samples, n, ids);
    return MG_OK;
}

/* ---- The refusal ---- */

static void show_refusal(mg_lab *lab, const lab_cache_model *refused) {
    mg_kv_cache *cache;
    mg_error refusal = {0};
    mg_status status = mg_kv_cache_new(&cache, mg_gpt_get_config(lab_cache_gpt(refused)), &refusal);
    const char *name = strcmp(refused->name, "unmasked") == 0
                           ? "asking for a cache without the mask gives the error"
                           : lab_format(lab, "asking for a cache with the mask %s gives the error", refused->name);
    lab_check_same_text(lab, name, mg_status_name(status), mg_status_name(MG_ERR_STATE));
    mg_kv_cache_free(cache);
    lab_note(lab, "What the library says when a cache is asked for this model, %s: \"%s\".", refused->name,
             refusal.message);
}

mg_status lab_cache_unmasked(mg_lab *lab, const lab_cache_model *served, const lab_cache_model *refused,
                             mg_error *error) {
    lab_text_set text;
    lab_cache_gpt(served);
    mg_status status = lab_subject_texts(lab, served->subject, 1, MOST_T, &text, error);
    if (status) return status;
    show_refusal(lab, refused);
    show_keys(lab, served, refused, &text);
    lab_note(lab,
             "The cache of a model that looks ahead is built by hand: token by token, a key that is never computed "
             "again has seen only the tokens up to its own, which is what the same weights compute under the causal "
             "mask.");
    double difference = logit_difference(refused, text.ids, text.T);
    if (first_to_move(&refused->seen) < refused->seen.n_layer)
        check_moves(lab, lab_format(lab, "%s: cached and uncached logits, largest difference", refused->name),
                    difference, 1e-4, "");
    return compare_texts(lab, served, refused, difference, error);
}
