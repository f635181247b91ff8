/* Lab cache: a decoder that generates needs the same keys and values again at every token. May it keep them?
 *
 * Under the causal mask position j sees nothing after it, so neither its key nor its value in any layer can change
 * when a token is added: what was computed once stays right, and a new token costs one row instead of a triangle.
 * Without the mask everything changes at each token, from the second layer on. */
#include "cache.h"
#include "generator.h"
#include "kv_cache.h"
#include "lab_private.h"
#include "labs.h"
#include "operation.h"

#include <math.h>
#include <string.h>

enum { LEAST_CONTEXT = 16, MOST_LOGITS = 1 << 22, FEW_TOKENS = 32 /* of a large model */ };

/* ---- The same logits ---- */

typedef struct chunking {
    const char *name;
    int size; /* 0: sizes drawn by the seed; -1: half and half; -2: all but one, then one */
} chunking;

static const chunking chunkings[] = {{"1 at a time", 1},
                                     {"2 at a time", 2},
                                     {"7 at a time", 7},
                                     {"two halves", -1},
                                     {"all but one, then one", -2},
                                     {"random sizes, 1 to 9", 0}};
enum { N_CHUNKINGS = sizeof chunkings / sizeof *chunkings };

static int next_chunk(const mg_lab *lab, chunking c, int done, int T) {
    int size = c.size;
    if (c.size == 0) size = 1 + (int)mg_rng_below((mg_rng){lab_asked(lab)->seed, MG_STREAM_LAB, 2}, (uint64_t)done, 9);
    if (c.size == -1) size = done == 0 ? T / 2 : T - done;
    if (c.size == -2) size = done == 0 ? T - 1 : 1;
    return size < T - done ? size : T - done;
}

typedef struct equality {
    mg_gpt *gpt;
    mg_tape *tape;
    const int *ids;
    int T, V;
    mg_real *full; /* (T,V): logits of one pass without a cache */
} equality;

/* The largest difference of a logit at one position. */
static double largest_change(const equality *e, const mg_real *logits, int position) {
    double largest = 0;
    for (int v = 0; v < e->V; v++)
        largest = lab_larger(largest, fabs((double)logits[v] - (double)e->full[(ptrdiff_t)position * e->V + v]));
    return largest;
}

/* by_position (T): the largest difference of a logit. Returns the number of passes. */
static int compare(const mg_lab *lab, const equality *e, chunking c, mg_kv_cache *cache, double *by_position) {
    mg_kv_cache_clear(cache);
    int passes = 0;
    for (int done = 0; done < e->T; passes++) {
        int n = next_chunk(lab, c, done, e->T);
        int *ids = mg_tape_alloc(e->tape, (size_t)n, sizeof *ids, "ids");
        memcpy(ids, e->ids + done, (size_t)n * sizeof *ids);
        /* Spoilt: the cache begins with a token of another prompt. */
        if (done == 0 && lab_broken("cache.stale")) ids[0] = (ids[0] + 1) % e->V;
        const mg_real *logits = mg_gpt_forward(e->gpt, e->tape, ids, 1, n, &(mg_gpt_pass){.cache = &cache})->data;
        for (int i = 0; i < n; i++) {
            by_position[done + i] = largest_change(e, logits + (ptrdiff_t)i * e->V, done + i);
        }
        done += n;
        mg_tape_reset(e->tape);
    }
    return passes;
}

static double largest_of(int n, const double *x) {
    double largest = 0;
    for (int i = 0; i < n; i++) largest = lab_larger(largest, x[i]);
    return largest;
}

static void set_up_equality(mg_lab *lab, lab_subject *subject, const lab_text_set *text, equality *e) {
    *e = (equality){.gpt = subject->gpt, .tape = lab_inference_tape(), .ids = text->ids, .T = text->T};
    e->V = mg_gpt_get_config(subject->gpt)->vocab_size;
    size_t size = (size_t)e->T * (size_t)e->V;
    e->full = mg_arena_alloc(lab->arena, size, sizeof(mg_real), "logits");
    memcpy(e->full, mg_gpt_forward(e->gpt, e->tape, e->ids, 1, e->T, NULL)->data, size * sizeof(mg_real));
    mg_tape_reset(e->tape);
}

