/* A figure as gnuplot's script: its points as data, legend, axes and series. */
#include "plot.h"
#include "wrap.h"

#include <math.h>

enum { FEW_POINTS = 16 }; /* a line of so few points shows them */

static void plot_points(FILE *pipe, const lab_figure *figure, int k) {
    const lab_series *s = lab_series_of(figure, k);
    fprintf(pipe, "$s%d << EOD\n", k);
    for (int i = 0; i < s->n; i++) {
        bool shown = lab_can_show(figure, s->x[i], s->y[i]);
        if (shown) fprintf(pipe, "%.9g %.9g", s->x[i], s->y[i]);
        if (shown && s->spread) fprintf(pipe, " %.9g %.9g", s->y[i] - s->spread[i], s->y[i] + s->spread[i]);
        fputs("\n", pipe); /* an empty line is a gap */
    }
    fputs("EOD\n", pipe);
}

static void plot_legend(FILE *pipe, const lab_figure *figure, const lab_plot_layout *f) {
    for (int k = 0; k < figure->series.n; k++) {
        const lab_series *s = lab_series_of(figure, k);
        if (!lab_has_entry(figure, k)) continue;
        lab_legend_place at = lab_place_in_legend(figure, k, f->longest);
        double x = at.x, y = 20 + at.line * LAB_PLOT_LINE;
        /* gnuplot's SVG draws arrows of one color with the dashes of the first: floors differ by a shade unseen. */
        unsigned rgb = lab_rgb(s->color) + (s->color == LAB_FLOOR ? (unsigned)lab_floor_index(figure, k) : 0);
        double middle = lab_across_screen(x + LAB_LEGEND_SAMPLE / 2.0), up = lab_up_screen(f, y);
        if (s->shape == LAB_SHAPE_BARS)
            fprintf(pipe,
                    "set object rectangle center screen %.4f, screen %.4f size screen %.4f, screen %.4f fs solid "
                    "noborder fc rgb '#%06X'\n",
                    middle, up, lab_across_screen(LAB_LEGEND_SAMPLE), 12.0 / f->height, rgb);
        else if (s->shape != LAB_SHAPE_POINTS)
            fprintf(pipe,
                    "set arrow from screen %.4f, screen %.4f to screen %.4f, screen %.4f nohead %s lw 2.6 "
                    "lc rgb '#%06X'\n",
                    lab_across_screen(x), up, lab_across_screen(x + LAB_LEGEND_SAMPLE), up, lab_dash(figure, k), rgb);
        if (s->shape == LAB_SHAPE_POINTS || s->shape == LAB_SHAPE_ERRORS ||
            (s->shape == LAB_SHAPE_LINE && s->n <= FEW_POINTS))
            fprintf(pipe, "set label '' at screen %.4f, screen %.4f point pt 7 ps 0.8 lc rgb '#%06X'\n", middle, up,
                    rgb);
        lab_plot_label(pipe, f, lab_legend(figure, k), x + LAB_LEGEND_SAMPLE + 8, y, "left", 0x222222);
    }
}

static void plot_frame(FILE *pipe, const lab_figure *figure) {
    lab_plot_layout f = lab_plot_layout_of(figure);
    fprintf(pipe,
            "set lmargin at screen %.4f\nset rmargin at screen %.4f\nset tmargin at screen %.4f\n"
            "set bmargin at screen %.4f\n",
            lab_across_screen(f.left), lab_across_screen(LAB_FRAME_RIGHT), lab_up_screen(&f, f.top),
            lab_up_screen(&f, f.bottom));
    plot_legend(pipe, figure, &f);
    lab_plot_label(pipe, &f, figure->axes.y, 16, f.top - LAB_PLOT_LINE + 3, "left", 0x555555);
    lab_plot_label(pipe, &f, figure->axes.x, (f.left + LAB_FRAME_RIGHT) / 2, f.height - LAB_PLOT_LINE * 0.62, "center",
                   0x555555);
}

static int count_bars(const lab_figure *figure) {
    int n = 0;
    for (int k = 0; k < figure->series.n; k++) n += lab_series_of(figure, k)->shape == LAB_SHAPE_BARS;
    return n;
}

static void plot_places(FILE *pipe, const lab_figure *figure) {
    fprintf(pipe, "set xtics scale 0 %s (",
            lab_places_are_upright(figure)  ? "rotate by 90 right"
            : lab_places_are_turned(figure) ? "rotate by 35 right"
                                            : "");
    for (int i = 0; i < figure->n_places; i++) {
        fputs(i ? "," : "", pipe);
        lab_plot_tic(pipe, figure->places[i]);
        fprintf(pipe, " %d", i);
    }
    fputs(")\n", pipe);
}

