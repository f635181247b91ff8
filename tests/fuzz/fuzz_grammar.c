/* A grammar's CSV. Whatever it is: no crash, and if it is accepted, it judges what it says itself to be possible and
 * predicts it with finite loss. */
#include "grammar.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { N = 32 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition) abort();
}

static void check_own_words(const mg_grammar *grammar) {
    int ids[N + 1];
    double loss[N];
    mg_grammar_sample(grammar, 1, ids, N + 1);
    mg_grammar_bayes_loss(grammar, ids, ids + 1, N, loss);
    for (int t = 0; t < N; t++) require(ids[t] >= 0 && ids[t] < mg_grammar_words(grammar) && isfinite(loss[t]));
    mg_grammar_score score;
    mg_grammar_judge(grammar, ids, N + 1, true, &score);
    require(score.words == N + 1 && score.impossible_words == 0 && score.grammatical == score.sentences);
    bool is_exact;
    double rate;
    require(mg_grammar_entropy_rate(grammar, &rate, &is_exact, NULL) == MG_OK && isfinite(rate));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    mg_grammar *grammar;
    mg_error error;
    mg_status status = mg_grammar_parse(&grammar, (const char *)data, size, "fuzz", &error);
    if (status != MG_OK) {
        require(status != MG_ERR_MEMORY && error.status == status && error.message[0] != '\0');
        return 0;
    }
    check_own_words(grammar);
    mg_grammar_free(grammar);
    return 0;
}
