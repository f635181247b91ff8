/* The front door: one table of commands. Each command lives in the folder whose work it shows. */
#include "checkpoint_commands.h"
#include "columns.h"
#include "commands.h"
#include "error.h"
#include "experiment_commands.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct command {
    const char *name, *help;
    int (*run)(int argc, char **argv);
} command;

static const command commands[] = {
    {"train", "Train a model, masked or not", mg_train_command},
    {"generate", "Let a model write", mg_generate_command},
    {"evaluate", "The loss of a checkpoint on data, by position", mg_evaluate_command},
    {"logits", "The logits of a checkpoint for given ids, as CSV", mg_logits_command},
    {"compare", "Two or more runs side by side", mg_compare_command},
    {"inspect", "What is in a checkpoint, and whether it is whole", mg_inspect_command},
    {"import", "GPT-2 weights into a checkpoint", mg_import_command},
    {"lab", "Run an experiment, or list them all", mg_lab_command},
    {"bench", "Time training and generation beside the machine's own best", mg_bench_command},
    {NULL, NULL, NULL},
};

static char running[32] = "maskgrad"; /* and the command's name */

/* A bug of ours names its place in the source; memory that runs out is nobody's bug and needs none. */
static void fail(mg_failure kind, const char *message, void *user) {
    (void)user;
    const char *sentence = kind == MG_FAILURE_MEMORY ? strstr(message, "out of memory") : NULL;
    fprintf(stderr, "%s: %s\n", running, sentence ? sentence : message);
    exit(kind == MG_FAILURE_MEMORY ? 1 : 70);
}

/* Results that did not arrive are not results: a full disk or a closed pipe turns success into failure. */
static int finish(int status) {
    bool lost = ferror(stdout) != 0;
    errno = 0;
    if (fclose(stdout) != 0) lost = true;
    if (!lost || status != 0) return status;
    /* Of a write that failed long ago the reason is not known any more. */
    fprintf(stderr, "%s: the output cannot be written%s%s\n", running, errno ? ": " : "", errno ? strerror(errno) : "");
    return 1;
}

static void print_commands(FILE *out) {
    mg_print_wrapped(out, "", "",
                     "Usage: maskgrad COMMAND [options]\n\nTrain a tiny GPT with and without the causal mask, and see "
                     "what the mask does.\n\nCommands:");
    for (const command *c = commands; c->name; c++) {
        char first[32];
        snprintf(first, sizeof first, "  %-10s ", c->name);
        mg_print_wrapped(out, first, "             ", c->help);
    }
    mg_print_wrapped(out, "", "",
                     "\n`maskgrad COMMAND --help` tells the options of a command.\n\nExit status: 0 done, 1 a check or "
                     "the work failed, 2 wrong usage (the command line asks for what cannot be), 130 interrupted.");
}

int main(int argc, char **argv) {
    mg_set_failure_handler(fail, NULL);
    signal(SIGXFSZ, SIG_IGN); /* a file that grows beyond the limit is an error like a full disk, told by name */
    if (argc < 2) {
        print_commands(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_commands(stdout);
        return finish(0);
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("maskgrad " MASKGRAD_VERSION);
        return finish(0);
    }
    for (const command *c = commands; c->name; c++) {
        if (strcmp(argv[1], c->name) != 0) continue;
        snprintf(running, sizeof running, "maskgrad %s", c->name);
        return finish(c->run(argc - 1, argv + 1));
    }
    fprintf(stderr, "maskgrad: there is no command '%s'; `maskgrad --help` lists them\n", argv[1]);
    return 2;
}
