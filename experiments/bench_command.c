/* maskgrad bench: how fast this build is on this machine, beside what the machine could do. */
#include "bench.h"
#include "checkpoint.h"
#include "experiment_commands.h"
#include "gemm.h"
#include "options.h"
#include "parallel.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct bench_options {
    const char *config, *csv, *checkpoint;
    int steps;
} bench_options;

static const mg_flag bench_flags[] = {
    {.name = "config",
     .kind = MG_FLAG_TEXT,
     .offset = offsetof(bench_options, config),
     .argument = "NAME",
     .help = "toy, char, baby or all; without it, the model that the other flags describe"},
    {.name = "checkpoint",
     .kind = MG_FLAG_TEXT,
     .offset = offsetof(bench_options, checkpoint),
     .argument = "FILE",
     .help = "Generate with this model; nothing is trained"},
    {.name = "steps",
     .kind = MG_FLAG_INT,
     .offset = offsetof(bench_options, steps),
     .min = 0,
     .max = 2000,
     .argument = "N",
     .help = "Training steps to measure; 0 takes as many as fill three seconds"},
    {.name = "csv",
     .kind = MG_FLAG_TEXT,
     .offset = offsetof(bench_options, csv),
     .argument = "FILE",
     .help = "Write the numbers there too"},
    {0},
};

static const mg_flag bench_vocabulary[] = {
    {.name = "vocab-size",
     .kind = MG_FLAG_INT,
     .offset = offsetof(mg_run_options, train.model.vocab_size),
     .min = 1,
     .max = 1 << 24,
     .argument = "N",
     .help = "Tokens of the vocabulary (default 65)"},
    {0},
};

/* The three sizes that this project's speed is told by; scripts/bench-vs-torch.sh runs the same in PyTorch. */
typedef struct named_config {
    const char *name;
    int batch, context, layers, heads, width, vocabulary;
} named_config;

static const named_config configs[] = {
    {"toy", 16, 32, 2, 4, 64, 28},
    {"char", 12, 64, 4, 4, 128, 65},
    {"baby", 4, 256, 6, 6, 384, 65},
};
enum { N_CONFIGS = sizeof configs / sizeof configs[0] };

/* ---- Printing ---- */

static void print_bytes(const char *what, size_t bytes) {
    printf("  %-12s %10.2f MB\n", what, (double)bytes * 1e-6);
}

static void print_operations(const bench_result *r) {
    double total = r->optimiser_seconds, steps = r->profile_steps;
    for (int i = 0; i < r->profile.n_rows; i++)
        total += (r->profile.row[i].forward_seconds + r->profile.row[i].backward_seconds) / steps;
    printf("  %-14s %12s %12s   of the step\n", "operation", "forward", "backward");
    for (int i = 0; i < r->profile.n_rows; i++) {
        const mg_profile_row *row = &r->profile.row[i];
        double forward = row->forward_seconds / steps, backward = row->backward_seconds / steps;
        printf("  %-14s %9.1f us %9.1f us   %5.1f%% + %5.1f%%\n", row->op->name, forward * 1e6, backward * 1e6,
               100 * forward / total, 100 * backward / total);
    }
    printf("  %-14s %9.1f us %12s   %5.1f%%\n", "optimiser", r->optimiser_seconds * 1e6, "",
           100 * r->optimiser_seconds / total);
}

static double share(const bench_phase *p, double peak) {
    return p->flops / p->seconds * 1e-9 / peak;
}

static void print_generation(const bench_result *r) {
    printf("  generating, with cache     %10.0f tokens/s, %.0f%% of the %.0f that reading the weights once a token "
           "allows\n",
           r->cached.tokens_per_second, 100 * r->cached.tokens_per_second / r->cached.bound, r->cached.bound);
    printf("  generating, without        %10.0f tokens/s\n", r->uncached.tokens_per_second);
    printf("  matrix-vector products read %.1f GB/s\n", r->gemv_gb_per_second);
}

static void print_result(const char *name, const mg_gpt_config *c, int batch, const bench_result *r) {
    printf("%s: batch %d, context %d, %d layers, %d heads, width %d, vocabulary %d; threads %d, %s\n", name, batch,
           c->block_size, c->n_layer, c->n_head, c->n_embd, c->vocab_size, mg_threads(), mg_blas_name());
    printf("  training   %9.3f ms/step  %9.0f tokens/s  %6.1f GFLOP/s useful\n", r->train.seconds * 1e3,
           r->train.tokens_per_second, r->train.flops / r->train.seconds * 1e-9);
    printf("  sgemm peak %6.1f GFLOP/s in this run: training reaches %.1f%% of it\n", r->peak_gflops,
           100 * share(&r->train, r->peak_gflops));
    print_generation(r);
    print_bytes("parameters", r->parameter_bytes);
    print_bytes("optimiser", r->optimiser_bytes);
    print_bytes("activations", r->activation_bytes);
    print_operations(r);
    putchar('\n');
    fflush(stdout);
}

