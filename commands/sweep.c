/* The command `sweep`: a grid of runs, carried out here or written as a list of commands. */
#include "sweep.h"
#include "commands.h"
#include "estimate.h"
#include "flags.h"
#include "heap.h"
#include "interrupt.h"
#include "printable.h"
#include "say.h"
#include "startup.h"
#include "sweep_output.h"
#include "threads.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const mg_command_line line = {
    .name = "sweep",
    .arguments = "-- FLAGS OF TRAIN",
    .stray = "values are given as --set FLAG=A,B, and data as -- --data FILE",
    .doc =
        "Train a grid of runs: every combination of the values of --set, --zip, --grid and --seeds. What follows -- is "
        "the same for all runs.\v"
        "A sweep that was stopped or killed continues when the same command is given again: what is finished stays as "
        "it is, and no step is done twice but those after a run's last checkpoint. Ctrl-C saves all runs (status "
        "130).\n\n"
        "  maskgrad sweep --set mask=causal,none --seeds 1..5 -- --data FILE\n"
        "  maskgrad sweep --zip n-layer=2,4 --zip n-embd=64,128 -- --data FILE",
};

typedef struct sweep_options {
    mg_sweep_grid grid;
    const char *out_dir;
    int jobs; /* 0: one per processor */
    bool plan, retry;
} sweep_options;

/* ---- Flags ---- */

static mg_status parse_set(const char *text, void *grid, mg_error *error) {
    return mg_sweep_grid_add(grid, text, false, error);
}

static mg_status parse_zip(const char *text, void *grid, mg_error *error) {
    return mg_sweep_grid_add(grid, text, true, error);
}

static mg_status parse_seeds(const char *text, void *grid, mg_error *error) {
    return mg_sweep_grid_add_seeds(grid, text, error);
}

static mg_status parse_file(const char *text, void *grid, mg_error *error) {
    return mg_sweep_grid_add_file(grid, text, error);
}

static void format_nothing(const void *grid, char *text, size_t size) {
    (void)grid;
    snprintf(text, size, "%s", "");
}

/* clang-format off */
#define ROWS_OF sweep_options
#include "flag_rows.h"
static const mg_setting flags[] = {
    {.kind = MG_SETTING_HEADING, .help = "Runs:"},
    {.name = "set", CUSTOM(grid, parse_set, format_nothing, "FLAG=A,B,..."),
     .help = "Values of a flag of train; several --set are crossed. A switch takes true,false"},
    {.name = "zip", CUSTOM(grid, parse_zip, format_nothing, "FLAG=A,B,..."),
     .help = "Values that are walked together with those of the other --zip, which are as many"},
    {.name = "grid", CUSTOM(grid, parse_file, format_nothing, "FILE"),
     .help = "A CSV whose header names flags, or a JSON list of objects: each row is crossed with the rest"},
    {.name = "seeds", CUSTOM(grid, parse_seeds, format_nothing, "1..N"), .help = "Seeds: ranges and numbers, as in 1..10 or 1,2,7"},
    {.name = "out-dir", .also = "o out", TEXT(out_dir, "DIR"), .help = "Folder of the run folders"},
    {.kind = MG_SETTING_HEADING, .help = "How:"},
    {.name = "jobs", .also = "j", COUNT(jobs, 0, 1024),
     .help = "Runs at a time, which share the processors (0: one per processor)"},
    {.name = "plan", ON(plan), .help = "Write DIR/jobs.txt, one command per line, and a template for Slurm, and train nothing"},
    {.name = "retry", ON(retry), .help = "Try runs again that failed before"},
    {0},
};
/* clang-format on */

/* The settings that all runs share. argp wants a name before them: the "--" gives its place. */
static mg_run_options parse_shared(const mg_sweep_grid *grid, int n, char **words, bool *threads_given) {
    mg_run_options options = mg_run_defaults();
    mg_flag_table tables[MG_MAX_FLAG_TABLES] = {{NULL, NULL}};
    mg_given given = {0};
    mg_flag_tables_add(tables, mg_run_settings, &options);
    if (n > 0) mg_flags_parse(&line, tables, n + 1, words - 1, NULL, &given);
    for (int i = 0; i < given.n; i++) {
        const char *name = given.flag[i].flag->name;
        mg_sweep_choice choice;
        mg_error error;
        if (mg_sweep_find(name, strlen(name), &choice, &error) != MG_OK) mg_usage_error(&line, "%s", error.message);
        const mg_setting *swept = mg_sweep_grid_finds(grid, choice.setting, choice.base);
        if (swept)
            mg_usage_error(&line, "--%s is swept, and --%s after -- sets it for all runs: give one", swept->name, name);
    }
    *threads_given = mg_given_any(&given, "threads") != NULL;
    return options;
}

static bool sweeps(const mg_sweep_grid *grid, const char *name) {
    mg_sweep_choice choice;
    return mg_sweep_find(name, strlen(name), &choice, NULL) == MG_OK &&
           mg_sweep_grid_finds(grid, choice.setting, choice.base) != NULL;
}

static void check_asked(const sweep_options *own, const mg_run_options *shared) {
    if (own->grid.n_axes == 0) mg_usage_error(&line, "nothing is varied: give --set, --zip, --grid or --seeds");
    mg_refuse_empty(&line, "out-dir", "folder", own->out_dir);
    if (!shared->data.path && !sweeps(&own->grid, "data"))
        mg_usage_error(&line, "--data FILE is missing after --: a text, a CSV or a grammar to train on");
}

