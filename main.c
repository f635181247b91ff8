/* The table of commands, and what they all share. */
#define _GNU_SOURCE /* fopencookie, on_exit */
#include "arithmetic.h"
#include "columns.h"
#include "commands.h"
#include "error.h"
#include "guard.h"
#include "printable.h"
#include "startup.h"
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
    &mg_lab_command,
    &mg_audit_command,
    &mg_bench_command,
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
    fprintf(stderr, "%s: the output cannot be written: %s\n", running, strerror(lost));
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
                     "\n`maskgrad COMMAND --help` lists a command's options.\n\nExit status: 0 done, 1 a check or "
                     "the work failed, 2 usage error, 3 undecided (lab, audit), 130 interrupted.");
}

int main(int argc, char **argv) {
    mg_startup();
    mg_set_failure_handler(fail, NULL);
    mg_set_file_guard(true);
    watch_output();
    signal(SIGXFSZ, SIG_IGN); /* a file that grows beyond the limit is an error like a full disk, and is named */
    if (argc < 2) {
        print_commands(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_commands(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("maskgrad " MASKGRAD_VERSION ", " MG_ARITHMETIC " arithmetic");
        return 0;
    }
    for (const mg_command *const *at = commands; *at; at++) {
        const mg_command *c = *at;
        if (strcmp(argv[1], c->name) != 0) continue;
        snprintf(running, sizeof running, "maskgrad %s", c->name);
        return c->run(argc - 1, argv + 1);
    }
    fprintf(stderr, "maskgrad: there is no command '%s'; `maskgrad --help` lists them\n", mg_shown(argv[1]).text);
    return 2;
}
