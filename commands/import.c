/* The command `import`. */
#include "columns.h"
#include "commands.h"
#include "flags.h"
#include "gpt2_import.h"
#include "language.h"
#include "printable.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

typedef struct import_options {
    const char *folder, *out;
    bool dry_run, allow_nan, transposed;
} import_options;

#define ROWS_OF import_options
#include "flag_rows.h"
#include "say.h"
#include "wrap.h"

/* clang-format off */
static const mg_setting flags[] = {
    {.name = "out", .also = "o", TEXT(out, "FILE"), .help = "Write the checkpoint to FILE, replacing an older one"},
    {.name = "dry-run", .also = "n", ON(dry_run), .help = "Read and check everything, list every tensor, write nothing"},
    {.name = "allow-nan", .also = "a", ON(allow_nan), .help = "Also import weights that are NaN or infinite"},
    {.name = "transposed", .also = "t", ON(transposed), .help = "Matrices are (out, in), as PyTorch's nn.Linear has them (nanoGPT)"},
    {0},
};
/* clang-format on */

static const mg_command_line line = {
    .name = "import",
    .arguments = "FOLDER",
    .min_arguments = 1,
    .max_arguments = 1,
    .doc = "Make a checkpoint from a published GPT-2: FOLDER holds config.json with model.safetensors or "
           "tf_model.h5, and merges.txt with vocab.json for text.",
};

/* What was seen during reading. */
typedef struct listing {
    bool every_tensor;
    int matched, skipped, missing;
} listing;

/* One line per tensor, which programs may read. */
static void print_fate(const char *fate, const char *format, ...) MG_PRINTF(2, 3);
static void print_fate(const char *fate, const char *format, ...) {
    mg_error text;
    char first[16];
    va_list arguments;
    va_start(arguments, format);
    mg_error_vset(&text, MG_OK, format, arguments);
    va_end(arguments);
    snprintf(first, sizeof first, "%s  ", fate);
    mg_print_record(stdout, first, "         ", text.message);
}

static void list(const mg_import_event *event, void *user) {
    listing *l = user;
    const mg_param_spec *parameter = event->parameter;
    const mg_weight *weight = event->weight;
    switch (event->fate) {
    case MG_IMPORT_MATCHED:
        l->matched++;
        if (l->every_tensor)
            print_fate("matched", "%-24s %-14s %-4s from %s", parameter->name,
                       mg_dims(parameter->ndim, parameter->dim).text, weight->type, weight->name);
        return;
    case MG_IMPORT_SKIPPED:
        l->skipped++;
        if (l->every_tensor)
            print_fate("skipped", "%s %s: %s", weight->name, mg_weight_shape(weight).text, event->text);
        return;
    case MG_IMPORT_MISSING:
        l->missing++;
        if (l->every_tensor)
            print_fate("missing", "%-24s %s", parameter->name, mg_dims(parameter->ndim, parameter->dim).text);
        return;
    case MG_IMPORT_NOTICE: mg_say("import", "%s", mg_shown(event->text).text); return;
    }
}

static void print_model(const mg_checkpoint *c, const listing *l) {
    const mg_gpt_config *config = mg_gpt_get_config(c->gpt);
    mg_printf("tensors      %d matched, %d skipped, %d missing\n", l->matched, l->skipped, l->missing);
    mg_tell("             ", "model        %s, %s, width %d, context %d, vocabulary %d: %td parameters",
            mg_count(config->n_layer, "layer").text, mg_count(config->n_head, "head").text, config->n_embd,
            config->block_size, config->vocab_size, mg_params_count(mg_gpt_params(c->gpt)));
    mg_printf("tokenizer    %s, %s\n", mg_tokenizer_kind_name(mg_tokenizer_get_kind(c->tokenizer)),
              mg_count(mg_tokenizer_size(c->tokenizer), "token").text);
}

static void print_fingerprint(const mg_fingerprint *f) {
    char ids[256] = "", logits[256] = "";
    for (int i = 0, n = 0; i < f->n_ids && n < (int)sizeof ids; i++)
        n += snprintf(ids + n, sizeof ids - (size_t)n, "%s%d", i ? "," : "", f->ids[i]);
    for (int i = 0, n = 0; i < f->n_logits && n < (int)sizeof logits; i++)
        n += snprintf(logits + n, sizeof logits - (size_t)n, "%s%.5g", i ? ", " : "", f->logits[i]);
    char text[640];
    mg_snprintf(text, sizeof text, "%016" PRIx64 ": logits of --ids %s, after the last %s, ...", f->hash, ids, logits);
    mg_print_wrapped(stdout, mg_columns(stdout), "fingerprint  ", "             ", text);
}

static mg_status import(const import_options *o, mg_error *error) {
    listing seen = {.every_tensor = o->dry_run};
    mg_checkpoint checkpoint;
    mg_status status = mg_gpt2_import(&checkpoint, o->folder,
                                      &(mg_import_options){o->allow_nan, o->transposed, list, &seen}, error);
    if (status != MG_OK) return status;
    mg_fingerprint fingerprint;
    status = mg_gpt_fingerprint(checkpoint.gpt, &fingerprint, error);
    if (status == MG_OK && !o->dry_run) status = mg_checkpoint_save(o->out, &checkpoint, error);
    if (status == MG_OK) {
        print_model(&checkpoint, &seen);
        print_fingerprint(&fingerprint);
        if (!o->dry_run) mg_printf("written      %s\n", mg_shown(o->out).text);
    }
    mg_checkpoint_free(&checkpoint);
    return status;
}

static int run_command(int argc, char **argv) {
    import_options options = {0};
    const mg_flag_table tables[] = {{flags, &options}, {NULL, NULL}};
    mg_flags_parse(&line, tables, argc, argv, &options.folder, NULL);
    if (options.out && options.dry_run)
        mg_usage_error(&line, "--dry-run writes nothing, and --out FILE is where to write: give one");
    mg_error error;
    /* In the order of the command line: a missing folder is reported before a missing --out. */
    if (!options.out && !options.dry_run && access(options.folder, F_OK) == 0)
        mg_usage_error(&line, "give --out FILE, or --dry-run to write nothing");
    mg_refuse_empty(&line, "out", "file", options.out);
    return mg_command_end(&line, import(&options, &error), &error);
}

const mg_command mg_import_command = {"import", N_("Make a checkpoint from GPT-2 weights"), run_command};
