#include "train_settings.h"
#include "attention.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

mg_train_options mg_train_defaults(void) {
    mg_train_options options = {.weight_decay = 0.1, .grad_clip = 1.0, .seed = 1337};
    mg_train_options_fill(&options);
    options.schedule.min_lr = NAN;
    options.schedule.warmup_iters = 100;
    options.schedule.decay_iters = 0;
    return options;
}

void mg_train_options_resolve(mg_train_options *options) {
    if (isnan(options->schedule.min_lr)) options->schedule.min_lr = options->schedule.lr / 10;
    mg_train_options_fill(options);
}

/* ---- The mask ---- */

static mg_status parse_ahead(const char *text, int *value, mg_error *error) {
    if (strcmp(text, "all") == 0) {
        *value = MG_LOOKAHEAD_ALL;
        return MG_OK;
    }
    char *end;
    long number = text[0] >= '0' && text[0] <= '9' ? strtol(text, &end, 10) : -1;
    if (number < 0 || *end || number > 1000000)
        return mg_error_set(error, MG_ERR_INPUT,
                            "--lookahead takes a number of later positions, 0 to 1000000, or 'all', not '%s'", text);
    *value = (int)number;
    return MG_OK;
}

static void format_ahead(int value, char *text, size_t size) {
    if (value == MG_LOOKAHEAD_ALL)
        snprintf(text, size, "all");
    else
        snprintf(text, size, "%d", value);
}

/* "window:64" and its like: what is before the number, and the smallest that it can be. */
static const struct {
    const char *name;
    mg_mask_kind kind;
    int least;
} counted[] = {{"window:", MG_MASK_WINDOW, 1}, {"prefix:", MG_MASK_PREFIX, 0}, {"block:", MG_MASK_BLOCK, 1}};
enum { N_COUNTED = sizeof counted / sizeof *counted };

static mg_status parse_counted(const char *text, mg_mask *mask, mg_error *error) {
    for (int i = 0; i < N_COUNTED; i++) {
        size_t length = strlen(counted[i].name);
        int n = 0;
        if (strncmp(text, counted[i].name, length) != 0) continue;
        mg_status status = parse_ahead(text + length, &n, NULL);
        if (status != MG_OK || n < counted[i].least || n == MG_LOOKAHEAD_ALL)
            return mg_error_set(error, MG_ERR_INPUT, "--mask takes %sN with N from %d to 1000000, not '%s'",
                                counted[i].name, counted[i].least, text);
        *mask = (mg_mask){counted[i].kind, n};
        return MG_OK;
    }
    return mg_error_set(error, MG_ERR_INPUT,
                        "--mask is causal, none, window:W, prefix:P, block:K, documents or documents:run-on, not '%s'",
                        text);
}

mg_status mg_mask_parse(const char *text, mg_gpt_config *config, mg_error *error) {
    bool restart = strcmp(text, "documents") == 0, run_on = strcmp(text, "documents:run-on") == 0;
    mg_mask mask = mg_lookahead(strcmp(text, "none") == 0 ? MG_LOOKAHEAD_ALL : 0);
    bool is_word = restart || run_on || strcmp(text, "causal") == 0 || mask.n == MG_LOOKAHEAD_ALL;
    mg_status status = is_word ? MG_OK : parse_counted(text, &mask, error);
    if (status != MG_OK) return status;
    config->mask = mask;
    config->documents = restart || run_on;
    config->positions_run_on = run_on;
    return MG_OK;
}

/* "" for what only --lookahead can say. */
static void format_mask(const mg_gpt_config *config, char *text, size_t size) {
    int n = config->mask.n;
    const char *word = n == 0 ? "causal" : n == MG_LOOKAHEAD_ALL ? "none" : "";
    if (config->documents) word = config->positions_run_on ? "documents:run-on" : "documents";
    snprintf(text, size, "%s", word);
    for (int i = 0; i < N_COUNTED; i++)
        if (config->mask.kind == counted[i].kind) snprintf(text, size, "%s%d", counted[i].name, n);
}

/* A number of positions or "all"; and, for run.json, what only --mask can say. */
static mg_status parse_lookahead(const char *text, mg_gpt_config *config, mg_error *error) {
    int n = 0;
    bool is_said_by_mask = strchr(text, ':') || strcmp(text, "documents") == 0;
    if (is_said_by_mask && mg_mask_parse(text, config, NULL) == MG_OK) return MG_OK;
    mg_status status = parse_ahead(text, &n, error);
    if (status != MG_OK) return status;
    config->mask = mg_lookahead(n);
    config->documents = false;
    config->positions_run_on = false;
    return MG_OK;
}