/* 1e-4, as long as depth and logits are those of a small model. float32 keeps 7 digits of a logit, GPT-2's go beyond
 * 100, and every layer passes on the rounding of those before it. A key gone stale moves logits by far more. */
static double tolerance(const equality *e) {
    double largest = 0;
    for (ptrdiff_t i = 0; i < (ptrdiff_t)e->T * e->V; i++) largest = lab_larger(largest, fabs((double)e->full[i]));
    return 1e-4 * fmax(1, largest / 10) * fmax(1, mg_gpt_get_config(e->gpt)->n_layer / 4.0);
}

/* How far another token at position j moves the logits after it, where neither ends a document. */
static double later_change(const equality *e, int j) {
    const mg_gpt_config *c = mg_gpt_get_config(e->gpt);
    int end = c->documents ? c->document_end : -1, other = (e->ids[j] + 1) % e->V;
    if (other == end) other = (other + 1) % e->V;
    if (e->ids[j] == end) return 0;
    int *ids = mg_tape_alloc(e->tape, (size_t)e->T, sizeof *ids, "ids");
    memcpy(ids, e->ids, (size_t)e->T * sizeof *ids);
    ids[j] = other;
    const mg_real *logits = mg_gpt_forward(e->gpt, e->tape, ids, 1, e->T, NULL)->data;
    double largest = 0;
    for (int t = j + 1; t < e->T; t++)
        largest = lab_larger(largest, largest_change(e, logits + (ptrdiff_t)t * e->V, t));
    mg_tape_reset(e->tape);
    return largest;
}

/* The control. Why equal logits say nothing: no later logit depends on any of the first tokens, so that a stale key of
 * one would not show. NULL if one does. */
static const char *nothing_to_keep(mg_lab *lab, const equality *e) {
    enum { TRIED = 8 };
    double largest = 0;
    for (int j = 0; j < TRIED && j < e->T - 1; j++) {
        largest = lab_larger(largest, later_change(e, j));
        if (largest > tolerance(e)) return NULL;
    }
    return lab_format(lab,
                      "another token among the first %d moves later logits by %.2g at most: what is kept of it does "
                      "not count, and nothing would show if it went stale",
                      TRIED, largest);
}

static void check_equal(mg_lab *lab, const char *name, double largest, double limit, const char *why) {
    if (why)
        lab_undecided(lab, name, largest, "", "%s", why);
    else
        lab_check_below(lab, name, largest, limit, "");
}

static void show_equality(mg_lab *lab, const equality *e, mg_kv_cache *cache, const char *why) {
    double *by_position = lab_numbers(lab, e->T), worst = 0;
    lab_figure *figure = lab_figure_begin(
        lab, "difference", "Cached against uncached, position by position",
        (lab_axes){.x = "position", .y = "largest difference of a logit", .log_y = true});
    lab_table *table = lab_table_begin(lab, "chunkings", "The same text, fed in chunks", "chunks\tpasses\tdifference");
    for (int i = 0; i < N_CHUNKINGS; i++) {
        int passes = compare(lab, e, chunkings[i], cache, by_position);
        double largest = largest_of(e->T, by_position);
        worst = lab_larger(worst, largest);
        lab_points(figure, lab_step(i, N_CHUNKINGS), chunkings[i].name, e->T, NULL, by_position);
        lab_table_row(table, "%s\t%d\t%.2g", chunkings[i].name, passes, largest);
    }
    lab_floor(figure, "tolerance", tolerance(e));
    lab_figure_end(figure, "Sums of float32 taken in another order differ in their last digits (points at exactly 0 "
                           "are not drawn). If what is kept went stale, the differences would grow along the text.");
    lab_table_end(table, "The largest difference of a logit over all %d positions and %d tokens of the vocabulary.",
                  e->T, e->V);
    check_equal(lab, "cached and uncached logits, any chunks: largest difference", worst, tolerance(e), why);
}

