/* What the files share that read a command line: flags.c parses it, flags_help.c prints --help, flags_given.c knows which
 * flags were given. */
#ifndef MASKGRAD_FLAGS_PRIVATE_H
#define MASKGRAD_FLAGS_PRIVATE_H

#include "flags.h"

#include <stdlib.h>

static inline bool mg_flag_takes_value(const mg_setting *flag) {
    return flag->argument != NULL;
}

/* Where a flag is among those given; -1: it was not. */
int mg_given_index(const mg_given *given, const mg_setting *flag);

/* Print and end the program with status 0. */
MG_NORETURN void mg_flags_print_help(const mg_command_line *line, const mg_flag_table *tables);
MG_NORETURN void mg_flags_print_usage(const mg_command_line *line);
/* What scripts/completion.sh makes shell completion of. A line per flag: its name, its letter, the name of its value,
 * its purpose; before them, a line without a name for the arguments. */
void mg_flags_print_table(const mg_command_line *line, const mg_flag_table *tables);

#endif
