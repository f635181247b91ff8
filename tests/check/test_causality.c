/* The leak check itself: it clears what is causal, finds every leak there can be, and does not take silence for proof.
 */
#include "causality.h"

#include "check.h"

#include <stdlib.h>

enum { T = 7, V = 11 };

static const int ids[T] = {3, 1, 4, 1, 5, 9, 2};

/* Weights large enough that what passes through every layer is not lost in rounding. */
static mg_gpt_config small_config(void) {
    mg_gpt_config c = {0};
    c.n_layer = 3;
    c.n_head = 2;
    c.n_embd = 8;
    c.block_size = T + 2;
    c.vocab_size = V;
    c.init_std = 0.3;
    return c;
}

static mg_gpt *new_gpt(mg_gpt_config c, bool trainable) {
    mg_gpt *gpt;
    mg_error error;
    if (mg_gpt_new_zeros(&gpt, &c, trainable, &error) != MG_OK) fail_msg("%s", error.message);
    mg_gpt_randomize(gpt, 5);
    return gpt;
}

static mg_causality causality_of(mg_gpt_config config) {
    mg_gpt *gpt = new_gpt(config, true);
    mg_causality c;
    assert_int_equal(mg_causality_of_gpt(&c, gpt, ids, T, NULL), MG_OK);
    mg_gpt_free(gpt);
    return c;
}

/* Something on j <= i + reach, and exactly nothing elsewhere, however it is measured. */
static void check_band(const mg_causality *c, ptrdiff_t reach) {
    for (ptrdiff_t i = 0; i < c->T; i++)
        for (ptrdiff_t j = 0; j < c->T; j++) {
            bool inside = j <= i + reach;
            ptrdiff_t at = i * c->T + j;
            if ((c->perturbation[at] > 0) != inside || (c->gradient[at] > 0) != inside || c->poison[at] != inside)
                fail_msg("(%td, %td) at reach %td: %g, %g, %d", i, j, reach, c->perturbation[at], c->gradient[at],
                         c->poison[at]);
        }
}

static void a_causal_model_is_cleared(void **state) {
    (void)state;
    for (int n_layer = 1; n_layer <= 3; n_layer++)
        for (int variant = 0; variant < 4; variant++) {
            mg_gpt_config config = small_config();
            config.n_layer = n_layer;
            config.no_scale = variant == 1;
            config.no_output_projection = variant == 2;
            config.no_positions = variant == 3;
            mg_causality c = causality_of(config);
            check_band(&c, 0);
            assert_int_equal(c.verdict, MG_CAUSAL);
            assert_int_equal(c.query, -1);
            assert_int_equal(c.layer, -1);
            assert_true(c.largest == 0);
            assert_says(c.reason, "of 21 pairs");
            mg_causality_free(&c);
        }
}

static void lookahead_reaches_exactly_its_band(void **state) {
    (void)state;
    for (int lookahead = 1; lookahead <= T; lookahead++)
        for (int n_layer = 1; n_layer <= 3; n_layer++) {
            mg_gpt_config config = small_config();
            config.n_layer = n_layer;
            config.mask = mg_lookahead(lookahead);
            ptrdiff_t reach = lookahead * n_layer < T - 1 ? lookahead * n_layer : T - 1;
            assert_int_equal(mg_causality_reach(&config, T), reach);
            mg_causality c = causality_of(config);
            check_band(&c, reach);
            assert_int_equal(c.verdict, MG_LEAKS);
            assert_int_equal(c.query, 0);
            assert_int_equal(c.key, 1);
            assert_int_equal(c.layer, 0);
            assert_true(c.largest > 0);
            mg_causality_free(&c);
        }
}

static void without_a_mask_everything_reaches_everything(void **state) {
    (void)state;
    mg_gpt_config config = small_config();
    config.mask = mg_lookahead(MG_LOOKAHEAD_ALL);
    assert_int_equal(mg_causality_reach(&config, T), T - 1);
    mg_causality c = causality_of(config);
    check_band(&c, T - 1);
    assert_int_equal(c.verdict, MG_LEAKS);
    mg_causality_free(&c);
}