/* ---- Across the end of the window ---- */

/* Both generators take the same tokens, and slide by one when the window is full. */
static mg_status cross_edge(mg_lab *lab, lab_subject *subject, double limit, const char *why, mg_error *error) {
    enum { BEFORE = 3, STEPS = 8 };
    int T = mg_gpt_get_config(subject->gpt)->block_size;
    if (lab_subject_affords(subject, STEPS, 2 * T) < STEPS) {
        lab_note(lab, "The end of the window at %d tokens was not tested: this model is too large for that here.", T);
        return MG_OK;
    }
    int *prompt = mg_arena_alloc(lab->arena, (size_t)T, sizeof *prompt, "ids");
    mg_rng rng = {lab_asked(lab)->seed, MG_STREAM_LAB, 3};
    for (int i = 0; i < T; i++) prompt[i] = (int)mg_rng_below(rng, (uint64_t)i, (uint64_t)subject->n_ids);
    mg_generator *cached = NULL, *plain = NULL;
    mg_status status = mg_generator_new(&cached, subject->gpt, subject->n_ids, true, error);
    if (!status) status = mg_generator_new(&plain, subject->gpt, subject->n_ids, false, error);
    double largest = 0;
    if (!status) {
        mg_generator_prompt(cached, prompt, T - BEFORE);
        mg_generator_prompt(plain, prompt, T - BEFORE);
    }
    for (int step = 0; step < STEPS && !status; step++) {
        for (int v = 0; v < subject->n_ids; v++)
            largest = lab_larger(largest,
                                 fabs((double)mg_generator_logits(cached)[v] - (double)mg_generator_logits(plain)[v]));
        mg_generator_append(cached, prompt[step]);
        mg_generator_append(plain, prompt[step]);
    }
    if (!status)
        check_equal(lab, "the same across the end of the window, from 3 tokens before to 4 after", largest, limit, why);
    mg_generator_free(cached);
    mg_generator_free(plain);
    return status;
}

/* ---- Bytes ---- */

/* What is really written: places of a cache full of NaN that hold a number after the last token. */
static long written_places(const equality *e, mg_kv_cache *cache) {
    ptrdiff_t size = (ptrdiff_t)cache->n_layer * cache->capacity * cache->width;
    for (ptrdiff_t i = 0; i < size; i++) cache->keys[i] = cache->values[i] = NAN;
    mg_kv_cache_clear(cache);
    for (int t = 0; t < e->T; t++) {
        mg_gpt_forward(e->gpt, e->tape, e->ids + t, 1, 1, &(mg_gpt_pass){.cache = &cache, .last_only = true});
        mg_tape_reset(e->tape);
    }
    long written = 0;
    for (ptrdiff_t i = 0; i < size; i++) written += !isnan(cache->keys[i]) + !isnan(cache->values[i]);
    return written;
}

/* The most tokens that a cache holds: for a window of n, n more than the window or 32 more, whichever is larger. */
static long room_for(const mg_gpt_config *c) {
    long n = c->mask.n, room = n + (n > 32 ? n : 32);
    return c->mask.kind == MG_MASK_WINDOW && room < c->block_size ? room : c->block_size;
}

