/* The command `export`. */
#include "commands.h"
#include "flags.h"
#include "gpt2_export.h"
#include "printable.h"
#include "train_settings.h"

#include <stdio.h>

typedef struct export_options {
    const char *checkpoint, *out;
    bool allow_loss, force;
} export_options;

#define ROWS_OF export_options
#include "flag_rows.h"
#include "say.h"

/* clang-format off */
static const mg_setting flags[] = {
    {.name = "out", .also = "o", TEXT(out, "DIR"), .help = "Write the files into DIR, which is made if it is not there"},
    {.name = "allow-loss", .also = "a", ON(allow_loss), .help = "Also export a model of which GPT-2's files cannot hold all; the rest goes to maskgrad.json"},
    {.name = "force", .also = "f", ON(force), .help = "Replace the files of an earlier export"},
    {0},
};
/* clang-format on */

static const mg_command_line line = {
    .name = "export",
    .arguments = "CHECKPOINT",
    .min_arguments = 1,
    .max_arguments = 1,
    .doc = "Write a model as Hugging Face's GPT-2: config.json and model.safetensors, and vocab.json and merges.txt if "
           "its tokens are GPT-2's. The optimizer's state stays in the checkpoint.",
};

static void say_written(const char *path, void *user) {
    (void)user;
    printf("written      %s\n", mg_shown(path).text);
}

static void say_lost(const char *sentence, void *user) {
    (void)user;
    mg_say("export", "%s", sentence);
}

static int run_command(int argc, char **argv) {
    export_options options = {0};
    const mg_flag_table tables[] = {{flags, &options}, {NULL, NULL}};
    mg_flags_parse(&line, tables, argc, argv, &options.checkpoint, NULL);
    if (!options.out) mg_usage_error(&line, "--out DIR is missing: where to write the files");
    mg_refuse_empty(&line, "out", "folder", options.out);
    char path[4096], mask[128];
    mg_checkpoint_path(options.checkpoint, path, sizeof path);
    mg_error error;
    mg_checkpoint checkpoint;
    mg_status status = mg_checkpoint_load(&checkpoint, path, false, &error);
    if (status == MG_OK) {
        mg_mask_words(mg_gpt_get_config(checkpoint.gpt), mask, sizeof mask);
        status = mg_gpt2_export(options.out, &checkpoint,
                                &(mg_export_options){.allow_loss = options.allow_loss,
                                                     .force = options.force,
                                                     .mask = mask,
                                                     .written = say_written,
                                                     .lost = say_lost},
                                &error);
        mg_checkpoint_free(&checkpoint);
    }
    return mg_command_end(&line, status, &error);
}

const mg_command mg_export_command = {"export", "Write a checkpoint as Hugging Face's GPT-2", run_command};