static void plot_series(FILE *pipe, const lab_figure *figure, int k, int bar, int n_bars) {
    const lab_series *s = lab_series_of(figure, k);
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
    double width = 0.8 / n_bars, room = width * (LAB_FRAME_RIGHT - LAB_FRAME_LEFT) / (figure->n_places + 0.2);
    for (int k = 0, bar = 0; k < figure->series.n; k++) {
        const lab_series *s = lab_series_of(figure, k);
        if (s->shape != LAB_SHAPE_BARS) continue;
        double shift = width * (bar++ - 0.5 * (n_bars - 1));
        for (int i = 0; i < s->n; i++) {
            if (!(fabs(s->y[i]) < 0.004 * (up.high - up.low))) continue;
            const char *value = lab_tick_number(figure->lab, s->y[i]);
            if (mg_text_columns(value) * LAB_PLOT_LETTER > room) continue;
            fprintf(pipe, "set label '%s' at %.4f, 0 center offset 0,0.6 tc rgb '#%06X'\n", value, s->x[i] + shift,
                    lab_rgb(s->color));
        }
    }
}

static bool has_whole_x(const lab_figure *figure) {
    for (int k = 0; k < figure->series.n; k++) {
        const lab_series *s = lab_series_of(figure, k);
        for (int i = 0; i < s->n && s->shape != LAB_SHAPE_LEVEL; i++)
            if (s->x[i] != floor(s->x[i])) return false;
    }
    return true;
}

static void plot_ticks(FILE *pipe, const lab_figure *figure, const char *axis, int n, const double *at) {
    for (int i = 0; i < n; i++) {
        fprintf(pipe, i ? "," : "set %stics (", axis);
        lab_plot_tic(pipe, lab_tick_number(figure->lab, at[i]));
        fprintf(pipe, " %.9g", at[i]);
    }
    fputs(")\n", pipe);
}

/* A logarithmic axis is marked at the data's own places where they are few, else at powers of ten. */
static void plot_log_axis(FILE *pipe, const lab_figure *figure, const char *axis, lab_span span, bool own_places) {
    enum { MOST = 8 };
    double at[MOST];
    int n = own_places ? lab_own_places(figure, MOST, at) : 0;
    if (n == 0) n = lab_ticks(span, true, MOST - 1, at);
    fprintf(pipe, "set logscale %s\n", axis);
    plot_ticks(pipe, figure, axis, n, at);
}

/* Numbers that need no power of ten are left to gnuplot. */
static void plot_even_axis(FILE *pipe, const lab_figure *figure, const char *axis, lab_span span) {
    enum { MOST = 10 };
    double at[MOST], largest = fmax(fabs(span.low), fabs(span.high));
    if (largest >= 0.005 && largest < 1e5) return;
    plot_ticks(pipe, figure, axis, lab_ticks(span, false, MOST, at), at);
}

void lab_figure_plot(FILE *pipe, const lab_figure *figure) {
    fputs("unset label\nunset arrow\nunset object\n", pipe);
    const lab_axes *axes = &figure->axes;
    lab_span x = lab_with_room(lab_span_x(figure), axes->log_x, 0.015), y = lab_span_y(figure);
    fprintf(pipe, "set xrange [%.9g:%.9g]\nset yrange [%.9g:%.9g]\n", x.low, x.high, y.low, y.high);
    if (axes->log_x)
        plot_log_axis(pipe, figure, "x", x, true);
    else
        plot_even_axis(pipe, figure, "x", x);
    if (!axes->log_x && x.high - x.low <= FEW_POINTS && has_whole_x(figure)) fputs("set xtics 1\n", pipe);
    if (axes->log_y)
        plot_log_axis(pipe, figure, "y", y, false);
    else
        plot_even_axis(pipe, figure, "y", y);
    plot_frame(pipe, figure);
    lab_plot_names(pipe, figure, x, y);
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
    fputs("plot NaN notitle", pipe);
    for (int k = 0; k < figure->series.n; k++) {
        if (lab_is_shown(figure, k)) {
            fputs(", \\\n  ", pipe);
            plot_series(pipe, figure, k, bar, n_bars);
        }
        bar += lab_series_of(figure, k)->shape == LAB_SHAPE_BARS;
    }
    fputs("\n", pipe);
}

static const char figure_style[] = "set border 3 lw 1 lc rgb '#666666'\n"
                                   "unset key\n"
                                   "set tics nomirror out scale 0.6 tc rgb '#333333'\n"
                                   "set format '%g'\n"
                                   "set minussign\n"
                                   "set grid ytics lt 1 lw 0.6 lc rgb '#E2E2E2'\n";

void lab_figure_data(FILE *pipe, const lab_figure *figure) {
    fputs(figure_style, pipe);
    for (int k = 0; k < figure->series.n; k++) plot_points(pipe, figure, k);
}
