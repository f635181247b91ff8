/* Speculative decoding: the rule, the window, the caches that are cut back, and who is refused. */
#include "speculator.h"

#include "check.h"

enum { V = 11, BLOCK = 12, FAR = 30 };

/* Random weights, large enough that the two models disagree. */
static mg_gpt *new_gpt(int block_size, int n_embd, uint64_t seed, int lookahead) {
    mg_gpt_config c = {0};
    c.n_layer = 2;
    c.n_head = 2;
    c.n_embd = n_embd;
    c.block_size = block_size;
    c.vocab_size = V;
    c.init_std = 0.3;
    c.mask = mg_lookahead(lookahead);
    mg_gpt *gpt;
    assert_int_equal(mg_gpt_new(&gpt, &c, seed, NULL), MG_OK);
    return gpt;
}

static mg_speculator *new_speculator(mg_gpt *target, mg_gpt *draft, int n_draft) {
    mg_speculator *s;
    assert_int_equal(mg_speculator_new(&s, target, draft, V, n_draft, NULL), MG_OK);
    return s;
}

static const int prompt[2 * BLOCK] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4};

/* ---- The rule ---- */

enum { N = 5, DRAWS = 200000 };

static void draw_by(mg_draft_rule *rule, const double *p, const double *q, double *frequency, double *stays) {
    memset(frequency, 0, N * sizeof *frequency);
    *stays = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        mg_rng rng = {5, MG_STREAM_TEST, 0};
        int id = mg_sampler_draw(q, N, rng, 3 * i);
        *stays += rule(p, q, N, &id, rng, 3 * i + 1, NULL) / (double)DRAWS;
        frequency[id] += 1.0 / DRAWS;
    }
}

/* Whatever q is: like p, far from it, without one of its tokens, with one that it does not have, certain. */
static void what_the_rule_writes_is_distributed_as_the_judge(void **state) {
    (void)state;
    static const double p[N] = {0.5, 0.2, 0.2, 0.1, 0};
    static const double qs[][N] = {{0.5, 0.2, 0.2, 0.1, 0}, {0.4, 0.3, 0.1, 0.1, 0.1}, {0.2, 0.2, 0.2, 0.2, 0.2},
                                   {0, 0.2, 0.2, 0.2, 0.4}, {0, 0, 0, 0, 1},           {1, 0, 0, 0, 0}};
    for (size_t k = 0; k < sizeof qs / sizeof *qs; k++) {
        double frequency[N], stays, overlap = 0;
        draw_by(mg_draft_judge, p, qs[k], frequency, &stays);
        for (int i = 0; i < N; i++) {
            assert_close(frequency[i], p[i], 5 * sqrt(p[i] * (1 - p[i]) / DRAWS));
            overlap += fmin(p[i], qs[k][i]);
        }
        assert_close(stays, overlap, 5 * sqrt(overlap * (1 - overlap) / DRAWS) + 1e-12);
    }
}

/* p and q that differ by rounding: nothing is left to draw the replacement from, and it is drawn all the same. */
static void an_empty_residual(void **state) {
    (void)state;
    double p[2] = {0.5, 0.5}, q[2] = {0.5, 0.6};
    for (uint64_t i = 0; i < 1000; i++) {
        int id = 1;
        mg_draft_judge(p, q, 2, &id, (mg_rng){1, MG_STREAM_TEST, 0}, i, NULL);
        assert_true(id == 0 || id == 1);
    }
}

/* ---- The text ---- */

/* At temperature 0 the text is the target's own, in the context and past it, whatever the draft model and its context,
 * however much is drafted, and from every prompt. */
static void greedy_text_is_the_targets_own(void **state) {
    (void)state;
    static const int drafts[][2] = {{1, BLOCK}, {2, BLOCK}, {3, BLOCK}, {5, BLOCK}, {40, BLOCK},
                                    {3, 1},     {3, 2},     {4, 5},     {4, 40}};
    const mg_sampler greedy = {0, 0, 1};
    mg_gpt *target = new_gpt(BLOCK, 24, 1, 0);
    mg_generator *plain;
    assert_int_equal(mg_generator_new(&plain, target, V, true, NULL), MG_OK);
    for (size_t k = 0; k < sizeof drafts / sizeof *drafts; k++) {
        mg_gpt *draft = new_gpt(drafts[k][1], 8, 2, 0);
        mg_speculator *s = new_speculator(target, draft, drafts[k][0]);
        for (ptrdiff_t length = 1; length <= BLOCK + 2; length++) {
            int expected[FAR], ids[FAR];
            mg_generator_prompt(plain, prompt, length);
            mg_speculator_prompt(s, prompt, length);
            assert_int_equal(mg_generate_ids(plain, &greedy, 1, 0, FAR, expected, NULL), MG_OK);
            for (int again = 0; again < 2; again++) { /* and from the prompt that it returns to */
                assert_int_equal(mg_speculate_ids(s, &greedy, 1, 0, FAR, ids, NULL), MG_OK);
                assert_memory_equal(ids, expected, sizeof ids);
            }
        }
        mg_speculator_free(s);
        mg_gpt_free(draft);
    }
    mg_generator_free(plain);
    mg_gpt_free(target);
}

