#include "options.h"
#include "attention.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Defaults ---- */

mg_run_options mg_run_defaults(void) {
    return (mg_run_options){
        .data = mg_data_defaults(),
        .train = mg_train_defaults(),
        .eval_iters = 50,
        .eval_interval = 250,
        .log_interval = 10,
        .init_from = "scratch",
    };
}

void mg_run_options_resolve(mg_run_options *options) {
    mg_train_options_resolve(&options->train);
    options->data.seed = options->train.seed;
    if (options->save_interval == 0) options->save_interval = options->eval_interval;
}

/* ---- The mask ---- */

mg_status mg_lookahead_parse(const char *text, void *lookahead, mg_error *error) {
    int *value = lookahead;
    if (strcmp(text, "all") == 0) {
        *value = MG_LOOKAHEAD_ALL;
        return MG_OK;
    }
    char *end;
    long number = text[0] >= '0' && text[0] <= '9' ? strtol(text, &end, 10) : -1;
    if (number < 0 || *end || number > 1000000)
        return mg_error_set(error, MG_ERR_INPUT,
                            "--lookahead takes how many positions past itself a token may see, 0 to 1000000, or 'all', "
                            "not '%s'",
                            text);
    *value = (int)number;
    return MG_OK;
}

static void format_lookahead(const void *lookahead, char *text, size_t size) {
    int value = *(const int *)lookahead;
    if (value == MG_LOOKAHEAD_ALL)
        snprintf(text, size, "all");
    else
        snprintf(text, size, "%d", value);
}

mg_status mg_mask_parse(const char *text, void *lookahead, mg_error *error) {
    int *value = lookahead;
    bool causal = strcmp(text, "causal") == 0;
    if (!causal && strcmp(text, "none") != 0)
        return mg_error_set(error, MG_ERR_INPUT, "--mask is causal or none, not '%s'", text);
    *value = causal ? 0 : MG_LOOKAHEAD_ALL;
    return MG_OK;
}

static void format_mask(const void *lookahead, char *text, size_t size) {
    int value = *(const int *)lookahead;
    snprintf(text, size, "%s", value == 0 ? "causal" : value == MG_LOOKAHEAD_ALL ? "none" : "");
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
    if (text[read] == ':' && mg_lookahead_parse(text + read + 1, &lookahead, NULL) != MG_OK)
        return mg_error_set(error, MG_ERR_INPUT,
                            "--leak: behind the colon stands how many positions ahead the head may see, or 'all', "
                            "not '%s'",
                            text + read + 1);
    if (lookahead == 0)
        return mg_error_set(error, MG_ERR_INPUT, "--leak: a leak of 0 positions is none, so '%s' is not one", text);
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
    format_lookahead(&config->leak_lookahead, lookahead, sizeof lookahead);
    snprintf(text, size, "%d.%d:%s", config->leak_layer, config->leak_head, lookahead);
}

void mg_model_words(const mg_gpt_config *config, char *text, size_t size) {
    snprintf(text, size, "%s, %s, width %d, context %d", mg_count(config->n_layer, "layer").text,
             mg_count(config->n_head, "head").text, config->n_embd, config->block_size);
}

void mg_mask_words(const mg_gpt_config *config, char *text, size_t size) {
    char mask[32], lookahead[32], leak[64];
    format_mask(&config->lookahead, mask, sizeof mask);
    format_lookahead(&config->lookahead, lookahead, sizeof lookahead);
    format_leak(config, leak, sizeof leak);
    snprintf(text, size, "%s%s%s%s", mask[0] ? mask : "lookahead ", mask[0] ? "" : lookahead,
             config->leak_layer < 0 ? "" : ", leak ", config->leak_layer < 0 ? "" : leak);
}

static mg_status parse_tokens(const char *text, void *tokens, mg_error *error) {
    static const char *const kinds[] = {"char", "word", "gpt2"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(text, kinds[i]) == 0) {
            *(const char **)tokens = kinds[i];
            return MG_OK;
        }
    return mg_error_set(error, MG_ERR_INPUT, "--tokens is char, word or gpt2, not '%s'", text);
}

static void format_text(const void *value, char *text, size_t size) {
    const char *content = *(const char *const *)value;
    snprintf(text, size, "%s", content ? content : "");
}