/* ---- CSV ---- */

static void write_row(FILE *csv, const char *name, const bench_phase *p, double peak) {
    fprintf(csv, "%s,%d,%s,%.6g,%.6g,%.6g,%.6g,%.4f\n", name, mg_threads(), p->name, p->seconds * 1e3,
            p->tokens_per_second, p->flops / p->seconds * 1e-9, peak, share(p, peak));
}

static void write_rows(FILE *csv, const char *name, const bench_result *r) {
    if (!csv) return;
    if (r->train.name) write_row(csv, name, &r->train, r->peak_gflops);
    write_row(csv, name, &r->cached, r->peak_gflops);
    write_row(csv, name, &r->uncached, r->peak_gflops);
}

/* ---- Running ---- */

static mg_status run_one(const char *name, const mg_gpt_config *config, int batch, int steps, FILE *csv,
                         mg_error *error) {
    bench_result r;
    mg_status status = bench_run(config, batch, steps, &r, error);
    if (status) return status;
    print_result(name, config, batch, &r);
    write_rows(csv, name, &r);
    return MG_OK;
}

static mg_status run_named(const char *name, int steps, FILE *csv, mg_error *error) {
    mg_status status = MG_OK;
    bool found = false;
    for (int i = 0; i < N_CONFIGS && !status; i++) {
        const named_config *n = &configs[i];
        if (strcmp(name, "all") != 0 && strcmp(name, n->name) != 0) continue;
        mg_gpt_config c = mg_gpt_defaults();
        c.block_size = n->context;
        c.n_layer = n->layers;
        c.n_head = n->heads;
        c.n_embd = n->width;
        c.vocab_size = n->vocabulary;
        status = run_one(n->name, &c, n->batch, steps, csv, error);
        found = true;
    }
    if (found) return status;
    return mg_error_set(error, MG_ERR_INPUT, "--config '%s' is not known; it is toy, char, baby or all", name);
}

static mg_status run_checkpoint(const char *path, FILE *csv, mg_error *error) {
    mg_checkpoint checkpoint;
    mg_status status = mg_checkpoint_load(path, false, &checkpoint, error);
    if (status) return status;
    bench_result r = {0};
    status = bench_peak(&r, error);
    if (!status) status = bench_generation(checkpoint.gpt, &r, error);
    if (!status) {
        printf("%s; threads %d, %s\n", path, mg_threads(), mg_blas_name());
        print_generation(&r);
        write_rows(csv, path, &r);
    }
    mg_checkpoint_free(&checkpoint);
    return status;
}

static int run(const bench_options *own, const mg_run_options *options, FILE *csv, mg_error *error) {
    if (own->checkpoint) return (int)run_checkpoint(own->checkpoint, csv, error);
    if (own->config) return (int)run_named(own->config, own->steps, csv, error);
    return (int)run_one("custom", &options->train.model, options->train.batch_size, own->steps, csv, error);
}

int mg_bench_command(int argc, char **argv) {
    static const mg_command_line line = {
        .name = "bench",
        .doc = "Time training and generation, beside this machine's own matrix products in the same run."};
    bench_options own = {0};
    mg_run_options options = mg_run_defaults();
    options.train.model.vocab_size = 65;
    const mg_flag_table tables[] = {{bench_flags, &own},
                                    {bench_vocabulary, &options},
                                    {mg_model_flags, &options},
                                    {mg_lesson_flags, &options},
                                    {mg_training_flags, &options},
                                    {mg_machine_flags, &options},
                                    {NULL, NULL}};
    mg_flags_parse(&line, tables, argc, argv, NULL);
    mg_set_threads(options.threads);
    mg_error error;
    FILE *csv = NULL;
    if (own.csv) {
        csv = fopen(own.csv, "w");
        if (!csv) {
            fprintf(stderr, "maskgrad bench: cannot write %s: %s\n", own.csv, strerror(errno));
            return 1;
        }
        fputs("config,threads,phase,ms_per_step,tokens_per_s,gflops,peak_gflops,share\n", csv);
    }
    int status = run(&own, &options, csv, &error);
    bool written = !csv || !ferror(csv);
    if (csv && fclose(csv) != 0) written = false;
    if (status == MG_OK && !written) {
        fprintf(stderr, "maskgrad bench: %s could not be written whole: %s\n", own.csv, strerror(errno));
        return 1;
    }
    if (status == MG_OK) return 0;
    fprintf(stderr, "maskgrad bench: %s\n", error.message);
    return status == MG_ERR_INPUT ? 2 : 1;
}
