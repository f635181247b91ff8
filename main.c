/* The table of commands, and what they all share. */
#define _GNU_SOURCE /* fopencookie, on_exit */
#include "arithmetic.h"
#include "columns.h"
#include "commands.h"
#include "error.h"
#include "guard.h"
#include "language.h"
#include "printable.h"
#include "startup.h"
#include "suggest.h"
#include "wrap.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const mg_command *const commands[] = {
    &mg_train_command,
    &mg_generate_command,
    &mg_evaluate_command,
    &mg_logits_command,
    &mg_sweep_command,
    &mg_compare_command,
    &mg_inspect_command,
    &mg_import_command,
    &mg_export_command,
    &mg_lab_command,
    &mg_audit_command,
    &mg_bench_command,
    &mg_playground_command,
    NULL,
};

static char running[32] = "maskgrad"; /* and the command's name */

/* A bug of ours names its place in the source; running out of memory is not a bug and names none. */
static void fail(mg_failure kind, const char *message, void *user) {
    (void)user;
    const char *sentence = kind == MG_FAILURE_MEMORY ? strstr(message, "out of memory") : NULL;
    fprintf(stderr, "%s: %s\n", running, sentence ? sentence : message);
    exit(kind == MG_FAILURE_MEMORY ? 1 : 70);
}

/* ---- Results that did not arrive are not results: a full disk turns success into failure ---- */

static int lost; /* errno of the first write that failed: stdio only keeps that one failed */

static ssize_t write_out(void *cookie, const char *bytes, size_t n) {
    (void)cookie;
    for (size_t done = 0; done < n;) {
        ssize_t written = write(STDOUT_FILENO, bytes + done, n - done);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) {
            if (!lost) lost = errno;
            return 0;
        }
        done += (size_t)written;
    }
    return (ssize_t)n;
}

static int close_out(void *cookie) {
    (void)cookie;
    if (close(STDOUT_FILENO) == 0) return 0;
    if (!lost) lost = errno;
    return EOF;
}

/* Runs at every exit: of a command, or of argp after --help. */
static void finish(int status, void *user) {
    (void)user;
    fclose(stdout);
    if (!lost || status != 0) return;
    mg_fprintf(stderr, "%s: the output cannot be written: %s\n", running, strerror(lost));
    _exit(1);
}

static void watch_output(void) {
    FILE *out = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_out, .close = close_out});
    if (!out) mg_fail(MG_FAILURE_MEMORY, __FILE__, __LINE__, "out of memory for the output");
    setvbuf(out, NULL, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, BUFSIZ);
    stdout = out;
    on_exit(finish, NULL);
}

static void print_commands(FILE *out) {
    mg_print_wrapped(out, mg_columns(out), "", "",
                     "Usage: maskgrad COMMAND [options]\n\nTrain a tiny GPT with and without the causal mask, and see "
                     "what the mask does.\n\nCommands:");
    for (const mg_command *const *at = commands; *at; at++) {
        const mg_command *c = *at;
        char first[32];
        snprintf(first, sizeof first, "  %-10s ", c->name);
        mg_print_wrapped(out, mg_columns(out), first, "             ", c->help);
    }
    mg_print_wrapped(out, mg_columns(out), "", "",
                     "\n`maskgrad help COMMAND` lists a command's options.\n\nExit status: 0 done, 1 a check or "
                     "the work failed, 2 usage error, 3 undecided (lab, audit), 130 interrupted.");
    mg_print_wrapped(out, mg_columns(out), "", "", "\nEm português: maskgrad --language pt-BR COMMAND");
}

static const mg_command *find_command(const char *name) {
    for (const mg_command *const *at = commands; *at; at++)
        if (strcmp((*at)->name, name) == 0) return *at;
    return NULL;
}

static int refuse_command(const char *name) {
    mg_suggestion near = {.word = name};
    for (const mg_command *const *at = commands; *at; at++) mg_suggest(&near, (*at)->name);
    mg_suggest(&near, "help");
    mg_suggest(&near, "version");
    if (near.best)
        mg_fprintf(stderr, "maskgrad: there is no command '%s': did you mean %s?\n", mg_shown(name).text, near.best);
    else
        mg_fprintf(stderr, "maskgrad: there is no command '%s'; `maskgrad --help` lists them\n", mg_shown(name).text);
    return 2;
}

static int run(const mg_command *command, int argc, char **argv) {
    snprintf(running, sizeof running, "maskgrad %s", command->name);
    return command->run(argc, argv);
}

/* `help train` is `train --help`, and `help lab leak` is `lab leak --help`. */
static int help(int argc, char **argv) {
    enum { MOST_WORDS = 4 };
    static char last[] = "--help";
    char *words[MOST_WORDS + 2] = {NULL};
    if (argc < 2) {
        print_commands(stdout);
        return 0;
    }
    const mg_command *command = find_command(argv[1]);
    if (!command) return refuse_command(argv[1]);
    int n = 0;
    while (n < MOST_WORDS && n + 1 < argc) words[n] = argv[n + 1], n++;
    words[n++] = last;
    return run(command, n, words);
}

/* ---- --language, which may be anywhere before a `--`; what remains is argc long ---- */

static int take_language(int argc, char **argv, const char **language) {
    static const char flag[] = "--language";
    int kept = 0, i = 0;
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        bool is_flag = i > 0 && strncmp(argv[i], flag, strlen(flag)) == 0;
        const char *rest = is_flag ? argv[i] + strlen(flag) : "";
        if (is_flag && *rest == '=')
            *language = rest + 1;
        else if (is_flag && !*rest)
            *language = i + 1 < argc ? argv[++i] : "";
        else
            argv[kept++] = argv[i];
    }
    while (i < argc) argv[kept++] = argv[i++];
    argv[kept] = NULL;
    return kept;
}

/* The catalogs are in locale/ beside the program that was built, or in share/locale/ of one that is installed. */
static int begin_language(int argc, char **argv) {
    const char *asked = NULL;
    argc = take_language(argc, argv, &asked);
    char built[4096], installed[4096];
    mg_program_folder(0, built, sizeof built - 16);
    mg_program_folder(1, installed, sizeof installed - 16);
    strcat(built, "/locale");
    strcat(installed, "/" MASKGRAD_LOCALE_DIR);
    if (asked && !*asked) {
        fputs("maskgrad: --language needs a language: en or pt-BR\n", stderr);
        exit(2);
    }
    bool found = mg_language_begin(asked, 2, (const char *const[]){built, installed});
    if (asked && !found)
        fprintf(stderr, "maskgrad: there is no translation into '%s': English is used\n", mg_shown(asked).text);
    return argc;
}

static bool is_either(const char *word, const char *a, const char *b) {
    return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

int main(int argc, char **argv) {
    mg_startup();
    argc = begin_language(argc, argv);
    mg_set_failure_handler(fail, NULL);
    mg_set_file_guard(true);
    watch_output();
    signal(SIGXFSZ, SIG_IGN); /* a file that grows beyond the limit is an error like a full disk, and is named */
    if (argc < 2) {
        print_commands(stderr);
        return 2;
    }
    if (is_either(argv[1], "--help", "-h")) return help(1, argv);
    if (strcmp(argv[1], "help") == 0) return help(argc - 1, argv + 1);
    if (is_either(argv[1], "--version", "version")) {
        puts("maskgrad " MASKGRAD_VERSION ", " MG_ARITHMETIC " arithmetic");
        return 0;
    }
    const mg_command *command = find_command(argv[1]);
    return command ? run(command, argc - 1, argv + 1) : refuse_command(argv[1]);
}
