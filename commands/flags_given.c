/* Which flags were given: applied again over other defaults, and named in messages. */
#include "flags_private.h"
#include "say.h"

#include <string.h>

int mg_given_index(const mg_given *given, const mg_setting *flag) {
    for (int i = 0; i < given->n; i++)
        if (given->flag[i].flag == flag) return i;
    return -1;
}

void mg_given_add_before(mg_given *given, const mg_given *before) {
    mg_given all = {0};
    for (int i = 0; i < before->n; i++)
        if (mg_given_index(given, before->flag[i].flag) < 0) all.flag[all.n++] = before->flag[i];
    for (int i = 0; i < given->n; i++) all.flag[all.n++] = given->flag[i];
    *given = all;
}

static bool holds(const mg_setting *rows, const mg_setting *row) {
    while (rows != row && !mg_setting_is_end(rows)) rows++;
    return rows == row;
}

void mg_given_apply(const mg_given *given, const mg_flag_table *tables) {
    for (int i = 0; i < given->n; i++)
        for (const mg_flag_table *table = tables; table->flags; table++) {
            mg_error error;
            if (!holds(table->flags, given->flag[i].flag)) continue;
            MG_CHECK(mg_setting_set(given->flag[i].flag, table->values, given->flag[i].text, &error) == MG_OK,
                     "a flag that was legal before is not: %s", error.message);
        }
}

const mg_setting *mg_given_find(const mg_given *given, const mg_setting *rows, const mg_setting *row) {
    for (int i = 0; i < given->n; i++)
        if (given->flag[i].flag->offset == row->offset && holds(rows, given->flag[i].flag)) return given->flag[i].flag;
    return NULL;
}

const char *mg_given_any(const mg_given *given, const char *names) {
    const char *word;
    for (size_t n; (n = mg_next_word(&names, &word)) > 0;)
        for (int i = 0; i < given->n; i++) {
            const char *name = given->flag[i].flag->name;
            if (strlen(name) == n && memcmp(name, word, n) == 0) return name;
        }
    return NULL;
}

void mg_warn_idle(const mg_command_line *line, const mg_given *given, const char *names, const char *why) {
    const char *name = mg_given_any(given, names);
    if (name) mg_say(line->name, "--%s changes nothing: %s", name, why);
}