static bool is_own(const char *name, size_t length) {
    for (const mg_setting *flag = flags; !mg_setting_is_end(flag); flag++)
        if (flag->name && strncmp(flag->name, name, length) == 0) return true;
    return false;
}

/* A flag of train before the "--". */
static void refuse_misplaced(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        mg_sweep_choice choice;
        size_t length = strcspn(argv[i], "=");
        if (strncmp(argv[i], "--", 2) != 0 || is_own(argv[i] + 2, length - 2)) continue;
        if (mg_sweep_find(argv[i], length, &choice, NULL) == MG_OK)
            mg_usage_error(&line, "--%s is a flag of train, and those follow --, as in: maskgrad sweep ... -- --%s",
                           choice.setting->name, choice.setting->name);
    }
}

/* ---- Work ---- */

/* How many at a time, and how many threads they share. */
static mg_sweep_how how_to(const sweep_options *own, const mg_sweep_plan *plan, bool threads_given) {
    mg_sweep_how how = {.jobs = own->jobs > 0 ? own->jobs : mg_threads(), .retry = own->retry};
    if (how.jobs > plan->n) how.jobs = plan->n;
    if (!threads_given) how.threads = mg_threads();
    return how;
}

static mg_status write_jobs(const mg_sweep_plan *plan, const sweep_options *own, const mg_sweep_how *how,
                            mg_error *error) {
    /* Who runs the list decides how many at a time: one thread each, unless --jobs says how many share a machine. */
    int threads = how->threads == 0 ? 0 : own->jobs > 0 ? mg_sweep_threads(how, how->jobs - 1) : 1;
    mg_status status = mg_sweep_write_jobs(plan, threads, error);
    if (status == MG_OK) mg_sweep_tell_jobs(plan);
    return status;
}

static mg_status carry_out(const mg_sweep_plan *plan, const mg_sweep_how *how, int *exit_status, mg_error *error) {
    mg_sweep_end *end = mg_alloc_zero((size_t)plan->n, sizeof *end, "a sweep", error);
    if (!end) return MG_ERR_MEMORY;
    mg_live_line live = mg_live_line_begin();
    mg_sweep_watch watch = mg_sweep_show(&live);
    watch.stop = mg_interrupt_stop();
    mg_interrupt_watch("asking the runs to finish their step and to save");
    mg_status status = mg_sweep_run(plan, how, &watch, end, error);
    mg_live_line_clear(&live);
    bool stopped = status == MG_ERR_STOPPED;
    if (status == MG_OK || stopped) *exit_status = mg_sweep_tell_end(plan, end, stopped);
    mg_free(end);
    return stopped ? MG_OK : status;
}

static mg_status sweep(const sweep_options *own, mg_sweep_plan *plan, bool threads_given, int *exit_status,
                       mg_error *error) {
    const double budget = 2; /* seconds for the estimate */
    const mg_stop stop = mg_interrupt_stop();
    mg_sweep_estimate estimate;
    mg_status status = mg_sweep_plan_make(plan, error);
    if (status != MG_OK) return status;
    mg_sweep_how how = how_to(own, plan, threads_given);
    status = mg_sweep_estimate_all(&estimate, plan, mg_sweep_threads(&how, 0), budget, &stop, error);
    if (status == MG_OK && estimate.impossible == plan->n)
        status = mg_error_set(error, MG_ERR_INPUT, "none of these runs can begin: %s", estimate.why);
    if (status != MG_OK) return status;
    mg_sweep_tell_plan(plan, &how, &estimate);
    return own->plan ? write_jobs(plan, own, &how, error) : carry_out(plan, &how, exit_status, error);
}

/* The program itself, which runs in the children too. */
static mg_status find_program(char *path, size_t size, mg_error *error) {
    mg_program_path(path, size);
    if (path[0]) return MG_OK;
    return mg_error_set(error, MG_ERR_IO, "cannot tell where maskgrad itself is: %s", strerror(errno));
}

static int run_command(int argc, char **argv) {
    mg_error error = {MG_OK, ""};
    char program[4096], **words;
    bool threads_given = false;
    int exit_status = 0, n_words = mg_flags_cut(&argc, argv, &words);
    sweep_options own = {.out_dir = "runs/sweep"};
    mg_status status = mg_sweep_grid_new(&own.grid, &error);
    if (status == MG_OK) status = find_program(program, sizeof program, &error);
    if (status != MG_OK) return mg_command_end(&line, status, &error);
    const mg_flag_table tables[] = {{flags, &own}, {NULL, NULL}};
    refuse_misplaced(argc, argv);
    mg_flags_parse(&line, tables, argc, argv, NULL, NULL);
    mg_run_options shared = parse_shared(&own.grid, n_words, words, &threads_given);
    check_asked(&own, &shared);
    threads_given = threads_given || sweeps(&own.grid, "threads");
    mg_sweep_plan plan = {.grid = &own.grid,
                          .base = shared,
                          .n_words = n_words,
                          .words = words,
                          .program = program,
                          .out_dir = own.out_dir};
    status = sweep(&own, &plan, threads_given, &exit_status, &error);
    mg_sweep_plan_free(&plan);
    mg_sweep_grid_free(&own.grid);
    return status == MG_OK ? exit_status : mg_command_end(&line, status, &error);
}

const mg_command mg_sweep_command = {"sweep", N_("Train a grid of runs and seeds, here or as a list of commands"),
                                     run_command};
