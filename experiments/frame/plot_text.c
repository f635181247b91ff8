/* Texts in gnuplot's script: quoted data. */
#include "plot.h"
#include "printable.h"

#include <string.h>

/* The field's symbols, as letters that need no markup: their length if one stands here, else 0. */
static size_t plot_symbol(FILE *pipe, const char *text) {
    static const struct { const char *written, *shown; } symbols[] = {{"d_k", "dₖ"}, {"W^O", "Wᴼ"}};
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        size_t n = strlen(symbols[i].written);
        if (strncmp(text, symbols[i].written, n) != 0) continue;
        fputs(symbols[i].shown, pipe);
        return n;
    }
    return 0;
}

/* A single-quoted string of gnuplot, in which nothing is special but the quote, which is doubled. Control characters
 * are written out. */
static void quoted(FILE *pipe, const char *text, const char *doubled) {
    mg_shown_text shown = mg_shown(text);
    fputc('\'', pipe);
    for (const char *c = shown.text; *c; c++) {
        c += plot_symbol(pipe, c);
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
