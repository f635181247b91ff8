/* The command `compare`. */
#include "commands.h"
#include "compare.h"

#include <stdio.h>

enum { MAX_RUNS = 100 };

static const mg_command_line line = {
    .name = "compare",
    .arguments = "RUN RUN...",
    .min_arguments = 2,
    .max_arguments = MAX_RUNS,
    .doc = "Two or more run folders side by side: how they ended, where they part, and in which settings they differ.",
};

int mg_compare_command(int argc, char **argv) {
    const mg_flag_table tables[] = {{NULL, NULL}};
    const char *paths[MAX_RUNS];
    mg_run_record records[MAX_RUNS];
    mg_error error;
    int n = mg_flags_parse(&line, tables, argc, argv, paths), n_read = 0;
    while (n_read < n && mg_run_record_read(&records[n_read], paths[n_read], &error) == MG_OK) n_read++;
    if (n_read == n)
        mg_compare_print(records, n);
    else
        fprintf(stderr, "maskgrad compare: %s\n", error.message);
    for (int i = 0; i < n_read; i++) mg_run_record_free(&records[i]);
    return n_read == n ? 0 : 1;
}