static void format_lookahead(const mg_gpt_config *config, char *text, size_t size) {
    if (config->mask.kind == MG_MASK_LOOKAHEAD && !config->documents)
        format_ahead(config->mask.n, text, size);
    else
        format_mask(config, text, size);
}

/* The rows of --mask and --lookahead name one member, which tells that they set one thing: the model's mask, of which
 * the documents are a part. */
static mg_gpt_config *model_of(void *mask) {
    return (mg_gpt_config *)((char *)mask - offsetof(mg_gpt_config, mask));
}

static const mg_gpt_config *const_model_of(const void *mask) {
    return (const mg_gpt_config *)((const char *)mask - offsetof(mg_gpt_config, mask));
}

static mg_status parse_mask_row(const char *text, void *mask, mg_error *error) {
    return mg_mask_parse(text, model_of(mask), error);
}

static void format_mask_row(const void *mask, char *text, size_t size) {
    format_mask(const_model_of(mask), text, size);
}

static mg_status parse_lookahead_row(const char *text, void *mask, mg_error *error) {
    return parse_lookahead(text, model_of(mask), error);
}

static void format_lookahead_row(const void *mask, char *text, size_t size) {
    format_lookahead(const_model_of(mask), text, size);
}

/* LAYER.HEAD[:K], or "none". K is "all" or a number; without it, 1. */
static mg_status parse_leak(const char *text, void *model, mg_error *error) {
    mg_gpt_config *config = model;
    config->leak_layer = -1;
    if (strcmp(text, "none") == 0) return MG_OK;
    int layer = -1, head = -1, read = 0;
    bool digit = text[0] >= '0' && text[0] <= '9';
    if (!digit || sscanf(text, "%4d.%4d%n", &layer, &head, &read) != 2 || head < 0 || (text[read] && text[read] != ':'))
        return mg_error_set(error, MG_ERR_INPUT,
                            "--leak takes LAYER.HEAD or LAYER.HEAD:K, as in 0.3:1, both counted from 0, not '%s'",
                            text);
    int lookahead = 1;
    if (text[read] == ':' && parse_ahead(text + read + 1, &lookahead, NULL) != MG_OK)
        return mg_error_set(error, MG_ERR_INPUT,
                            "--leak: the number after the colon is how many later positions the head may see, 1 to "
                            "1000000, or 'all', not '%s'",
                            text + read + 1);
    if (lookahead == 0)
        return mg_error_set(error, MG_ERR_INPUT,
                            "--leak: the number after the colon is at least 1; '%s' would leak nothing", text);
    config->leak_layer = layer;
    config->leak_head = head;
    config->leak_lookahead = lookahead;
    return MG_OK;
}

static void format_leak(const void *model, char *text, size_t size) {
    const mg_gpt_config *config = model;
    if (config->leak_layer < 0) {
        snprintf(text, size, "none");
        return;
    }
    char lookahead[32];
    format_ahead(config->leak_lookahead, lookahead, sizeof lookahead);
    snprintf(text, size, "%d.%d:%s", config->leak_layer, config->leak_head, lookahead);
}

void mg_model_words(const mg_gpt_config *config, char *text, size_t size) {
    mg_snprintf(text, size, "%s, %s, width %d, context %d", mg_count(config->n_layer, "layer").text,
                mg_count(config->n_head, "head").text, config->n_embd, config->block_size);
}

void mg_mask_words(const mg_gpt_config *config, char *text, size_t size) {
    char mask[32], lookahead[32], leak[64];
    format_mask(config, mask, sizeof mask);
    format_lookahead(config, lookahead, sizeof lookahead);
    format_leak(config, leak, sizeof leak);
    snprintf(text, size, "%s%s%s%s", mask[0] ? mask : "lookahead ", mask[0] ? "" : lookahead,
             config->leak_layer < 0 ? "" : ", leak ", config->leak_layer < 0 ? "" : leak);
}

/* ---- The tables ---- */

#define ROWS_OF mg_train_options
#include "setting_rows.h"

/* A setting is a row, whatever a formatter would make of it. */
/* clang-format off */
const mg_setting mg_model_settings[] = {
    {.kind = MG_SETTING_HEADING, .help = "Model:"},
    {.name = "n-layer", FIXED, COUNT(model.n_layer, 1, 1000), .help = "Transformer blocks"},
    {.name = "n-head", FIXED, COUNT(model.n_head, 1, 1000), .help = "Attention heads per block; must divide --n-embd"},
    {.name = "n-embd", FIXED, COUNT(model.n_embd, 1, 65536), .help = "Width of the embeddings"},
    {.name = "block-size", .also = "context ctx-size c", FIXED, COUNT(model.block_size, 1, 1000000),
     .help = "Context: tokens per window"},
    {.name = "dropout", FIXED, REAL(model.dropout, 0, 1), .open = MG_SETTING_OPEN_MAX,
     .help = "Probability of dropping a value in training"},
    {.name = "init-std", FIXED, REAL(model.init_std, 0, 1000), .open = MG_SETTING_OPEN_MIN,
     .help = "Standard deviation of the initial weights"},
    {.name = "attn-init-std", FIXED, REAL(model.attn_init_std, 0, 1000),
     .help = "Standard deviation of the initial query, key and value weights (0: as --init-std)"},
    {0},
};

