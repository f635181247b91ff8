/* Settings as tables: a setting is one row with its name, the place of its value, the legal values and its purpose.
 * The same rows read a command line, write run.json and read it back, decide whether a checkpoint belongs to a
 * run, and name the settings in which two runs differ.
 *
 *     static const mg_setting rows[] = {
 *         {.name = "n-layer", .kind = MG_SETTING_INT, .offset = offsetof(options, n_layer), .min = 1, .max = 1000,
 *          .argument = "N", .help = "Blocks"},
 *         {0},
 *     };
 */
#ifndef MASKGRAD_SETTING_H
#define MASKGRAD_SETTING_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum mg_setting_kind {
    MG_SETTING_INT,    /* int */
    MG_SETTING_INT64,  /* int64_t, or a uint64_t whose values stay below 2^63 */
    MG_SETTING_REAL,   /* double, finite */
    MG_SETTING_TEXT,   /* const char *, not copied */
    MG_SETTING_LIST,   /* the same with one item per line: the flag may be given again, and files hold a list */
    MG_SETTING_ON,     /* bool: the flag takes no value and sets it */
    MG_SETTING_OFF,    /* bool: the flag takes no value and sets it; in files its opposite, as "scale" of --no-scale */
    MG_SETTING_CUSTOM, /* .parse and .format know */
    MG_SETTING_HEADING /* not a setting: .help is a heading of --help */
} mg_setting_kind;

typedef enum mg_setting_role {
    MG_ROLE_COMMAND, /* what a command does now; not a setting of a run */
    MG_ROLE_FIXED,   /* defines the run: a resumed run cannot change it */
    MG_ROLE_FREE     /* a resumed run can change it */
} mg_setting_role;

enum { MG_SETTING_OPEN_MIN = 1, MG_SETTING_OPEN_MAX = 2 }; /* the bound itself is not legal */

/* The largest --seed of any command: below 2^63, and exact as a double. */
#define MG_SEED_MAX 9.2e18

typedef struct mg_setting {
    const char *name; /* "block-size"; NULL ends a table, unless the row is a heading */
    const char *also; /* other spellings, separated by spaces; a single letter is a short option: "p learning-rate" */
    mg_setting_kind kind;
    mg_setting_role role;
    size_t offset;        /* of the value in the caller's struct */
    double min, max;      /* of a number. A default outside of them is not shown: .help says what it is */
    unsigned open;        /* MG_SETTING_OPEN_… */
    bool added;           /* after the first release: a run.json without it means the default */
    bool once;            /* giving the flag again is a usage error; else the last one counts */
    const char *argument; /* the name of its value in --help; NULL: it takes none */
    const char *help;
    mg_status (*parse)(const char *text, void *value, mg_error *error); /* the error says what would be right */
    void (*format)(const void *value, char *text, size_t size);         /* what parse reads back */
} mg_setting;

/* A table whose offsets count from `base` in the struct that it is used with: the offset of the member that the table
 * describes. */
typedef struct mg_settings {
    const mg_setting *rows; /* NULL ends a list of tables */
    size_t base;
} mg_settings;

/* One value from text, strictly: the whole text, in range. The error names the setting and the text. */
mg_status mg_setting_set(const mg_setting *setting, void *values, const char *text, mg_error *error);
/* One value as text that mg_setting_set reads back exactly; "" for a text that is NULL. */
void mg_setting_format(const mg_setting *setting, const void *values, char *text, size_t size);
bool mg_setting_equal(const mg_setting *setting, const void *a, const void *b);
/* The longest text of any setting, its final 0 included. */
enum { MG_SETTING_ROOM = 4096 };
bool mg_setting_in_range(const mg_setting *setting, double value);
/* The next word of a list separated by spaces, and its length, 0 at the end; moves *list past it. */
size_t mg_next_word(const char **list, const char **word);
/* Whether these bytes are its name or one of its other spellings. */
bool mg_setting_is_spelled(const mg_setting *setting, const char *spelling, size_t length);
/* A number as text: the fewest digits, from 15 up, that read back as the same number. */
void mg_format_real(double value, char *text, size_t size);
static inline bool mg_setting_is_end(const mg_setting *setting) {
    return !setting->name && setting->kind != MG_SETTING_HEADING;
}
static inline bool mg_setting_is_switch(const mg_setting *setting) {
    return setting->kind == MG_SETTING_ON || setting->kind == MG_SETTING_OFF;
}

/* The next setting of a list of tables, skipping headings and the role COMMAND; NULL at the end. *values is the struct
 * plus the table's base. Begin with a cursor of zeros:
 *
 *     mg_setting_cursor at = {0};
 *     for (const mg_setting *s; (s = mg_setting_next(&at, tables));) use(s, (const char *)options + at.base);
 */
typedef struct mg_setting_cursor {
    size_t table, row;
    size_t base; /* of the table of the setting that was returned */
} mg_setting_cursor;
const mg_setting *mg_setting_next(mg_setting_cursor *at, const mg_settings *tables);
/* The first setting of role FIXED in which two structs differ; NULL if there is none. */
const mg_setting *mg_settings_conflict(const mg_settings *tables, const void *a, const void *b);

#endif
