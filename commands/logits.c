/* The command `logits`: for checking maskgrad against another framework. */
#include "checkpoint.h"
#include "commands.h"
#include "flags.h"
#include "ids.h"
#include "parallel.h"

#include <stdio.h>

typedef struct logits_options {
    const char *ids;
    int threads;
} logits_options;

#define ROWS_OF logits_options
#include "flag_rows.h"

/* clang-format off */
static const mg_setting flags[] = {
    {.name = "ids", TEXT(ids, "1,2,3"), .help = "Token ids; at most the context length"},
    THREADS_FLAG(threads),
    {0},
};
/* clang-format on */

static const mg_command_line line = {
    .name = "logits",
    .arguments = "CHECKPOINT",
    .min_arguments = 1,
    .max_arguments = 1,
    .doc =
        "Print the logits after each token: one row of comma-separated numbers per position, the vocabulary from left "
        "to right.",
};

static mg_status print_logits(mg_gpt *gpt, const int *ids, size_t n, mg_error *error) {
    const mg_gpt_config *config = mg_gpt_get_config(gpt);
    if (n > (size_t)config->block_size)
        return mg_error_set(error, MG_ERR_INPUT, "--ids: %zu ids are more than the model's context of %d", n,
                            config->block_size);
    mg_tape *tape;
    mg_tape_new(&tape, error);
    if (!tape) return MG_ERR_MEMORY;
    mg_tape_record(tape, false);
    const mg_tensor *logits = mg_gpt_forward(gpt, tape, ids, 1, (ptrdiff_t)n, NULL);
    ptrdiff_t V = config->vocab_size;
    mg_status status = mg_gpt_check_logits(gpt, logits->data, mg_size(logits), error);
    for (ptrdiff_t i = 0; status == MG_OK && i < mg_size(logits); i++)
        printf("%.9g%c", (double)logits->data[i], i % V == V - 1 ? '\n' : ',');
    mg_tape_free(tape);
    return status;
}

static int run_command(int argc, char **argv) {
    logits_options options = {0};
    const mg_flag_table tables[] = {{flags, &options}, {NULL, NULL}};
    const char *asked;
    mg_flags_parse(&line, tables, argc, argv, &asked, NULL);
    if (!options.ids) mg_usage_error(&line, "--ids is missing, as in --ids 1,2,3");
    mg_set_threads(options.threads);

    char path[4096];
    mg_checkpoint_path(asked, path, sizeof path);
    mg_error error;
    mg_checkpoint checkpoint;
    int *ids = NULL;
    size_t n = 0;
    mg_status status = mg_checkpoint_load(&checkpoint, path, false, &error);
    if (status == MG_OK) {
        status = mg_ids_parse(options.ids, mg_gpt_get_config(checkpoint.gpt)->vocab_size, &ids, &n, &error);
        if (status == MG_OK) status = print_logits(checkpoint.gpt, ids, n, &error);
        mg_free(ids);
        mg_checkpoint_free(&checkpoint);
    }
    return mg_command_end(&line, status, &error);
}

const mg_command mg_logits_command = {"logits", N_("The logits of a checkpoint for given ids, as CSV"), run_command};
