/* Many samples of one prompt, side by side. A pass for one token reads all weights for one row of numbers; a pass for
 * 64 samples reads them once for 64 rows. Each sample has a KV cache of its own, so their lengths may differ. */
#include "generator_private.h"
#include "parallel.h"

#include <inttypes.h>
#include <string.h>

/* Where a sample is written. When it ends, the next sample begins here. */
typedef struct seat {
    mg_kv_cache *cache; /* NULL: the window is read again for each token */
    bool is_cached;     /* the cache holds the window, all but the last id */
    int *window;        /* (block_size), `length` of them */
    ptrdiff_t length;
    uint32_t sample;
    ptrdiff_t drawn; /* how many tokens the sample has */
    int id;          /* the last one */
    mg_real *logits; /* (vocab_size): of the next one */
    double *probabilities;
    int *order; /* both (vocab_size): scratch */
} seat;

typedef struct batch {
    mg_generator *g;
    const mg_sampler *sampler;
    uint64_t seed;
    ptrdiff_t n; /* tokens per sample */
    seat *seats;
    ptrdiff_t n_seats, n_taken; /* the first n_taken seats have a sample */
    uint32_t next;              /* the next sample … */
    ptrdiff_t n_left;           /* … of so many that have not begun */
    /* What the seats' parts are parts of. */
    int *windows, *orders;
    mg_real *logits;
    double *probabilities;
    /* One pass. */
    int *ids;
    mg_kv_cache **caches;
    seat **readers;
} batch;

/* ---- Seats ---- */

/* As many as there are samples, at most 64, and caches of at most 1 GiB. */
static ptrdiff_t count_seats(const mg_generator *g, ptrdiff_t n_samples) {
    enum { MOST = 64, CACHES = 1 << 30 };
    ptrdiff_t n = n_samples < MOST ? n_samples : MOST;
    size_t room = g->cache ? CACHES / mg_kv_cache_bytes(g->cache) : MOST;
    return room == 0 ? 1 : (size_t)n < room ? n : (ptrdiff_t)room;
}

static mg_status open_seats(batch *b, mg_error *error) {
    const mg_gpt_config *config = mg_gpt_get_config(b->g->gpt);
    size_t n = (size_t)b->n_seats, T = (size_t)config->block_size, V = (size_t)config->vocab_size;
    b->seats = mg_alloc_zero(n, sizeof *b->seats, "samples", error);
    b->windows = mg_alloc(n * T, sizeof *b->windows, "the samples' windows", error);
    b->ids = mg_alloc(n * T, sizeof *b->ids, "the samples' windows", error);
    b->logits = mg_alloc(n * V, sizeof *b->logits, "the samples' logits", error);
    b->probabilities = mg_alloc(n * V, sizeof *b->probabilities, "the samples' probabilities", error);
    b->orders = mg_alloc(n * V, sizeof *b->orders, "the order of tokens", error);
    b->caches = mg_alloc(n, sizeof *b->caches, "the samples' caches", error);
    b->readers = mg_alloc(n, sizeof *b->readers, "samples", error);
    if (!b->seats || !b->windows || !b->ids || !b->logits || !b->probabilities || !b->orders || !b->caches ||
        !b->readers)
        return MG_ERR_MEMORY;
    mg_status status = MG_OK;
    for (size_t i = 0; i < n && status == MG_OK; i++) {
        b->seats[i] = (seat){.window = b->windows + i * T,
                             .logits = b->logits + i * V,
                             .probabilities = b->probabilities + i * V,
                             .order = b->orders + i * V};
        if (b->g->cache) status = mg_kv_cache_new(&b->seats[i].cache, config, error);
    }
    return status;
}

static void close_seats(batch *b) {
    for (ptrdiff_t i = 0; b->seats && i < b->n_seats; i++) mg_kv_cache_free(b->seats[i].cache);
    mg_free(b->seats);
    mg_free(b->windows);
    mg_free(b->ids);
    mg_free(b->logits);
    mg_free(b->probabilities);
    mg_free(b->orders);
    mg_free(b->caches);
    mg_free(b->readers);
}

/* A sample begins where the prompt ends. */
static void take_seat(batch *b, seat *s) {
    const mg_generator *g = b->g;
    s->sample = b->next++;
    s->drawn = 0;
    s->length = g->prompt_length;
    memcpy(s->window, g->prompt, (size_t)s->length * sizeof *s->window);
    memcpy(s->logits, g->prompt_logits, (size_t)mg_gpt_get_config(g->gpt)->vocab_size * sizeof *s->logits);
    s->is_cached = s->cache != NULL;
    if (s->is_cached) mg_kv_cache_copy(s->cache, g->cache);
    b->n_left--;
}

/* ---- Drawing ---- */

static void draw(void *context, ptrdiff_t i, void *workspace) {
    (void)workspace;
    const batch *b = context;
    seat *s = &b->seats[i];
    mg_rng rng = {b->seed, MG_STREAM_SAMPLE, s->sample};
    mg_sampler_probabilities(b->sampler, s->logits, b->g->n_ids, s->probabilities, s->order);
    s->id = mg_sampler_draw(s->probabilities, b->g->n_ids, rng, (uint64_t)s->drawn++);
}

