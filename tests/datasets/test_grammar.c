/* The numbers of the two shipped grammars are those of tests/reference/grammar_numbers.py. */
#include "file_limits.h"
#include "grammar_internal.h"
#include "heap.h"
#include "read_text.h"

#include "check.h"

#include <time.h>

static mg_error error;

static mg_grammar *parse(const char *csv) {
    mg_grammar *g;
    mg_status status = mg_grammar_parse(&g, csv, strlen(csv), "g.csv", &error);
    if (status != MG_OK) print_error("%s\n", error.message);
    assert_int_equal(status, MG_OK);
    return g;
}

static mg_grammar *shipped(const char *name) {
    char path[512];
    mg_grammar *g;
    snprintf(path, sizeof path, "%s/datasets/data/%s", MASKGRAD_SOURCE_DIR, name);
    char *csv;
    size_t length;
    assert_int_equal(mg_read_text(path, MG_MOST_TEXT, &csv, &length, &error), MG_OK);
    assert_int_equal(mg_grammar_parse(&g, csv, length, path, &error), MG_OK);
    mg_free(csv);
    return g;
}

#define HEADER "state,word,next,weight\n"

/* Two letters, of which the second state does not follow from the word: not unifilar, many beliefs. */
static const char hidden[] = HEADER "A,x,A,3\nA,x,B,2\nA,y,B,1\nB,x,A,1\nB,y,B,4\nB,y,A,1\n";
/* The golden mean process: unifilar. */
static const char golden[] = HEADER "A,1,A,1\nA,0,B,1\nB,1,A,2\n";

/* P(words) by summing over all walks: the oracle of everything below. */
static double brute_force(const double transition[2][2][2], const double start[2], const int *words, int n) {
    double v[2] = {start[0], start[1]};
    for (int i = 0; i < n; i++) {
        double next[2] = {0, 0};
        for (int s = 0; s < 2; s++)
            for (int to = 0; to < 2; to++) next[to] += v[s] * transition[words[i]][s][to];
        v[0] = next[0];
        v[1] = next[1];
    }
    return v[0] + v[1];
}

/* hidden: words x = 0, y = 1; A -> B with 1/2, B -> A with 1/3. */
static const double hidden_transition[2][2][2] = {{{3 / 6., 2 / 6.}, {1 / 6., 0}}, {{0, 1 / 6.}, {1 / 6., 4 / 6.}}};
static const double hidden_start[2] = {2 / 5., 3 / 5.};

static double brute_block_entropy(int n) {
    double entropy = 0;
    for (int code = 0; code < 1 << n; code++) {
        int words[16];
        for (int i = 0; i < n; i++) words[i] = code >> i & 1;
        double p = brute_force(hidden_transition, hidden_start, words, n);
        if (p > 0) entropy -= p * log(p);
    }
    return entropy;
}

static void floor_agrees_with_all_strings(void **state) {
    (void)state;
    enum { T = 9 };
    mg_grammar *g = parse(hidden);
    double floor[T], standard_error;
    bool is_exact;
    assert_int_equal(mg_grammar_floor(g, T, floor, &standard_error, &is_exact, &error), MG_OK);
    assert_true(is_exact);
    assert_true(standard_error == 0);
    for (int t = 0; t < T; t++) assert_close(floor[t], brute_block_entropy(t + 2) - brute_block_entropy(t + 1), 1e-12);
    mg_grammar_free(g);
}

static void bayes_loss_agrees_with_all_walks(void **state) {
    (void)state;
    enum { T = 6 };
    mg_grammar *g = parse(hidden);
    for (int code = 0; code < 1 << (T + 1); code++) {
        int words[T + 1];
        double loss[T];
        for (int i = 0; i <= T; i++) words[i] = code >> i & 1;
        mg_grammar_bayes_loss(g, words, words + 1, T, loss);
        for (int t = 0; t < T; t++)
            assert_close(loss[t],
                         log(brute_force(hidden_transition, hidden_start, words, t + 1)) -
                             log(brute_force(hidden_transition, hidden_start, words, t + 2)),
                         1e-12);
    }
    mg_grammar_free(g);
}

