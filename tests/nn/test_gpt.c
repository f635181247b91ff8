#include "arithmetic.h"
#include "gpt.h"
#include "kv_cache.h"
#include "parallel.h"

#include "check.h"

enum { V = 11 };

/* How far logits may differ that come from a cache or from another number of rows: in portable arithmetic, not at all.
 */
static const double CACHED = MG_ONE_SUM ? 0 : 1e-4;
/* And those of a document in a window, from those that it has alone. */
static const double ALONE = MG_ONE_SUM ? 0 : 1e-5;

static mg_gpt_config small(void) {
    mg_gpt_config c = {0};
    c.n_layer = 2;
    c.n_head = 2;
    c.n_embd = 24;
    c.block_size = 12;
    c.vocab_size = V;
    c.init_std = 0.2;
    return c;
}

static mg_gpt *new_gpt(mg_gpt_config c) {
    mg_gpt *gpt;
    assert_int_equal(mg_gpt_new(&gpt, &c, 1337, NULL), MG_OK);
    return gpt;
}

static void some_ids(int *ids, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++) ids[i] = (int)((i * 7 + i * i) % 11);
}

/* Change token j: with the mask no bit of an earlier row changes; without it, some does. */
static void a_later_token_is_not_seen(void **state) {
    (void)state;
    enum { T = 12 };
    for (int lookahead = 0; lookahead < 2; lookahead++) {
        mg_gpt_config c = small();
        c.mask = mg_lookahead(lookahead ? MG_LOOKAHEAD_ALL : 0);
        mg_gpt *gpt = new_gpt(c);
        mg_tape *tape = new_tape();
        for (int j = 0; j < T; j++) {
            int ids[T];
            some_ids(ids, T);
            mg_tensor *before = mg_gpt_forward(gpt, tape, ids, 1, T, NULL);
            ids[j] = (ids[j] + 1) % 11;
            mg_tensor *after = mg_gpt_forward(gpt, tape, ids, 1, T, NULL);
            size_t earlier = (size_t)j * 11 * sizeof(mg_real);
            if (lookahead == 0 || j == 0)
                assert_memory_equal(before->data, after->data, earlier);
            else
                assert_true(memcmp(before->data, after->data, earlier) != 0);
            assert_true(memcmp(before->data + j * 11, after->data + j * 11, 11 * sizeof(mg_real)) != 0);
            mg_tape_reset(tape);
        }
        mg_tape_free(tape);
        mg_gpt_free(gpt);
    }
}

/* Every way to cut a prompt into chunks gives the logits of the whole, with position embeddings and without. */
static void chunks_agree(mg_gpt_config config) {
    enum { T = 12 };
    mg_gpt *gpt = new_gpt(config);
    mg_tape *tape = new_tape(), *chunk_tape = new_tape();
    mg_tape_record(tape, false);
    mg_tape_record(chunk_tape, false);
    int ids[T];
    some_ids(ids, T);
    mg_tensor *whole = mg_gpt_forward(gpt, tape, ids, 1, T, NULL);
    mg_kv_cache *cache;
    assert_int_equal(mg_kv_cache_new(&cache, mg_gpt_get_config(gpt), NULL), MG_OK);
    assert_int_equal(mg_kv_cache_bytes(cache), 2 * 2 * 12 * 24 * sizeof(mg_real));
    for (int cuts = 0; cuts < 1 << (T - 1); cuts += cuts < 64 ? 1 : 61) {
        mg_kv_cache_clear(cache);
        for (int begin = 0; begin < T;) {
            int end = begin + 1;
            while (end < T && !(cuts >> (end - 1) & 1)) end++;
            mg_gpt_pass pass = {.cache = &cache};
            mg_tensor *part = mg_gpt_forward(gpt, chunk_tape, ids + begin, 1, end - begin, &pass);
            for (int i = 0; i < (end - begin) * V; i++) assert_close(part->data[i], whole->data[begin * V + i], CACHED);
            assert_int_equal(cache->length, end);
            mg_tape_reset(chunk_tape);
            begin = end;
        }
    }
    mg_gpt_pass pass = {.cache = &cache};
    assert_fails(mg_gpt_forward(gpt, chunk_tape, ids, 1, 1, &pass), "do not fit the context of 12");
    mg_tape_reset(chunk_tape);
    pass.cache = NULL;
    pass.last_only = true;
    mg_tensor *last = mg_gpt_forward(gpt, chunk_tape, ids, 1, T, &pass);
    assert_int_equal(mg_size(last), V);
    for (int i = 0; i < V; i++) assert_close(last->data[i], whole->data[(T - 1) * V + i], CACHED);
    mg_kv_cache_free(cache);
    mg_tape_free(tape);
    mg_tape_free(chunk_tape);
    mg_gpt_free(gpt);
}