static void one_leaky_head_is_found_in_its_layer(void **state) {
    (void)state;
    for (int layer = 0; layer < 3; layer++)
        for (int head = 0; head < 2; head++) {
            mg_gpt_config config = small_config();
            config.leak_layer = layer;
            config.leak_head = head;
            config.leak_lookahead = 1;
            mg_causality c = causality_of(config);
            check_band(&c, 1);
            assert_int_equal(c.verdict, MG_LEAKS);
            assert_int_equal(c.layer, layer);
            char where[32];
            snprintf(where, sizeof where, "after layer %d", layer);
            assert_says(c.reason, "position 0 depends on position 1");
            assert_says(c.reason, where);
            mg_causality_free(&c);
        }
}

static void zero(mg_gpt *gpt, const char *part) {
    mg_params *params = mg_gpt_params(gpt);
    int found = 0;
    for (int i = 0; i < params->n; i++) {
        if (!strstr(params->param[i].name, part)) continue;
        memset(params->param[i].tensor.data, 0, (size_t)mg_size(&params->param[i].tensor) * sizeof(mg_real));
        found++;
    }
    assert_true(found > 0);
}

/* Without an output projection's weights nothing moves between positions, mask or no mask; without wte no logit is ever
 * other than 0. Neither proves anything. */
static void silence_is_not_causality(void **state) {
    (void)state;
    static const char *const parts[] = {"attn.c_proj.weight", "wte", "ln_f.weight"};
    static const char *const reasons[] = {"any position before it", "its own token", "its own token"};
    for (int part = 0; part < 3; part++)
        for (int lookahead = 0; lookahead < 2; lookahead++) {
            mg_gpt_config config = small_config();
            config.mask = mg_lookahead(lookahead ? MG_LOOKAHEAD_ALL : 0);
            mg_gpt *gpt = new_gpt(config, true);
            zero(gpt, parts[part]);
            mg_causality c;
            assert_int_equal(mg_causality_of_gpt(&c, gpt, ids, T, NULL), MG_OK);
            assert_int_equal(c.verdict, MG_INCONCLUSIVE);
            assert_says(c.reason, reasons[part]);
            assert_int_equal(c.query, -1);
            /* Poison passes through a weight of 0: who looks sees an open mask even here. */
            assert_true(c.poison[1] == lookahead);
            mg_causality_free(&c);
            mg_gpt_free(gpt);
        }
}

/* The first token of a document sees nothing before it, which is no silence. The others must still see something, and
 * so must one position at least: a text of documents of one token shows nothing. */
static void a_document_may_begin_in_silence(void **state) {
    (void)state;
    mg_gpt_config config = small_config();
    config.documents = true;
    static const int ends[] = {3, 1, 4, 5, 9, 10}; /* 1: two of them; 10: none */
    for (int i = 0; i < 6; i++) {
        config.document_end = ends[i];
        mg_causality c = causality_of(config);
        assert_int_equal(c.verdict, MG_CAUSAL);
        for (ptrdiff_t t = 1; t < T; t++)
            for (ptrdiff_t j = 0; j < t; j++)
                if (ids[t - 1] == ends[i]) assert_true(c.gradient[t * T + j] == 0);
        mg_causality_free(&c);
    }
    static const int ones[T] = {4, 4, 4, 4, 4, 4, 4};
    config.document_end = 4;
    mg_gpt *gpt = new_gpt(config, true);
    mg_causality c;
    assert_int_equal(mg_causality_of_gpt(&c, gpt, ones, T, NULL), MG_OK);
    assert_int_equal(c.verdict, MG_INCONCLUSIVE);
    assert_says(c.reason, "position 1 is not influenced by any position before it");
    mg_causality_free(&c);
    zero(gpt, "attn.c_proj.weight");
    assert_int_equal(mg_causality_of_gpt(&c, gpt, ids, T, NULL), MG_OK);
    assert_int_equal(c.verdict, MG_INCONCLUSIVE);
    assert_says(c.reason, "position 1 is not influenced by any position before it");
    mg_causality_free(&c);
    mg_gpt_free(gpt);
    config.mask = mg_lookahead(1);
    c = causality_of(config);
    assert_int_equal(c.verdict, MG_LEAKS);
    mg_causality_free(&c);
}

