/* The pictures as PNG and SVG: scripts through a pipe to gnuplot, data inside them. */
#include "lab_private.h"
#include "wrap.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIGURE_WIDTH = 600, FIGURE_HEIGHT = 400, LETTER = 9, LINE = 21 }; /* logical pixels, at a text of 16 */
enum { FEW_POINTS = 16 };                                                /* a line of so few points shows them */

/* A single-quoted string of gnuplot: a quote is doubled, nothing else is special; line ends would end it. */
void lab_plot_quoted(FILE *pipe, const char *text) {
    fputc('\'', pipe);
    for (const char *c = text; *c; c++) {
        if (*c == '\'') fputc('\'', pipe);
        fputc((unsigned char)*c < 32 ? ' ' : *c, pipe);
    }
    fputc('\'', pipe);
}

static const lab_series *series_of(const lab_figure *figure, int k) {
    return figure->series.item[k];
}

static void plot_points(FILE *pipe, const lab_figure *figure, int k) {
    const lab_series *s = series_of(figure, k);
    fprintf(pipe, "$s%d << EOD\n", k);
    for (int i = 0; i < s->n; i++) {
        if (lab_can_show(figure, s->x[i], s->y[i]))
            fprintf(pipe, "%.9g %.9g\n", s->x[i], s->y[i]);
        else
            fputs("\n", pipe); /* a gap */
    }
    fputs("EOD\n", pipe);
}

/* Where things are, in logical pixels from the top left corner: gnuplot guesses the room for labels and legend from
 * widths that it does not know in an SVG, so that they are placed here. */
typedef struct frame {
    double height;            /* of the picture: a long legend makes it higher, not its curves flatter */
    double left, top, bottom; /* of the axes */
    int across, longest;      /* legend: entries a row, letters of the longest */
} frame;

static int longest_place(const lab_figure *figure) {
    int longest = 0;
    for (int i = 0; i < figure->n_places; i++) {
        int width = mg_text_columns(figure->places[i]);
        if (width > longest) longest = width;
    }
    return longest;
}

static bool places_are_turned(const lab_figure *figure) {
    return (longest_place(figure) + 1) * LETTER * figure->n_places > FIGURE_WIDTH * 8 / 10;
}

/* So many slanted names would run into each other. */
static bool places_are_upright(const lab_figure *figure) {
    enum { MOST_SLANTED = 16 };
    return places_are_turned(figure) && figure->n_places > MOST_SLANTED;
}

enum { FRAME_LEFT = 76, FRAME_RIGHT = 582, SAMPLE = 30 };

static frame frame_of(const lab_figure *figure) {
    frame f = {.left = FRAME_LEFT, .longest = 1};
    for (int k = 0; k < figure->series.n; k++) {
        int width = mg_text_columns(series_of(figure, k)->label);
        if (width > f.longest) f.longest = width;
    }
    f.across = FIGURE_WIDTH * 9 / 10 / (f.longest * LETTER + SAMPLE + 2 * LETTER);
    if (f.across < 1) f.across = 1;
    int rows = (figure->series.n + f.across - 1) / f.across;
    f.top = 26 + (rows + 1) * LINE;
    f.height = FIGURE_HEIGHT + (rows > 2 ? (rows - 2) * LINE : 0);
    f.bottom = f.height - 3.1 * LINE;
    if (places_are_turned(figure))
        f.bottom = f.height - 2 * LINE - longest_place(figure) * LETTER * (places_are_upright(figure) ? 1 : 0.55);
    return f;
}

static double across_screen(double x) {
    return x / FIGURE_WIDTH;
}

static double up_screen(const frame *f, double y) {
    return 1 - y / f->height;
}

static void label_at(FILE *pipe, const frame *f, const char *text, double x, double y, const char *how, unsigned rgb) {
    fputs("set label ", pipe);
    lab_plot_quoted(pipe, text);
    fprintf(pipe, " at screen %.4f, screen %.4f %s tc rgb '#%06X'\n", across_screen(x), up_screen(f, y), how, rgb);
}

static const char *dash_of(const lab_series *s) {
    return s->colour == LAB_FLOOR || s->shape == LAB_SHAPE_FIT ? "dt (9,5)" : "dt 1";
}

static void plot_legend(FILE *pipe, const lab_figure *figure, const frame *f) {
    for (int k = 0; k < figure->series.n; k++) {
        const lab_series *s = series_of(figure, k);
        double x = 16 + k % f->across * (f->longest * LETTER + SAMPLE + 2.0 * LETTER), y = 20 + k / f->across * LINE;
        unsigned rgb = lab_rgb(s->colour);
        double middle = across_screen(x + SAMPLE / 2.0), up = up_screen(f, y);
        if (s->shape == LAB_SHAPE_BARS)
            fprintf(pipe,
                    "set object rectangle center screen %.4f, screen %.4f size screen %.4f, screen %.4f fs solid "
                    "noborder fc rgb '#%06X'\n",
                    middle, up, across_screen(SAMPLE), 12.0 / f->height, rgb);
        else if (s->shape != LAB_SHAPE_POINTS)
            fprintf(pipe,
                    "set arrow from screen %.4f, screen %.4f to screen %.4f, screen %.4f nohead %s lw 2.6 "
                    "lc rgb '#%06X'\n",
                    across_screen(x), up, across_screen(x + SAMPLE), up, dash_of(s), rgb);
        if (s->shape == LAB_SHAPE_POINTS || (s->shape == LAB_SHAPE_LINE && s->n <= FEW_POINTS))
            fprintf(pipe, "set label '' at screen %.4f, screen %.4f point pt 7 ps 0.8 lc rgb '#%06X'\n", middle, up,
                    rgb);
        label_at(pipe, f, s->label, x + SAMPLE + 8, y, "left", 0x222222);
    }
}