static void any_chunking_of_a_prompt(void **state) {
    (void)state;
    mg_gpt_config c = small();
    chunks_agree(c);
    c.no_positions = true;
    chunks_agree(c);
}

/* ---- Masks that a cache serves ---- */

enum { LONG = 100, END = 3 };

static mg_gpt_config with_mask(mg_mask_kind kind, int n) {
    mg_gpt_config c = small();
    c.block_size = LONG;
    c.mask = (mg_mask){kind, n};
    return c;
}

static mg_gpt_config with_documents(bool run_on, mg_mask_kind kind, int n) {
    mg_gpt_config c = with_mask(kind, n);
    c.documents = true;
    c.document_end = END;
    c.positions_run_on = run_on;
    return c;
}

/* Documents of 1, 1, 3, 7, 9, 40, 30 and 9 tokens; the last has no end. */
static void packed_ids(int *ids, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++) {
        bool ends = i == 0 || i == 1 || i == 4 || i == 11 || i == 20 || i == 60 || i == 90;
        ids[i] = (int)mg_rng_below((mg_rng){2, MG_STREAM_TEST, 0}, (uint64_t)i, V - 1);
        ids[i] = ends ? END : ids[i] + (ids[i] >= END);
    }
}

/* Feed ids from `begin` on in chunks, and compare each row with that of the whole text. */
static void feed(mg_gpt *gpt, mg_kv_cache *cache, const int *ids, const mg_tensor *whole, ptrdiff_t begin,
                 ptrdiff_t chunk) {
    mg_tape *tape = new_tape();
    mg_tape_record(tape, false);
    while (begin < LONG) {
        ptrdiff_t n = begin + chunk < LONG ? chunk : LONG - begin;
        mg_tensor *part = mg_gpt_forward(gpt, tape, ids + begin, 1, n, &(mg_gpt_pass){.cache = &cache});
        for (ptrdiff_t i = 0; i < n * V; i++) assert_close(part->data[i], whole->data[begin * V + i], CACHED);
        begin += n;
        assert_int_equal(cache->length, begin);
        assert_true(cache->length - cache->first <= cache->capacity);
        mg_tape_reset(tape);
    }
    mg_tape_free(tape);
}

static void cached_equals_uncached(mg_gpt_config c) {
    mg_gpt *gpt = new_gpt(c);
    mg_tape *tape = new_tape();
    mg_kv_cache *cache;
    int ids[LONG];
    packed_ids(ids, LONG);
    mg_tensor *whole = mg_gpt_forward(gpt, tape, ids, 1, LONG, NULL);
    assert_int_equal(mg_kv_cache_new(&cache, mg_gpt_get_config(gpt), NULL), MG_OK);
    for (ptrdiff_t chunk = 1; chunk <= LONG; chunk += chunk < 6 ? 1 : 47) {
        mg_kv_cache_clear(cache);
        feed(gpt, cache, ids, whole, 0, chunk);
        for (ptrdiff_t back = 1; back < LONG; back += 13) { /* and from any place that the cache can go back to */
            bool has = mg_kv_cache_cut(cache, LONG - back);
            if (!has) assert_int_equal(cache->length, 0);
            feed(gpt, cache, ids, whole, cache->length, chunk);
        }
    }
    mg_kv_cache_free(cache);
    mg_tape_free(tape);
    mg_gpt_free(gpt);
}

static void a_cache_serves_windows_and_documents(void **state) {
    (void)state;
    const int windows[] = {1, 2, 5, 33, 99, 100, 1000};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        cached_equals_uncached(with_mask(MG_MASK_WINDOW, windows[i]));
        cached_equals_uncached(with_documents(i % 2, MG_MASK_WINDOW, windows[i]));
    }
    for (int run_on = 0; run_on < 2; run_on++) cached_equals_uncached(with_documents(run_on, MG_MASK_LOOKAHEAD, 0));
}