static void one_token_has_no_future(void **state) {
    (void)state;
    mg_gpt *gpt = new_gpt(small_config(), true);
    mg_causality c;
    assert_int_equal(mg_causality_of_gpt(&c, gpt, ids, 1, NULL), MG_OK);
    assert_int_equal(c.verdict, MG_CAUSAL);
    mg_causality_free(&c);
    assert_fails(mg_causality_of_gpt(&c, gpt, ids, T + 3, NULL), "context of 9");
    mg_gpt_free(gpt);
}

static void the_model_is_left_as_it_was(void **state) {
    (void)state;
    for (int trainable = 0; trainable < 2; trainable++) {
        mg_gpt *gpt = new_gpt(small_config(), trainable);
        mg_params *params = mg_gpt_params(gpt);
        size_t bytes = (size_t)params->size * sizeof(mg_real);
        mg_real *values = malloc(bytes), *grads = malloc(bytes);
        for (ptrdiff_t i = 0; trainable && i < params->size; i++) params->grads[i] = (mg_real)i;
        memcpy(values, params->values, bytes);
        if (trainable) memcpy(grads, params->grads, bytes);
        mg_causality c;
        assert_int_equal(mg_causality_of_gpt(&c, gpt, ids, T, NULL), MG_OK);
        assert_int_equal(c.verdict, MG_CAUSAL);
        mg_causality_free(&c);
        assert_memory_equal(values, params->values, bytes);
        if (trainable) assert_memory_equal(grads, params->grads, bytes);
        for (int i = 0; i < params->n; i++) {
            assert_int_equal(params->param[i].tensor.requires_grad, trainable);
            assert_ptr_equal(params->param[i].tensor.grad, trainable ? params->grads + params->param[i].offset : NULL);
        }
        free(values);
        free(grads);
        mg_gpt_free(gpt);
    }
}

/* ---- A model that leaks wherever we like ---- */

/* Row i is (Σ_{j <= i} x_j, leak · x_key at i = query). With `behind_one` the leak is added to the sum, 1 in size, in
 * which a tiny one drowns. */
typedef struct leaky {
    ptrdiff_t query, key;
    double leak;
    bool behind_one;
    int unsteady; /* the calls from which on another bit comes out; 0: none */
    int calls;
} leaky;

static void leaky_forward(void *user, ptrdiff_t position, mg_change change, mg_real *const *stage) {
    static const double changed[] = {1, 2, 1.5, NAN};
    leaky *m = user;
    double sum = 0;
    bool moved = m->unsteady && ++m->calls >= m->unsteady;
    for (ptrdiff_t i = 0; i < T; i++) {
        sum += i == position ? changed[change] : 1;
        double leak = i == m->query ? m->leak * (m->key == position ? changed[change] : 1) : 0;
        stage[0][2 * i] = (mg_real)(sum + (m->behind_one ? leak : 0) + (moved && i == 3));
        stage[0][2 * i + 1] = (mg_real)(m->behind_one ? 0 : leak);
    }
}

static void leaky_gradient(void *user, ptrdiff_t row, double *norm) {
    const leaky *m = user;
    for (ptrdiff_t j = 0; j < T; j++) norm[j] = j <= row;
    if (row == m->query) norm[m->key] += m->leak;
}

enum { GRADIENT = 1, POISON = 2 };

