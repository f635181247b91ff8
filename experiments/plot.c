/* The pictures as PNG and SVG: scripts through a pipe to gnuplot, data inside them. */
#include "lab_private.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A single-quoted string of gnuplot: a quote is doubled, nothing else is special; line ends would end it. */
void lab_plot_quoted(FILE *pipe, const char *text) {
    fputc('\'', pipe);
    for (const char *c = text; *c; c++) {
        if (*c == '\'') fputc('\'', pipe);
        fputc((unsigned char)*c < 32 ? ' ' : *c, pipe);
    }
    fputc('\'', pipe);
}

static void plot_points(FILE *pipe, const lab_figure *figure, int k) {
    const lab_series *s = figure->series.item[k];
    fprintf(pipe, "$s%d << EOD\n", k);
    for (int i = 0; i < s->n; i++) {
        if (lab_can_show(figure, s->x[i], s->y[i]))
            fprintf(pipe, "%.9g %.9g\n", s->x[i], s->y[i]);
        else
            fputs("\n", pipe); /* a gap */
    }
    fputs("EOD\n", pipe);
}

static int count_bars(const lab_figure *figure) {
    int n = 0;
    for (int k = 0; k < figure->series.n; k++)
        n += ((const lab_series *)figure->series.item[k])->shape == LAB_SHAPE_BARS;
    return n;
}

static void plot_places(FILE *pipe, const lab_figure *figure) {
    fputs("set xtics scale 0 (", pipe);
    for (int i = 0; i < figure->n_places; i++) {
        fputs(i ? "," : "", pipe);
        lab_plot_quoted(pipe, figure->places[i]);
        fprintf(pipe, " %d", i);
    }
    fputs(")\n", pipe);
}

static void plot_series(FILE *pipe, const lab_figure *figure, int k, int bar, int n_bars) {
    const lab_series *s = figure->series.item[k];
    unsigned rgb = lab_rgb(s->colour);
    const char *dash = s->colour == LAB_FLOOR || s->shape == LAB_SHAPE_FIT ? "dt (12,7)" : "dt 1";
    double width = 0.8 / (n_bars > 0 ? n_bars : 1);
    switch (s->shape) {
    case LAB_SHAPE_LEVEL: fprintf(pipe, "%.9g with lines %s lw 2 lc rgb '#%06X'", s->y[0], dash, rgb); break;
    case LAB_SHAPE_LINE: fprintf(pipe, "$s%d with lines %s lw 2.6 lc rgb '#%06X'", k, dash, rgb); break;
    case LAB_SHAPE_FIT: fprintf(pipe, "$s%d with lines %s lw 1.6 lc rgb '#%06X'", k, dash, rgb); break;
    case LAB_SHAPE_POINTS: fprintf(pipe, "$s%d with points pt 7 ps 0.9 lc rgb '#%06X'", k, rgb); break;
    case LAB_SHAPE_BARS:
        fprintf(pipe, "$s%d using ($1%+.4f):2:(%.4f) with boxes fs solid noborder lc rgb '#%06X'", k,
                width * (bar - 0.5 * (n_bars - 1)), 0.92 * width, rgb);
        break;
    }
    fputs(" title ", pipe);
    lab_plot_quoted(pipe, s->label);
}

static void plot_figure(FILE *pipe, const lab_figure *figure) {
    const lab_axes *axes = &figure->axes;
    lab_span x = lab_span_x(figure), y = lab_span_y(figure);
    fprintf(pipe, "set xrange [%.9g:%.9g]\nset yrange [%.9g:%.9g]\n", x.low, x.high, y.low, y.high);
    if (axes->log_x) fputs("set logscale x\n", pipe);
    if (axes->log_y) fputs("set logscale y\n", pipe);
    fputs("set xlabel ", pipe);
    lab_plot_quoted(pipe, axes->x);
    fputs("\nset ylabel ", pipe);
    lab_plot_quoted(pipe, axes->y);
    fputs("\n", pipe);
    if (figure->places) plot_places(pipe, figure);
    for (int k = 0; k < figure->verticals.n; k++) {
        const lab_series *s = figure->verticals.item[k];
        fprintf(pipe, "set arrow from %.9g, graph 0 to %.9g, graph 1 nohead dt (3,5) lw 1.6 lc rgb '#444444'\n",
                s->x[0], s->x[0]);
        bool right = lab_along(x, axes->log_x, s->x[0]) > 0.6;
        fputs("set label ", pipe);
        lab_plot_quoted(pipe, s->label);
        fprintf(pipe, " at %.9g, graph 0.96 %s offset %g,0 tc rgb '#444444'\n", s->x[0], right ? "right" : "left",
                right ? -0.6 : 0.6);
    }
    int n_bars = count_bars(figure), bar = 0;
    fputs("plot ", pipe);
    for (int k = 0; k < figure->series.n; k++) {
        fputs(k ? ", \\\n  " : "", pipe);
        plot_series(pipe, figure, k, bar, n_bars);
        bar += ((const lab_series *)figure->series.item[k])->shape == LAB_SHAPE_BARS;
    }
    if (figure->series.n == 0) fputs("NaN notitle", pipe);
    fputs("\n", pipe);
}