/* Beyond the context: documents that ended are dropped, and each logit is still that of its document alone. */
static void go_on_beyond_the_context(mg_gpt_config c) {
    enum { TOKENS = 5 * LONG };
    mg_gpt *gpt = new_gpt(c);
    mg_tape *tape = new_tape();
    mg_tape_record(tape, false);
    mg_kv_cache *cache;
    int ids[TOKENS], window[LONG], drops = 0;
    for (int i = 0; i < TOKENS; i += LONG) packed_ids(ids + i, LONG);
    for (int i = LONG - 1; i < TOKENS; i += LONG) ids[i] = END;
    assert_int_equal(mg_kv_cache_new(&cache, mg_gpt_get_config(gpt), NULL), MG_OK);
    ptrdiff_t n = 0, begin = 0;
    for (ptrdiff_t t = 0; t < TOKENS; t++) {
        if (n == LONG || t % 37 == 36) { /* when it is full, and at any other time */
            ptrdiff_t ended = mg_gpt_ended(&c, window, n);
            mg_kv_cache_drop(cache, ended);
            memmove(window, window + ended, (size_t)(n -= ended) * sizeof *window);
            drops += ended > 0;
        }
        window[n++] = ids[t];
        mg_tensor *cached = mg_gpt_forward(gpt, tape, ids + t, 1, 1, &(mg_gpt_pass){.cache = &cache});
        mg_tensor *alone = mg_gpt_forward(gpt, tape, ids + begin, 1, t + 1 - begin, NULL);
        for (int v = 0; v < V; v++) assert_close(cached->data[v], alone->data[(t - begin) * V + v], CACHED);
        assert_int_equal(cache->length, n);
        assert_true(cache->length - cache->first <= cache->capacity);
        if (ids[t] == END) begin = t + 1;
        mg_tape_reset(tape);
    }
    assert_true(drops > 10);
    if (begin < TOKENS || n > 0) assert_fails(mg_kv_cache_drop(cache, n + 1), "may see some of the first");
    mg_kv_cache_free(cache);
    mg_tape_free(tape);
    mg_gpt_free(gpt);
}

static void a_cache_drops_documents_that_ended(void **state) {
    (void)state;
    go_on_beyond_the_context(with_documents(false, MG_MASK_LOOKAHEAD, 0));
    go_on_beyond_the_context(with_documents(false, MG_MASK_WINDOW, 5));
    go_on_beyond_the_context(with_documents(false, MG_MASK_WINDOW, 40));
    mg_gpt_config c = with_documents(true, MG_MASK_LOOKAHEAD, 0);
    int ids[] = {END, 1, END, 2};
    assert_int_equal(mg_gpt_ended(&c, ids, 4), 0); /* where positions run on, the next one would get another */
    c.no_positions = true;
    assert_int_equal(mg_gpt_ended(&c, ids, 4), 3);
    assert_int_equal(mg_gpt_ended(&c, ids, 3), 3);
    assert_int_equal(mg_gpt_ended(&c, ids + 1, 1), 0);
    go_on_beyond_the_context(c);
}

static void a_windows_cache_takes_memory_for_the_window(void **state) {
    (void)state;
    mg_gpt_config c = with_mask(MG_MASK_WINDOW, 40);
    size_t token = 2 * 2 * 24 * sizeof(mg_real); /* keys and values of 2 layers */
    for (c.block_size = 80; c.block_size <= 5120; c.block_size *= 8) {
        mg_gpt *gpt = new_gpt(c);
        mg_kv_cache *cache;
        assert_int_equal(mg_kv_cache_new(&cache, mg_gpt_get_config(gpt), NULL), MG_OK);
        assert_int_equal(mg_kv_cache_bytes(cache), 80 * token);
        mg_kv_cache_free(cache);
        mg_gpt_free(gpt);
    }
}

/* Sequences whose caches hold different numbers of tokens go through one pass, and for one token of each the bits are
 * those that it has alone. */