static mg_causality check_leaky(leaky m, int with) {
    mg_causality_model model = {
        &m, T, 1, (ptrdiff_t[]){2}, leaky_forward, with & GRADIENT ? leaky_gradient : NULL, with & POISON, NULL};
    mg_causality c;
    assert_int_equal(mg_causality_check(&c, &model, NULL), MG_OK);
    assert_true((c.poison != NULL) == !!(with & POISON) && (c.gradient != NULL) == !!(with & GRADIENT));
    return c;
}

/* What drowns in rounding is found by the gradient; without it only poison passes; without that, nothing does. */
static void a_leak_at_any_pair_is_found(void **state) {
    (void)state;
    for (ptrdiff_t i = 0; i < T; i++)
        for (ptrdiff_t j = i + 1; j < T; j++)
            for (int with = 0; with < 4; with++)
                for (int drowned = 0; drowned < 2; drowned++) {
                    mg_causality c = check_leaky((leaky){i, j, 1e-30, drowned, 0, 0}, with);
                    bool seen = !drowned || with & GRADIENT;
                    assert_int_equal(c.verdict, seen ? MG_LEAKS : with & POISON ? MG_ONLY_POISON_LEAKS : MG_CAUSAL);
                    bool named = seen || with & POISON;
                    assert_int_equal(c.query, named ? i : -1);
                    assert_int_equal(c.key, named ? j : -1);
                    assert_int_equal(c.layer, named ? 0 : -1);
                    if (seen) assert_close(c.largest, 1e-30, 1e-36);
                    assert_true((c.perturbation[i * T + j] > 0) == !drowned);
                    mg_causality_free(&c);
                }
}

static void what_is_multiplied_by_0_is_no_leak(void **state) {
    (void)state;
    mg_causality c = check_leaky((leaky){2, 5, 0, true, 0, 0}, GRADIENT | POISON);
    assert_int_equal(c.verdict, MG_ONLY_POISON_LEAKS);
    assert_says(c.reason, "only a NaN passes, first from position 5 to 2");
    assert_true(c.largest == 0);
    mg_causality_free(&c);
    c = check_leaky((leaky){-1, 0, 0, false, 0, 0}, GRADIENT | POISON);
    assert_int_equal(c.verdict, MG_CAUSAL);
    mg_causality_free(&c);
}

static void what_is_not_repeatable_is_convicted_of_nothing(void **state) {
    (void)state;
    for (int leak = 0; leak < 2; leak++)
        for (int from = 2; from <= 3 * T; from++) {
            mg_causality c = check_leaky((leaky){leak ? 1 : -1, 4, 1, false, from, 0}, GRADIENT | POISON);
            assert_int_equal(c.verdict, MG_NOT_REPEATABLE);
            assert_int_equal(c.query, -1);
            assert_says(c.reason, "position 3");
            mg_causality_free(&c);
        }
}

/* ---- Attention as a textbook writes it ---- */

enum { LONG = 64, WIDTH = 4 };

typedef struct textbook {
    mg_tape *tape;
    mg_real input[LONG][WIDTH];
    ptrdiff_t open_query, open_key; /* a pair that the mask leaves open; -1: none */
    bool filled_with_0;             /* after the softmax, instead of −inf before it */
    mg_tensor *x, *out;
} textbook;

static void attend(textbook *m, const mg_real (*input)[WIDTH]) {
    mg_tape_reset(m->tape);
    m->x = mg_leaf(m->tape, 2, (ptrdiff_t[]){LONG, WIDTH});
    memcpy(m->x->data, input, sizeof m->input);
    mg_tensor *hidden = mg_constant(m->tape, 2, (ptrdiff_t[]){LONG, LONG});
    for (ptrdiff_t i = 0; i < LONG; i++)
        for (ptrdiff_t j = 0; j < LONG; j++)
            hidden->data[i * LONG + j] = j > i && !(i == m->open_query && j == m->open_key);
    mg_tensor *scores = mg_matmul(m->tape, m->x, m->x, false, true);
    mg_tensor *weights = m->filled_with_0
                             ? mg_masked_fill(m->tape, mg_softmax(m->tape, scores), hidden, 0)
                             : mg_softmax(m->tape, mg_masked_fill(m->tape, scores, hidden, (mg_real)-INFINITY));
    m->out = mg_matmul(m->tape, weights, m->x, false, false);
}

