#include "refuse.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

mg_status mg_refuse_lfs_pointer(int fd, const char *path, mg_error *error) {
    static const char pointer[] = "version https://git-lfs";
    char start[sizeof pointer - 1];
    if (pread(fd, start, sizeof start, 0) != (ssize_t)sizeof start || memcmp(start, pointer, sizeof start) != 0)
        return MG_OK;
    return mg_error_set(error, MG_ERR_FORMAT,
                        "'%s' is a git-lfs pointer, not the file itself: run `git lfs pull` in that folder "
                        "to fetch it",
                        path);
}
