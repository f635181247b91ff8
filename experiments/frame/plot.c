/* The pictures as PNG and SVG: scripts through a pipe to gnuplot, data inside them. Texts are quoted data. */
#include "lab_private.h"
#include "printable.h"
#include "wrap.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIGURE_WIDTH = 600, FIGURE_HEIGHT = 400, LETTER = 9, LINE = 21 }; /* logical pixels, at a text of 16 */
enum { FEW_POINTS = 16 };                                                /* a line of so few points shows them */

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

static const lab_series *series_of(const lab_figure *figure, int k) {
    return figure->series.item[k];
}

static void plot_points(FILE *pipe, const lab_figure *figure, int k) {
    const lab_series *s = series_of(figure, k);
    fprintf(pipe, "$s%d << EOD\n", k);
    for (int i = 0; i < s->n; i++) {
        bool shown = lab_can_show(figure, s->x[i], s->y[i]);
        if (shown) fprintf(pipe, "%.9g %.9g", s->x[i], s->y[i]);
        if (shown && s->spread) fprintf(pipe, " %.9g %.9g", s->y[i] - s->spread[i], s->y[i] + s->spread[i]);
        fputs("\n", pipe); /* an empty line is a gap */
    }
    fputs("EOD\n", pipe);
}

/* Where things are, in logical pixels from the top left corner: gnuplot guesses the room for labels and legend from
 * widths that it does not know in an SVG, so that they are placed here. */
