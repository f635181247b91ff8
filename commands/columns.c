#include "columns.h"

#include <langinfo.h>
#include <locale.h>
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

bool mg_terminal_utf8(void) {
    /* Asked of a locale of our own, since changing the program's would change how it reads and writes numbers. */
    locale_t ours = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (!ours) return false;
    bool utf8 = strcmp(nl_langinfo_l(CODESET, ours), "UTF-8") == 0;
    freelocale(ours);
    return utf8;
}

bool mg_terminal_color(FILE *file) {
    const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
    return (file == stdout || file == stderr) && isatty(descriptor_of(file)) && !(none && *none) && term &&
           strcmp(term, "dumb") != 0;
}