static void plot_frame(FILE *pipe, const lab_figure *figure) {
    frame f = frame_of(figure);
    fprintf(pipe,
            "set lmargin at screen %.4f\nset rmargin at screen %.4f\nset tmargin at screen %.4f\n"
            "set bmargin at screen %.4f\n",
            across_screen(f.left), across_screen(FRAME_RIGHT), up_screen(&f, f.top), up_screen(&f, f.bottom));
    plot_legend(pipe, figure, &f);
    label_at(pipe, &f, figure->axes.y, 16, f.top - LINE + 3, "left", 0x555555);
    label_at(pipe, &f, figure->axes.x, (f.left + FRAME_RIGHT) / 2, f.height - LINE * 0.62, "center", 0x555555);
}

static int count_bars(const lab_figure *figure) {
    int n = 0;
    for (int k = 0; k < figure->series.n; k++) n += series_of(figure, k)->shape == LAB_SHAPE_BARS;
    return n;
}

static void plot_places(FILE *pipe, const lab_figure *figure) {
    fprintf(pipe, "set xtics scale 0 %s (",
            places_are_upright(figure)  ? "rotate by 90 right"
            : places_are_turned(figure) ? "rotate by 35 right"
                                        : "");
    for (int i = 0; i < figure->n_places; i++) {
        fputs(i ? "," : "", pipe);
        lab_plot_quoted(pipe, figure->places[i]);
        fprintf(pipe, " %d", i);
    }
    fputs(")\n", pipe);
}

static void plot_series(FILE *pipe, const lab_figure *figure, int k, int bar, int n_bars) {
    const lab_series *s = series_of(figure, k);
    unsigned rgb = lab_rgb(s->colour);
    const char *dash = dash_of(s);
    double width = 0.8 / (n_bars > 0 ? n_bars : 1);
    switch (s->shape) {
    case LAB_SHAPE_LEVEL: fprintf(pipe, "%.9g with lines %s lw 2 lc rgb '#%06X'", s->y[0], dash, rgb); break;
    case LAB_SHAPE_LINE:
        fprintf(pipe, "$s%d with %s %s lw 2.6 %s lc rgb '#%06X'", k, s->n <= FEW_POINTS ? "linespoints" : "lines", dash,
                s->n <= FEW_POINTS ? "pt 7 ps 0.8" : "", rgb);
        break;
    case LAB_SHAPE_FIT: fprintf(pipe, "$s%d with lines %s lw 1.6 lc rgb '#%06X'", k, dash, rgb); break;
    case LAB_SHAPE_POINTS: fprintf(pipe, "$s%d with points pt 7 ps 0.9 lc rgb '#%06X'", k, rgb); break;
    case LAB_SHAPE_BARS:
        fprintf(pipe, "$s%d using ($1%+.4f):2:(%.4f) with boxes fs solid noborder lc rgb '#%06X'", k,
                width * (bar - 0.5 * (n_bars - 1)), 0.92 * width, rgb);
        break;
    }
}

static bool has_whole_x(const lab_figure *figure) {
    for (int k = 0; k < figure->series.n; k++) {
        const lab_series *s = series_of(figure, k);
        for (int i = 0; i < s->n && s->shape != LAB_SHAPE_LEVEL; i++)
            if (s->x[i] != floor(s->x[i])) return false;
    }
    return true;
}

static void plot_figure(FILE *pipe, const lab_figure *figure) {
    fputs("unset label\nunset arrow\nunset object\n", pipe);
    const lab_axes *axes = &figure->axes;
    lab_span x = lab_with_room(lab_span_x(figure), axes->log_x, 0.015), y = lab_span_y(figure);
    fprintf(pipe, "set xrange [%.9g:%.9g]\nset yrange [%.9g:%.9g]\n", x.low, x.high, y.low, y.high);
    if (axes->log_x) fputs("set logscale x\n", pipe);
    if (!axes->log_x && x.high - x.low <= FEW_POINTS && has_whole_x(figure)) fputs("set xtics 1\n", pipe);
    if (axes->log_y) fputs("set logscale y\n", pipe);
    plot_frame(pipe, figure);
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
        bar += series_of(figure, k)->shape == LAB_SHAPE_BARS;
    }
    if (figure->series.n == 0) fputs("NaN notitle", pipe);
    fputs("\n", pipe);
}

