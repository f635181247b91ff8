/* The command `evaluate`: how well a checkpoint predicts data, by position, under its own mask or another. */
#include "checkpoint.h"
#include "commands.h"
#include "csv_table.h"
#include "data_files.h"
#include "evaluation.h"
#include "flags.h"
#include "options.h"
#include "parallel.h"
#include "printable.h"
#include "repetition.h"
#include "run_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_CHECKPOINTS = 100 };

typedef enum evaluation_mask { MASK_OWN, MASK_BOTH, MASK_GIVEN } evaluation_mask;

typedef struct evaluate_options {
    evaluation_mask mask;
    mg_gpt_config given; /* its mask, for MASK_GIVEN */
    int split;
    int eval_iters; /* 0: not given */
    int batch_size;
    int64_t seed;
    int threads;
} evaluate_options;

/* One of a list of words, which is what several flags take. */
static mg_status parse_word(const char *flag, const char *const *words, const char *text, int *value, mg_error *error) {
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], text) == 0) {
            *value = i;
            return MG_OK;
        }
    char list[64] = ""; /* "own, causal, none or both" */
    for (int i = 0; words[i]; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
    }
    return mg_error_set(error, MG_ERR_INPUT, "--%s is %s, not '%s'", flag, list, text);
}

static const char *const split_words[] = {"train", "val", NULL};

static mg_status parse_mask(const char *text, void *value, mg_error *error) {
    evaluate_options *o = value;
    bool own = strcmp(text, "own") == 0, both = strcmp(text, "both") == 0;
    o->mask = own ? MASK_OWN : both ? MASK_BOTH : MASK_GIVEN;
    if (own || both || mg_mask_parse(text, &o->given, error) == MG_OK) return MG_OK;
    return mg_error_set(error, MG_ERR_INPUT, "--mask is own, both, or a mask as train takes it, not '%s'", text);
}

static mg_status parse_split(const char *text, void *value, mg_error *error) {
    return parse_word("split", split_words, text, value, error);
}

static void format_mask(const void *value, char *text, size_t size) {
    const evaluate_options *o = value;
    if (o->mask == MASK_GIVEN)
        mg_mask_words(&o->given, text, size);
    else
        snprintf(text, size, "%s", o->mask == MASK_OWN ? "own" : "both");
}

static void format_split(const void *value, char *text, size_t size) {
    snprintf(text, size, "%s", split_words[*(const int *)value]);
}

#define ROWS_OF evaluate_options
#include "flag_rows.h"
#include "say.h"

/* clang-format off */
static const mg_setting flags[] = {
    {.kind = MG_SETTING_HEADING, .help = "Measuring:"},
    {.name = "mask", .kind = MG_SETTING_CUSTOM, .parse = parse_mask, .format = format_mask, .argument = "MASK",
     .help = "Mask to evaluate with: own (as trained), both (causal and none), or one that train --mask takes"},
    {.name = "split", CUSTOM(split, parse_split, format_split, "SPLIT"), .help = "Split to evaluate on: train or val"},
    {.name = "eval-iters", COUNT(eval_iters, 1, 1000000),
     .help = "Number of batches (default 200, or as many as take about two minutes with a large model)"},
    BATCH_SIZE_FLAG(batch_size, "Windows per batch"),
    SEED_FLAG(seed, "Seed of the windows and of the draw from a grammar"),
    THREADS_FLAG(threads),
    {0},
};
/* clang-format on */

static const mg_command_line line = {
    .name = "evaluate",
    .arguments = "CHECKPOINT...",
    .min_arguments = 1,
    .max_arguments = MAX_CHECKPOINTS,
    .doc = "The loss of checkpoints on data, beside the floor where the source is known.\v"
           "Without --data, a run is evaluated on what it was trained on, as its run.json says.\n\n"
           "The first table has one row per checkpoint and mask: training mask by evaluation mask, with --mask both. A "
           "single row is followed by the loss at each position.",
};

static mg_status evaluate_one(mg_gpt *gpt, mg_tape *tape, const mg_corpus *corpus, const evaluate_options *o,
                              const char *name, const char *trained, bool by_position, mg_error *error) {
    const mg_gpt_config *config = mg_gpt_get_config(gpt);
    char evaluated[128], alarm[512];
    mg_evaluation e;
    mg_mask_words(config, evaluated, sizeof evaluated);
    const mg_evaluation_options options = {.split = o->split == 0 ? MG_TRAIN : MG_VALIDATION,
                                           .n_batches = o->eval_iters,
                                           .batch_size = o->batch_size,
                                           .seed = (uint64_t)o->seed,
                                           .evidence = true};
    mg_status status = mg_evaluate_on(&e, gpt, tape, corpus, &options, error);
    if (status != MG_OK) return status;
    const char *const cells[] = {name, trained, evaluated};
    for (int i = 0; i < 3; i++) {
        mg_csv_write_cell(stdout, mg_shown(cells[i]).text);
        putchar(',');
    }
    printf("%.6f,", e.loss);
    if (!isnan(e.floor)) printf("%.6f", e.floor);
    putchar('\n');
    if (by_position) {
        putchar('\n');
        mg_evaluation_print(&e, stdout);
    }
    fflush(stdout);
    if (mg_evaluation_alarm(&e, config, alarm, sizeof alarm)) mg_say("evaluate", "alarm: %s", alarm);
    mg_evaluation_free(&e);
    return MG_OK;
}

