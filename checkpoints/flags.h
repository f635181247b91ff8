/* Command lines as tables: a flag is one row that says where its value goes, what is legal and what it is for. The same
 * rows write run.json, read it back, and name the settings in which two runs differ. The only user of argp.
 *
 *     static const mg_flag flags[] = {
 *         {.name = "n-layer", .kind = MG_FLAG_INT, .offset = offsetof(options, n_layer), .min = 1, .max = 1000,
 *          .argument = "N", .help = "Blocks"},
 *         {0},
 *     };
 *
 * In a flag's name `_` and `-` are the same. */
#ifndef MASKGRAD_FLAGS_H
#define MASKGRAD_FLAGS_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum mg_flag_kind {
    MG_FLAG_INT,    /* int */
    MG_FLAG_INT64,  /* int64_t, or a uint64_t whose values stay below 2^63 */
    MG_FLAG_REAL,   /* double, finite */
    MG_FLAG_TEXT,   /* const char *, not copied */
    MG_FLAG_ON,     /* bool: the flag takes no value and sets it */
    MG_FLAG_OFF,    /* bool: the flag takes no value and clears it */
    MG_FLAG_CUSTOM, /* .parse and .format know */
    MG_FLAG_HEADING /* no flag: .help is a heading of --help */
} mg_flag_kind;

typedef enum mg_flag_role {
    MG_ROLE_COMMAND, /* says what to do now; not a setting of the run */
    MG_ROLE_FIXED,   /* a setting that makes the run what it is: a resumed run may not change it */
    MG_ROLE_FREE     /* a setting that a resumed run may change */
} mg_flag_role;

enum { MG_FLAG_OPEN_MIN = 1, MG_FLAG_OPEN_MAX = 2 }; /* the bound itself is not legal */

/* The largest --seed of any command: below 2^63, and exact as a double. */
#define MG_SEED_MAX 9.2e18

typedef struct mg_flag {
    const char *name; /* "block-size"; NULL ends a table, unless the row is a heading */
    const char
        *also; /* other spellings, separated by spaces; a single letter is a short option: "p", "learning-rate" */
    mg_flag_kind kind;
    mg_flag_role role;
    size_t offset;        /* of the value in the caller's struct */
    double min, max;      /* of a number. A default outside of them is not shown: .help tells what it is */
    unsigned open;        /* MG_FLAG_OPEN_… */
    const char *argument; /* what its value is called; NULL: it takes none */
    const char *help;
    mg_status (*parse)(const char *text, void *value, mg_error *error); /* the error says what would be right */
    void (*format)(const void *value, char *text, size_t size);         /* what parse reads back */
} mg_flag;

/* Rows, and the struct that their offsets are about, filled with defaults by the caller. */
typedef struct mg_flag_table {
    const mg_flag *flags; /* NULL ends a list of tables */
    void *values;
} mg_flag_table;

typedef struct mg_command_line {
    const char *name;      /* "train" */
    const char *arguments; /* "CHECKPOINT", as --help shows them; NULL: there are none */
    int min_arguments, max_arguments;
    const char *doc; /* what the command does, for --help */
} mg_command_line;

/* Read argv into the tables' values. arguments has max_arguments places; returns how many were given. Ends the program
 * after --help (status 0) and on wrong usage (status 2, one sentence with the flag, the value and what is right). */
int mg_flags_parse(const mg_command_line *line, const mg_flag_table *tables, int argc, char **argv,
                   const char **arguments);
/* Wrong usage that only the command can see: one sentence on stderr, and the program ends with status 2. */
MG_NORETURN void mg_usage_error(const mg_command_line *line, const char *format, ...) MG_PRINTF(2, 3);

/* The exit status of every command:
 *
 *     0    done
 *     1    a check failed, or the work did: a file is missing, damaged or cannot be written, memory ran out, a loss is
 *          not a number
 *     2    wrong usage, another command line is needed: an unknown flag, a value out of range, or values and files that
 *          do not fit together, as data that is too short for the block size (MG_ERR_INPUT)
 *     130  interrupted, after saving
 *
 * This is what a status of the library makes of it: 0, 1 or 2. */
int mg_exit_status(mg_status status);
/* The end of a command: if it failed, the sentence on stderr. Returns the exit status. */
int mg_command_end(const mg_command_line *line, mg_status status, const mg_error *error);

/* One value from text, strictly: the whole text, in range. The error names the flag and the text. */
mg_status mg_flag_set(const mg_flag *flag, void *values, const char *text, mg_error *error);
/* One value as text that mg_flag_set reads back exactly; "" for a text that is NULL. */
void mg_flag_format(const mg_flag *flag, const void *values, char *text, size_t size);
bool mg_flag_equal(const mg_flag *flag, const void *a, const void *b);
static inline bool mg_flag_is_end(const mg_flag *flag) {
    return !flag->name && flag->kind != MG_FLAG_HEADING;
}

#endif