static const char figure_style[] = "set border 3 lw 1 lc rgb '#666666'\n"
                                   "unset key\n"
                                   "set tics nomirror out scale 0.6 tc rgb '#333333'\n"
                                   "set format '%g'\n"
                                   "set grid ytics lt 1 lw 0.6 lc rgb '#E2E2E2'\n";

lab_canvas lab_figure_canvas(const lab_figure *figure) {
    return (lab_canvas){FIGURE_WIDTH, (int)frame_of(figure).height};
}

enum { PATH_SIZE = 4096 };

/* Under the temporary name, gnuplot writes it; under the other, it is whole. */
static void picture_path(const mg_lab *lab, const lab_block *block, bool png, bool temporary, char path[PATH_SIZE]) {
    const char *name = block->kind == LAB_BLOCK_HEATMAP ? block->heatmap->name : block->figure->name;
    int length = snprintf(path, PATH_SIZE, "%s/%s.%s", lab->settings.out_dir, name, png ? "png" : "svg");
    if (temporary && length < PATH_SIZE)
        snprintf(path + length, (size_t)(PATH_SIZE - length), ".tmp.%ld", (long)getpid());
}

static void plot_picture(FILE *pipe, const mg_lab *lab, const lab_block *block, bool png) {
    bool heat = block->kind == LAB_BLOCK_HEATMAP;
    lab_canvas canvas = heat ? lab_heat_canvas(block->heatmap) : lab_figure_canvas(block->figure);
    if (png)
        fprintf(pipe,
                "set terminal pngcairo noenhanced size %d,%d fontscale 2 linewidth 2 pointscale 2 font 'Sans,12' "
                "background '#FFFFFF'\n",
                2 * canvas.width, 2 * canvas.height);
    else
        fprintf(pipe, "set terminal svg noenhanced size %d,%d dynamic font 'sans-serif,16' background '#FFFFFF'\n",
                canvas.width, canvas.height);
    fputs("set output ", pipe);
    char path[PATH_SIZE];
    picture_path(lab, block, png, true, path);
    lab_plot_quoted(pipe, path);
    fputs("\n", pipe);
    if (heat)
        lab_heat_plot(pipe, block->heatmap, png);
    else
        plot_figure(pipe, block->figure);
    fputs("unset output\n", pipe);
}

static bool is_there(const char *program) {
    const char *path = getenv("PATH");
    while (path && *path) {
        size_t length = strcspn(path, ":");
        char candidate[PATH_SIZE];
        snprintf(candidate, sizeof candidate, "%.*s/%s", (int)length, path, program);
        if (access(candidate, X_OK) == 0) return true;
        path += length + (path[length] == ':');
    }
    return false;
}

/* Whether a picture's file has the end that its format demands: gnuplot does not notice a full disk. */
static bool is_whole(const char *path, bool png) {
    static const char png_end[] = "IEND\xAE\x42\x60\x82", svg_end[] = "</svg>";
    char tail[16] = {0};
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    bool long_enough = fseek(file, -(long)(sizeof tail - 1), SEEK_END) == 0;
    size_t n = long_enough ? fread(tail, 1, sizeof tail - 1, file) : 0;
    fclose(file);
    if (png) return n >= 8 && memcmp(tail + n - 8, png_end, 8) == 0;
    return strstr(tail, svg_end) != NULL;
}

/* The picture takes its name when it is whole, and is removed otherwise, with an older one that it was to replace. */
static bool keep_picture(const mg_lab *lab, const lab_block *block, bool png, bool drawn) {
    char temporary[PATH_SIZE], path[PATH_SIZE];
    picture_path(lab, block, png, true, temporary);
    picture_path(lab, block, png, false, path);
    if (drawn && is_whole(temporary, png) && rename(temporary, path) == 0) return true;
    unlink(temporary);
    unlink(path);
    return false;
}

static bool draw(const mg_lab *lab, const lab_block *block) {
    /* Without the user's own settings, and in a locale that knows every sign and no decimal comma. One that hangs is
     * ended, where there is a program for that. */
    FILE *pipe = popen(is_there("timeout") ? "LC_ALL=C.UTF-8 exec timeout -s KILL 60 gnuplot -d"
                                           : "LC_ALL=C.UTF-8 exec gnuplot -d",
                       "w");
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
    bool drawn = ferror(pipe) == 0;
    drawn = pclose(pipe) == 0 && drawn;
    bool png = keep_picture(lab, block, true, drawn), svg = keep_picture(lab, block, false, drawn);
    return png && svg;
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
    for (int i = 0; i < lab->blocks.n; i++) {
        const lab_block *block = lab->blocks.item[i];
        if (block->kind != LAB_BLOCK_FIGURE && block->kind != LAB_BLOCK_HEATMAP) continue;
        if (lab->pictures) {
            lab->pictures = draw(lab, block);
            continue;
        }
        keep_picture(lab, block, true, false); /* none of an earlier run stands beside these numbers */
        keep_picture(lab, block, false, false);
    }
    sigaction(SIGPIPE, &before, NULL);
    if (!lab->pictures)
        fprintf(stderr, "maskgrad: gnuplot failed: the numbers in %s are written, not all pictures are\n",
                lab->settings.out_dir);
}
