/* maskgrad audit: does somebody's model read its labels? Any program over a pipe, or a checkpoint of ours. */
#include "atomic_file.h"
#include "audit_protocol.h"
#include "audit_report.h"
#include "checkpoint.h"
#include "clock.h"
#include "commands.h"
#include "flags.h"
#include "heap.h"
#include "ids.h"
#include "interrupt.h"
#include "lab.h"
#include "language.h"
#include "parallel.h"
#include "printable.h"
#include "progress.h"
#include "run_dir.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct audit_options {
    const char *ids, *json, *out_dir;
    int length, full, cuts, sequences, values, threads;
    int64_t seed;
    double timeout;
    bool stdio;
} audit_options;

#define ROWS_OF audit_options
#include "flag_rows.h"

/* clang-format off */
static const mg_setting flags[] = {
    {.name = "ids", TEXT(ids, "1,2,3"), .help = "A sequence of your own to test beside the random ones"},
    {.name = "length", COUNT(length, 2, 1 << 20), .help = "Tokens per sequence [the model's context]"},
    {.name = "full", COUNT(full, 1, 4096), .help = "Try every pair of positions up to this length"},
    {.name = "cuts", COUNT(cuts, 1, 1 << 20), .help = "Above --full, cut each sequence at this many places or more"},
    {.name = "sequences", COUNT(sequences, 1, 1000), .help = "Random sequences"},
    {.name = "values", COUNT(values, 1, 4096), .help = "Other values of each token to try [all if that is quick, else 4]"},
    {.name = "timeout", REAL(timeout, 0.1, 1e6), .help = "Seconds that the program may take for one answer"},
    {.name = "json", TEXT(json, "FILE"), .help = "Write the verdicts as JSON; '-': to standard output, without the table"},
    {.name = "out-dir", TEXT(out_dir, "DIR"), .help = "Folder for report.html, its pictures and their numbers"},
    {.name = "stdio", ON(stdio), .help = "Talk to the model over standard input and output, as adapters/maskgrad_audit.py does"},
    SEED_FLAG(seed, "Seed of the sequences"),
    THREADS_FLAG(threads),
    {0},
};
/* clang-format on */

static const mg_command_line line = {
    .name = "audit",
    .arguments = "{CHECKPOINT | -- PROGRAM [ARG...]}",
    .max_arguments = 1,
    .stray = "a program is given as -- PROGRAM ARG...",
    .doc =
        "Ask a model whether it reads its labels, in nine probes: is it a function, do rows see each other, does a "
        "later token move an earlier prediction, does anything flow at all, and are prefixes, pads, the cache, the "
        "targets and packed documents right?\n\nPROGRAM speaks the protocol of docs/audit.md over its standard input "
        "and output; adapters/maskgrad_audit.py makes three lines of Python such a program. The exit status is 0 if "
        "every probe that applies passes, 1 if something fails or the audit could not be done, 3 if something is "
        "inconclusive.",
};

enum { INCONCLUSIVE = 3, INTERRUPTED = 130 };

/* ---- What is audited ---- */

typedef struct subject {
    const char *name;
    mg_audit_model model;
    audit_pipe pipe;
    mg_checkpoint checkpoint;
    mg_audit_gpt *gpt;
} subject;

static mg_status open_checkpoint(subject *s, const char *asked, mg_error *error) {
    char path[4096];
    mg_checkpoint_path(asked, path, sizeof path);
    mg_status status = mg_checkpoint_load(&s->checkpoint, path, false, error);
    return status ? status : mg_audit_gpt_new(&s->gpt, &s->model, s->checkpoint.gpt, error);
}

static mg_status open_program(subject *s, const audit_options *options, char *const *program, mg_error *error) {
    s->pipe.timeout = options->timeout;
    s->pipe.stopped = mg_interrupt_asked;
    mg_status status = MG_OK;
    if (program)
        status = audit_pipe_start(&s->pipe, program, error);
    else
        audit_pipe_stdio(&s->pipe);
    return status ? status : audit_protocol_greet(&s->pipe, &s->model, error);
}

static void close_subject(subject *s, bool kindly) {
    if (!s->gpt) audit_pipe_close(&s->pipe, kindly);
    mg_audit_gpt_free(s->gpt);
    mg_checkpoint_free(&s->checkpoint);
}