static double rate_of(const mg_grammar *g, bool *is_exact) {
    double rate;
    assert_int_equal(mg_grammar_entropy_rate(g, &rate, is_exact, &error), MG_OK);
    return rate;
}

static void entropy_rates(void **state) {
    (void)state;
    bool is_exact;
    mg_grammar *g = parse(golden);
    assert_close(rate_of(g, &is_exact), 2 / 3. * log(2), 1e-15);
    assert_true(is_exact);
    mg_grammar_free(g);

    g = parse(HEADER "A,x,A,1\n"); /* one thing to say */
    assert_close(rate_of(g, &is_exact), 0, 0);
    mg_grammar_free(g);

    /* Not unifilar, but the two states after x are the same: a coin, whatever the state. */
    g = parse(HEADER "A,x,A,1\nA,x,B,1\nA,y,A,2\nB,x,A,2\nB,y,B,2\n");
    assert_close(rate_of(g, &is_exact), log(2), 1e-12);
    assert_true(is_exact);
    mg_grammar_free(g);

    /* A rate without a closed form lies between the entropies given the state and given a finite past. */
    g = parse(hidden);
    double rate = rate_of(g, &is_exact);
    double past = brute_block_entropy(13) - brute_block_entropy(12);
    assert_close(rate, past, 0.002);
    assert_less(rate, past + 0.001);
    mg_grammar_free(g);
}

static void assert_numbers(const char *name, int states, int words, double rate, double mean, const double first[4]) {
    enum { T = 32 };
    mg_grammar *g = shipped(name);
    double floor[T], standard_error, sum = 0;
    bool is_exact;
    assert_int_equal(g->states.n, states);
    assert_int_equal(mg_grammar_words(g), words);
    assert_close(rate_of(g, &is_exact), rate, 1e-11);
    assert_true(is_exact);
    assert_int_equal(mg_grammar_floor(g, T, floor, &standard_error, &is_exact, &error), MG_OK);
    assert_true(is_exact);
    for (int t = 0; t < T; t++) sum += floor[t];
    for (int t = 0; t < 4; t++) assert_close(floor[t], first[t], 1e-11);
    for (int t = 1; t < T; t++) assert_true(floor[t] <= floor[t - 1] + 1e-14); /* a longer past never hurts */
    assert_close(sum / T, mean, 1e-11);
    mg_grammar_free(g);
}

static void shipped_grammars_have_the_reference_numbers(void **state) {
    (void)state;
    assert_numbers("frases.csv", 17, 33, 1.376158548178, 1.384498416320,
                   (double[]){1.636368383744, 1.382824493174, 1.376158548178, 1.376158548178});
    assert_numbers("sentences.csv", 16, 29, 0.969139034201, 0.980209505844,
                   (double[]){1.263120458931, 0.999275868138, 0.999275868138, 0.969139034201});
}

/* The mean loss over windows of a long draw meets the floor within four standard errors of the mean over windows. */
static void floor_agrees_with_sampled_windows(void **state) {
    (void)state;
    enum { T = 32, WINDOWS = 20000 };
    mg_grammar *g = shipped("frases.csv");
    int *ids = mg_alloc(WINDOWS * (T + 1), sizeof *ids, "a test", NULL);
    double floor[T], standard_error, loss[T], sum[T] = {0}, squares[T] = {0};
    bool is_exact;
    mg_grammar_sample(g, 5, ids, WINDOWS * (T + 1));
    mg_grammar_floor(g, T, floor, &standard_error, &is_exact, &error);
    for (int i = 0; i < WINDOWS; i++) {
        mg_grammar_bayes_loss(g, ids + i * (T + 1), ids + i * (T + 1) + 1, T, loss);
        for (int t = 0; t < T; t++) {
            sum[t] += loss[t];
            squares[t] += loss[t] * loss[t];
        }
    }
    for (int t = 0; t < T; t++) {
        double mean = sum[t] / WINDOWS, variance = squares[t] / WINDOWS - mean * mean;
        assert_close(mean, floor[t], 4 * sqrt(variance / WINDOWS));
    }
    mg_free(ids);
    mg_grammar_free(g);
}

