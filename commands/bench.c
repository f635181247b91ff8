/* maskgrad bench: how fast this build is on this machine, compared with what the machine can do. */
#include "atomic_file.h"
#include "bench_measure.h"
#include "checkpoint.h"
#include "commands.h"
#include "csv_table.h"
#include "flags.h"
#include "gemm.h"
#include "language.h"
#include "options.h"
#include "parallel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct bench_options {
    const char *config, *csv, *checkpoint;
    int steps;
} bench_options;

#define ROWS_OF bench_options
#include "flag_rows.h"
#include "say.h"

/* clang-format off */
static const mg_setting bench_flags[] = {
    {.name = "config", TEXT(config, "NAME"),
     .help = "Model to measure: toy, char, baby, all (these three) or gpt2 (GPT-2's smallest size, which takes minutes). "
             "Other flags change its sizes; without --config, they give the sizes"},
    {.name = "checkpoint", TEXT(checkpoint, "FILE"),
     .help = "Checkpoint file or run folder: only measure generation with this model"},
    {.name = "steps", COUNT(steps, 0, 2000), .help = "Training steps to measure (0: about three seconds' worth)"},
    {.name = "csv", TEXT(csv, "FILE"), .help = "Also write the numbers to this CSV file"},
    {0},
};
#undef ROWS_OF
#define ROWS_OF mg_run_options
static const mg_setting bench_sizes[] = {
    BATCH_SIZE_FLAG(train.batch_size, "Windows per step"),
    {.name = "vocab-size", COUNT(train.model.vocab_size, 1, 1 << 24), .help = "Tokens in the vocabulary"},
    {0},
};
/* clang-format on */

/* What describes the model that is measured. */
static const mg_settings shape_settings[] = {
    {bench_sizes, 0}, MG_SETTINGS_OF_TRAIN(mg_model_settings), MG_SETTINGS_OF_TRAIN(mg_lesson_settings), {NULL, 0}};
static const mg_settings other_settings[] = {{mg_machine_settings, 0}, {NULL, 0}};

/* The sizes in which this project states its speed; scripts/bench-vs-torch.sh runs the same in PyTorch. */
typedef struct named_config {
    const char *name;
    int batch, context, layers, heads, width, vocabulary;
} named_config;

static const named_config configs[] = {
    {"toy", 16, 32, 2, 4, 64, 28},
    {"char", 12, 64, 4, 4, 128, 65},
    {"baby", 4, 256, 6, 6, 384, 65},
    {"gpt2", 1, 512, 12, 12, 768, 50257},
};
enum { N_CONFIGS = sizeof configs / sizeof configs[0], N_ALL = 3 /* the first ones are "all" */ };

typedef struct measured {
    const char *name;
    bool changed; /* by other flags: no longer the size of that name */
    bench_result result;
} measured;
static const char CHANGED[] = "-changed";

/* ---- Printing ---- */

static void print_bytes(const char *what, size_t bytes) {
    printf("  %-12s %10.2f MB\n", what, (double)bytes * 1e-6);
}

static void print_operations(const bench_result *r) {
    double total = r->optimizer_seconds, steps = r->profile_steps;
    for (int i = 0; i < r->profile.n_rows; i++)
        total += (r->profile.row[i].forward_seconds + r->profile.row[i].backward_seconds) / steps;
    mg_printf("  %-14s %12s %12s   of the step\n", "operation", "forward", "backward");
    for (int i = 0; i < r->profile.n_rows; i++) {
        const mg_profile_row *row = &r->profile.row[i];
        double forward = row->forward_seconds / steps, backward = row->backward_seconds / steps;
        printf("  %-14s %9.1f us %9.1f us   %5.1f%% + %5.1f%%\n", row->op->name, forward * 1e6, backward * 1e6,
               100 * forward / total, 100 * backward / total);
    }
    printf("  %-14s %9.1f us %12s   %5.1f%%\n", "optimizer", r->optimizer_seconds * 1e6, "",
           100 * r->optimizer_seconds / total);
}

static double share(const bench_phase *p, double peak) {
    return p->flops / p->seconds * 1e-9 / peak;
}

