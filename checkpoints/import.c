/* The command `import`. */
#include "checkpoint_commands.h"
#include "gpt2_import.h"
#include "weights.h"

#include <argp.h>
#include <inttypes.h>
#include <stdio.h>

typedef struct options {
    const char *folder, *out;
    bool dry_run, allow_nan;
} options;

static error_t parse_option(int key, char *argument, struct argp_state *state) {
    options *o = state->input;
    switch (key) {
    case 'o': o->out = argument; return 0;
    case 'n': o->dry_run = true; return 0;
    case 'a': o->allow_nan = true; return 0;
    case ARGP_KEY_ARG:
        if (o->folder) argp_error(state, "one folder at a time: '%s' is the second", argument);
        o->folder = argument;
        return 0;
    case ARGP_KEY_END:
        if (!o->folder) argp_error(state, "which model? Give the folder with config.json and model.safetensors");
        if (!o->out && !o->dry_run) argp_error(state, "where to? Give --out FILE, or --dry-run to write nothing");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static options parse(int argc, char **argv) {
    static const struct argp_option flags[] = {
        {"out", 'o', "FILE", 0, "Write the checkpoint to FILE, an older one is replaced", 0},
        {"dry-run", 'n', NULL, 0, "Read and check everything, list every tensor, write nothing", 0},
        {"allow-nan", 'a', NULL, 0, "Also take weights that are NaN or infinite", 0},
        {0},
    };
    static const struct argp argp = {
        flags,
        parse_option,
        "FOLDER",
        "Make a checkpoint of a GPT-2 as it is published: FOLDER holds config.json with model.safetensors or "
        "tf_model.h5, and merges.txt with vocab.json for text.",
        NULL,
        NULL,
        NULL};
    options o = {0};
    char name[] = "maskgrad import";
    char *own = argv[0];
    argv[0] = name; /* what --help and errors call the program */
    argp_err_exit_status = 2;
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    argv[0] = own;
    return o;
}

/* What was seen while it was read. */
typedef struct listing {
    bool every_tensor;
    int matched, skipped, missing;
} listing;

static void list(const mg_import_event *event, void *user) {
    listing *l = user;
    const mg_param_spec *parameter = event->parameter;
    const mg_weight *weight = event->weight;
    switch (event->fate) {
    case MG_IMPORT_MATCHED:
        l->matched++;
        if (l->every_tensor)
            printf("matched  %-24s %-14s %-4s from %s\n", parameter->name,
                   mg_h5_shape(parameter->ndim, parameter->dim).text, weight->type, weight->name);
        return;
    case MG_IMPORT_SKIPPED:
        l->skipped++;
        if (l->every_tensor) printf("skipped  %s %s: %s\n", weight->name, mg_weight_shape(weight).text, event->text);
        return;
    case MG_IMPORT_MISSING:
        l->missing++;
        if (l->every_tensor)
            printf("missing  %-24s %s\n", parameter->name, mg_h5_shape(parameter->ndim, parameter->dim).text);
        return;
    case MG_IMPORT_NOTICE: fprintf(stderr, "maskgrad import: %s\n", event->text); return;
    }
}

static void print_model(const mg_checkpoint *c, const listing *l) {
    const mg_gpt_config *config = mg_gpt_get_config(c->gpt);
    printf("tensors      %d matched, %d skipped, %d missing\n", l->matched, l->skipped, l->missing);
    printf("model        %d layers, %d heads, width %d, context %d, vocabulary %d: %td parameters\n", config->n_layer,
           config->n_head, config->n_embd, config->block_size, config->vocab_size,
           mg_params_count(mg_gpt_params(c->gpt)));
    printf("tokenizer    %s, %d tokens\n", mg_tokenizer_kind_name(mg_tokenizer_get_kind(c->tokenizer)),
           mg_tokenizer_size(c->tokenizer));
}

static void print_fingerprint(const mg_fingerprint *f) {
    printf("fingerprint  %016" PRIx64 ": logits of --ids ", f->hash);
    for (int i = 0; i < f->n_ids; i++) printf("%s%d", i ? "," : "", f->ids[i]);
    printf(", behind the last ");
    for (int i = 0; i < f->n_logits; i++) printf("%s%.5g", i ? ", " : "", f->logits[i]);
    puts(", ...");
}

static mg_status import(const options *o, mg_error *error) {
    listing seen = {.every_tensor = o->dry_run};
    mg_checkpoint checkpoint;
    mg_status status = mg_gpt2_import(o->folder, &(mg_import_options){o->allow_nan, list, &seen}, &checkpoint, error);
    if (status != MG_OK) return status;
    mg_fingerprint fingerprint;
    status = mg_gpt_fingerprint(checkpoint.gpt, &fingerprint, error);
    if (status == MG_OK && !o->dry_run) status = mg_checkpoint_save(o->out, &checkpoint, error);
    if (status == MG_OK) {
        print_model(&checkpoint, &seen);
        print_fingerprint(&fingerprint);
        if (!o->dry_run) printf("written      %s\n", o->out);
    }
    mg_checkpoint_free(&checkpoint);
    return status;
}

int mg_import_command(int argc, char **argv) {
    options o = parse(argc, argv);
    mg_error error = {0};
    mg_status status = import(&o, &error);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("maskgrad import: the output cannot be written");
        return 1;
    }
    if (status == MG_OK) return 0;
    fprintf(stderr, "maskgrad import: %s\n", error.message);
    return 1;
}