/* The next token of each sample. Those that end give up their seats. */
static mg_status draw_all(batch *b, mg_sample_fn *on_token, void *user, mg_error *error) {
    for (ptrdiff_t i = 0; i < b->n_taken; i++) {
        mg_status status = mg_gpt_check_logits(b->g->gpt, b->seats[i].logits, b->g->n_ids, error);
        if (status != MG_OK) return status;
    }
    mg_parallel(b->n_taken, draw, b, 0);
    ptrdiff_t n_taken = 0;
    for (ptrdiff_t i = 0; i < b->n_taken; i++) {
        seat *s = &b->seats[i], before = b->seats[n_taken];
        if (!on_token(s->sample, s->id, user) || s->drawn == b->n) continue;
        b->seats[n_taken++] = *s;
        *s = before;
    }
    b->n_taken = n_taken;
    return MG_OK;
}

/* ---- Predicting ---- */

static void append(const batch *b, seat *s) {
    if (s->length == b->g->block_size)
        s->is_cached = mg_make_room(mg_gpt_get_config(b->g->gpt), s->window, &s->length,
                                    s->is_cached ? s->cache : NULL);
    s->window[s->length++] = s->id;
}

/* One pass for n readers, by the last id of each or, without caches, by its whole window: all have the same length. */
static void predict(batch *b, ptrdiff_t n, bool cached) {
    mg_generator *g = b->g;
    ptrdiff_t T = cached ? 1 : b->readers[0]->length, V = mg_gpt_get_config(g->gpt)->vocab_size;
    for (ptrdiff_t i = 0; i < n; i++) {
        const seat *s = b->readers[i];
        b->caches[i] = s->cache;
        memcpy(b->ids + i * T, s->window + s->length - T, (size_t)T * sizeof *b->ids);
    }
    mg_gpt_pass pass = {.cache = cached ? b->caches : NULL, .last_only = true};
    const mg_tensor *logits = mg_gpt_forward(g->gpt, g->tape, b->ids, n, T, &pass);
    for (ptrdiff_t i = 0; i < n; i++)
        memcpy(b->readers[i]->logits, logits->data + i * V, (size_t)V * sizeof *logits->data);
    mg_tape_reset(g->tape);
}

static void predict_cached(batch *b) {
    ptrdiff_t n = 0;
    for (ptrdiff_t i = 0; i < b->n_taken; i++)
        if (b->seats[i].is_cached) b->readers[n++] = &b->seats[i];
    if (n > 0) predict(b, n, true);
}

/* Whole windows, those of one length together, some thousand tokens at a time. */
static void predict_uncached(batch *b) {
    enum { TOKENS_AT_ONCE = 4096 };
    for (ptrdiff_t length = 1; length <= b->g->block_size; length++) {
        ptrdiff_t n = 0, most = length < TOKENS_AT_ONCE ? TOKENS_AT_ONCE / length : 1;
        for (ptrdiff_t i = 0; i < b->n_taken; i++) {
            seat *s = &b->seats[i];
            if (s->is_cached || s->length != length) continue;
            b->readers[n++] = s;
            if (n < most) continue;
            predict(b, n, false);
            n = 0;
        }
        if (n > 0) predict(b, n, false);
    }
}

static mg_status run(batch *b, mg_sample_fn *on_token, void *user, mg_error *error) {
    while (b->n_taken > 0 || b->n_left > 0) {
        /* Without caches, all begin together, so that their windows are of one length. */
        while ((b->g->cache || b->n_taken == 0 || b->seats[0].drawn == 0) && b->n_taken < b->n_seats && b->n_left > 0)
            take_seat(b, &b->seats[b->n_taken++]);
        mg_status status = draw_all(b, on_token, user, error);
        if (status != MG_OK) return status;
        for (ptrdiff_t i = 0; i < b->n_taken; i++) append(b, &b->seats[i]);
        predict_cached(b);
        predict_uncached(b);
    }
    return MG_OK;
}

mg_status mg_generate_samples(mg_generator *g, const mg_sampler *sampler, uint64_t seed, uint32_t first,
                              ptrdiff_t n_samples, ptrdiff_t n, mg_sample_fn *on_token, void *user, mg_error *error) {
    MG_CHECK(on_token, "generator: on_token is NULL");
    MG_CHECK(n_samples >= 0 && (uint64_t)n_samples <= (uint64_t)UINT32_MAX - first + 1,
             "generator: %td samples from number %" PRIu32 " on; numbers end at %" PRIu32, n_samples, first,
             UINT32_MAX);
    mg_status status = mg_generator_check(g, sampler, n, error);
    if (status != MG_OK || n_samples == 0 || n == 0) return status;
    mg_generator_rewind(g);
    batch b = {.g = g, .sampler = sampler, .seed = seed, .n = n, .next = first, .n_left = n_samples};
    b.n_seats = count_seats(g, n_samples);
    status = open_seats(&b, error);
    if (status == MG_OK) status = run(&b, on_token, user, error);
    close_seats(&b);
    return status;
}

typedef struct collection {
    int *ids;
    ptrdiff_t *length; /* of each sample so far */
    ptrdiff_t n;
    uint32_t first;
} collection;

static bool collect(uint32_t sample, int id, void *user) {
    const collection *c = user;
    ptrdiff_t i = (ptrdiff_t)(sample - c->first);
    c->ids[i * c->n + c->length[i]++] = id;
    return true;
}

mg_status mg_generate_samples_ids(mg_generator *g, const mg_sampler *sampler, uint64_t seed, uint32_t first,
                                  ptrdiff_t n_samples, ptrdiff_t n, int *ids, mg_error *error) {
    ptrdiff_t *length = mg_alloc_zero((size_t)n_samples, sizeof *length, "the samples' lengths", error);
    if (!length) return MG_ERR_MEMORY;
    collection c = {ids, length, n, first};
    mg_status status = mg_generate_samples(g, sampler, seed, first, n_samples, n, collect, &c, error);
    mg_free(length);
    return status;
}