/* Judges as usual, and compares what it is given with a pass of the target over the whole window without a cache. */
typedef struct witness {
    mg_gpt *target;
    mg_tape *tape;
    int text[BLOCK + FAR + 8]; /* the prompt, and what follows: a token that stays is noted before it is handed on */
    ptrdiff_t prompt, n, judged;
} witness;

static bool judge_and_compare(const double *p, const double *q, int n, int *id, mg_rng rng, uint64_t index,
                              void *user) {
    witness *w = user;
    ptrdiff_t end = w->prompt + (ptrdiff_t)(index / 3), T = end < BLOCK ? end : BLOCK;
    double expected[V];
    int order[V];
    const mg_real *logits =
        mg_gpt_forward(w->target, w->tape, w->text + end - T, 1, T, &(mg_gpt_pass){.last_only = true})->data;
    mg_sampler_probabilities(&(mg_sampler){1, 0, 1}, logits, V, expected, order);
    mg_tape_reset(w->tape);
    for (int i = 0; i < n; i++) assert_close(p[i], expected[i], 1e-4);
    bool stays = mg_draft_judge(p, q, n, id, rng, index, NULL);
    w->text[end] = *id;
    w->judged++;
    return stays;
}

static bool note(int id, void *user) {
    witness *w = user;
    w->text[w->prompt + w->n++] = id;
    return true;
}

static void the_cache_is_cut_back_to_what_stands(void **state) {
    (void)state;
    mg_gpt *target = new_gpt(BLOCK, 24, 1, 0), *draft = new_gpt(BLOCK, 8, 2, 0);
    witness w = {.target = target, .tape = new_tape()};
    mg_tape_record(w.tape, false);
    mg_speculator *s = new_speculator(target, draft, 4);
    mg_speculator_set_rule(s, judge_and_compare, &w);
    for (uint32_t sample = 0; sample < 60; sample++) {
        w.prompt = 1 + sample % BLOCK;
        w.n = 0;
        memcpy(w.text, prompt, (size_t)w.prompt * sizeof(int));
        if (sample < BLOCK || sample % 2)
            mg_speculator_prompt(s, prompt, w.prompt);
        else
            w.prompt = 1 + (sample - 1) % BLOCK; /* the prompt of before */
        assert_int_equal(mg_speculate(s, &(mg_sampler){1, 0, 1}, 7, sample, FAR, note, &w, NULL), MG_OK);
        assert_int_equal(w.n, FAR);
    }
    mg_speculation counts = mg_speculator_counts(s);
    assert_int_equal(counts.judged, w.judged);
    assert_true(counts.accepted > 100 && counts.judged - counts.accepted > 100); /* both happened */
    assert_true(counts.passes + counts.accepted >= 60 * FAR);
    mg_speculator_free(s);
    mg_tape_free(w.tape);
    mg_gpt_free(target);
    mg_gpt_free(draft);
}

/* A model that drafts for itself is never rejected. */
static void a_model_agrees_with_itself(void **state) {
    (void)state;
    mg_gpt *gpt = new_gpt(BLOCK, 24, 1, 0);
    mg_speculator *s = new_speculator(gpt, gpt, 3);
    int ids[8], again[8], other[8];
    mg_speculator_prompt(s, prompt, 2);
    for (uint32_t i = 0; i < 50; i++)
        assert_int_equal(mg_speculate_ids(s, &(mg_sampler){1, 0, 1}, 1, i, 8, ids, NULL), MG_OK);
    mg_speculation counts = mg_speculator_counts(s);
    assert_int_equal(counts.passes, 50 * 2);
    assert_int_equal(counts.drafted, 50 * 2 * 3);
    assert_int_equal(counts.accepted, counts.drafted);
    mg_speculate_ids(s, &(mg_sampler){1, 0, 1}, 1, 49, 8, again, NULL);
    mg_speculate_ids(s, &(mg_sampler){1, 0, 1}, 2, 49, 8, other, NULL);
    assert_memory_equal(ids, again, sizeof ids);
    assert_memory_not_equal(ids, other, sizeof ids);
    mg_speculator_free(s);
    mg_gpt_free(gpt);
}

static bool take_until_three(int id, void *user) {
    (void)id;
    return ++*(int *)user < 3;
}

