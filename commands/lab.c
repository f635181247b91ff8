/* maskgrad lab: list the labs, run one, run all. */
#define _GNU_SOURCE /* program_invocation_name */
#include "columns.h"
#include "commands.h"
#include "flags.h"
#include "interrupt.h"
#include "lab_private.h"
#include "labs.h"
#include "language.h"
#include "parallel.h"
#include "printable.h"
#include "run_dir.h"
#include "say.h"
#include "startup.h"
#include "suggest.h"
#include "wrap.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_SEED = 1337 };

/* ---- Options ---- */

typedef struct frame_options {
    const char *out_dir, *data, *checkpoint, *prompt;
    int64_t seed;
    int threads;
    bool quick, pause;
} frame_options;

#define ROWS_OF frame_options
#include "flag_rows.h"
/* clang-format off */
static const struct {
    mg_setting flag;
    int takes; /* 0: every lab's */
} frame_flags[] = {
    {{.name = "out-dir", TEXT(out_dir, "DIR"),
      .help = "Folder for the report, the pictures and their numbers [runs/lab-NAME]"}, 0},
    {{.name = "seed", LONG_COUNT(seed, 0, MG_SEED_MAX), .help = "Seed of everything random"}, 0},
    {{.name = "quick", ON(quick), .help = "Give a rougher answer in a few seconds"}, 0},
    {{.name = "pause", ON(pause), .help = "Ask for your guesses before starting, one line of stdin per guess"}, 0},
    {THREADS_FLAG(threads), 0},
    {{.name = "data", TEXT(data, "FILE"), .help = "Text, CSV or grammar to train on"}, LAB_TAKES_DATA},
    {{.name = "checkpoint", TEXT(checkpoint, "FILE"), .help = "Trained model to examine"}, LAB_TAKES_CHECKPOINT},
    {{.name = "prompt", .also = "p", TEXT(prompt, "TEXT"), .help = "Text to start from"}, LAB_TAKES_PROMPT},
};
/* clang-format on */
enum { N_FRAME_FLAGS = sizeof frame_flags / sizeof *frame_flags };

/* The lab's own flag of this name, and the struct that its offset is about; NULL if it has none. */
static const mg_setting *own_flag(const lab_row *row, const char *name, void *own, void **values) {
    if (!row || !row->options) return NULL;
    for (const mg_settings *table = row->options->tables; table->rows; table++)
        for (const mg_setting *flag = table->rows; !mg_setting_is_end(flag); flag++)
            if (flag->name && strcmp(flag->name, name) == 0) {
                if (values) *values = (char *)own + table->base;
                return flag;
            }
    return NULL;
}

/* Where one of the lab's own tables has the frame's flag, the value is there: take it over. */
static void take_over(mg_lab *lab, const lab_row *row, void *own, frame_options *frame) {
    for (int i = 0; i < N_FRAME_FLAGS; i++) {
        void *values;
        const mg_setting *flag = own_flag(row, frame_flags[i].flag.name, own, &values);
        if (!flag) continue;
        char text[MG_SETTING_ROOM];
        mg_error error;
        mg_setting_format(flag, values, text, sizeof text);
        if ((flag->kind == MG_SETTING_TEXT || flag->kind == MG_SETTING_LIST) && !*text) continue; /* not given */
        MG_CHECK(mg_setting_set(&frame_flags[i].flag, frame, lab_format(lab, "%s", text), &error) == MG_OK, "%s",
                 error.message);
    }
}

/* row NULL: the options that every lab shares. Fills frame, and own (of row's options) if there is any. */
static void parse(const lab_row *row, const mg_command_line *line, int argc, char **argv, frame_options *frame,
                  void *own, const char **arguments, mg_given *given) {
    mg_setting kept[N_FRAME_FLAGS + 1] = {0};
    int n = 0;
    for (int i = 0; i < N_FRAME_FLAGS; i++) {
        int takes = frame_flags[i].takes;
        bool wanted = takes == 0 || !row || (row->takes & takes);
        if (wanted && !own_flag(row, frame_flags[i].flag.name, own, NULL)) kept[n++] = frame_flags[i].flag;
    }
    mg_flag_table tables[MG_MAX_FLAG_TABLES] = {{kept, frame}};
    if (row && row->options) mg_flag_tables_add(tables, row->options->tables, own);
    mg_flags_parse(line, tables, argc, argv, arguments, given);
}

/* ---- The command, as it can be typed again ---- */

static bool is_plain(const char *word) {
    return *word &&
           word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%")] == '\0';
}

static const char *shell_word(mg_lab *lab, const char *word) {
    if (is_plain(word)) return word;
    const char *text = "'";
    for (const char *c = word; *c; c++)
        text = *c == '\'' ? lab_format(lab, "%s'\\''", text) : lab_format(lab, "%s%c", text, *c);
    return lab_format(lab, "%s'", text);
}

