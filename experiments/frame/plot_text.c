/* Texts in gnuplot's script: quoted data. */
#include "plot.h"
#include "printable.h"

#include <string.h>

typedef struct symbol {
    const char *written, *shown;
} symbol;

/* The first of the symbols that stands here; its `written` is NULL if none does. */
static symbol find_symbol(const symbol *symbols, const char *text) {
    while (symbols->written && strncmp(text, symbols->written, strlen(symbols->written)) != 0) symbols++;
    return *symbols;
}

static const symbol raised[] = {{"0", "⁰"}, {"1", "¹"}, {"2", "²"}, {"3", "³"}, {"4", "⁴"},
                                {"5", "⁵"}, {"6", "⁶"}, {"7", "⁷"}, {"8", "⁸"}, {"9", "⁹"},
                                {"-", "⁻"}, {"+", "⁺"}, {".", "·"}, {"γ", "ᵞ"}, {NULL, NULL}};

/* An exponent as raised letters, x^-1.96 and α^(γ+1): its length if one stands here, else 0. */
static size_t plot_power(FILE *pipe, const char *text) {
    bool in_brackets = strncmp(text, "^(", 2) == 0;
    const char *begin = text + (in_brackets ? 2 : 1), *end = begin;
    if (*text != '^') return 0;
    if (in_brackets)
        while (find_symbol(raised, end).written) end += strlen(find_symbol(raised, end).written);
    else
        end += strspn(end, "-") + strspn(end + strspn(end, "-"), ".0123456789");
    if (end == begin || (in_brackets && *end != ')')) return 0;
    for (const char *c = begin; c < end; c += strlen(find_symbol(raised, c).written))
        fputs(find_symbol(raised, c).shown, pipe);
    return (size_t)(end - text) + in_brackets;
}

/* The field's symbols, as letters that need no markup: their length if one stands here, else 0. */
static size_t plot_symbol(FILE *pipe, const char *text) {
    static const symbol symbols[] = {{"d_k", "dₖ"}, {"W^O", "Wᴼ"}, {NULL, NULL}};
    symbol found = find_symbol(symbols, text);
    if (!found.written) return plot_power(pipe, text);
    fputs(found.shown, pipe);
    return strlen(found.written);
}

/* A single-quoted string of gnuplot, in which nothing is special but the quote, which is doubled. Control characters
 * are written out. */
static void quoted(FILE *pipe, const char *text, const char *doubled) {
    mg_shown_text shown = mg_shown(text);
    fputc('\'', pipe);
    for (const char *c = shown.text; *c; c++) {
        for (size_t n = plot_symbol(pipe, c); n > 0; n = plot_symbol(pipe, c)) c += n;
        if (!*c) break;
        if (strchr(doubled, *c)) fputc(*c, pipe);
        fputc(*c, pipe);
    }
    fputc('\'', pipe);
}

void lab_plot_quoted(FILE *pipe, const char *text) {
    quoted(pipe, text, "'");
}

void lab_plot_tic(FILE *pipe, const char *text) {
    quoted(pipe, text, "'%");
}

void lab_plot_label(FILE *pipe, const lab_plot_layout *f, const char *text, double x, double y, const char *how,
                    unsigned rgb) {
    fputs("set label ", pipe);
    lab_plot_quoted(pipe, text);
    fprintf(pipe, " at screen %.4f, screen %.4f %s tc rgb '#%06X'\n", lab_across_screen(x), lab_up_screen(f, y), how,
            rgb);
}