/* A grammar with many beliefs: 12 hidden states that only drift apart slowly. */
static mg_grammar *foggy(void) {
    char csv[4096] = HEADER;
    for (int s = 0; s < 12; s++) {
        size_t at = strlen(csv);
        snprintf(csv + at, sizeof csv - at, "s%d,x,s%d,%d\ns%d,x,s%d,%d\ns%d,y,s%d,%d\ns%d,z,s%d,%d\n", s, (s + 1) % 12,
                 s + 1, s, s, 2, s, (s * 5 + 2) % 12, 13 - s, s, (s * 7 + 3) % 12, 1 + s % 3);
    }
    return parse(csv);
}

static void too_many_beliefs_are_sampled(void **state) {
    (void)state;
    enum { SHORT = 6, LONG = 40 };
    mg_grammar *g = foggy();
    double exact[SHORT], sampled[LONG], standard_error;
    bool is_exact;
    assert_int_equal(mg_grammar_floor(g, SHORT, exact, &standard_error, &is_exact, &error), MG_OK);
    assert_true(is_exact);
    assert_int_equal(mg_grammar_floor(g, LONG, sampled, &standard_error, &is_exact, &error), MG_OK);
    assert_false(is_exact);
    assert_true(standard_error > 0);
    assert_less(standard_error, 0.001);
    for (int t = 0; t < SHORT; t++) assert_close(sampled[t], exact[t], 0.005);
    double rate = rate_of(g, &is_exact);
    assert_false(is_exact);
    assert_close(rate, sampled[LONG - 1], 0.005);
    mg_grammar_free(g);
}

/* 1,000 states and 15,000 arcs: exact where an observer soon knows the state, sampled where words say little, and in
 * seconds either way. With dense steps, of which each word of the vocabulary took 1,000, it was over a minute. */
static void large_grammars_take_seconds(void **state) {
    (void)state;
    enum { STATES = 1000, ARCS = 15, T = 12 };
    char *csv = mg_alloc(STATES * ARCS, 64, "a test", NULL);
    double floor[T], standard_error;
    bool is_exact;
    for (int words = 3; words <= STATES * ARCS; words *= 5000) {
        size_t at = (size_t)sprintf(csv, HEADER);
        for (int s = 0; s < STATES; s++)
            for (int arc = 0; arc < ARCS; arc++)
                at += (size_t)sprintf(csv + at, "s%d,w%d,s%d,%d\n", s, (s * ARCS + arc) % words,
                                      (s + 1 + arc * 61) % STATES, 1 + (s + arc) % 7);
        mg_grammar *g;
        mg_status status = mg_grammar_parse(&g, csv, at, "g.csv", &error);
        if (status != MG_OK) print_error("%s\n", error.message);
        assert_int_equal(status, MG_OK);
        clock_t before = clock();
        assert_int_equal(mg_grammar_floor(g, T, floor, &standard_error, &is_exact, &error), MG_OK);
        assert_less((double)(clock() - before) / CLOCKS_PER_SEC, 30); /* under sanitizers too */
        assert_int_equal(is_exact, words > 3);
        assert_true(is_exact ? standard_error == 0 : standard_error > 0 && standard_error < 0.002);
        double rate = rate_of(g, &is_exact);
        assert_true(rate > 0 && rate < floor[T - 1] + 0.002 && floor[T - 1] <= floor[0] + 0.002);
        mg_grammar_free(g);
    }
    mg_free(csv);
}

static void words_are_drawn_by_their_weights(void **state) {
    (void)state;
    enum { N = 100000 };
    mg_grammar *g = parse(HEADER "A,a,A,1\nA,b,A,2\nA,c,A,5\n");
    int *ids = mg_alloc(N, sizeof *ids, "a test", NULL), *again = mg_alloc(N, sizeof *again, "a test", NULL);
    mg_grammar_sample(g, 1, ids, N);
    int count[3] = {0};
    for (int i = 0; i < N; i++) count[ids[i]]++;
    for (int w = 0; w < 3; w++) {
        double p = (w == 0 ? 1 : w == 1 ? 2 : 5) / 8.;
        assert_close(count[w], p * N, 4 * sqrt(p * (1 - p) * N));
    }
    mg_grammar_sample(g, 1, again, 1000);
    assert_memory_equal(ids, again, 1000 * sizeof *ids); /* the seed decides, and a shorter draw is a prefix */
    mg_grammar_sample(g, 2, again, 1000);
    assert_memory_not_equal(ids, again, 1000 * sizeof *ids);
    mg_free(ids);
    mg_free(again);
    mg_grammar_free(g);
}