static void print_generation(const bench_result *r) {
    if (r->cached.name)
        mg_tell("    ",
                "  generating, with cache     %10.0f tokens/s, %.0f%% of the %.0f that reading the weights once per "
                "token allows",
                r->cached.tokens_per_second, 100 * r->cached.tokens_per_second / r->cached.bound, r->cached.bound);
    else
        mg_printf("  generating, with cache     %10s: the model looks ahead, so a cache would be wrong\n", "-");
    if (r->samples.name)
        mg_printf("  64 samples at once         %10.0f tokens/s, %.1f times one at a time\n",
                  r->samples.tokens_per_second, r->samples.tokens_per_second / r->cached.tokens_per_second);
    mg_printf("  generating, without        %10.0f tokens/s\n", r->uncached.tokens_per_second);
    mg_printf("  matrix-vector products read %.1f GB/s\n", r->gemv_gb_per_second);
}

static void print_result(const measured *m, const mg_gpt_config *c, int batch) {
    const bench_result *r = &m->result;
    char words[128];
    mg_model_words(c, words, sizeof words);
    mg_tell("    ", "%s%s: batch %d, %s, vocabulary %d; threads %d, %s", m->name, m->changed ? CHANGED : "", batch,
            words, c->vocab_size, mg_threads(), mg_blas_name());
    mg_printf("  training   %9.3f ms/step  %9.0f tokens/s  %6.1f GFLOP/s useful\n", r->train.seconds * 1e3,
              r->train.tokens_per_second, r->train.flops / r->train.seconds * 1e-9);
    mg_printf("  sgemm peak %6.1f GFLOP/s in this run: training reaches %.1f%% of it\n", r->peak_gflops,
              100 * share(&r->train, r->peak_gflops));
    print_generation(r);
    print_bytes("parameters", r->parameter_bytes);
    print_bytes("optimizer", r->optimizer_bytes);
    print_bytes("activations", r->activation_bytes);
    print_operations(r);
    putchar('\n');
    fflush(stdout);
    if (share(&r->train, r->peak_gflops) > 1)
        mg_say("bench", "training was faster than the best matrix product measured beside it: the machine was too busy "
                        "for the percentage to mean anything");
}

/* ---- CSV ---- */

static void write_row(FILE *csv, const measured *m, const bench_phase *p) {
    if (!p->name) return; /* not measured */
    double peak = m->result.peak_gflops;
    mg_csv_write_cell(csv, m->name);
    fprintf(csv, "%s,%d,%s,%.6g,%.6g,%.6g,%.6g,%.4f\n", m->changed ? CHANGED : "", mg_threads(), p->name,
            p->seconds * 1e3, p->tokens_per_second, p->flops / p->seconds * 1e-9, peak, share(p, peak));
}

static mg_status write_csv(const char *path, const measured *m, int n, mg_error *error) {
    mg_atomic_text file;
    mg_status status = mg_atomic_text_begin(&file, path, error);
    if (status) return status;
    fputs("config,threads,phase,ms_per_step,tokens_per_s,gflops,peak_gflops,share\n", file.out);
    for (int i = 0; i < n; i++) {
        write_row(file.out, &m[i], &m[i].result.train);
        write_row(file.out, &m[i], &m[i].result.cached);
        write_row(file.out, &m[i], &m[i].result.samples);
        write_row(file.out, &m[i], &m[i].result.uncached);
    }
    return mg_atomic_text_end(&file, error);
}

/* A path that cannot be written is reported before the work, not after it. */
static mg_status check_csv(const char *path, mg_error *error) {
    mg_atomic_file probe;
    mg_status status = mg_atomic_file_begin(&probe, path, error);
    mg_atomic_file_abandon(&probe);
    return status;
}

/* ---- Running ---- */

static const mg_command_line line = {
    .name = "bench",
    .stray = "a checkpoint is given as --checkpoint FILE",
    .doc = "Time training and generation, and compare them with matrix products on this machine in the same run."};

/* NULL: as maskgrad train's model. */
static mg_run_options defaults_of(const named_config *n) {
    mg_run_options options = mg_run_defaults();
    mg_gpt_config *model = &options.train.model;
    model->vocab_size = 65;
    if (!n) return options;
    options.train.batch_size = n->batch;
    model->block_size = n->context;
    model->n_layer = n->layers;
    model->n_head = n->heads;
    model->n_embd = n->width;
    model->vocab_size = n->vocabulary;
    return options;
}

static void flag_tables(mg_flag_table *tables, bench_options *own, mg_run_options *options) {
    tables[0] = (mg_flag_table){bench_flags, own};
    tables[1] = (mg_flag_table){NULL, NULL};
    mg_flag_tables_add(tables, shape_settings, options);
    mg_flag_tables_add(tables, other_settings, options);
}