static void caches_side_by_side(mg_gpt_config c) {
    enum { B = 5, PASSES = 40 };
    static const int held[B] = {0, 1, 13, 50, 0}; /* tokens before the first common pass */
    mg_gpt *gpt = new_gpt(c);
    mg_tape *tape = new_tape(), *alone_tape = new_tape();
    mg_tape_record(tape, false);
    mg_tape_record(alone_tape, false);
    mg_kv_cache *cache[B], *alone[B];
    int ids[B][LONG], some[B * 4];
    for (int b = 0; b < B; b++) {
        packed_ids(ids[b], LONG);
        for (int i = 0; i < LONG; i++)
            if (ids[b][i] != END) ids[b][i] = (ids[b][i] + b) % V == END ? 0 : (ids[b][i] + b) % V;
        assert_int_equal(mg_kv_cache_new(&cache[b], mg_gpt_get_config(gpt), NULL), MG_OK);
        assert_int_equal(mg_kv_cache_new(&alone[b], mg_gpt_get_config(gpt), NULL), MG_OK);
        if (held[b] == 0) continue;
        mg_gpt_pass pass = {.cache = &cache[b], .cache_only = true};
        mg_gpt_forward(gpt, tape, ids[b], 1, held[b], &pass);
        mg_kv_cache_copy(alone[b], cache[b]);
    }
    for (int i = 0, done = 0; i < PASSES; i++) {
        int T = 1 + (i % 7 == 6) * 3; /* now and then four tokens: then only to rounding */
        if (held[3] + done + T > LONG) break;
        for (int b = 0; b < B; b++)
            for (int t = 0; t < T; t++) some[b * T + t] = ids[b][held[b] + done + t];
        mg_tensor *together = mg_gpt_forward(gpt, tape, some, B, T, &(mg_gpt_pass){.cache = cache});
        for (int b = 0; b < B; b++) {
            mg_gpt_pass pass = {.cache = &alone[b]};
            mg_tensor *one = mg_gpt_forward(gpt, alone_tape, some + b * T, 1, T, &pass);
            const mg_real *row = together->data + b * T * V;
            if (T == 1) assert_memory_equal(one->data, row, V * sizeof *row);
            for (int k = 0; k < T * V; k++) assert_close(one->data[k], row[k], 1e-4);
            assert_int_equal(cache[b]->length, alone[b]->length);
            assert_int_equal(cache[b]->first, alone[b]->first);
            if (T > 1) mg_kv_cache_copy(cache[b], alone[b]);
        }
        mg_tape_reset(tape);
        mg_tape_reset(alone_tape);
        done += T;
    }
    for (int b = 0; b < B; b++) {
        mg_kv_cache_free(cache[b]);
        mg_kv_cache_free(alone[b]);
    }
    mg_tape_free(tape);
    mg_tape_free(alone_tape);
    mg_gpt_free(gpt);
}

static void sequences_with_caches_side_by_side(void **state) {
    (void)state;
    caches_side_by_side(with_mask(MG_MASK_LOOKAHEAD, 0));
    caches_side_by_side(with_mask(MG_MASK_WINDOW, 5));
    for (int run_on = 0; run_on < 2; run_on++) caches_side_by_side(with_documents(run_on, MG_MASK_LOOKAHEAD, 0));
    mg_gpt_config c = with_documents(false, MG_MASK_WINDOW, 20);
    c.no_positions = true;
    caches_side_by_side(c);
}

/* Each document's logits are those it has by itself, where positions restart; a token of another document changes no
 * bit of them. */
static void documents_do_not_see_each_other(void **state) {
    (void)state;
    for (int run_on = 0; run_on < 2; run_on++) {
        mg_gpt *gpt = new_gpt(with_documents(run_on, MG_MASK_LOOKAHEAD, 0));
        mg_tape *tape = new_tape();
        int ids[LONG];
        packed_ids(ids, LONG);
        mg_tensor *packed = mg_gpt_forward(gpt, tape, ids, 1, LONG, NULL);
        for (int begin = 0, end; begin < LONG; begin = end) {
            for (end = begin + 1; end < LONG && ids[end - 1] != END; end++) {
            }
            mg_tensor *alone = mg_gpt_forward(gpt, tape, ids + begin, 1, end - begin, NULL);
            double difference = 0;
            for (int i = 0; i < (end - begin) * V; i++)
                difference = fmax(difference, fabs((double)(alone->data[i] - packed->data[begin * V + i])));
            assert_true(run_on && begin > 0 ? difference > 1e-3 : difference <= ALONE);
            int kept = ids[begin];
            if (kept == END) continue;
            ids[begin] = (kept + 1) % V == END ? (kept + 2) % V : (kept + 1) % V;
            mg_tensor *changed = mg_gpt_forward(gpt, tape, ids, 1, LONG, NULL);
            ids[begin] = kept;
            for (int i = 0; i < LONG; i++) {
                bool same = memcmp(changed->data + i * V, packed->data + i * V, V * sizeof(mg_real)) == 0;
                assert_int_equal(same, i < begin || i >= end);
            }
        }
        mg_tape_free(tape);
        mg_gpt_free(gpt);
    }
}

