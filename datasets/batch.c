/* Windows of a corpus. */
#include "corpus.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A split as tokens begin … begin + n - 1. Without validation tokens, validation reads the training tokens. */
typedef struct part {
    ptrdiff_t begin, n;
} part;

static part part_of(const mg_corpus *corpus, mg_split split) {
    if (split == MG_TRAIN || corpus->n_train == corpus->n) return (part){0, corpus->n_train};
    return (part){corpus->n_train, corpus->n - corpus->n_train};
}

const int *mg_corpus_ids(const mg_corpus *corpus, mg_split split) {
    return corpus->ids + part_of(corpus, split).begin;
}

ptrdiff_t mg_corpus_tokens(const mg_corpus *corpus, mg_split split) {
    return part_of(corpus, split).n;
}

static ptrdiff_t characters(const char *bytes, size_t n) {
    ptrdiff_t count = 0;
    for (size_t i = 0; i < n; i++) count += ((unsigned char)bytes[i] & 0xC0) != 0x80;
    return count;
}

double mg_corpus_characters_per_token(const mg_corpus *corpus, mg_split split) {
    part p = part_of(corpus, split);
    ptrdiff_t n = 0;
    for (ptrdiff_t i = p.begin; i < p.begin + p.n; i++) {
        mg_token token = mg_tokenizer_token(corpus->tokenizer, corpus->ids[i]);
        n += characters(token.bytes, token.length);
        /* Each but the first follows another. */
        int previous = corpus->ids[i > 0 ? i - 1 : 0];
        n += (ptrdiff_t)strlen(mg_tokenizer_separator(corpus->tokenizer, previous, corpus->ids[i]));
    }
    return p.n > 0 ? (double)n / (double)p.n : 0;
}

double mg_corpus_least_validation(const mg_corpus *corpus, ptrdiff_t block_size) {
    ptrdiff_t n = corpus->n, window = block_size + 1;
    double least = (double)window / (double)n, digit = pow(10, floor(log10(least)) - 1);
    double share = digit * ceil(least / digit);
    ptrdiff_t kept = (ptrdiff_t)((double)n * share);
    return kept >= window && n - kept >= window ? share : 0;
}

static mg_status refuse_validation(const mg_corpus *corpus, ptrdiff_t block_size, mg_error *error) {
    char larger[64] = "";
    double share = mg_corpus_least_validation(corpus, block_size);
    if (share > 0) snprintf(larger, sizeof larger, "a larger --validation (at least %g), ", share);
    return mg_error_set(error, MG_ERR_INPUT,
                        "the validation split of %s holds %s and needs block size + 1 = %td; use a longer file, a "
                        "smaller --block-size, %sor --validation 0, which validates on the training tokens",
                        corpus->name, mg_count(part_of(corpus, MG_VALIDATION).n, "token").text, block_size + 1, larger);
}

mg_status mg_corpus_check(const mg_corpus *corpus, ptrdiff_t block_size, mg_error *error) {
    ptrdiff_t n = part_of(corpus, MG_TRAIN).n;
    if (n <= block_size)
        return mg_error_set(error, MG_ERR_INPUT,
                            "the training split of %s holds %s and needs block size + 1 = %td; use a longer file%s a "
                            "smaller --block-size%s",
                            corpus->name, mg_count(n, "token").text, block_size + 1,
                            corpus->n > block_size ? "," : " or",
                            corpus->n > block_size ? " or a smaller --validation" : "");
    if (part_of(corpus, MG_VALIDATION).n <= block_size) return refuse_validation(corpus, block_size, error);
    return MG_OK;
}

void mg_corpus_windows(const mg_corpus *corpus, mg_split split, mg_rng rng, ptrdiff_t first, ptrdiff_t B, ptrdiff_t T,
                       int *ids, int *targets) {
    part p = part_of(corpus, split);
    MG_CHECK(B >= 1 && T >= 1 && p.n > T, "corpus: a batch of %td windows of %td tokens, from %td tokens", B, T, p.n);
    for (ptrdiff_t b = 0; b < B; b++) {
        ptrdiff_t offset = (ptrdiff_t)mg_rng_below(rng, (uint64_t)(first + b), (uint64_t)(p.n - T));
        const int *window = mg_corpus_ids(corpus, split) + offset;
        memcpy(ids + b * T, window, (size_t)T * sizeof *ids);
        memcpy(targets + b * T, window + 1, (size_t)T * sizeof *targets);
    }
}

void mg_corpus_batch(const mg_corpus *corpus, mg_split split, mg_rng rng, ptrdiff_t B, ptrdiff_t T, int *ids,
                     int *targets) {
    mg_corpus_windows(corpus, split, rng, 0, B, T, ids, targets);
}