static const char *command_text(mg_lab *lab, const char *name, int argc, char **argv) {
    const char *broken = getenv("MASKGRAD_BREAK");
    const char *text = broken ? lab_format(lab, "MASKGRAD_BREAK=%s ", shell_word(lab, broken)) : "";
    text = lab_format(lab, "%s%s lab %s", text, shell_word(lab, program_invocation_name), name);
    for (int i = 1; i < argc; i++) text = lab_format(lab, "%s %s", text, shell_word(lab, argv[i]));
    return text;
}

/* ---- Running ---- */

/* The shipped grammars: beside the program where it is installed, else in the source tree that it was built from. */
static const char *data_folder(mg_lab *lab) {
    char prefix[4096];
    mg_program_folder(1, prefix, sizeof prefix);
    const char *installed = lab_format(lab, "%s/" MASKGRAD_DATA_DIR, prefix);
    return access(installed, R_OK) == 0 ? installed : MASKGRAD_SOURCE_DATA_DIR;
}

/* Byte by byte: what follows the line belongs to the next question, or to the next lab of `lab all`. A signal ends the
 * wait, since poll is not restarted. */
static bool read_line(char *line, size_t room) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    size_t n = 0;
    bool any = false;
    for (char c = 0; c != '\n' && poll(&input, 1, -1) == 1 && read(STDIN_FILENO, &c, 1) == 1; any = true)
        if (c != '\n' && n + 1 < room) line[n++] = c;
    line[n] = '\0';
    if (any && !isatty(STDIN_FILENO)) printf("%s\n", mg_shown(line).text); /* where no terminal shows it */
    return any;
}

static void set_up(mg_lab *lab, const frame_options *asked, const char *out_dir, void *own) {
    lab->settings = (lab_settings){.out_dir = out_dir,
                                   .seed = (uint64_t)asked->seed,
                                   .quick = asked->quick,
                                   .data = asked->data,
                                   .checkpoint = asked->checkpoint,
                                   .prompt = asked->prompt,
                                   .data_folder = data_folder(lab),
                                   .terminal = {.columns = mg_columns(stdout),
                                                .progress_columns = mg_columns(stderr),
                                                .live = isatty(STDERR_FILENO) == 1,
                                                .color = mg_terminal_color(stdout),
                                                .utf8 = mg_terminal_utf8()},
                                   .read_line = asked->pause ? read_line : NULL,
                                   .stop = mg_interrupt_stop(),
                                   .own = own};
    lab_setting(lab, "seed", "%lld", (long long)asked->seed);
    if (asked->quick) lab_setting(lab, "quick", "yes: a rougher answer");
    if (asked->data) lab_setting(lab, "data", "%s", asked->data);
    if (asked->checkpoint) lab_setting(lab, "checkpoint", "%s", asked->checkpoint);
    if (asked->prompt) lab_setting(lab, "prompt", "%s", asked->prompt);
    const char *broken = getenv("MASKGRAD_BREAK");
    if (broken) lab_setting(lab, "broken on purpose", "MASKGRAD_BREAK=%s", broken);
    mg_set_threads(asked->threads);
}

/* The checks that an interrupted lab did not reach are not in its table; this row records that they are missing. */
static void note_interruption(mg_lab *lab) {
    lab->stopped = true;
    lab_undecided(lab, "the lab ran to its end", NAN, "", "it was interrupted; what follows was not measured");
}

static mg_status run_and_write(mg_lab *lab, mg_error *error) {
    mg_interrupt_watch("finishing the step");
    mg_status status = lab->row->run(lab, error);
    bool collected = lab->begun && (lab->checks.n > 0 || lab->blocks.n > 0);
    if (status == MG_ERR_STOPPED && collected)
        note_interruption(lab);
    else if (status != MG_OK)
        return status;
    MG_CHECK(lab->begun, "lab %s never calls lab_begin", lab->row->name);
    if (status == MG_OK) lab_must_have_answered(lab);
    MG_CHECK(lab->checks.n > 0, "lab %s checks nothing", lab->row->name);
    /* What was measured is shown even if it cannot be written. */
    status = lab_write_numbers(lab, error);
    lab_translate(lab);
    bool numbers = status == MG_OK, reported = false;
    if (numbers) status = lab_draw_pictures(lab, error);
    if (numbers) {
        mg_error second;
        mg_status report = lab_write_report(lab, status == MG_OK ? error : &second);
        reported = report == MG_OK;
        if (status == MG_OK) status = report;
    }
    lab_print_results(lab);
    if (reported)
        lab_print_wrapped(lab, lab->stopped ? "  Interrupted. What was measured is in " : "  The report is ", "  ",
                          lab_format(lab, "%s/report.html", mg_shown(lab->settings.out_dir).text));
    fflush(stdout);
    return status;
}