/* ---- While it runs ---- */

typedef struct watch {
    mg_progress progress;
    double asked; /* when the last call was made */
    const mg_audit *audit;
    bool silent;
} watch;

/* How long it will take is estimated from the second call, which is like the first: that one may have loaded something.
 */
static bool show_progress(void *user, mg_audit_probe probe, long calls, long planned) {
    watch *w = user;
    double now = mg_seconds();
    if (!w->silent && calls == 2) {
        mg_progress_clear(&w->progress);
        double seconds = (now - w->asked) * 2 * (double)w->audit->planned_tokens / (double)w->audit->asked;
        mg_fprintf(stderr, "at most %s of the model; at this pace about %.0f s, if nothing fails\n",
                   mg_count(planned, "call").text, ceil(seconds));
        w->progress = mg_progress_begin(0, planned, 1);
    }
    if (!w->silent && calls > 2 && w->progress.line.live)
        mg_progress_say(&w->progress, calls, mg_audit_probe_name(probe));
    w->asked = now;
    return !mg_interrupt_asked();
}

/* A test spoils one probe and sees what it is for. */
static unsigned broken_probes(void) {
    unsigned skip = 0;
    for (mg_audit_probe p = 0; p < MG_AUDIT_N_PROBES; p++) {
        char name[32];
        snprintf(name, sizeof name, "audit.%s", mg_audit_probe_name(p));
        if (lab_broken(name)) skip |= 1u << p;
    }
    return skip;
}

static mg_status run(const subject *s, const audit_options *asked, mg_audit *audit, mg_error *error) {
    watch w = {.silent = asked->stdio, .audit = audit};
    mg_audit_options options = {.seed = (uint64_t)asked->seed,
                                .length = asked->length,
                                .full = asked->full,
                                .cuts = asked->cuts,
                                .sequences = asked->sequences,
                                .values = asked->values,
                                .skip = broken_probes(),
                                .progress = show_progress,
                                .user = &w};
    mg_audit_model model = s->model;
    if (lab_broken("audit.training")) model.can_train = false;
    int *ids = NULL;
    size_t n = 0;
    mg_status status = MG_OK;
    if (asked->ids) status = mg_ids_parse(asked->ids, s->model.vocab, &ids, &n, error);
    options.ids = ids;
    options.n_ids = n < 1 << 24 ? (int)n : 1 << 24;
    if (!status) status = mg_audit_run(audit, &model, &options, error);
    mg_progress_clear(&w.progress);
    mg_free(ids);
    return status;
}

/* ---- What comes out ---- */

static mg_status write_json(const char *path, const char *json, mg_error *error) {
    if (strcmp(path, "-") == 0) {
        puts(json);
        return MG_OK;
    }
    mg_atomic_text file;
    mg_status status = mg_atomic_text_begin(&file, path, error);
    if (status) return status;
    fprintf(file.out, "%s\n", json);
    return mg_atomic_text_end(&file, error);
}

static mg_status check_file(const char *path, mg_error *error) {
    mg_atomic_text file;
    mg_status status = mg_atomic_text_begin(&file, path, error);
    if (!status) mg_atomic_text_abandon(&file);
    return status;
}

/* Before the audit, so that none is lost for a name that cannot be written to. */
static mg_status check_results(const audit_options *options, mg_error *error) {
    mg_status status = MG_OK;
    if (options->out_dir) {
        char page[4096];
        status = mg_make_folders(options->out_dir, NULL, error);
        snprintf(page, sizeof page, "%s/report.html", options->out_dir);
        if (!status) status = check_file(page, error);
    }
    if (!status && options->json && strcmp(options->json, "-") != 0) status = check_file(options->json, error);
    return status;
}

static mg_status write_results(subject *s, const audit_options *options, const char *command, const audit_about *about,
                               const mg_audit *audit, mg_error *error) {
    char *json = audit_report_json(about, audit);
    if (!json) return mg_error_set(error, MG_ERR_MEMORY, "out of memory for the JSON");
    mg_status status = MG_OK;
    bool table = !options->stdio && !(options->json && strcmp(options->json, "-") == 0);
    if (table) audit_report_print(stdout, about, audit);
    if (options->json) status = write_json(options->json, json, error);
    if (!status && options->out_dir) status = audit_report_html(options->out_dir, command, about, audit, error);
    if (!status && options->out_dir && table)
        mg_printf("  The report is %s/report.html\n", mg_shown(options->out_dir).text);
    if (!status && !s->gpt) status = audit_protocol_end(&s->pipe, json, error);
    free(json);
    return status;
}