/* The flag whose value differs; NULL: none. */
static const mg_setting *difference(const mg_run_options *a, const mg_run_options *b) {
    for (const mg_settings *table = shape_settings; table->rows; table++)
        for (const mg_setting *flag = table->rows; !mg_setting_is_end(flag); flag++)
            if (flag->kind != MG_SETTING_HEADING &&
                !mg_setting_equal(flag, (const char *)a + table->base, (const char *)b + table->base))
                return flag;
    return NULL;
}

static mg_status run_one(const mg_run_options *options, int steps, measured *m, mg_error *error) {
    const mg_gpt_config *model = &options->train.model; /* its documents end with token 0 */
    mg_status status = bench_run(model, options->train.batch_size, steps, &m->result, error);
    if (!status) print_result(m, model, options->train.batch_size);
    return status;
}

/* What was given changes each size's own defaults. */
static mg_status run_named(const mg_given *given, const char *name, int steps, measured *m, int *n, mg_error *error) {
    mg_status status = MG_OK;
    for (int i = 0; i < N_CONFIGS && !status; i++) {
        bool is_asked = strcmp(name, "all") == 0 ? i < N_ALL : strcmp(name, configs[i].name) == 0;
        if (!is_asked) continue;
        mg_run_options plain = defaults_of(&configs[i]), options = plain;
        mg_flag_table tables[MG_MAX_FLAG_TABLES] = {{NULL, NULL}};
        mg_flag_tables_add(tables, shape_settings, &options);
        mg_given_apply(given, tables);
        m[*n] = (measured){.name = configs[i].name, .changed = difference(&plain, &options) != NULL};
        status = run_one(&options, steps, &m[(*n)++], error);
    }
    if (*n > 0) return status;
    return mg_error_set(error, MG_ERR_INPUT, "--config is toy, char, baby, all or gpt2, not '%s'", name);
}

static mg_status run_checkpoint(const char *asked, measured *m, mg_error *error) {
    char path[4096];
    mg_checkpoint_path(asked, path, sizeof path);
    mg_checkpoint checkpoint;
    mg_status status = mg_checkpoint_load(&checkpoint, path, false, error);
    if (status) return status;
    *m = (measured){.name = asked};
    status = bench_peak(&m->result, error);
    if (!status) status = bench_generation(checkpoint.gpt, &m->result, error);
    if (!status) {
        mg_tell("    ", "%s; threads %d, %s", path, mg_threads(), mg_blas_name());
        print_generation(&m->result);
    }
    mg_checkpoint_free(&checkpoint);
    return status;
}

static int run_command(int argc, char **argv) {
    bench_options own = {0};
    mg_run_options plain = defaults_of(NULL), options = plain;
    mg_flag_table tables[MG_MAX_FLAG_TABLES];
    mg_given given;
    flag_tables(tables, &own, &options);
    mg_flags_parse(&line, tables, argc, argv, NULL, &given);
    const mg_setting *shape = difference(&plain, &options);
    if (own.checkpoint && (own.config || shape))
        mg_usage_error(&line, "--checkpoint has its own model: leave out --%s", own.config ? "config" : shape->name);
    if (own.checkpoint && own.steps)
        mg_usage_error(&line, "--checkpoint only measures generation: leave out --steps, the training steps");
    mg_refuse_empty(&line, "csv", "file", own.csv);
    mg_warn_idle(&line, &given, "init-std attn-init-std", "what is measured does not depend on the weights");
    mg_set_threads(options.threads);

    measured m[N_CONFIGS];
    int n = 0;
    mg_error error;
    mg_status status = own.csv ? check_csv(own.csv, &error) : MG_OK;
    if (!status && own.config) {
        status = run_named(&given, own.config, own.steps, m, &n, &error);
    } else if (!status) {
        m[n++] = (measured){.name = "custom"};
        status = own.checkpoint ? run_checkpoint(own.checkpoint, m, &error) : run_one(&options, own.steps, m, &error);
    }
    if (!status && own.csv) status = write_csv(own.csv, m, n, &error);
    return mg_command_end(&line, status, &error);
}

const mg_command mg_bench_command = {"bench", N_("Time training and generation, beside the best this machine can do"),
                                     run_command};