/* Two labs in one folder would mix or replace each other's files. */
static mg_status run_alone(mg_lab *lab, mg_error *error) {
    mg_run_dir folder;
    mg_status status = mg_run_dir_name(&folder, lab->settings.out_dir, error);
    if (status != MG_OK) return status;
    status = mg_run_dir_lock(&folder, error);
    if (status == MG_OK) status = mg_run_dir_claim(&folder, lab_format(lab, "maskgrad lab %s", lab->row->name), error);
    if (status == MG_OK) status = run_and_write(lab, error);
    if (status != MG_OK) mg_run_dir_unmake(&folder);
    mg_run_dir_close(&folder);
    return status;
}

/* The exit status (flags.h) of a lab that wrote its report. */
static int exit_status_of(const mg_lab *lab) {
    static const int of_verdict[LAB_N_VERDICTS] = {[LAB_PASS] = 0, [LAB_FAIL] = 1, [LAB_UNDECIDED] = 3};
    return of_verdict[lab_verdict_of(lab)];
}

static void set_own(const lab_options *options, bool quick, void *own) {
    memset(own, 0, options->size);
    options->set_defaults(own);
    if (quick) options->set_quick(own);
}

/* A run of several labs ends as the worst of them: a failure before what is only undecided. */
static int worse(int a, int b) {
    static const int from_bad[] = {130, 1, 2, 3, 0};
    for (int i = 0;; i++)
        if (a == from_bad[i] || b == from_bad[i]) return from_bad[i];
}

static bool takes_prompt(const lab_row *row, const frame_options *asked) {
    bool needs_checkpoint = (row->takes & LAB_PROMPTS_CHECKPOINT) == LAB_PROMPTS_CHECKPOINT;
    return (row->takes & LAB_TAKES_PROMPT) && (asked->checkpoint || !needs_checkpoint);
}

static void link_neighbors(mg_lab *lab, const lab_row *row) {
    lab->settings.indexed = true;
    lab->settings.around[0] = row > lab_rows ? row - 1 : NULL;
    lab->settings.around[1] = row[1].name ? row + 1 : NULL;
}

/* argv[0] is the lab's name; indexed: one of all. */
static lab_outcome run_lab(const lab_row *row, bool indexed, int argc, char **argv) {
    lab_outcome outcome = {.row = row, .verdict = LAB_FAIL, .exit_status = 1};
    mg_error error;
    mg_lab *lab = lab_new(row, &error);
    if (!lab) {
        mg_say("lab", "%s: %s", row->name, error.message);
        return outcome;
    }
    const mg_command_line line = {.name = lab_format(lab, "lab %s", row->name), .doc = row->question};
    frame_options asked = {.seed = DEFAULT_SEED};
    void *own = row->options ? mg_arena_alloc(lab->arena, 1, row->options->size, "a lab's options") : NULL;
    if (own) set_own(row->options, false, own);
    mg_given given;
    parse(row, &line, argc, argv, &asked, own, NULL, &given);
    if (own && asked.quick && row->options->set_quick) { /* other defaults, over which what is given wins */
        mg_flag_table tables[MG_MAX_FLAG_TABLES] = {{NULL, NULL}};
        set_own(row->options, true, own);
        mg_flag_tables_add(tables, row->options->tables, own);
        mg_given_apply(&given, tables);
    }
    if (own) take_over(lab, row, own, &asked);
    if (asked.prompt && !takes_prompt(row, &asked))
        mg_usage_error(&line, "--prompt needs a model of your own: give --checkpoint FILE too, or leave --prompt out");
    mg_refuse_empty(&line, "out-dir", "folder", asked.out_dir);
    lab->command = command_text(lab, row->name, argc, argv);
    set_up(lab, &asked, asked.out_dir ? asked.out_dir : lab_format(lab, "runs/lab-%s", row->name), own);

    if (indexed) link_neighbors(lab, row);
    mg_status status = run_alone(lab, &error);
    outcome.reported = status == MG_OK;
    outcome.stopped = lab->stopped || status == MG_ERR_STOPPED;
    if (status == MG_OK) outcome.verdict = lab_verdict_of(lab);
    outcome.exit_status = status == MG_OK ? exit_status_of(lab) : mg_command_end(&line, status, &error);
    if (outcome.stopped) outcome.exit_status = 130;
    lab_free(lab);
    return outcome;
}

enum { MOST_LABS = 32, MOST_WORDS = 16 };