static mg_status set_mask(mg_gpt *gpt, const mg_gpt_config *given, const mg_corpus *corpus, mg_error *error) {
    mg_gpt_config own = *given;
    mg_status status = given->documents ? mg_corpus_document_end(corpus, &own.document_end, error) : MG_OK;
    if (status != MG_OK) return status;
    mg_gpt_see_as(gpt, &own);
    return MG_OK;
}

static mg_status evaluate_masks(const mg_checkpoint *checkpoint, const mg_corpus *corpus, const evaluate_options *o,
                                const char *name, bool only, mg_error *error) {
    char trained[128];
    mg_mask_words(mg_gpt_get_config(checkpoint->gpt), trained, sizeof trained);
    mg_tape *tape;
    mg_tape_new(&tape, error);
    if (!tape) return MG_ERR_MEMORY;
    mg_status status = o->mask == MASK_GIVEN ? set_mask(checkpoint->gpt, &o->given, corpus, error) : MG_OK;
    const mg_gpt_config *config = mg_gpt_get_config(checkpoint->gpt);
    if (status == MG_OK && o->mask != MASK_BOTH && config->documents)
        mg_say("evaluate", "a document is %s", mg_corpus_document_words(corpus, config->document_end));
    for (int i = 0; status == MG_OK && i < (o->mask == MASK_BOTH ? 2 : 1); i++) {
        if (o->mask == MASK_BOTH) mg_gpt_set_mask(checkpoint->gpt, mg_lookahead(i == 0 ? 0 : MG_LOOKAHEAD_ALL));
        status = evaluate_one(checkpoint->gpt, tape, corpus, o, name, trained, only && o->mask != MASK_BOTH, error);
    }
    mg_tape_free(tape);
    return status;
}

static mg_status check_length(const mg_corpus *corpus, mg_split split, ptrdiff_t T, const char *path, mg_error *error) {
    ptrdiff_t n = mg_corpus_tokens(corpus, split);
    if (n > T) return MG_OK;
    char larger[64] = "";
    double share = split == MG_TRAIN ? 0 : mg_corpus_least_validation(corpus, T);
    if (share > 0) snprintf(larger, sizeof larger, " or a larger --validation (at least %g)", share);
    return mg_error_set(error, MG_ERR_INPUT,
                        "the %s split of %s holds %s, but %s reads windows of %td tokens and one more: give a "
                        "longer text%s",
                        split == MG_TRAIN ? "training" : "validation", corpus->name, mg_count(n, "token").text, path, T,
                        larger);
}

enum { USUAL_BATCHES = 200 };

/* As many batches as some two minutes on two cores allow: 2 operations per parameter and token. */
static int affordable_batches(const mg_gpt *gpt, int batch_size) {
    double tokens = (double)batch_size * mg_gpt_get_config(gpt)->block_size;
    double n = 1e13 / (2 * (double)mg_params_count(mg_gpt_params((mg_gpt *)gpt)) * tokens);
    return n >= USUAL_BATCHES ? USUAL_BATCHES : n < 1 ? 1 : (int)n;
}

static evaluate_options bounded(const evaluate_options *o, const mg_gpt *gpt) {
    evaluate_options own = *o;
    if (o->eval_iters > 0) return own;
    own.eval_iters = affordable_batches(gpt, o->batch_size);
    if (own.eval_iters < USUAL_BATCHES)
        mg_say("evaluate",
               "%d batch%s of %d windows, not %d, because the model is large; --eval-iters N sets "
               "the number",
               own.eval_iters, own.eval_iters == 1 ? "" : "es", o->batch_size, USUAL_BATCHES);
    return own;
}

static mg_status say_repetition(const mg_corpus *corpus, mg_error *error) {
    double share;
    char text[256];
    mg_status status = mg_corpus_repetition(corpus, &share, error);
    if (status == MG_OK && mg_repetition_say(share, text, sizeof text)) mg_say("evaluate", "%s", text);
    return status;
}

/* ---- The data of a run ---- */

