#include "inspect.h"
#include "checkpoint_commands.h"

#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct options {
    const char *path;
    bool verify, json;
} options;

static error_t parse_option(int key, char *argument, struct argp_state *state) {
    options *o = state->input;
    switch (key) {
    case 'v': o->verify = true; return 0;
    case 'j': o->json = true; return 0;
    case ARGP_KEY_ARG:
        if (o->path) argp_error(state, "one checkpoint at a time: '%s' is the second", argument);
        o->path = argument;
        return 0;
    case ARGP_KEY_NO_ARGS: argp_error(state, "which checkpoint? Give the path of a file"); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static options parse(int argc, char **argv) {
    static const struct argp_option flags[] = {
        {"verify", 'v', NULL, 0, "Read every byte, the optimiser's too, and compare all checksums", 0},
        {"json", 'j', NULL, 0, "One JSON object instead of text", 0},
        {0},
    };
    static const struct argp argp = {flags,
                                     parse_option,
                                     "CHECKPOINT",
                                     "Tell what is in a checkpoint: the model, how its mask was set in training, its "
                                     "parameters, how far training got, and its tokenizer. Nothing is changed.",
                                     NULL,
                                     NULL,
                                     NULL};
    options o = {0};
    char name[] = "maskgrad inspect";
    char *own = argv[0];
    argv[0] = name; /* what --help and errors call the program */
    argp_err_exit_status = 2;
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    argv[0] = own;
    return o;
}

static void name_span(char *text, size_t size, int lookahead) {
    if (lookahead == MG_LOOKAHEAD_ALL)
        snprintf(text, size, "all others");
    else if (lookahead == 0)
        snprintf(text, size, "itself and what came before");
    else
        snprintf(text, size, "%d token%s past itself", lookahead, lookahead == 1 ? "" : "s");
}

mg_mask_text mg_mask_in_words(const mg_gpt_config *config) {
    mg_mask_text mask;
    char span[64], leak[96] = "";
    name_span(span, sizeof span, config->lookahead);
    if (config->leak_layer >= 0) {
        char leak_span[64];
        name_span(leak_span, sizeof leak_span, config->leak_lookahead);
        snprintf(leak, sizeof leak, "; but head %d of layer %d sees %s", config->leak_head, config->leak_layer,
                 leak_span);
    }
    if (mg_gpt_is_causal(config))
        snprintf(mask.text, sizeof mask.text, "causal: a position sees %s%s", span, leak);
    else if (config->lookahead == 0)
        snprintf(mask.text, sizeof mask.text,
                 "this model was trained looking ahead through one head: a position sees "
                 "%s%s",
                 span, leak);
    else
        snprintf(mask.text, sizeof mask.text, "this model was trained looking ahead: every position sees %s%s", span,
                 leak);
    return mask;
}

mg_parameter_summary mg_parameter_summarise(const mg_param *parameter) {
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

static mg_status inspect(const options *o, mg_error *error) {
    mg_inspection inspection = {.path = o->path, .verified = o->verify};
    mg_status status = mg_checkpoint_describe(o->path, &inspection.info, error);
    if (status == MG_OK) status = mg_checkpoint_load(o->path, o->verify, &inspection.checkpoint, error);
    if (status != MG_OK) return status;
    if (o->json)
        status = mg_inspect_print_json(&inspection, error);
    else
        mg_inspect_print(&inspection);
    mg_checkpoint_free(&inspection.checkpoint);
    return status;
}

int mg_inspect_command(int argc, char **argv) {
    options o = parse(argc, argv);
    mg_error error = {0};
    if (inspect(&o, &error) != MG_OK) {
        fprintf(stderr, "maskgrad inspect: %s\n", error.message);
        return 1;
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("maskgrad inspect: the output cannot be written");
        return 1;
    }
    return 0;
}