/* What one would type to run this lab with those of the options that it takes; words that may be written to. */
static int words_for(mg_lab *memory, const lab_row *row, const frame_options *asked, char *words[MOST_WORDS + 1]) {
    int n = 0;
    words[n++] = lab_format(memory, "%s", row->name);
    words[n++] = lab_format(memory, "--out-dir=%s/lab-%s", asked->out_dir, row->name);
    words[n++] = lab_format(memory, "--seed=%lld", (long long)asked->seed);
    if (asked->threads) words[n++] = lab_format(memory, "--threads=%d", asked->threads);
    if (asked->quick) words[n++] = lab_format(memory, "--quick");
    if (asked->pause) words[n++] = lab_format(memory, "--pause");
    if (asked->data && (row->takes & LAB_TAKES_DATA)) words[n++] = lab_format(memory, "--data=%s", asked->data);
    if (asked->checkpoint && (row->takes & LAB_TAKES_CHECKPOINT))
        words[n++] = lab_format(memory, "--checkpoint=%s", asked->checkpoint);
    if (asked->prompt && takes_prompt(row, asked)) words[n++] = lab_format(memory, "--prompt=%s", asked->prompt);
    words[n] = NULL;
    return n;
}

/* Each lab as if it had been typed. */
static int run_all(int argc, char **argv) {
    const mg_command_line line = {.name = "lab all", .doc = "Run every lab, and write an index of their reports."};
    frame_options asked = {.seed = DEFAULT_SEED};
    parse(NULL, &line, argc, argv, &asked, NULL, NULL, NULL);
    if (!asked.out_dir) asked.out_dir = "runs";
    mg_error error = {0};
    if (lab_check_index(asked.out_dir, &error) != MG_OK) return mg_command_end(&line, error.status, &error);
    mg_lab *memory = lab_new(NULL, &error);
    lab_outcome outcomes[MOST_LABS];
    int n = 0, worst = 0;
    for (const lab_row *row = lab_rows; memory && row->name && n < MOST_LABS && worst != 130; row++, n++) {
        char *words[MOST_WORDS + 1];
        int used = words_for(memory, row, &asked, words);
        if (n) fputs("\n", stdout);
        outcomes[n] = run_lab(row, true, used, words);
        worst = worse(worst, outcomes[n].exit_status);
    }
    if (!memory || mg_make_folders(asked.out_dir, NULL, &error) != MG_OK ||
        lab_write_index(asked.out_dir, asked.quick, outcomes, n, &error) != MG_OK) {
        worst = mg_command_end(&line, error.status, &error);
    } else {
        mg_printf("\nThe index is %s/index.html\n", mg_shown(asked.out_dir).text);
    }
    lab_free(memory);
    return worst;
}

/* ---- The front ---- */

static void list_labs(FILE *out) {
    mg_error error;
    mg_lab *lab = lab_new(NULL, &error);
    if (!lab) return;
    mg_fprintf(out, "The labs, each with its question:\n\n");
    for (const lab_row *row = lab_rows; row->name; row++)
        mg_print_wrapped(out, mg_columns(out), lab_format(lab, "  %-11s ", row->name), "              ",
                         lab_shown(lab, row->question));
    fputs("\n", out);
    mg_print_wrapped(out, mg_columns(out), "", "",
                     "`maskgrad lab NAME` runs one, `maskgrad lab all` runs them all, and `maskgrad lab NAME --help` "
                     "lists its options.");
    lab_free(lab);
}

static int run_command(int argc, char **argv) {
    if (argc < 2) {
        list_labs(stdout);
        return 0;
    }
    if (argv[1][0] == '-') {
        const mg_command_line line = {.name = "lab",
                                      .arguments = "[NAME|all]",
                                      .max_arguments = 1,
                                      .doc = "Run the experiment NAME, or all of them; without a name, list them."};
        frame_options asked = {.seed = DEFAULT_SEED};
        const char *name = NULL;
        parse(NULL, &line, argc, argv, &asked, NULL, &name, NULL);
        mg_usage_error(&line, "the lab's name comes before its options: maskgrad lab NAME %s", argv[1]);
    }
    if (strcmp(argv[1], "all") == 0) return run_all(argc - 1, argv + 1);
    for (const lab_row *row = lab_rows; row->name; row++)
        if (strcmp(argv[1], row->name) == 0) return run_lab(row, false, argc - 1, argv + 1).exit_status;
    mg_suggestion near = {.word = argv[1]};
    for (const lab_row *row = lab_rows; row->name; row++) mg_suggest(&near, row->name);
    mg_suggest(&near, "all");
    if (near.best) {
        mg_say("lab", "there is no lab '%s': did you mean %s?", mg_shown(argv[1]).text, near.best);
        return 2;
    }
    mg_fprintf(stderr, "maskgrad lab: there is no lab '%s'\n\n", mg_shown(argv[1]).text);
    list_labs(stderr);
    return 2;
}

const mg_command mg_lab_command = {"lab", N_("Run an experiment, or list them all"), run_command};
