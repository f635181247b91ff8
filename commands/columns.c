#include "columns.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LEAST = 20 };

/* main.c's stdout has none of its own. */
static int descriptor_of(FILE *file) {
    return file == stderr ? STDERR_FILENO : STDOUT_FILENO;
}

int mg_columns(FILE *file) {
    const char *given = getenv("COLUMNS");
    struct winsize size;
    long columns = given ? strtol(given, NULL, 10) : 0;
    if (columns < 1 && ioctl(descriptor_of(file), TIOCGWINSZ, &size) == 0) columns = size.ws_col;
    if (columns < 1 || columns > LAB_COLUMNS) return LAB_COLUMNS;
    return columns < LEAST ? LEAST : (int)columns;
}

bool mg_terminal_color(FILE *file) {
    const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
    return (file == stdout || file == stderr) && isatty(descriptor_of(file)) && !(none && *none) && term &&
           strcmp(term, "dumb") != 0;
}