static void textbook_forward(void *user, ptrdiff_t position, mg_change change, mg_real *const *stage) {
    textbook *m = user;
    mg_real input[LONG][WIDTH];
    memcpy(input, m->input, sizeof input);
    for (int k = 0; k < WIDTH && change != MG_CHANGE_NOTHING; k++)
        input[position][k] = change == MG_CHANGE_POISON ? (mg_real)NAN : input[position][k] + (mg_real)(0.3 * (int)change);
    attend(m, (const mg_real(*)[WIDTH])input);
    memcpy(stage[0], m->out->data, sizeof input);
}

static void textbook_gradient(void *user, ptrdiff_t row, double *norm) {
    textbook *m = user;
    attend(m, (const mg_real(*)[WIDTH])m->input);
    mg_backward(m->tape, mg_sum(m->tape, mg_slice(m->tape, m->out, 0, row, row + 1), MG_ALL_AXES));
    for (ptrdiff_t j = 0; j < LONG; j++) {
        norm[j] = 0;
        for (int k = 0; k < WIDTH; k++) norm[j] += fabs((double)m->x->grad[j * WIDTH + k]);
    }
}

static mg_causality check_textbook(textbook m) {
    m.tape = new_tape();
    for (uint64_t i = 0; i < LONG * WIDTH; i++)
        m.input[i / WIDTH][i % WIDTH] = (mg_real)mg_rng_normal((mg_rng){2, MG_STREAM_TEST, 0}, i);
    mg_causality_model model = {&m, LONG, 1, (ptrdiff_t[]){WIDTH}, textbook_forward, textbook_gradient, true, NULL};
    mg_causality c;
    assert_int_equal(mg_causality_check(&c, &model, NULL), MG_OK);
    mg_tape_free(m.tape);
    return c;
}

/* Its NaN meets 0 · NaN, which is all that passes. A pair that is really open is named, wherever it is. */
static void textbook_attention_is_not_convicted(void **state) {
    (void)state;
    mg_causality c = check_textbook((textbook){.open_query = -1});
    assert_int_equal(c.verdict, MG_ONLY_POISON_LEAKS);
    assert_true(c.largest == 0);
    mg_causality_free(&c);
    static const ptrdiff_t open[][2] = {{0, 1}, {3, 40}, {62, 63}};
    for (int i = 0; i < 3; i++) {
        c = check_textbook((textbook){.open_query = open[i][0], .open_key = open[i][1]});
        assert_int_equal(c.verdict, MG_LEAKS);
        assert_int_equal(c.query, open[i][0]);
        assert_int_equal(c.key, open[i][1]);
        assert_true(c.largest > 1e-6);
        mg_causality_free(&c);
    }
    c = check_textbook((textbook){.open_query = -1, .filled_with_0 = true});
    assert_int_equal(c.verdict, MG_LEAKS);
    assert_int_equal(c.query, 0);
    assert_int_equal(c.key, 1);
    mg_causality_free(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_causal_model_is_cleared),
        cmocka_unit_test(lookahead_reaches_exactly_its_band),
        cmocka_unit_test(without_a_mask_everything_reaches_everything),
        cmocka_unit_test(one_leaky_head_is_found_in_its_layer),
        cmocka_unit_test(silence_is_not_causality),
        cmocka_unit_test(a_document_may_begin_in_silence),
        cmocka_unit_test(one_token_has_no_future),
        cmocka_unit_test(the_model_is_left_as_it_was),
        cmocka_unit_test(a_leak_at_any_pair_is_found),
        cmocka_unit_test(what_is_multiplied_by_0_is_no_leak),
        cmocka_unit_test(what_is_not_repeatable_is_convicted_of_nothing),
        cmocka_unit_test(textbook_attention_is_not_convicted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