typedef struct frame {
    double height;            /* of the picture: a long legend makes it higher, not its curves flatter */
    double left, top, bottom; /* of the axes */
    int longest;              /* letters of the longest entry of the legend; 0: entries take their own width */
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

typedef struct legend_place {
    double x;
    int line;
} legend_place;

static bool has_entry(const lab_figure *figure, int k) {
    return series_of(figure, k)->shape != LAB_SHAPE_THIN;
}

/* Where the legend entry of series k begins. With `longest` > 0, entries are in columns of that many letters; else each
 * follows the one before it. */
static legend_place place_in_legend(const lab_figure *figure, int k, int longest) {
    enum { AROUND = SAMPLE + 2 * LETTER, LEFT = 16 };
    if (longest > 0) {
        int width = longest * LETTER + AROUND, across = FIGURE_WIDTH * 9 / 10 / width, entry = 0;
        if (across < 1) across = 1;
        for (int i = 0; i < k; i++) entry += has_entry(figure, i);
        return (legend_place){LEFT + entry % across * width, entry / across};
    }
    legend_place at = {LEFT, 0};
    for (int i = 0;; i++) {
        double width = has_entry(figure, i) ? mg_text_columns(lab_legend(figure, i)) * LETTER + AROUND : 0;
        if (at.x > LEFT && at.x + width > FIGURE_WIDTH) at = (legend_place){LEFT, at.line + 1};
        if (i == k) return at;
        at.x += width;
    }
}

static int legend_lines(const lab_figure *figure, int longest) {
    return figure->series.n ? place_in_legend(figure, figure->series.n - 1, longest).line + 1 : 0;
}

static frame frame_of(const lab_figure *figure) {
    enum { MOST_LINES = 3 };
    frame f = {.left = FRAME_LEFT, .longest = 1};
    for (int k = 0; k < figure->series.n; k++) {
        int width = mg_text_columns(lab_legend(figure, k));
        if (width > f.longest) f.longest = width;
    }
    if (legend_lines(figure, f.longest) > MOST_LINES) f.longest = 0;
    int lines = legend_lines(figure, f.longest);
    f.top = 26 + (lines + 1) * LINE;
    f.height = FIGURE_HEIGHT + (lines > 2 ? (lines - 2) * LINE : 0);
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

static void plot_legend(FILE *pipe, const lab_figure *figure, const frame *f) {
    for (int k = 0; k < figure->series.n; k++) {
        const lab_series *s = series_of(figure, k);
        if (!has_entry(figure, k)) continue;
        legend_place at = place_in_legend(figure, k, f->longest);
        double x = at.x, y = 20 + at.line * LINE;
        /* gnuplot's SVG draws arrows of one color with the dashes of the first: floors differ by a shade unseen. */
        unsigned rgb = lab_rgb(s->color) + (s->color == LAB_FLOOR ? (unsigned)lab_floor_index(figure, k) : 0);
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
                    across_screen(x), up, across_screen(x + SAMPLE), up, lab_dash(figure, k), rgb);
        if (s->shape == LAB_SHAPE_POINTS || s->shape == LAB_SHAPE_ERRORS ||
            (s->shape == LAB_SHAPE_LINE && s->n <= FEW_POINTS))
            fprintf(pipe, "set label '' at screen %.4f, screen %.4f point pt 7 ps 0.8 lc rgb '#%06X'\n", middle, up,
                    rgb);
        label_at(pipe, f, lab_legend(figure, k), x + SAMPLE + 8, y, "left", 0x222222);
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
        quoted(pipe, figure->places[i], "'%"); /* the text of a tic is a format */
        fprintf(pipe, " %d", i);
    }
    fputs(")\n", pipe);
}

static void plot_series(FILE *pipe, const lab_figure *figure, int k, int bar, int n_bars) {
    const lab_series *s = series_of(figure, k);
    unsigned rgb = lab_rgb(s->color);
    const char *dash = lab_dash(figure, k);
    double width = 0.8 / (n_bars > 0 ? n_bars : 1);
    switch (s->shape) {
    case LAB_SHAPE_LEVEL: fprintf(pipe, "%.9g with lines %s lw 2 lc rgb '#%06X'", s->y[0], dash, rgb); break;
    case LAB_SHAPE_LINE:
        fprintf(pipe, "$s%d with %s %s lw 2.6 %s lc rgb '#%06X'", k, s->n <= FEW_POINTS ? "linespoints" : "lines", dash,
                s->n <= FEW_POINTS ? "pt 7 ps 0.8" : "", rgb);
        break;
    case LAB_SHAPE_THIN: fprintf(pipe, "$s%d with lines lw 0.7 lc rgb '#B0%06X'", k, rgb); break;
    case LAB_SHAPE_BAND:
        fprintf(pipe,
                "$s%d using 1:3:4 with filledcurves fs transparent solid 0.25 noborder lc rgb '#%06X', $s%d with lines "
                "lw 2.6 lc rgb '#%06X'",
                k, rgb, k, rgb);
        break;
    case LAB_SHAPE_ERRORS: fprintf(pipe, "$s%d with yerrorlines pt 7 ps 0.8 lw 1.8 lc rgb '#%06X'", k, rgb); break;
    case LAB_SHAPE_FIT: fprintf(pipe, "$s%d with lines %s lw 1.6 lc rgb '#%06X'", k, dash, rgb); break;
    case LAB_SHAPE_POINTS: fprintf(pipe, "$s%d with points pt 7 ps 0.9 lc rgb '#%06X'", k, rgb); break;
    case LAB_SHAPE_BARS:
        fprintf(pipe, "$s%d using ($1%+.4f):2:(%.4f) with boxes fs solid noborder lc rgb '#%06X'", k,
                width * (bar - 0.5 * (n_bars - 1)), 0.92 * width, rgb);
        break;
    }
}

/* A bar too low to be seen says how high it is, where that fits. */
static void plot_low_bars(FILE *pipe, const lab_figure *figure, int n_bars) {
    const lab_span up = lab_span_y(figure);
    double width = 0.8 / n_bars, room = width * (FRAME_RIGHT - FRAME_LEFT) / (figure->n_places + 0.2);
    for (int k = 0, bar = 0; k < figure->series.n; k++) {
        const lab_series *s = series_of(figure, k);
        if (s->shape != LAB_SHAPE_BARS) continue;
        double shift = width * (bar++ - 0.5 * (n_bars - 1));
        for (int i = 0; i < s->n; i++) {
            if (!(fabs(s->y[i]) < 0.004 * (up.high - up.low))) continue;
            const char *value = lab_tick_number(figure->lab, s->y[i]);
            if (mg_text_columns(value) * LETTER > room) continue;
            fprintf(pipe, "set label '%s' at %.4f, 0 center offset 0,0.6 tc rgb '#%06X'\n", value, s->x[i] + shift,
                    lab_rgb(s->color));
        }
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

enum { MOST_PLACES = 8 };

/* Few places of a logarithmic axis are marked themselves. */
static void plot_log_places(FILE *pipe, const lab_figure *figure) {
    double at[MOST_PLACES];
    int n = lab_own_places(figure, MOST_PLACES, at);
    fputs("set logscale x\n", pipe);
    for (int i = 0; i < n; i++) fprintf(pipe, "%s%.9g", i ? "," : "set xtics (", at[i]);
    if (n) fputs(")\n", pipe);
}

/* ---- Names of points ---- */

enum { MOST_NAMES = 256, NAME_LETTER = 8, NAME_HIGH = 15 };

typedef struct box {
    double left, right, middle; /* logical pixels; all are NAME_HIGH high */
} box;

static bool is_free(const box *taken, int n, box wanted) {
    if (wanted.left < FRAME_LEFT + 2 || wanted.right > FRAME_RIGHT + 10) return false;
    for (int i = 0; i < n; i++)
        if (fabs(taken[i].middle - wanted.middle) < NAME_HIGH && taken[i].left < wanted.right &&
            wanted.left < taken[i].right)
            return false;
    return true;
}

/* A name is right of its point, else left, above, below or at a corner; where all of that is taken there is none. */
static void plot_name(FILE *pipe, const frame *f, const char *name, double x, double y, box *taken, int *n) {
    static const struct {
        double across, up, from; /* from: the part of its width that lies left of the place */
        const char *how;
    } sides[] = {{8, 0, 0, "left"},  {-8, 0, 1, "right"},  {0, 16, 0.5, "center"}, {0, -16, 0.5, "center"},
                 {8, 16, 0, "left"}, {-8, 16, 1, "right"}, {8, -16, 0, "left"},    {-8, -16, 1, "right"}};
    double width = NAME_LETTER * mg_text_columns(name);
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        double left = x + sides[i].across - sides[i].from * width;
        box wanted = {left, left + width, y - sides[i].up};
        if (*n == MOST_NAMES || wanted.middle > f->bottom - NAME_HIGH / 2 || !is_free(taken, *n, wanted)) continue;
        taken[(*n)++] = wanted;
        label_at(pipe, f, name, x + sides[i].across, wanted.middle, sides[i].how, 0x444444);
        return;
    }
}

static void plot_names(FILE *pipe, const lab_figure *figure, lab_span across, lab_span up) {
    frame f = frame_of(figure);
    box taken[MOST_NAMES];
    int n = 0;
    for (int pass = 0; pass < 2; pass++) /* first the points themselves, which no name may hide */
        for (int k = 0; k < figure->series.n; k++) {
            const lab_series *s = series_of(figure, k);
            for (int i = 0; i < s->n && s->names; i++) {
                if (!lab_can_show(figure, s->x[i], s->y[i])) continue;
                double x = f.left + (FRAME_RIGHT - f.left) * lab_along(across, figure->axes.log_x, s->x[i]);
                double y = f.bottom - (f.bottom - f.top) * lab_along(up, figure->axes.log_y, s->y[i]);
                if (pass == 1)
                    plot_name(pipe, &f, s->names[i], x, y, taken, &n);
                else if (n < MOST_NAMES)
                    taken[n++] = (box){x - 4, x + 4, y};
            }
        }
}

static void plot_figure(FILE *pipe, const lab_figure *figure) {
    fputs("unset label\nunset arrow\nunset object\n", pipe);
    const lab_axes *axes = &figure->axes;
    lab_span x = lab_with_room(lab_span_x(figure), axes->log_x, 0.015), y = lab_span_y(figure);
    fprintf(pipe, "set xrange [%.9g:%.9g]\nset yrange [%.9g:%.9g]\n", x.low, x.high, y.low, y.high);
    if (axes->log_x) plot_log_places(pipe, figure);
    if (!axes->log_x && x.high - x.low <= FEW_POINTS && has_whole_x(figure)) fputs("set xtics 1\n", pipe);
    if (axes->log_y) fputs("set logscale y\n", pipe);
    plot_frame(pipe, figure);
    plot_names(pipe, figure, x, y);
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
    if (n_bars && !axes->log_y) plot_low_bars(pipe, figure, n_bars);
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

/* ---- gnuplot as a process ----
 *
 * The folder's name is nowhere in the script: gnuplot runs in the folder, and its files have names of ours. */

typedef struct plotter {
    FILE *pipe; /* to it */
    pid_t process;
    int folder; /* descriptor of the lab's folder, its current one */
} plotter;

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

/* Without the user's own settings, and in a locale that knows every sign and no decimal comma. One that hangs is ended,
 * where there is a program for that. */
static char *const gnuplot[] = {"env", "-u", "GNUTERM", "LC_ALL=C.UTF-8", "gnuplot", "-d", NULL};
static char *const gnuplot_with_a_limit[] = {
    "env", "-u", "GNUTERM", "LC_ALL=C.UTF-8", "timeout", "-s", "KILL", "60", "gnuplot", "-d", NULL};

MG_NORETURN static void become(char *const *command, int folder, int script) {
    if (fchdir(folder) == 0 && dup2(script, STDIN_FILENO) >= 0) {
        signal(SIGPIPE, SIG_DFL);
        execvp(command[0], command);
    }
    _exit(127);
}

static bool start_gnuplot(plotter *p) {
    int ends[2];
    char *const *command = is_there("timeout") ? gnuplot_with_a_limit : gnuplot;
    if (pipe(ends) != 0) return false;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    p->process = fork();
    if (p->process == 0) become(command, p->folder, ends[0]);
    close(ends[0]);
    p->pipe = p->process > 0 ? fdopen(ends[1], "w") : NULL;
    if (p->pipe) {
        fputs("set encoding utf8\n", p->pipe);
        return true;
    }
    close(ends[1]);
    if (p->process > 0) waitpid(p->process, NULL, 0);
    return false;
}

static bool end_gnuplot(plotter *p) {
    bool written = ferror(p->pipe) == 0;
    int status = -1;
    written = fclose(p->pipe) == 0 && written;
    while (waitpid(p->process, &status, 0) < 0 && errno == EINTR) continue;
    return written && status == 0;
}

/* ---- A picture's two files ---- */

static const char *file_name(mg_lab *lab, const lab_block *block, bool png) {
    return lab_format(lab, "%s.%s", block->kind == LAB_BLOCK_HEATMAP ? block->heatmap->name : block->figure->name,
                      png ? "png" : "svg");
}

static void plot_picture(FILE *pipe, const lab_block *block, const char *temporary, bool png) {
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
    fprintf(pipe, "set output '%s'\n", temporary);
    if (heat)
        lab_heat_plot(pipe, block->heatmap, png);
    else
        plot_figure(pipe, block->figure);
    fputs("unset output\n", pipe);
}

/* Whether a picture's file has the end that its format demands: gnuplot does not notice a full disk. */
static bool is_whole(int folder, const char *name, bool png) {
    static const char png_end[] = "IEND\xAE\x42\x60\x82", svg_end[] = "</svg>";
    char tail[16] = {0};
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) return false;
    bool long_enough = lseek(file, -(off_t)(sizeof tail - 1), SEEK_END) >= 0;
    ssize_t n = long_enough ? read(file, tail, sizeof tail - 1) : 0;
    close(file);
    if (png) return n >= 8 && memcmp(tail + n - 8, png_end, 8) == 0;
    return strstr(tail, svg_end) != NULL;
}

/* The picture takes its name when it is whole, and is removed otherwise, with an older one that it was to replace. */
static bool keep_picture(int folder, const char *temporary, const char *name, bool png, bool drawn) {
    if (drawn && is_whole(folder, temporary, png) && renameat(folder, temporary, folder, name) == 0) return true;
    unlinkat(folder, temporary, 0);
    unlinkat(folder, name, 0);
    return false;
}

/* `wanted` false: none of an earlier run stays beside these numbers. */
static bool draw(mg_lab *lab, plotter *p, const lab_block *block, bool wanted) {
    bool drawn = wanted && start_gnuplot(p);
    const char *name[2];
    char *temporary[2];
    for (int png = 0; png < 2; png++) {
        name[png] = file_name(lab, block, png);
        temporary[png] = mg_temporary_path(name[png], NULL);
        if (!temporary[png]) MG_FAIL(MG_FAILURE_MEMORY, "out of memory for a picture's name");
    }
    if (drawn && block->kind == LAB_BLOCK_FIGURE) {
        fputs(figure_style, p->pipe);
        for (int k = 0; k < block->figure->series.n; k++) plot_points(p->pipe, block->figure, k);
    } else if (drawn) {
        lab_heat_data(p->pipe, block->heatmap);
    }
    if (drawn) {
        for (int png = 1; png >= 0; png--) plot_picture(p->pipe, block, temporary[png], png);
        drawn = end_gnuplot(p);
    }
    bool kept[2];
    for (int png = 0; png < 2; png++) {
        kept[png] = keep_picture(p->folder, temporary[png], name[png], png, drawn);
        mg_free(temporary[png]);
    }
    return kept[0] && kept[1];
}

mg_status lab_draw_pictures(mg_lab *lab, mg_error *error) {
    if (!is_there("gnuplot")) {
        fputs("maskgrad: gnuplot is not installed: the numbers are written, the pictures are not "
              "(Debian's package is gnuplot-nox)\n",
              stderr);
        return MG_OK;
    }
    plotter p = {.folder = open(lab->settings.out_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (p.folder < 0)
        return mg_error_set(error, MG_ERR_IO, "%s cannot be opened: %s", lab->settings.out_dir, strerror(errno));
    /* A gnuplot that ends early must not end us with it: its exit status says so. */
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    sigaction(SIGPIPE, &ignore, &before);
    lab->pictures = true;
    for (int i = 0; i < lab->blocks.n; i++) {
        const lab_block *block = lab->blocks.item[i];
        if (block->kind != LAB_BLOCK_FIGURE && block->kind != LAB_BLOCK_HEATMAP) continue;
        lab->pictures = draw(lab, &p, block, lab->pictures);
    }
    sigaction(SIGPIPE, &before, NULL);
    close(p.folder);
    if (lab->pictures) return MG_OK;
    return mg_error_set(error, MG_ERR_IO,
                        "gnuplot failed: the numbers in %s are written, not all pictures are (is the disk full?)",
                        lab->settings.out_dir);
}
