#include "columns.h"
#include "utf8.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LEAST = 20 };

int mg_columns(FILE *file) {
    const char *told = getenv("COLUMNS");
    struct winsize size;
    long columns = told ? strtol(told, NULL, 10) : 0;
    if (columns < 1 && ioctl(file == stderr ? STDERR_FILENO : STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        columns = size.ws_col;
    if (columns < 1 || columns > MG_COLUMNS) return MG_COLUMNS;
    return columns < LEAST ? LEAST : (int)columns;
}

size_t mg_line_fitting(const char *text, int columns) {
    size_t end = 0, space = 0;
    for (int width; text[end] && text[end] != '\n';) {
        size_t n = mg_utf8_step(text + end, &width);
        if (text[end] == ' ') space = end;
        if ((columns -= width) < 0) return space ? space : end ? end : n;
        end += n;
    }
    return end;
}

void mg_print_wrapped(FILE *out, const char *first, const char *indent, const char *text) {
    const char *before = first;
    do {
        size_t n = mg_line_fitting(text, mg_columns(out) - mg_utf8_columns(before));
        fprintf(out, "%s%.*s\n", before, (int)n, text);
        text += n;
        if (*text == ' ' || *text == '\n') text++;
        before = indent;
    } while (*text);
}