static const char figure_style[] = "set border 3 lw 1 lc rgb '#666666'\n"
                                   "set tics nomirror out scale 0.6 tc rgb '#333333'\n"
                                   "set grid ytics lt 1 lw 0.6 lc rgb '#E2E2E2'\n"
                                   "set key outside top left horizontal Left reverse samplen 2.2 tc rgb '#222222'\n"
                                   "set xlabel tc rgb '#222222'\nset ylabel tc rgb '#222222'\n";

static void plot_picture(FILE *pipe, const mg_lab *lab, const lab_block *block, bool png) {
    bool heat = block->kind == LAB_BLOCK_HEATMAP;
    const char *name = heat ? block->heatmap->name : block->figure->name;
    lab_canvas canvas = heat ? lab_heat_canvas(block->heatmap) : (lab_canvas){720, 440};
    if (png)
        fprintf(pipe,
                "set terminal pngcairo noenhanced size %d,%d fontscale 2 linewidth 2 pointscale 2 font 'Sans,12' "
                "background '#FFFFFF'\n",
                2 * canvas.width, 2 * canvas.height);
    else
        fprintf(pipe, "set terminal svg noenhanced size %d,%d dynamic font 'sans-serif,16' background '#FFFFFF'\n",
                canvas.width, canvas.height);
    fputs("set output ", pipe);
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%s", lab->settings.out_dir, name, png ? "png" : "svg");
    lab_plot_quoted(pipe, path);
    fputs("\n", pipe);
    if (heat)
        lab_heat_plot(pipe, block->heatmap, png);
    else
        plot_figure(pipe, block->figure);
    fputs("unset output\n", pipe);
}

static bool draw(const mg_lab *lab, const lab_block *block) {
    FILE *pipe = popen("exec gnuplot", "w");
    if (!pipe) return false;
    fputs("set encoding utf8\n", pipe);
    if (block->kind == LAB_BLOCK_FIGURE) {
        fputs(figure_style, pipe);
        for (int k = 0; k < block->figure->series.n; k++) plot_points(pipe, block->figure, k);
    } else {
        lab_heat_data(pipe, block->heatmap);
    }
    plot_picture(pipe, lab, block, true);
    plot_picture(pipe, lab, block, false);
    bool written = ferror(pipe) == 0;
    return pclose(pipe) == 0 && written;
}

static bool is_there(const char *program) {
    const char *path = getenv("PATH");
    while (path && *path) {
        size_t length = strcspn(path, ":");
        char candidate[4096];
        snprintf(candidate, sizeof candidate, "%.*s/%s", (int)length, path, program);
        if (access(candidate, X_OK) == 0) return true;
        path += length + (path[length] == ':');
    }
    return false;
}

void lab_draw_pictures(mg_lab *lab) {
    if (!is_there("gnuplot")) {
        fputs("maskgrad: gnuplot is not installed: the numbers are written, the pictures are not "
              "(Debian's package is gnuplot-nox)\n",
              stderr);
        return;
    }
    /* A gnuplot that ends early must not end us with it: its exit status tells. */
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    sigaction(SIGPIPE, &ignore, &before);
    lab->pictures = true;
    for (int i = 0; i < lab->blocks.n && lab->pictures; i++) {
        const lab_block *block = lab->blocks.item[i];
        if (block->kind != LAB_BLOCK_FIGURE && block->kind != LAB_BLOCK_HEATMAP) continue;
        lab->pictures = draw(lab, block);
    }
    sigaction(SIGPIPE, &before, NULL);
    if (!lab->pictures) fputs("maskgrad: gnuplot failed: the numbers are written, not all pictures are\n", stderr);
}