static void a_cache_needs_causality(void **state) {
    (void)state;
    mg_error error;
    mg_kv_cache *cache;
    mg_gpt_config open[] = {small(), small(), small(), small()};
    open[0].leak_layer = 1;
    open[0].leak_lookahead = 1;
    open[1].mask = (mg_mask){MG_MASK_PREFIX, 2};
    open[2].mask = (mg_mask){MG_MASK_BLOCK, 2};
    open[3].mask = mg_lookahead(MG_LOOKAHEAD_ALL);
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        mg_gpt *gpt = new_gpt(open[i]);
        assert_int_equal(mg_kv_cache_new(&cache, mg_gpt_get_config(gpt), &error), MG_ERR_STATE);
        assert_says(error.message, "looks ahead");
        assert_null(cache);
        mg_gpt_set_mask(gpt, (mg_mask){i % 2 ? MG_MASK_PREFIX : MG_MASK_BLOCK, 1});
        assert_int_equal(mg_kv_cache_new(&cache, mg_gpt_get_config(gpt), &error), MG_OK);
        mg_kv_cache_free(cache);
        mg_gpt_free(gpt);
    }
}

/* Threads, capture and a second evaluation change no bit of logits or gradients. */
static void bits_do_not_depend_on_who_looks(void **state) {
    (void)state;
    enum { B = 3, T = 12 };
    int ids[B * T], targets[B * T];
    some_ids(ids, B * T);
    for (int i = 0; i < B * T; i++) targets[i] = (ids[i] * 3 + 1) % V;
    mg_real *first = NULL;
    double first_loss = 0;
    for (int run = 0; run < 4; run++) {
        mg_set_threads(run % 3 + 1);
        mg_gpt *gpt = new_gpt(small());
        mg_params *params = mg_gpt_params(gpt);
        mg_tape *tape = new_tape();
        mg_real *weights = mg_alloc(2 * B * 2 * T * T, sizeof(mg_real), "a capture", NULL);
        mg_gpt_capture capture = {.weights = weights};
        mg_gpt_pass pass = {.capture = run == 3 ? &capture : NULL};
        mg_tensor *loss = mg_gpt_loss(gpt, tape, ids, targets, B, T, &pass, NULL);
        mg_backward(tape, loss);
        size_t bytes = (size_t)params->size * sizeof(mg_real);
        if (run == 0) {
            first = mg_alloc(1, bytes, "gradients", NULL);
            memcpy(first, params->grads, bytes);
            first_loss = loss->data[0];
        }
        assert_memory_equal(first, params->grads, bytes);
        assert_true(first_loss == loss->data[0]);
        for (int row = 0; run == 3 && row < 2 * B * 2 * T; row++) {
            double sum = 0;
            for (int k = 0; k < T; k++) {
                sum += weights[row * T + k];
                if (k > row % T) assert_true(weights[row * T + k] == 0);
            }
            assert_close(sum, 1, 1e-5);
        }
        mg_free(weights);
        mg_tape_free(tape);
        mg_gpt_free(gpt);
    }
    mg_free(first);
    mg_set_threads(0);
}

static void a_step_after_the_first_allocates_nothing(void **state) {
    (void)state;
    enum { B = 3, T = 12 };
    int ids[B * T];
    some_ids(ids, B * T);
    mg_gpt_config c = small();
    c.dropout = 0.1;
    mg_gpt *gpt = new_gpt(c);
    mg_tape *tape = new_tape();
    size_t before = 0;
    double loss[4];
    for (int step = 0; step < 4; step++) {
        mg_gpt_pass pass = {.training = true, .dropout_seed = 3, .dropout_step = (uint32_t)(step / 2)};
        mg_tensor *l = mg_gpt_loss(gpt, tape, ids, ids, B, T, &pass, NULL);
        mg_backward(tape, l);
        loss[step] = l->data[0];
        mg_tape_reset(tape);
        if (step == 0) before = mg_allocation_count();
    }
    assert_int_equal(mg_allocation_count(), before);
    assert_true(loss[0] == loss[1] && loss[2] == loss[3] && loss[0] != loss[2]); /* dropout is a function of the step */
    mg_tape_free(tape);
    mg_gpt_free(gpt);
}