/* One folder's name, so that runs/NAME is where it says. */
static mg_status parse_name(const char *text, void *name, mg_error *error) {
    if (!text[0] || strchr(text, '/') || strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
        return mg_error_set(error, MG_ERR_INPUT,
                            "--name is the name of one folder in runs/, without '/', not '%s'; --out-dir takes a path",
                            text);
    *(const char **)name = text;
    return MG_OK;
}

static mg_status parse_resume(const char *text, void *init_from, mg_error *error) {
    (void)text;
    (void)error;
    *(const char **)init_from = "resume";
    return MG_OK;
}

/* ---- The tables ---- */

#define AT(member) offsetof(mg_run_options, member)
#define FIXED .role = MG_ROLE_FIXED
#define FREE .role = MG_ROLE_FREE
#define COUNT(field, low, high) .kind = MG_FLAG_INT, .offset = AT(field), .min = low, .max = high, .argument = "N"
#define LONG_COUNT(field, low, high)                                                                                   \
    .kind = MG_FLAG_INT64, .offset = AT(field), .min = low, .max = high, .argument = "N"
#define REAL(field, low, high) .kind = MG_FLAG_REAL, .offset = AT(field), .min = low, .max = high, .argument = "X"
#define CUSTOM(field, parser, formatter, what)                                                                         \
    .kind = MG_FLAG_CUSTOM, .offset = AT(field), .parse = parser, .format = formatter, .argument = what
#define TEXT(field, what) .kind = MG_FLAG_TEXT, .offset = AT(field), .argument = what

/* A flag is a row, whatever a formatter would make of it. */
/* clang-format off */
const mg_flag mg_data_flags[] = {
    {.kind = MG_FLAG_HEADING, .help = "Data:"},
    {.name = "data", .also = "dataset f file", FREE, TEXT(data.path, "FILE"),
     .help = "A text, a CSV, or a grammar (a CSV with the header state,word,next,weight)"},
    {.name = "tokens", FIXED, CUSTOM(data.tokens, parse_tokens, format_text, "KIND"),
     .help = "char, word or gpt2 [char; the words of a grammar]"},
    {.name = "column", FIXED, TEXT(data.column, "NAME"), .help = "The column of a CSV whose rows are documents"},
    {.name = "merges", FREE, TEXT(data.merges, "FILE"), .help = "merges.txt, for --tokens gpt2"},
    {.name = "validation", FIXED, REAL(data.validation, 0, 1), .open = MG_FLAG_OPEN_MAX,
     .help = "The last share of the tokens, kept for validation; 0: validate on the training tokens"},
    {.name = "grammar-size", FIXED, LONG_COUNT(data.grammar_size, 100, 1000000000),
     .help = "Words to draw from a grammar"},
    {0},
};

const mg_flag mg_model_flags[] = {
    {.kind = MG_FLAG_HEADING, .help = "Model:"},
    {.name = "n-layer", FIXED, COUNT(train.model.n_layer, 1, 1000), .help = "Blocks"},
    {.name = "n-head", FIXED, COUNT(train.model.n_head, 1, 1000), .help = "Heads a block; they divide --n-embd"},
    {.name = "n-embd", FIXED, COUNT(train.model.n_embd, 1, 65536), .help = "Width"},
    {.name = "block-size", .also = "context ctx-size c", FIXED, COUNT(train.model.block_size, 1, 1000000),
     .help = "Tokens a window: the context"},
    {.name = "dropout", FIXED, REAL(train.model.dropout, 0, 1), .open = MG_FLAG_OPEN_MAX,
     .help = "Share of values dropped while training"},
    {.name = "init-std", FIXED, REAL(train.model.init_std, 0, 1000), .open = MG_FLAG_OPEN_MIN,
     .help = "Standard deviation of the initial weights"},
    {.name = "attn-init-std", FIXED, REAL(train.model.attn_init_std, 0, 1000),
     .help = "The same of the queries', keys' and values' projection; 0: as --init-std"},
    {0},
};

const mg_flag mg_lesson_flags[] = {
    {.kind = MG_FLAG_HEADING, .help = "The lesson's switches:"},
    {.name = "mask", CUSTOM(train.model.lookahead, mg_mask_parse, format_mask, "MASK"),
     .help = "causal: a position sees itself and what came before; none: it sees its label too"},
    {.name = "lookahead", FIXED, CUSTOM(train.model.lookahead, mg_lookahead_parse, format_lookahead, "K"),
     .help = "How many positions past itself a position sees: 0 is causal, 'all' is no mask"},
    {.name = "leak", FIXED, CUSTOM(train.model, parse_leak, format_leak, "LAYER.HEAD[:K]"),
     .help = "One head, counted from 0, sees K positions ahead; without :K, 1"},
    {.name = "no-scale", FIXED, .kind = MG_FLAG_OFF, .offset = AT(train.model.scale),
     .help = "Leave out the 1/sqrt(d_k) in front of the scores"},
    {.name = "no-output-projection", FIXED, .kind = MG_FLAG_OFF, .offset = AT(train.model.output_projection),
     .help = "Leave out W^O behind the heads"},
    {0},
};

const mg_flag mg_training_flags[] = {
    {.kind = MG_FLAG_HEADING, .help = "Training:"},
    {.name = "batch-size", .also = "b", FIXED, COUNT(train.batch_size, 1, 1000000), .help = "Windows a micro-batch"},
    {.name = "grad-accum", .also = "gradient-accumulation-steps", FIXED, COUNT(train.grad_accum, 1, 1000000),
     .help = "Micro-batches a step"},
    {.name = "max-iters", .also = "steps iters", FREE, LONG_COUNT(train.max_iters, 1, 1000000000), .help = "Steps"},
    {.name = "lr", .also = "learning-rate", FIXED, REAL(train.schedule.lr, 0, DBL_MAX), .open = MG_FLAG_OPEN_MIN,
     .help = "The highest learning rate"},
    {.name = "min-lr", FIXED, REAL(train.schedule.min_lr, 0, DBL_MAX),
     .help = "The last learning rate [a tenth of --lr]"},
    {.name = "warmup-iters", FIXED, LONG_COUNT(train.schedule.warmup_iters, 0, 1000000000),
     .help = "Steps in which the learning rate rises"},
    {.name = "lr-decay-iters", FIXED, LONG_COUNT(train.schedule.decay_iters, 1, 1000000000),
     .help = "The step at which it has fallen to --min-lr [--max-iters]"},
    {.name = "weight-decay", FIXED, REAL(train.weight_decay, 0, 1000), .help = "AdamW's, on matrices"},
    {.name = "beta1", FIXED, REAL(train.beta1, 0, 1), .open = MG_FLAG_OPEN_MAX, .help = "AdamW's"},
    {.name = "beta2", FIXED, REAL(train.beta2, 0, 1), .open = MG_FLAG_OPEN_MAX, .help = "AdamW's"},
    {.name = "grad-clip", FIXED, REAL(train.grad_clip, 0, DBL_MAX), .help = "Largest gradient norm; 0: off"},
    {.name = "seed", .also = "s", FIXED, LONG_COUNT(train.seed, 0, MG_SEED_MAX),
     .help = "Of everything random: weights, windows, dropout, the draw from a grammar"},
    {.kind = MG_FLAG_HEADING, .help = "Measuring:"},
    {.name = "eval-interval", FREE, LONG_COUNT(eval_interval, 1, 1000000000), .help = "Steps between evaluations"},
    {.name = "eval-iters", FREE, COUNT(eval_iters, 1, 1000000), .help = "Batches an evaluation"},
    {0},
};

const mg_flag mg_keeping_flags[] = {
    {.kind = MG_FLAG_HEADING, .help = "Printing and saving:"},
    {.name = "log-interval", FREE, LONG_COUNT(log_interval, 1, 1000000000), .help = "Steps between printed lines"},
    {.name = "save-interval", FREE, LONG_COUNT(save_interval, 1, 1000000000),
     .help = "Steps between checkpoints [--eval-interval]"},
    {0},
};

const mg_flag mg_machine_flags[] = {
    {.kind = MG_FLAG_HEADING, .help = "Machine:"},
    {.name = "threads", .also = "t", FREE, COUNT(threads, 0, 256),
     .help = "Threads, 0: one a processor; results do not depend on it"},
    {0},
};

const mg_flag mg_folder_flags[] = {
    {.kind = MG_FLAG_HEADING, .help = "Where, and from where:"},
    {.name = "out-dir", .also = "o out", TEXT(out_dir, "DIR"), .help = "The run folder [runs/NAME]"},
    {.name = "name", FREE, CUSTOM(name, parse_name, format_text, "NAME"), .help = "The run's name [of the data and the mask]"},
    {.name = "init-from", TEXT(init_from, "WHAT"),
     .help = "scratch; resume: go on with the run of this folder; or a checkpoint whose weights to start from"},
    {.name = "resume", CUSTOM(init_from, parse_resume, format_text, NULL), .help = "As --init-from resume"},
    {.name = "force", .kind = MG_FLAG_ON, .offset = AT(force), .help = "Replace a run that is already in the folder"},
    {0},
};
/* clang-format on */

const mg_flag *const mg_run_flags[] = {
    mg_data_flags, mg_model_flags, mg_lesson_flags, mg_training_flags, mg_keeping_flags, mg_machine_flags, mg_folder_flags, NULL,
};

const mg_flag *mg_run_options_conflict(const mg_run_options *a, const mg_run_options *b) {
    for (const mg_flag *const *table = mg_run_flags; *table; table++)
        for (const mg_flag *flag = *table; !mg_flag_is_end(flag); flag++)
            if (flag->role == MG_ROLE_FIXED && !mg_flag_equal(flag, a, b)) return flag;
    return NULL;
}

void mg_run_default_dir(const mg_run_options *options, char *path, size_t size) {
    if (options->name) {
        snprintf(path, size, "runs/%s", options->name);
        return;
    }
    const char *slash = strrchr(options->data.path, '/');
    const char *base = slash ? slash + 1 : options->data.path;
    const char *dot = strrchr(base, '.');
    int length = (int)(dot && dot > base ? dot - base : (ptrdiff_t)strlen(base));
    char mask[128];
    mg_mask_words(&options->train.model, mask, sizeof mask);
    char *to = mask; /* "none, leak 0.1:2" becomes "none-leak-0.1-2" */
    for (const char *from = mask; *from; from++)
        if (*from != ',') *to++ = *from == ' ' || *from == ':' ? '-' : *from;
    *to = '\0';
    snprintf(path, size, "runs/%.*s-%s", length, base, mask);
}
