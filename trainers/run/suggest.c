#include "suggest.h"

#include <ctype.h>
#include <string.h>

enum { LONGEST = 40 };

static char plain(char c) {
    return c == '_' ? '-' : (char)tolower((unsigned char)c);
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Optimal string alignment: Levenshtein's distance, and two neighbors swapped count once (Damerau 1964). */
static size_t distance(const char *a, size_t n, const char *b, size_t m) {
    size_t d[LONGEST + 1][LONGEST + 1];
    for (size_t i = 0; i <= n; i++) d[i][0] = i;
    for (size_t j = 0; j <= m; j++) d[0][j] = j;
    for (size_t i = 1; i <= n; i++)
        for (size_t j = 1; j <= m; j++) {
            size_t change = d[i - 1][j - 1] + (plain(a[i - 1]) != plain(b[j - 1]));
            d[i][j] = least(change, least(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && plain(a[i - 1]) == plain(b[j - 2]) && plain(a[i - 2]) == plain(b[j - 1]))
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[n][m];
}

void mg_suggest(mg_suggestion *s, const char *known) {
    size_t n = strlen(s->word), m = strlen(known);
    if (n > LONGEST || m > LONGEST) return;
    size_t slips = distance(s->word, n, known, m), allowed = n < 3 ? 0 : 1 + (n - 3) / 3;
    if (slips > allowed || (s->best && slips >= s->distance)) return;
    s->best = known;
    s->distance = slips;
}

/* Ours, and nanoGPT's, PyTorch's, Hugging Face's and llama.cpp's names for it. What has a space is a sentence. */
/* clang-format off */
static const char *const names[][2] = {
    {"max-iters", "max-steps num-steps n-steps train-steps total-steps iterations num-iters n-iters max-iterations"},
    {"n-layer", "n-layers num-layers num-hidden-layers layers depth"},
    {"n-head", "n-heads num-heads num-attention-heads heads"},
    {"n-embd", "d-model n-embed n-embedding hidden-size hidden-dim embed-dim emb-dim embedding-dim dim width"},
    {"block-size", "context-length context-size context ctx n-ctx n-positions seq-len seq-length sequence-length max-seq-len "
                   "max-seq-length max-length block window"},
    {"batch-size", "batch bs micro-batch-size per-device-train-batch-size train-batch-size"},
    {"lr", "learningrate max-lr"},
    {"min-lr", "min-learning-rate lr-min final-lr"},
    {"warmup-iters", "warmup warmup-steps num-warmup-steps"},
    {"lr-decay-iters", "decay-steps decay-iters lr-decay-steps"},
    {"weight-decay", "wd"},
    {"beta1", "betas adam-beta1"},
    {"beta2", "adam-beta2"},
    {"grad-clip", "clip max-grad-norm gradient-clip clip-grad gradient-clip-val clip-norm"},
    {"grad-accum", "accumulate grad-accumulation accumulate-grad-batches accum"},
    {"eval-interval", "eval-steps eval-every val-interval"},
    {"save-interval", "save-steps save-every checkpoint-interval"},
    {"log-interval", "logging-steps log-every print-every"},
    {"out-dir", "output output-dir save-dir run-dir log-dir"},
    {"tokens", "tokenizer vocab token"},
    {"column", "text-column field"},
    {"delimiter", "sep separator"},
    {"data", "train-file input text corpus data-dir data-path"},
    {"init-from", "from checkpoint load pretrained"},
    {"resume", "continue"},
    {"threads", "num-workers workers num-threads n-threads jobs cpus"},
    {"seed", "random-seed manual-seed"},
    {"mask", "causal attention-mask no-mask unmasked"},
    {"no-scale", "scale unscaled"},
    {"max-new-tokens", "max-tokens length num-tokens"},
    {"num-samples", "num-return-sequences samples n-samples"},
    {"dropout", "drop p-drop attn-dropout"},
    {"force", "overwrite"},
    {N_("an epoch is not a setting: --max-iters counts steps of --batch-size windows"), "epochs num-epochs num-train-epochs n-epochs max-epochs"},
    {N_("everything runs on the processor: --threads N sets the number of threads"), "device cuda gpu gpus"},
    {N_("weights and arithmetic are float32"), "dtype bf16 fp16 precision amp half"},
    {N_("there is nothing to compile"), "compile torch-compile"},
    {N_("the optimizer is always AdamW"), "optimizer optim"},
    {N_("the vocabulary follows from the data"), "vocab-size n-vocab"},
    {N_("every run writes log.csv, which docs/run-folder.md shows how to read"), "wandb tensorboard wandb-log report-to"},
};
/* clang-format on */

static bool has_word(const char *list, const char *name) {
    const char *word;
    for (size_t n; (n = mg_next_word(&list, &word)) > 0;) {
        size_t same = 0;
        while (same < n && word[same] == plain(name[same])) same++;
        if (same == n && !name[n]) return true;
    }
    return false;
}

static const char *meant_by(const char *name) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (has_word(names[i][1], name)) return names[i][0];
    return NULL;
}

void mg_suggest_rows(mg_suggestion *s, const mg_setting *rows) {
    const char *meant = meant_by(s->word);
    for (; !mg_setting_is_end(rows); rows++) {
        if (rows->name) mg_suggest(s, rows->name);
        if (!meant || !mg_setting_is_spelled(rows, meant, strlen(meant))) continue;
        s->best = meant;
        s->distance = 0;
    }
}

const char *mg_suggest_why_not(const char *name) {
    const char *meant = meant_by(name);
    return meant && strchr(meant, ' ') ? meant : NULL;
}
