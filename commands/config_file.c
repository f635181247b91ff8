#include "config_file.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* One line: a name, and a value or NULL. */
typedef struct entry {
    char *name, *value;
} entry;

static char *trim(char *text) {
    while (*text == ' ' || *text == '\t') text++;
    size_t n = strlen(text);
    while (n > 0 && strchr(" \t\r", text[n - 1])) text[--n] = '\0';
    return text;
}

/* A # ends a line, unless it is inside quotes or a word. */
static void cut_comment(char *text) {
    char quote = '\0';
    for (char *c = text; *c; c++) {
        if (quote) {
            if (*c == quote) quote = '\0';
        } else if ((*c == '"' || *c == '\'') && (c == text || strchr(" =\t", c[-1]))) {
            quote = *c;
        } else if (*c == '#' && (c == text || c[-1] == ' ' || c[-1] == '\t')) {
            *c = '\0';
            return;
        }
    }
}

static char *unquote(char *value) {
    size_t n = strlen(value);
    if (n < 2 || (value[0] != '"' && value[0] != '\'') || value[n - 1] != value[0]) return value;
    value[n - 1] = '\0';
    return value + 1;
}

/* false: an empty line. */
static bool split(char *text, entry *e) {
    cut_comment(text);
    e->name = trim(text);
    if (!e->name[0]) return false;
    if (strncmp(e->name, "--", 2) == 0) e->name += 2;
    e->value = NULL;
    char *end = e->name + strcspn(e->name, " \t=");
    if (!*end) return true;
    *end = '\0';
    char *value = trim(end + 1);
    if (*value == '=') value = trim(value + 1);
    e->value = unquote(value);
    return true;
}

/* "scale = false" is --no-scale, "force = true" is --force, and what is as it is without a flag is none: false. */
static bool read_switch(const mg_flag_table *tables, entry *e, char *name, size_t size) {
    bool is_true = e->value && strcasecmp(e->value, "true") == 0,
         is_false = e->value && strcasecmp(e->value, "false") == 0;
    snprintf(name, size, "%s", e->name);
    for (char *c = name; *c; c++)
        if (*c == '_') *c = '-';
    const mg_setting *flag = mg_flag_find(tables, name, strlen(name));
    if (flag && flag->argument) return true;
    char opposite[80];
    snprintf(opposite, sizeof opposite, "no-%.70s", name);
    if (!flag && mg_flag_find(tables, opposite, strlen(opposite)) && (is_true || is_false)) {
        snprintf(name, size, "%s", opposite);
        e->value = NULL;
        return is_false;
    }
    if (flag && (is_true || is_false)) e->value = NULL;
    return !flag || !is_false;
}

void mg_config_read(const mg_command_line *line, const char *path, char *text, const mg_flag_table *tables,
                    mg_given *given) {
    mg_command_line own = *line;
    char where[4200], name[80], word[96];
    own.where = where;
    own.continues = true;
    given->n = 0;
    for (int number = 1; text; number++) {
        char *next = strchr(text, '\n');
        entry e;
        if (next) *next++ = '\0';
        bool is_flag = split(text, &e) && read_switch(tables, &e, name, sizeof name);
        text = next;
        if (!is_flag) continue;
        snprintf(where, sizeof where, "%s, line %d", path, number);
        snprintf(word, sizeof word, "--%s", name);
        char *words[] = {name, word, e.value, NULL};
        mg_flags_parse(&own, tables, e.value ? 3 : 2, words, NULL, given);
    }
}