static void show_bytes(mg_lab *lab, const equality *e, mg_kv_cache *cache) {
    const mg_gpt_config *c = mg_gpt_get_config(e->gpt);
    long room = room_for(c), per_token = 2L * c->n_layer * c->n_embd;
    const char *T = room < c->block_size ? "R" : "T";
    lab_check_count(lab, lab_format(lab, "numbers held after %d tokens, 2·L·%s·C", e->T, T), written_places(e, cache),
                    per_token * (e->T < room ? e->T : room), "");
    lab_check_count(lab, lab_format(lab, "bytes of a full cache, 2·L·%s·C·%zu", T, sizeof(mg_real)),
                    (long)mg_kv_cache_bytes(cache), per_token * room * (long)sizeof(mg_real), "bytes");
    if (room < c->block_size)
        lab_note(lab,
                 "The cache drops keys that no later token sees. For a window of W = %d it has room for "
                 "R = W + max(W, 32) = %ld tokens, however long the context is.",
                 c->mask.n, room);
    static const struct {
        const char *name;
        double layers, context, width;
    } known[] = {{"GPT-2, 124M", 12, 1024, 768}, {"GPT-2 XL, 1.5B", 48, 1024, 1600}};
    lab_table *table = lab_table_begin(lab, "bytes", "What the cache costs: 2·L·T·C·4 bytes",
                                       "model\tlayers\tcontext\twidth\tMB per text\tkB per token");
    lab_table_row(table, "this model\t%d\t%d\t%d\t%.3f\t%.3f", c->n_layer, c->block_size, c->n_embd,
                  (double)mg_kv_cache_bytes(cache) / 1e6, (double)mg_kv_cache_bytes(cache) / 1e3 / (double)room);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        double token = 8 * known[i].layers * known[i].width;
        lab_table_row(table, "%s\t%g\t%g\t%g\t%.3f\t%.3f", known[i].name, known[i].layers, known[i].context,
                      known[i].width, token * known[i].context / 1e6, token / 1e3);
    }
    lab_table_end(table,
                  "One key and one value per layer and token, of C numbers each, whatever the number of heads. It is "
                  "the price of the time saved, paid once per text generated at the same time.");
}

/* ---- All of it ---- */

static void tell(mg_lab *lab) {
    lab_hypothesis(lab,
                   "Under the causal mask, logits with and without the cache are the same, however the text is cut "
                   "into chunks, up to float32 rounding.");
    lab_hypothesis(lab,
                   "The n-th token costs a + b·n with the cache, and a·n + b·n²/2 without: the scores to be computed "
                   "grow like n against n².");
    lab_hypothesis(lab, "Without the mask the kept keys go stale from the second layer on, and the text comes out "
                        "different.");
    lab_guess(lab, "faster", "times", "How many times faster is the last token of a full context with the cache?");
    lab_exercise(lab, "From which n on does attention cost more than all matrix products, with the cache? A token's "
                      "products take 24·C² operations per layer, its attention 4·C·n.");
    lab_exercise(lab,
                 "A model of one layer and no mask writes the same text with a cache as without. Why? Is its cache "
                 "any use in training?");
    lab_exercise(lab,
                 "Past the context the window slides and the cache is rebuilt. Which part of the model forces that? "
                 "What would have to change for the cache to slide too?");
    lab_source(lab, "Vaswani et al. 2017, Attention is all you need, section 3.2.3.");
    lab_source(lab,
               "Shazeer 2019, Fast transformer decoding: one write-head is all you need: the cost of keeping keys and "
               "values.");
    lab_source(lab, "Pope et al. 2023, Efficiently scaling transformer inference.");
}

static mg_status same_logits(mg_lab *lab, const lab_cache_model *served, mg_error *error) {
    lab_subject *subject = served->subject;
    const mg_gpt_config *c = mg_gpt_get_config(lab_cache_gpt(served));
    int most = MOST_LOGITS / c->vocab_size > LEAST_CONTEXT ? MOST_LOGITS / c->vocab_size : LEAST_CONTEXT;
    if (most > FEW_TOKENS && lab_subject_affords(subject, FEW_TOKENS, FEW_TOKENS) < FEW_TOKENS) most = FEW_TOKENS;
    lab_text_set text;
    mg_status status = lab_subject_texts(lab, subject, 1, most, &text, error);
    if (status) return status;
    lab_setting(lab, "text", "%d tokens: %s", text.T, text.source);
    mg_kv_cache *cache;
    status = mg_kv_cache_new(&cache, mg_gpt_get_config(subject->gpt), error);
    if (status) return status;
    equality e;
    set_up_equality(lab, subject, &text, &e);
    const char *why = nothing_to_keep(lab, &e);
    show_equality(lab, &e, cache, why);
    status = cross_edge(lab, subject, tolerance(&e), why, error);
    show_bytes(lab, &e, cache);
    mg_tape_free(e.tape);
    mg_kv_cache_free(cache);
    return status;
}