/* A text counts what was written of it, wherever it ends: at a number of tokens, or because no more are wanted. */
static void what_was_written_is_counted(void **state) {
    (void)state;
    mg_gpt *gpt = new_gpt(BLOCK, 24, 1, 0), *other = new_gpt(BLOCK, 8, 2, 0);
    const mg_sampler sampler = {1, 0, 1};
    for (int n = 1; n <= 10; n++) {
        mg_speculator *self = new_speculator(gpt, gpt, 4), *s = new_speculator(gpt, other, 4);
        int ids[10], taken = 0;
        mg_speculator_prompt(self, prompt, 1);
        mg_speculator_prompt(s, prompt, 1);
        assert_int_equal(mg_speculate_ids(self, &sampler, 1, 0, n, ids, NULL), MG_OK);
        mg_speculation c = mg_speculator_counts(self);
        assert_int_equal(c.written, n);
        assert_int_equal(c.used, n - n / 5); /* all but the one that follows four that stay */
        assert_int_equal(c.stayed, c.used);
        for (uint32_t text = 0; text < 20; text++)
            assert_int_equal(mg_speculate_ids(s, &sampler, 1, text, n, ids, NULL), MG_OK);
        c = mg_speculator_counts(s);
        assert_int_equal(c.written, 20 * n);
        assert_true(c.stayed <= c.used && c.stayed <= c.accepted && c.used <= c.drafted);
        assert_true(c.written - c.passes <= c.stayed && c.stayed <= c.written);
        if (n == 10) {
            assert_int_equal(mg_speculate(s, &sampler, 1, 0, n, take_until_three, &taken, NULL), MG_OK);
            assert_int_equal(taken, 3);
            assert_int_equal(mg_speculator_counts(s).written, 20 * n + 3);
        }
        mg_speculator_free(self);
        mg_speculator_free(s);
    }
    mg_gpt_free(gpt);
    mg_gpt_free(other);
}

/* ---- Refusals ---- */

static void who_looks_ahead_is_refused(void **state) {
    (void)state;
    mg_gpt *causal = new_gpt(BLOCK, 8, 1, 0), *open = new_gpt(BLOCK, 8, 1, MG_LOOKAHEAD_ALL);
    mg_speculator *s;
    mg_error error;
    assert_int_equal(mg_speculator_new(&s, open, causal, V, 4, &error), MG_ERR_STATE);
    assert_null(s);
    assert_says(error.message, "it cannot judge them in one pass");
    assert_int_equal(mg_speculator_new(&s, causal, open, V, 4, &error), MG_ERR_STATE);
    assert_says(error.message, "the draft model looks ahead");
    mg_gpt_free(causal);
    mg_gpt_free(open);
}

static void broken_calls_and_models(void **state) {
    (void)state;
    mg_gpt *target = new_gpt(BLOCK, 8, 1, 0), *draft = new_gpt(BLOCK, 8, 2, 0);
    mg_speculator *s;
    mg_error error;
    int ids[4];
    assert_fails(mg_speculator_new(&s, target, draft, V, 0, NULL), "0 tokens to draft");
    s = new_speculator(target, draft, 2);
    assert_fails(mg_speculate_ids(s, &(mg_sampler){1, 0, 1}, 1, 0, 4, ids, NULL), "no prompt");
    assert_fails(mg_speculator_check(s, NULL), "no prompt");
    assert_fails(mg_speculator_prompt(s, (int[]){V}, 1), "id 11 is not below 11");
    mg_speculator_prompt(s, prompt, 1);
    assert_int_equal(mg_speculator_check(s, &error), MG_OK);
    mg_params_find(mg_gpt_params(draft), "ln_f.bias")->tensor.data[0] = NAN;
    assert_int_equal(mg_speculate_ids(s, &(mg_sampler){1, 0, 1}, 1, 0, 4, ids, &error), MG_ERR_STATE);
    assert_says(error.message, "'ln_f.bias' holds NaN");
    assert_int_equal(mg_speculator_check(s, &error), MG_ERR_STATE);
    assert_says(error.message, "the draft model cannot be used: the model's logits are not finite, since its 'ln_f.bias'");
    mg_params_find(mg_gpt_params(target), "wpe")->tensor.data[0] = INFINITY;
    assert_int_equal(mg_speculator_check(s, &error), MG_ERR_STATE);
    assert_says(error.message, "the model's logits are not finite, since its 'wpe' holds NaN");
    mg_speculator_free(s);
    mg_gpt_free(target);
    mg_gpt_free(draft);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_rule_writes_is_distributed_as_the_judge),
        cmocka_unit_test(an_empty_residual),
        cmocka_unit_test(greedy_text_is_the_targets_own),
        cmocka_unit_test(the_cache_is_cut_back_to_what_stands),
        cmocka_unit_test(a_model_agrees_with_itself),
        cmocka_unit_test(what_was_written_is_counted),
        cmocka_unit_test(who_looks_ahead_is_refused),
        cmocka_unit_test(broken_calls_and_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