static int exit_status_of(const mg_audit *audit) {
    switch (mg_audit_overall(audit)) {
    case MG_AUDIT_PASS: return 0;
    case MG_AUDIT_INCONCLUSIVE: return INCONCLUSIVE;
    default: return 1;
    }
}

static int audit_subject(subject *s, const audit_options *options, const char *command) {
    mg_audit audit = {0};
    mg_error error;
    double begun = mg_seconds();
    mg_status status = run(s, options, &audit, &error);
    audit_about about = {s->name,        s->model.vocab,          s->model.context,
                         s->model.dtype, (uint64_t)options->seed, mg_seconds() - begun};
    if (!status) status = write_results(s, options, command, &about, &audit, &error);
    int result = exit_status_of(&audit);
    /* What was seen before it broke is worth showing. */
    if (status && audit.calls > 0 && !options->stdio && !options->json) audit_report_print(stdout, &about, &audit);
    if (status) {
        fflush(stdout);
        result = mg_interrupt_asked() ? INTERRUPTED : mg_command_end(&line, status, &error);
    }
    mg_audit_free(&audit);
    return result;
}

/* ---- The command ---- */

static char *joined(int n, char *const *words) {
    size_t size = 1;
    for (int i = 0; i < n; i++) size += strlen(words[i]) + 1;
    mg_error error;
    char *text = mg_alloc(size, 1, "the command", &error);
    if (!text) mg_fail(MG_FAILURE_MEMORY, __FILE__, __LINE__, "%s", error.message);
    text[0] = 0;
    for (int i = 0; i < n; i++) {
        if (i > 0) strcat(text, " ");
        strcat(text, words[i]);
    }
    return text;
}

static void check_usage(const audit_options *options, bool dashes, int n_program, int n_arguments) {
    if (dashes && n_program == 0) mg_usage_error(&line, "missing argument: a program after --");
    if ((options->stdio ? 1 : 0) + (n_program > 0) + n_arguments > 1)
        mg_usage_error(&line, "one model at a time: a CHECKPOINT, a program after --, or --stdio");
    if (!options->stdio && !dashes && n_arguments == 0)
        mg_usage_error(&line, "missing argument: a CHECKPOINT, or a program after --");
    if (options->stdio && options->json && strcmp(options->json, "-") == 0)
        mg_usage_error(&line, "--json - and --stdio both want the standard output");
    mg_refuse_empty(&line, "out-dir", "folder", options->out_dir);
    mg_refuse_empty(&line, "json", "file", options->json);
}

static int run_command(int argc, char **argv) {
    char **program;
    int own = argc, n_program = mg_flags_cut(&own, argv, &program);
    audit_options options = {.seed = 1337, .full = 64, .cuts = 40, .sequences = 2, .timeout = 120};
    const mg_flag_table tables[] = {{flags, &options}, {NULL, NULL}};
    const char *checkpoint = NULL;
    int n_arguments = mg_flags_parse(&line, tables, own, argv, &checkpoint, NULL);
    check_usage(&options, program != NULL, n_program, n_arguments);
    mg_set_threads(options.threads);
    mg_interrupt_watch("stopping");

    char *command = joined(argc, argv), *name = joined(n_program, program);
    subject s = {.name = checkpoint      ? checkpoint
                         : options.stdio ? "a model on standard input"
                                         : name,
                 .pipe = {.to = -1, .from = -1}};
    mg_error error;
    mg_status status = check_results(&options, &error);
    if (!status)
        status = checkpoint ? open_checkpoint(&s, checkpoint, &error) : open_program(&s, &options, program, &error);
    int result = 0;
    if (!status) result = audit_subject(&s, &options, command);
    if (status) result = mg_interrupt_asked() ? INTERRUPTED : mg_command_end(&line, status, &error);
    close_subject(&s, status == MG_OK && result != INTERRUPTED);
    mg_free(command);
    mg_free(name);
    return result;
}

const mg_command mg_audit_command = {"audit", N_("Does somebody's model read its labels?"), run_command};