static void names_and_shapes_are_gpt2s(void **state) {
    (void)state;
    mg_gpt_config c = {0};
    c.n_layer = 12;
    c.n_head = 12;
    c.n_embd = 768;
    c.block_size = 1024;
    c.vocab_size = 50257;
    assert_int_equal(mg_gpt_specs(&c, NULL), 148);
    static mg_param_spec specs[148];
    mg_gpt_specs(&c, specs);
    ptrdiff_t count = 0;
    for (int i = 0; i < 148; i++) count += mg_shape_size(specs[i].ndim, specs[i].dim);
    assert_int_equal(count, 124439808);
    assert_string_equal(specs[4].name, "h.0.attn.c_attn.weight");
    assert_int_equal(specs[4].dim[1], 2304);
}

static void initial_weights(void **state) {
    (void)state;
    mg_gpt_config c = small();
    mg_gpt *causal = new_gpt(c);
    c.mask = mg_lookahead(MG_LOOKAHEAD_ALL);
    mg_gpt *open = new_gpt(c);
    mg_params *a = mg_gpt_params(causal), *b = mg_gpt_params(open);
    assert_memory_equal(a->values, b->values, (size_t)a->size * sizeof(mg_real));
    c.no_output_projection = true;
    mg_gpt *bare = new_gpt(c);
    assert_int_equal(mg_gpt_params(bare)->n, a->n - 4);
    assert_memory_equal(mg_params_find(a, "h.1.mlp.c_fc.weight")->tensor.data,
                        mg_params_find(mg_gpt_params(bare), "h.1.mlp.c_fc.weight")->tensor.data,
                        24 * 96 * sizeof(mg_real));
    const mg_tensor *fc = &mg_params_find(a, "h.0.mlp.c_fc.weight")->tensor,
                    *proj = &mg_params_find(a, "h.0.mlp.c_proj.weight")->tensor;
    double fc2 = 0, proj2 = 0;
    for (int i = 0; i < 24 * 96; i++) {
        fc2 += (double)fc->data[i] * fc->data[i] / (24 * 96);
        proj2 += (double)proj->data[i] * proj->data[i] / (24 * 96);
    }
    assert_close(sqrt(fc2), 0.2, 0.01);
    assert_close(sqrt(proj2), 0.1, 0.005); /* / sqrt(2 · 2 layers) */
    mg_gpt_free(causal);
    mg_gpt_free(open);
    mg_gpt_free(bare);
}

/* logits (T,V) of ids under `c`, on the tape. */
static const mg_real *logits_of(mg_tape *tape, mg_gpt_config c, const int *ids, ptrdiff_t T) {
    mg_gpt *gpt = new_gpt(c);
    const mg_real *logits = mg_gpt_forward(gpt, tape, ids, 1, T, NULL)->data;
    mg_gpt_free(gpt);
    return logits;
}

/* How far the logits of reversed tokens are from the reversed logits. */
static double unlike_reversed(mg_gpt_config c) {
    enum { T = 12 };
    int ids[T], reversed[T];
    some_ids(ids, T);
    for (int t = 0; t < T; t++) reversed[t] = ids[T - 1 - t];
    mg_tape *tape = new_tape();
    const mg_real *a = logits_of(tape, c, ids, T), *b = logits_of(tape, c, reversed, T);
    double most = 0;
    for (int t = 0; t < T; t++)
        for (int k = 0; k < V; k++) most = fmax(most, fabs((double)a[t * V + k] - (double)b[(T - 1 - t) * V + k]));
    mg_tape_free(tape);
    return most;
}

/* Without the mask and without positions nothing tells one order from another; each of the two does. */
static void order_comes_from_positions_or_the_mask(void **state) {
    (void)state;
    mg_gpt_config c = small();
    c.mask = mg_lookahead(MG_LOOKAHEAD_ALL);
    c.no_positions = true;
    double rounding = sizeof(mg_real) == sizeof(float) ? 1e-4 : 1e-12;
    assert_true(unlike_reversed(c) <= rounding);
    c.mask = mg_lookahead(0);
    assert_true(unlike_reversed(c) > 0.1);
    c.mask = mg_lookahead(MG_LOOKAHEAD_ALL);
    c.no_positions = false;
    assert_true(unlike_reversed(c) > 0.1);
}

