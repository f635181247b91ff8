/* Command lines as tables (trainers/setting.h): --block-size is the setting "block-size", and in a flag's name `_` and
 * `-` are the same. The only user of argp. */
#ifndef MASKGRAD_FLAGS_H
#define MASKGRAD_FLAGS_H

#include "setting.h"

/* Rows, and the struct that their offsets are about, filled with defaults by the caller. */
typedef struct mg_flag_table {
    const mg_setting *flags; /* NULL ends a list of tables */
    void *values;
} mg_flag_table;

enum { MG_MAX_FLAG_TABLES = 16, MG_MAX_FLAGS = 128 };

/* Append tables of settings to `list`, which has MG_MAX_FLAG_TABLES places and ends with an empty one; their values are
 * in `values`. */
void mg_flag_tables_add(mg_flag_table *list, const mg_settings *tables, void *values);

/* The flag with this name or other spelling; NULL: there is none. */
const mg_setting *mg_flag_find(const mg_flag_table *tables, const char *spelling, size_t length);

typedef struct mg_command_line {
    const char *name;      /* "train" */
    const char *arguments; /* "CHECKPOINT", as --help shows them; NULL: there are none */
    int min_arguments, max_arguments;
    const char *stray; /* where an argument too many belongs: "data is given as --data FILE"; NULL: unknown */
    const char *doc;   /* what the command does, for --help */
    const char *where; /* the flags are from there, which usage errors say; NULL: from the command line */
    bool continues;    /* *given holds flags that are parsed already; others are added */
} mg_command_line;

/* Which flags a command line gives, in its order: to be applied again over other defaults, and named in messages. */
typedef struct mg_given {
    int n;
    struct mg_given_flag {
        const mg_setting *flag;
        const char *text; /* as mg_setting_set reads it */
    } flag[MG_MAX_FLAGS];
} mg_given;

/* Read argv into the tables' values. `arguments` has max_arguments places; returns how many were given. *given, unless
 * NULL, holds the flags. Ends the program after --help (status 0) and on a usage error (status 2, one sentence with the
 * flag, the value and what is right). */
int mg_flags_parse(const mg_command_line *line, const mg_flag_table *tables, int argc, char **argv,
                   const char **arguments, mg_given *given);
/* Cut the command line before a "--": argc becomes what is before it. *words is what follows it, and their number is
 * returned; NULL: there is no "--". */
int mg_flags_cut(int *argc, char **argv, char ***words);
/* Flags that override others: `given` becomes those of `before` and, after them, its own. */
void mg_given_add_before(mg_given *given, const mg_given *before);
/* Apply the same flags to other values: those of `tables`, which are the tables of the command line or some of them. */
void mg_given_apply(const mg_given *given, const mg_flag_table *tables);
/* The flag that was given for a row's value: the row's own, or another row of its table that sets the same member, as
 * --mask and --lookahead do. NULL: none was. */
const mg_setting *mg_given_find(const mg_given *given, const mg_setting *rows, const mg_setting *row);

/* The first of the flags, whose names are separated by spaces, that was given; NULL: none was. */
const char *mg_given_any(const mg_given *given, const char *names);
/* Warn, in one sentence, if one of the flags was given though it cannot act in this run. */
void mg_warn_idle(const mg_command_line *line, const mg_given *given, const char *names, const char *why);

/* A usage error that only the command can see: one sentence on stderr, and the program ends with status 2. */
MG_NORETURN void mg_usage_error(const mg_command_line *line, const char *format, ...) MG_PRINTF(2, 3);

/* A usage error if the name given for a flag is empty; `what` is "folder" or "file". NULL: none was given. */
void mg_refuse_empty(const mg_command_line *line, const char *flag, const char *what, const char *name);

/* The exit status of every command:
 *
 *     0    done
 *     1    a check failed, or the work did: a file is missing, damaged or cannot be written, memory ran out, a loss is
 *          not a number
 *     2    a usage error: an unknown flag, a value out of range, or values and files that do not fit together, such as
 *          data that is too short for the block size (MG_ERR_INPUT)
 *     3    undecided: no check failed, but the data or the model leave one open (labs); the run is another process's
 *          (train --auto-resume)
 *     130  interrupted, after saving: by a signal, or because the reader of the output is gone (train | head)
 *
 * This is what a status of the library makes of it: 0, 1 or 2. */
int mg_exit_status(mg_status status);
/* The end of a command: if it failed, the sentence on stderr. Returns the exit status. */
int mg_command_end(const mg_command_line *line, mg_status status, const mg_error *error);

#endif