mg_gpt *lab_cache_gpt(const lab_cache_model *model) {
    mg_gpt_see_as(model->subject->gpt, &model->seen);
    return model->subject->gpt;
}

bool lab_cache_is_plain(const mg_gpt_config *seen) {
    return seen->mask.kind == MG_MASK_LOOKAHEAD && mg_gpt_is_causal(seen) && !seen->documents;
}

static const char *name_of(mg_lab *lab, const mg_gpt_config *seen) {
    char words[128];
    mg_mask_words(seen, words, sizeof words);
    if (lab_cache_is_plain(seen)) return "masked";
    bool none = seen->mask.kind == MG_MASK_LOOKAHEAD && seen->mask.n == MG_LOOKAHEAD_ALL && !seen->documents;
    return none ? "unmasked" : lab_format(lab, "%s", words);
}

/* A checkpoint's own mask, and beside it the one that shows the difference: no mask if a cache serves its own, the
 * causal one if not. */
static void see_both_ways(mg_lab *lab, lab_subject *subject, lab_cache_model *served, lab_cache_model *refused) {
    mg_gpt_config own = *mg_gpt_get_config(subject->gpt), other = own;
    bool is_served = mg_gpt_is_causal(&own);
    other.mask = mg_lookahead(is_served ? MG_LOOKAHEAD_ALL : 0);
    other.leak_layer = -1;
    if (is_served) other.documents = false;
    *served = (lab_cache_model){subject, is_served ? own : other, ""};
    *refused = (lab_cache_model){subject, is_served ? other : own, ""};
    served->name = name_of(lab, &served->seen);
    refused->name = name_of(lab, &refused->seen);
    if (is_served)
        lab_did(lab,
                "The checkpoint read and generated text with a cache and without, under the mask that it was trained "
                "with, and once more with no mask at all.");
    else
        lab_did(lab,
                "The checkpoint looks ahead, and the library refuses it a cache. It generated text with a cache that "
                "was built by hand and without; what a cache saves was measured with the causal mask put on.");
}

static mg_status train_both(mg_lab *lab, const mg_train_options *shape, lab_cache_model *served,
                            lab_cache_model *refused, mg_error *error) {
    lab_cache_model *of[] = {served, refused};
    for (int i = 0; i < 2; i++) {
        mg_train_options options = *shape;
        options.model.mask = mg_lookahead(i == 0 ? 0 : MG_LOOKAHEAD_ALL);
        mg_status status = lab_subject_open(lab, &options, LEAST_CONTEXT, NULL, of[i]->subject, error);
        if (status) return status;
        of[i]->seen = *mg_gpt_get_config(of[i]->subject->gpt);
        of[i]->name = i == 0 ? "masked" : "unmasked";
    }
    lab_did(lab, "Two models were trained, one mask apart, and each read and generated text with a cache and without.");
    return MG_OK;
}

mg_status lab_cache(mg_lab *lab, mg_error *error) {
    tell(lab);
    mg_train_options shape = mg_train_defaults();
    shape.max_iters = lab_asked(lab)->quick ? 150 : 500;
    lab_subject first = {0}, second = {0};
    lab_cache_model served = {.subject = &first}, refused = {.subject = &second};
    mg_status status = MG_OK;
    if (!lab_asked(lab)->checkpoint)
        status = train_both(lab, &shape, &served, &refused, error);
    else {
        status = lab_subject_open(lab, &shape, LEAST_CONTEXT, NULL, &first, error);
        if (!status) see_both_ways(lab, &first, &served, &refused);
    }
    if (!status) status = same_logits(lab, &served, error);
    if (!status) status = lab_cache_cost(lab, &served, error);
    if (!status) status = lab_cache_unmasked(lab, &served, &refused, error);
    lab_subject_close(&first);
    lab_subject_close(&second);
    return status;
}
