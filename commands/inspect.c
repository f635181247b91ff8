#include "inspect.h"
#include "commands.h"
#include "flags.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct inspect_options {
    bool verify, json;
} inspect_options;

#define ROWS_OF inspect_options
#include "flag_rows.h"

/* clang-format off */
static const mg_setting flags[] = {
    {.name = "verify", .also = "v", ON(verify), .help = "Read every byte, including the optimizer's state, and compare all checksums"},
    {.name = "json", .also = "j", ON(json), .help = "Print one JSON object instead of text"},
    {0},
};
/* clang-format on */

static const mg_command_line line = {
    .name = "inspect",
    .arguments = "CHECKPOINT",
    .min_arguments = 1,
    .max_arguments = 1,
    .doc = "Show the contents of a checkpoint: the model, its training mask, its parameters, how far training "
           "got, and its tokenizer. CHECKPOINT is a file or a run folder. Nothing is changed. A parameter with NaN or "
           "infinity in it is named, with exit status 1.",
};

static void name_lookahead(char *text, size_t size, int lookahead) {
    if (lookahead == MG_LOOKAHEAD_ALL)
        snprintf(text, size, "all others");
    else if (lookahead == 0)
        snprintf(text, size, "itself and what came before");
    else
        snprintf(text, size, "%d token%s past itself", lookahead, lookahead == 1 ? "" : "s");
}

/* What every position sees. */
static void name_span(char *text, size_t size, const mg_gpt_config *config) {
    int n = config->mask.n;
    switch (config->mask.kind) {
    case MG_MASK_LOOKAHEAD: name_lookahead(text, size, n); break;
    case MG_MASK_WINDOW: snprintf(text, size, "itself and the %d before it", n - 1); break;
    case MG_MASK_PREFIX:
        snprintf(text, size, "itself and what came before, and the first %s see each other",
                 mg_count(n, "position").text);
        break;
    case MG_MASK_BLOCK: snprintf(text, size, "all up to the end of its block of %d", n); break;
    }
    size_t used = strlen(text);
    if (config->documents)
        snprintf(text + used, size - used, ", in its own document, whose positions %s",
                 config->positions_run_on ? "run on from the one before" : "count from 0");
}

mg_mask_text mg_mask_in_words(const mg_gpt_config *config) {
    mg_mask_text mask;
    char span[160], leak[96] = "";
    name_span(span, sizeof span, config);
    if (config->leak_layer >= 0) {
        char leak_span[64];
        name_lookahead(leak_span, sizeof leak_span, config->leak_lookahead);
        snprintf(leak, sizeof leak, "; but head %d of layer %d sees %s", config->leak_head, config->leak_layer,
                 leak_span);
    }
    if (mg_gpt_is_causal(config))
        snprintf(mask.text, sizeof mask.text, "causal: a position sees %s%s", span, leak);
    else if (!mg_looks_ahead(config->mask))
        snprintf(mask.text, sizeof mask.text,
                 "this model was trained looking ahead through one head: a position sees "
                 "%s%s",
                 span, leak);
    else
        snprintf(mask.text, sizeof mask.text, "this model was trained looking ahead: every position sees %s%s", span,
                 leak);
    return mask;
}

mg_parameter_summary mg_parameter_summarize(const mg_param *parameter) {
    mg_parameter_summary summary = {0};
    for (ptrdiff_t i = 0, n = mg_size(&parameter->tensor); i < n; i++) {
        double x = (double)parameter->tensor.data[i];
        if (isfinite(x))
            summary.norm += x * x;
        else
            summary.not_finite++;
    }
    summary.norm = sqrt(summary.norm);
    return summary;
}

static bool all_finite(const mg_real *x, ptrdiff_t n) {
    while (n > 0 && isfinite(x[n - 1])) n--;
    return n == 0;
}

/* What is shown is not silently sound: a model that holds NaN computes nothing. */
static mg_status check_numbers(const mg_inspection *inspection, mg_error *error) {
    const mg_checkpoint *c = &inspection->checkpoint;
    const mg_param *first = mg_params_find_not_finite(mg_gpt_params(c->gpt));
    if (first)
        return mg_error_set(error, MG_ERR_FORMAT,
                            "%s holds NaN or infinity, first in the parameter '%s': the run that saved it diverged, or "
                            "the file was changed since",
                            inspection->path, first->name);
    if (c->adamw && !(all_finite(c->adamw->m, c->adamw->size) && all_finite(c->adamw->v, c->adamw->size)))
        return mg_error_set(error, MG_ERR_FORMAT, "%s holds NaN or infinity in its optimizer's state",
                            inspection->path);
    return MG_OK;
}

static mg_status inspect(const char *path, const inspect_options *o, mg_error *error) {
    mg_inspection inspection = {.path = path, .verified = o->verify};
    mg_status status = mg_checkpoint_describe(path, &inspection.info, error);
    if (status == MG_OK) status = mg_checkpoint_load(&inspection.checkpoint, path, o->verify, error);
    if (status != MG_OK) return status;
    if (o->json)
        status = mg_inspect_print_json(&inspection, error);
    else
        mg_inspect_print(&inspection);
    if (status == MG_OK) status = check_numbers(&inspection, error);
    mg_checkpoint_free(&inspection.checkpoint);
    return status;
}

static int run_command(int argc, char **argv) {
    inspect_options options = {0};
    const mg_flag_table tables[] = {{flags, &options}, {NULL, NULL}};
    const char *asked;
    mg_flags_parse(&line, tables, argc, argv, &asked, NULL);
    char path[4096];
    mg_checkpoint_path(asked, path, sizeof path);
    mg_error error;
    return mg_command_end(&line, inspect(path, &options, &error), &error);
}

const mg_command mg_inspect_command = {"inspect", N_("Show a checkpoint's contents, and check that it is intact"),
                                       run_command};