static void the_forbidden_costs_infinitely(void **state) {
    (void)state;
    mg_grammar *g = parse(golden); /* "1" is word 0, "0" is word 1 */
    double loss[3];
    mg_grammar_bayes_loss(g, (int[]){1, 1, 0}, (int[]){1, 0, 0}, 3, loss);
    assert_true(isinf(loss[0]));     /* two zeros in a row */
    assert_close(loss[1], 0, 1e-15); /* going on from what the second zero says on its own */
    assert_close(loss[2], log(2), 1e-15);
    assert_fails(mg_grammar_bayes_loss(g, (int[]){2}, (int[]){0}, 1, loss), "the grammar has 2");
    mg_grammar_free(g);
}

static void grammars_that_are_none_are_refused(void **state) {
    (void)state;
    const char *const cases[][2] = {
        {"state,word,next\nA,x,A\n", "g.csv: the column weight is missing"},
        {"state,word,next,weights\nA,x,A,1\n", "this header has 'state', 'word', 'next', 'weights'"},
        {"state,word,next,weight,note\nA,x,A,1,hm\n", "and no other"},
        {HEADER, "no rows"},
        {HEADER "A,x,A,one\n", "g.csv, line 2 (state 'A'): the weight 'one' is not a number"},
        {HEADER "A,x,A,1x\n", "'1x' is not a number"},
        {HEADER "A,x,A,\n", "'' is not a number"},
        {HEADER "A,x,A,1\nA,y,A,-2\n", "g.csv, line 3 (state 'A'): the weight '-2' is not a positive"},
        {HEADER "A,x,A,0\n", "'0' is not a positive"},
        {HEADER "A,x,A,inf\n", "'inf' is not a positive"},
        {HEADER "A,x,A,nan\n", "'nan' is not a positive"},
        {HEADER "A,x,A,1e309\n", "'1e309' is not a positive"},
        {HEADER "A,x,A,1e308\nA,y,A,1e308\n", "too large"},
        {HEADER "A,x,A,1e300\nA,y,A,1e-300\n", "is too small beside"},
        {HEADER "A,x,B,1\n", "g.csv, line 2 (state 'A'): the next 'B' is a state that no row defines"},
        {HEADER "A,x,B,1\nB,x,B,1\n", "the state 'B' has no way back to the start, 'A'"},
        {HEADER "A,x,A,1\nB,x,A,1\n", "the state 'B' cannot be reached from the start, 'A'"},
        {HEADER "A,,A,1\n", "g.csv, line 2 (state 'A'): the word '' is empty"},
        {HEADER ",x,A,1\n", "the state '' is empty"},
        {HEADER "A,x,,1\n", "the next '' is empty"},
        {HEADER "A,x y,A,1\n", "the word 'x y' contains white space"},
        {HEADER "A,\"x\ny\",A,1\n", "the word 'x\\ny' contains white space"},
        {HEADER "A,\xFF,A,1\n", "'\\xFF' is not UTF-8"},
        {HEADER "A,x,A,1\nA,y,A,1\nA,x,A,2\n", "lines 2 and 4 have the same state, word and next"},
        {HEADER "A,x,A,1\nA,\"y,A,1\nA,z,A,2\n", "g.csv, line 3: the quoted field that begins here is never closed"},
        {HEADER "A,x,A,1\nA,y,A\n", "g.csv, line 3: the number of fields is 3"},
        {"", "g.csv is empty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mg_grammar *g;
        assert_int_equal(mg_grammar_parse(&g, cases[i][0], strlen(cases[i][0]), "g.csv", &error), MG_ERR_FORMAT);
        assert_says(error.message, cases[i][1]);
        assert_null(g);
    }
}

static void columns_may_stand_in_any_order(void **state) {
    (void)state;
    mg_grammar *g = parse("\xEF\xBB\xBF\"weight\", next, word, state\n2, B, um, A\n1, A, dois, B\n");
    assert_int_equal(g->states.n, 2);
    assert_string_equal(mg_grammar_word(g, 0), "um");
    assert_string_equal(mg_grammar_word(g, 1), "dois");
    assert_fails(mg_grammar_word(g, 2), "2 words");
    mg_grammar_free(g);
}

/* H(x_at | the others) of every text, and P(x_at | the others) in each. */
static void hidden_words_agree_with_all_strings(void **state) {
    (void)state;
    enum { T = 6 };
    mg_grammar *g = parse(hidden);
    double entropy[T], p[2];
    bool is_exact;
    assert_int_equal(mg_grammar_hidden_entropy(g, T, entropy, &is_exact, &error), MG_OK);
    assert_true(is_exact);
    for (int at = 0; at < T; at++) {
        double expected = 0;
        for (int code = 0; code < 1 << T; code++) {
            int words[T];
            for (int i = 0; i < T; i++) words[i] = code >> i & 1;
            double own = brute_force(hidden_transition, hidden_start, words, T);
            words[at] = !words[at];
            double both = own + brute_force(hidden_transition, hidden_start, words, T);
            if (own > 0) expected -= own * log(own / both);
            mg_grammar_hidden_word(g, words, T, at, p); /* words[at] is the other one: it is not looked at */
            assert_close(p[!words[at]], own / both, 1e-12);
            assert_close(p[0] + p[1], 1, 1e-12);
        }
        assert_close(entropy[at], expected, 1e-12);
    }
    /* Nothing to the right: what the filter says. */
    int words[T] = {0, 1, 1, 0, 0, 1};
    for (int at = 0; at < T; at++) {
        mg_grammar_hidden_word(g, words, at + 1, at, p);
        assert_close(p[words[at]],
                     brute_force(hidden_transition, hidden_start, words, at + 1) /
                         brute_force(hidden_transition, hidden_start, words, at),
                     1e-12);
    }
    mg_grammar_free(g);
}

/* A word that its neighbors decide, a text that cannot be, and a window that hides all there is. */
static void hidden_words_at_the_edges(void **state) {
    (void)state;
    mg_grammar *g = parse(golden);
    double p[2], entropy[2];
    bool is_exact;
    mg_grammar_hidden_word(g, (int[]){1, 1, 0}, 3, 1, p); /* a 0 is followed and preceded by a 1: words 1 = id 0 */
    assert_close(p[0] + p[1], 1, 1e-12);
    mg_grammar_hidden_word(g, (int[]){1, 1, 1, 0}, 4, 3, p); /* 0 0: impossible */
    assert_true(p[0] == 0 && p[1] == 0);
    mg_grammar_hidden_word(g, (int[]){0, 0, 1}, 3, 1, p); /* before a 0 there is a 1 */
    assert_close(p[0], 1, 1e-12);
    mg_grammar_hidden_word(g, (int[]){0}, 1, 0, p); /* the golden mean: 1 in 2 of 3 places */
    assert_close(p[0], 2 / 3., 1e-12);
    assert_int_equal(mg_grammar_hidden_entropy(g, 1, entropy, &is_exact, &error), MG_OK);
    assert_close(entropy[0], -(2 / 3.) * log(2 / 3.) - (1 / 3.) * log(1 / 3.), 1e-12);
    mg_grammar_free(g);
}

/* Of a shipped grammar: the mean over drawn windows. */
static void hidden_entropy_agrees_with_sampled_windows(void **state) {
    (void)state;
    enum { T = 12, WINDOWS = 3000 };
    mg_grammar *g = shipped("frases.csv");
    static int ids[T * WINDOWS + 1000];
    double expected[T], found[T] = {0}, p[64];
    bool is_exact;
    assert_int_equal(mg_grammar_hidden_entropy(g, T, expected, &is_exact, &error), MG_OK);
    assert_true(is_exact);
    mg_grammar_sample(g, 5, ids, T * WINDOWS);
    for (int window = 0; window < WINDOWS; window++)
        for (int at = 0; at < T; at++) {
            mg_grammar_hidden_word(g, ids + window * T, T, at, p);
            for (int word = 0; word < mg_grammar_words(g); word++)
                if (p[word] > 0) found[at] -= p[word] * log(p[word]) / WINDOWS;
        }
    for (int at = 0; at < T; at++) assert_close(found[at], expected[at], 0.06);
    mg_grammar_free(g);
}

static void assert_judged(const mg_grammar *g, const char *text, bool from_start, int sentences, int grammatical,
                          int impossible) {
    int ids[64], n = 0;
    char copy[512];
    snprintf(copy, sizeof copy, "%s", text);
    for (char *rest, *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        ids[n] = -1;
        for (int w = 0; w < mg_grammar_words(g); w++)
            if (strcmp(mg_grammar_word(g, w), word) == 0) ids[n] = w;
        n++;
    }
    mg_grammar_score score;
    mg_grammar_judge(g, ids, n, from_start, &score);
    if (score.sentences != sentences || score.grammatical != grammatical || score.impossible_words != impossible)
        print_error("\"%s\": %d sentences, %d grammatical, %td impossible words\n", text, score.sentences,
                    score.grammatical, score.impossible_words);
    assert_int_equal(score.sentences, sentences);
    assert_int_equal(score.grammatical, grammatical);
    assert_int_equal(score.impossible_words, impossible);
    assert_int_equal(score.words, n);
}

static void texts_are_judged(void **state) {
    (void)state;
    mg_grammar *g = shipped("frases.csv");
    assert_int_equal(mg_grammar_shortest_sentence(g), 6); /* o cachorro viu o gato . */
    assert_judged(g, "o cachorro grande mordeu o carteiro ontem .", true, 1, 1, 0);
    assert_judged(g, "a artista muito alta viu o gato . um menino", true, 1, 1, 0);
    assert_judged(g, "a artista muito alto viu o gato .", true, 1, 0, 1); /* agreement */
    assert_judged(g, "o gato viu a menina .", true, 1, 0, 2);
    assert_judged(g, "grande mordeu o carteiro . a menina viu a gata .", false, 1, 1, 0);
    assert_judged(g, "grande grande . a menina viu a gata .", false, 1, 1, 1);
    assert_judged(g, "a menina viu a gata . o menina", true, 2, 1, 1); /* unfinished, but lost */
    assert_judged(g, "o . a menina viu a gata .", true, 2, 1, 1);      /* a full stop cuts, come what may */
    assert_judged(g, "a xyz viu a gata .", true, 1, 0, 1);
    assert_judged(g, "", true, 0, 0, 0);
    mg_grammar_free(g);
    g = parse(golden); /* only after "1" is the start seen again */
    assert_judged(g, "1 0 1 0 0 1", true, 3, 2, 1);
    mg_grammar_free(g);
}

static void what_is_drawn_is_grammatical(void **state) {
    (void)state;
    enum { N = 20000 };
    mg_grammar *g = shipped("sentences.csv");
    int *ids = mg_alloc(N, sizeof *ids, "a test", NULL);
    mg_grammar_score score;
    mg_grammar_sample(g, 3, ids, N);
    for (int skip = 0; skip < 12; skip++) {
        mg_grammar_judge(g, ids + skip, N - skip, skip == 0, &score);
        assert_int_equal(score.impossible_words, 0);
        assert_int_equal(score.grammatical, score.sentences);
        assert_true(score.sentences > 2000);
    }
    mg_free(ids);
    mg_grammar_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floor_agrees_with_all_strings),
        cmocka_unit_test(bayes_loss_agrees_with_all_walks),
        cmocka_unit_test(entropy_rates),
        cmocka_unit_test(shipped_grammars_have_the_reference_numbers),
        cmocka_unit_test(floor_agrees_with_sampled_windows),
        cmocka_unit_test(too_many_beliefs_are_sampled),
        cmocka_unit_test(large_grammars_take_seconds),
        cmocka_unit_test(words_are_drawn_by_their_weights),
        cmocka_unit_test(the_forbidden_costs_infinitely),
        cmocka_unit_test(grammars_that_are_none_are_refused),
        cmocka_unit_test(columns_may_stand_in_any_order),
        cmocka_unit_test(hidden_words_agree_with_all_strings),
        cmocka_unit_test(hidden_words_at_the_edges),
        cmocka_unit_test(hidden_entropy_agrees_with_sampled_windows),
        cmocka_unit_test(texts_are_judged),
        cmocka_unit_test(what_is_drawn_is_grammatical),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