/* No weight knows the context: the same seed gives the same ones, and the same logits of a text that fits both. */
static void without_positions_the_context_is_no_shape(void **state) {
    (void)state;
    enum { T = 12 };
    mg_gpt_config c = small();
    mg_gpt *with = new_gpt(c);
    c.no_positions = true;
    mg_gpt *without = new_gpt(c);
    c.block_size = 100;
    mg_gpt *longer = new_gpt(c);
    mg_params *a = mg_gpt_params(without), *b = mg_gpt_params(longer);
    assert_int_equal(a->n, mg_gpt_params(with)->n - 1);
    assert_null(mg_params_find(a, "wpe"));
    assert_int_equal(a->size, b->size);
    assert_memory_equal(a->values, b->values, (size_t)a->size * sizeof(mg_real));
    assert_memory_equal(mg_params_find(a, "wte")->tensor.data, mg_params_find(mg_gpt_params(with), "wte")->tensor.data,
                        V * 24 * sizeof(mg_real));
    int ids[100];
    some_ids(ids, 100);
    mg_tape *tape = new_tape();
    const mg_real *in_short = mg_gpt_forward(without, tape, ids, 1, T, NULL)->data;
    const mg_real *in_long = mg_gpt_forward(longer, tape, ids, 1, 100, NULL)->data;
    for (int i = 0; i < T * V; i++) assert_close(in_short[i], in_long[i], 1e-4);
    mg_tape_reset(tape);
    assert_fails(mg_gpt_forward(without, tape, ids, 1, 13, NULL), "do not fit the context of 12");
    mg_tape_free(tape);
    mg_gpt_free(with);
    mg_gpt_free(without);
    mg_gpt_free(longer);
}

static void says(mg_gpt_config c, const char *part) {
    mg_error error;
    mg_gpt *gpt;
    assert_int_equal(mg_gpt_new(&gpt, &c, 0, &error), MG_ERR_INPUT);
    assert_null(gpt);
    assert_says(error.message, part);
}

static void sizes_that_cannot_be(void **state) {
    (void)state;
    mg_gpt_config c = small();
    c.n_embd = 25;
    says(c, "n_embd is 25 and n_head is 2");
    c = small();
    c.n_layer = 1001;
    says(c, "n_layer is 1001");
    c = small();
    c.vocab_size = -3;
    says(c, "vocab_size is -3");
    c = small();
    c.n_embd = 65536;
    c.n_layer = 1000;
    says(c, "parameters");
    c = small();
    c.leak_layer = 2;
    c.leak_lookahead = 1;
    says(c, "layers are 0 to 1");
    c = small();
    c.dropout = 1;
    says(c, "dropout is 1");
}

/* One token, one head, one word: everything is defined. */
static void the_smallest_model(void **state) {
    (void)state;
    mg_gpt_config c = {0};
    c.n_layer = c.n_head = c.n_embd = c.block_size = c.vocab_size = 1;
    mg_gpt *gpt = new_gpt(c);
    mg_tape *tape = new_tape();
    int id = 0;
    mg_tensor *loss = mg_gpt_loss(gpt, tape, &id, &id, 1, 1, NULL, NULL);
    mg_backward(tape, loss);
    assert_true(loss->data[0] == 0);
    assert_close(mg_params_grad_norm(mg_gpt_params(gpt)), 0, 1e-12);
    mg_tape_free(tape);
    mg_gpt_free(gpt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_later_token_is_not_seen),
        cmocka_unit_test(any_chunking_of_a_prompt),
        cmocka_unit_test(a_cache_serves_windows_and_documents),
        cmocka_unit_test(sequences_with_caches_side_by_side),
        cmocka_unit_test(a_windows_cache_takes_memory_for_the_window),
        cmocka_unit_test(documents_do_not_see_each_other),
        cmocka_unit_test(a_cache_drops_documents_that_ended),
        cmocka_unit_test(a_cache_needs_causality),
        cmocka_unit_test(bits_do_not_depend_on_who_looks),
        cmocka_unit_test(a_step_after_the_first_allocates_nothing),
        cmocka_unit_test(names_and_shapes_are_gpt2s),
        cmocka_unit_test(initial_weights),
        cmocka_unit_test(order_comes_from_positions_or_the_mask),
        cmocka_unit_test(without_positions_the_context_is_no_shape),
        cmocka_unit_test(sizes_that_cannot_be),
        cmocka_unit_test(the_smallest_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
