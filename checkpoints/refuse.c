#include "refuse.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool begins_with_verb(const char *sentence) {
    static const char *const verbs[] = {"is ", "has ", "holds "};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strncmp(sentence, verbs[i], strlen(verbs[i])) == 0) return true;
    return false;
}

mg_status mg_refuse_file(mg_error *error, const char *path, const char *format, va_list arguments) {
    char text[768];
    vsnprintf(text, sizeof text, format, arguments);
    return mg_error_set(error, MG_ERR_FORMAT, "'%s'%s %s", path, begins_with_verb(text) ? "" : ":", text);
}