/* The run.json beside a checkpoint: in the folder that was asked for, or in that of the file. */
static void run_json_of(const char *asked, const char *checkpoint, char *path, size_t size) {
    const char *slash = strrchr(checkpoint, '/');
    if (strcmp(asked, checkpoint) != 0)
        snprintf(path, size, "%s/run.json", asked);
    else
        snprintf(path, size, "%.*srun.json", slash ? (int)(slash + 1 - checkpoint) : 0, checkpoint);
}

/* What the run was trained on, as its run.json says. */
static mg_status find_data(const char *asked, const char *checkpoint, mg_data_options *data, mg_run_json **json,
                           mg_error *error) {
    char path[4200];
    mg_run_options stored;
    run_json_of(asked, checkpoint, path, sizeof path);
    if (access(path, F_OK) != 0)
        return mg_error_set(error, MG_ERR_INPUT,
                            "--data FILE is missing, and there is no run.json beside %s to say what it was trained on",
                            asked);
    mg_status status = mg_run_json_read(json, path, &stored, error);
    if (status != MG_OK) return status;
    if (mg_data_is_stream(stored.data.path))
        return mg_error_set(error, MG_ERR_INPUT, "the data of the run in %s came from standard input: give --data FILE",
                            asked);
    *data = stored.data;
    return MG_OK;
}

static mg_status load_data(mg_corpus **corpus, const char *asked, const mg_data_options *data, const mg_run_json *json,
                           mg_error *error) {
    mg_error reason;
    mg_status status = mg_corpus_load(corpus, data, &reason);
    if (status != MG_OK)
        return mg_error_set(error, status, "%s%s", reason.message,
                            json && status == MG_ERR_IO ? ": give --data FILE, where the data of the run is now" : "");
    if (!json || mg_run_json_data_hash(json) == (*corpus)->hash) return MG_OK;
    return mg_error_set(
        error, MG_ERR_INPUT,
        "the data %s is not what the run in %s was trained on: its content has changed; --data evaluates "
        "on other data",
        (*corpus)->name, asked);
}

static mg_status evaluate_file(const char *asked, const mg_data_options *data_options, const evaluate_options *o,
                               bool first, bool only, mg_error *error) {
    char path[4096];
    mg_checkpoint_path(asked, path, sizeof path);
    mg_checkpoint checkpoint;
    mg_status status = mg_checkpoint_load(&checkpoint, path, false, error);
    if (status != MG_OK) return status;
    mg_data_options data = *data_options;
    mg_run_json *json = NULL;
    mg_corpus *corpus = NULL;
    if (!checkpoint.tokenizer)
        status = mg_error_set(error, MG_ERR_INPUT, "%s has no tokenizer: it cannot read a text", path);
    if (status == MG_OK && !data.path) status = find_data(asked, path, &data, &json, error);
    data.tokenizer = checkpoint.tokenizer;
    if (status == MG_OK) status = load_data(&corpus, asked, &data, json, error);
    if (status == MG_OK && corpus->warning[0]) mg_say("evaluate", "%s", mg_shown(corpus->warning).text);
    if (status == MG_OK && o->split != 0) status = say_repetition(corpus, error);
    if (status == MG_OK)
        status = check_length(corpus, o->split == 0 ? MG_TRAIN : MG_VALIDATION,
                              mg_gpt_get_config(checkpoint.gpt)->block_size, path, error);
    if (status == MG_OK && first) puts("checkpoint,training_mask,evaluation_mask,loss,floor");
    if (status == MG_OK) {
        evaluate_options own = bounded(o, checkpoint.gpt);
        status = evaluate_masks(&checkpoint, corpus, &own, asked, only, error);
    }
    mg_corpus_free(corpus);
    mg_run_json_free(json);
    mg_checkpoint_free(&checkpoint);
    return status;
}

static int run_command(int argc, char **argv) {
    mg_run_options run = mg_run_defaults();
    evaluate_options options = {.split = 1, .eval_iters = 0, .batch_size = 16, .seed = (int64_t)run.train.seed};
    const mg_flag_table tables[] = {{mg_data_settings, &run}, {flags, &options}, {NULL, NULL}};
    const char *checkpoints[MAX_CHECKPOINTS];
    mg_given given;
    int n = mg_flags_parse(&line, tables, argc, argv, checkpoints, &given);
    if (!run.data.path)
        mg_warn_idle(&line, &given, "tokens column delimiter encoding special merges validation grammar-size",
                     "without --data, the run's own data is read as it was for training");
    mg_set_threads(options.threads);
    run.data.seed = (uint64_t)options.seed;

    mg_error error;
    mg_status status = MG_OK;
    for (int i = 0; i < n && status == MG_OK; i++)
        status = evaluate_file(checkpoints[i], &run.data, &options, i == 0, n == 1, &error);
    return mg_command_end(&line, status, &error);
}

const mg_command mg_evaluate_command = {"evaluate", N_("The loss of a checkpoint on data, by position"), run_command};