const mg_setting mg_lesson_settings[] = {
    {.kind = MG_SETTING_HEADING, .help = "Mask and attention:"},
    {.name = "mask", CUSTOM(model.mask, parse_mask_row, format_mask_row, "MASK"),
     .help = "What a position sees. causal: itself and earlier positions; none: every position, its label included; "
             "window:W: itself and the W - 1 before it; prefix:P: the first P positions see each other, later ones are "
             "causal; block:K: all up to the end of its block of K; documents: itself and earlier positions of its "
             "document (a row of a CSV, a line of a text, a sentence of a grammar), whose positions count from 0; "
             "documents:run-on: the same, and positions count on"},
    {.name = "lookahead", FIXED, CUSTOM(model.mask, parse_lookahead_row, format_lookahead_row, "K"),
     .help = "How many later positions a position sees (0: causal; all: no mask); run.json keeps every mask under this "
             "name, so --lookahead window:8 is --mask window:8"},
    {.name = "leak", FIXED, CUSTOM(model, parse_leak, format_leak, "LAYER.HEAD[:K]"),
     .help = "Let one head see K later positions (default 1); layers and heads count from 0"},
    {.name = "no-scale", FIXED, OFF(model.no_scale),
     .help = "Do not scale the attention scores by 1/sqrt(d_k)"},
    {.name = "no-output-projection", FIXED, OFF(model.no_output_projection),
     .help = "Leave out W^O, the projection after the heads"},
    {.name = "no-positions", FIXED, OFF(model.no_positions), .added = true,
     .help = "Add no position to the tokens: only the mask tells a model where it is"},
    {0},
};

const mg_setting mg_training_settings[] = {
    {.kind = MG_SETTING_HEADING, .help = "Training:"},
    {.name = "batch-size", .also = "b", FIXED, COUNT(batch_size, 1, 1000000), .help = "Windows per micro-batch"},
    {.name = "grad-accum", .also = "gradient-accumulation-steps", FIXED, COUNT(grad_accum, 1, 1000000),
     .help = "Micro-batches per step"},
    {.name = "max-iters", .also = "steps iters", FREE, LONG_COUNT(max_iters, 1, 1000000000), .help = "Training steps"},
    {.name = "lr", .also = "learning-rate", FIXED, REAL(schedule.lr, 0, DBL_MAX), .open = MG_SETTING_OPEN_MIN,
     .help = "Highest learning rate"},
    {.name = "min-lr", FIXED, REAL(schedule.min_lr, 0, DBL_MAX),
     .help = "Final learning rate [a tenth of --lr]"},
    {.name = "warmup-iters", FIXED, LONG_COUNT(schedule.warmup_iters, 0, 1000000000),
     .help = "Warm-up: steps in which the learning rate rises to --lr"},
    {.name = "lr-decay-iters", FIXED, LONG_COUNT(schedule.decay_iters, 1, 1000000000),
     .help = "Step at which the learning rate has fallen to --min-lr [--max-iters]"},
    {.name = "weight-decay", FIXED, REAL(weight_decay, 0, 1000), .help = "AdamW's weight decay; applies to matrices only"},
    {.name = "beta1", FIXED, REAL(beta1, 0, 1), .open = MG_SETTING_OPEN_MAX, .help = "AdamW's decay rate for the mean of the gradient"},
    {.name = "beta2", FIXED, REAL(beta2, 0, 1), .open = MG_SETTING_OPEN_MAX, .help = "AdamW's decay rate for the mean of the squared gradient"},
    {.name = "grad-clip", FIXED, REAL(grad_clip, 0, DBL_MAX), .help = "Scale down gradients whose norm is larger than this (0: off)"},
    {.name = "seed", .also = "s", FIXED, LONG_COUNT(seed, 0, MG_SEED_MAX),
     .help = "Seed of everything random: weights, windows, dropout, the draw from a grammar"},
    {0},
};
/* clang-format on */

const mg_settings mg_train_settings[] = {
    {mg_model_settings, 0}, {mg_lesson_settings, 0}, {mg_training_settings, 0}, {NULL, 0}};
