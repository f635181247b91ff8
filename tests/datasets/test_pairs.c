/* Pairs of tokens, against counting them in a square table. */
#include "pairs.h"

#include "check.h"

enum { V = 40 };

static mg_error error;

/* A corpus of these ids, without a file. */
static mg_corpus corpus_of(int *ids, ptrdiff_t n, ptrdiff_t n_train) {
    mg_corpus corpus = {.name = "ids", .ids = ids, .n = n, .n_train = n_train};
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmn";
    mg_token tokens[V];
    for (int i = 0; i < V; i++) tokens[i] = (mg_token){letters + i, 1};
    assert_int_equal(mg_tokenizer_new(&corpus.tokenizer, MG_TOKENIZER_CHAR, V, tokens, &error), MG_OK);
    return corpus;
}

static void check_against_a_table(const mg_corpus *corpus, mg_split split, ptrdiff_t T, ptrdiff_t distance) {
    const int *ids = mg_corpus_ids(corpus, split);
    ptrdiff_t n = mg_corpus_tokens(corpus, split), windows = n - T;
    double pair[V][V] = {{0}}, first[V] = {0}, entropy = 0, counted = 0;
    for (ptrdiff_t i = 0; i < windows && i + distance < n; i++, counted++) {
        pair[ids[i]][ids[i + distance]]++;
        first[ids[i]]++;
    }
    mg_pairs *pairs;
    assert_int_equal(mg_pairs_new(&pairs, corpus, split, T, distance, &error), MG_OK);
    for (int a = 0; a < V; a++)
        for (int b = 0; b < V; b++) {
            double surprisal = pair[a][b] > 0 ? log(first[a] / pair[a][b]) : log(first[a] + 1);
            assert_close(mg_pairs_surprisal(pairs, a, b), surprisal, 1e-12);
            if (pair[a][b] > 0) entropy += pair[a][b] / counted * surprisal;
        }
    assert_close(mg_pairs_entropy(pairs), entropy, 1e-12);
    mg_pairs_free(pairs);
}

static void test_counts(void **state) {
    (void)state;
    enum { N = 20000 };
    static int ids[N];
    for (int i = 0; i < N; i++) {
        int any = (int)mg_rng_below((mg_rng){1, MG_STREAM_TEST, 0}, (uint64_t)i, V);
        ids[i] = i % 3 && i > 0 ? (ids[i - 1] * 7 + any / 20) % V : any;
    }
    mg_corpus corpus = corpus_of(ids, N, N - 2000);
    const ptrdiff_t lengths[] = {1, 2, 32, 1999};
    for (int i = 0; i < 4; i++)
        for (ptrdiff_t distance = 1; distance <= 3; distance++)
            for (int split = MG_TRAIN; split <= MG_VALIDATION; split++)
                check_against_a_table(&corpus, (mg_split)split, lengths[i], distance);
    mg_tokenizer_free(corpus.tokenizer);
}

static void test_edges(void **state) {
    (void)state;
    int ids[] = {3, 3, 3, 3, 3};
    mg_corpus corpus = corpus_of(ids, 5, 5);
    mg_pairs *pairs;
    assert_int_equal(mg_pairs_new(&pairs, &corpus, MG_VALIDATION, 4, 1, &error), MG_OK); /* one window */
    assert_close(mg_pairs_entropy(pairs), 0, 0);
    assert_close(mg_pairs_surprisal(pairs, 3, 3), 0, 0);
    assert_close(mg_pairs_surprisal(pairs, 3, 4), log(2), 1e-15); /* as if it had followed once more */
    assert_close(mg_pairs_surprisal(pairs, 4, 3), 0, 0);
    assert_fails(mg_pairs_surprisal(pairs, V, 0), "token 40 of 40");
    mg_pairs_free(pairs);
    assert_fails(mg_pairs_new(&pairs, &corpus, MG_TRAIN, 5, 1, &error), "from 5 tokens");
    mg_tokenizer_free(corpus.tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
