#include "wrap.h"
#include "language.h"
#include "utf8.h"

#include <string.h>

enum { LEAST_ROOM = 16 }; /* columns: words stay whole where the terminal is narrower than what is before them */

int mg_text_columns(const char *text) {
    int width = 0, columns;
    while (*text) {
        if (*text == '\033') {
            text += strcspn(text, "m");
            text += *text == 'm';
            continue;
        }
        text += mg_utf8_step(text, &columns);
        width += columns;
    }
    return width;
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

void mg_print_wrapped(FILE *out, int columns, const char *first, const char *indent, const char *text) {
    char first_words[128], words[8192];
    const char *before = mg_terminal_words(first, first_words, sizeof first_words);
    text = mg_terminal_words(text, words, sizeof words);
    do {
        int room = columns - mg_text_columns(before);
        size_t n = mg_line_fitting(text, room < LEAST_ROOM ? LEAST_ROOM : room);
        size_t label = strlen(before);
        while (n == 0 && label > 0 && before[label - 1] == ' ') label--;
        fprintf(out, "%.*s%.*s\n", (int)label, before, (int)n, text);
        text += n;
        if (*text == ' ' || *text == '\n') text++;
        before = indent;
    } while (*text);
}
