/* What the files share that draw a figure with gnuplot: where things are in it, in logical pixels from the top left
 * corner, and who writes which part of the script. A heat map is in plot_heat.c. */
#ifndef MASKGRAD_PLOT_H
#define MASKGRAD_PLOT_H

#include "lab_private.h"

#include <sys/types.h>

/* Logical pixels, at a text of 16; LAB_LEGEND_SAMPLE: the piece of line before a legend entry. */
enum { LAB_FIGURE_WIDTH = 600, LAB_PLOT_LETTER = 9, LAB_PLOT_LINE = 21 };
enum { LAB_FRAME_LEFT = 76, LAB_FRAME_RIGHT = 582, LAB_LEGEND_SAMPLE = 30 };

/* plot_layout.c. gnuplot guesses the room for labels and legend from widths that it does not know in an SVG, so that
 * they are placed here. */
typedef struct lab_plot_layout {
    double height;            /* of the picture: a long legend makes it higher, not its curves flatter */
    double left, top, bottom; /* of the axes */
    int longest;              /* letters of the longest entry of the legend; 0: entries take their own width */
} lab_plot_layout;

typedef struct lab_legend_place {
    double x;
    int line;
} lab_legend_place;

lab_plot_layout lab_plot_layout_of(const lab_figure *figure);
bool lab_has_entry(const lab_figure *figure, int k); /* of series k in the legend */
/* Where the legend entry of series k begins. With `longest` > 0, entries are in columns of that many letters; else each
 * follows the one before it. */
lab_legend_place lab_place_in_legend(const lab_figure *figure, int k, int longest);
/* The names under bars are slanted, or upright where so many slanted ones would run into each other. */
bool lab_places_are_turned(const lab_figure *figure);
bool lab_places_are_upright(const lab_figure *figure);

static inline const lab_series *lab_series_of(const lab_figure *figure, int k) {
    return figure->series.item[k];
}

static inline double lab_across_screen(double x) {
    return x / LAB_FIGURE_WIDTH;
}

static inline double lab_up_screen(const lab_plot_layout *f, double y) {
    return 1 - y / f->height;
}

/* plot_text.c. A tic's text is a format to gnuplot. `how`: the alignment. */
void lab_plot_tic(FILE *pipe, const char *text);
void lab_plot_label(FILE *pipe, const lab_plot_layout *f, const char *text, double x, double y, const char *how,
                    unsigned rgb);

/* plot_figure.c: the data and settings that both of its pictures need, once; then the figure, for each. */
void lab_figure_data(FILE *pipe, const lab_figure *figure);
void lab_figure_plot(FILE *pipe, const lab_figure *figure);

/* plot_names.c: the names of points, where there is room. The spans are those of the axes. */
void lab_plot_names(FILE *pipe, const lab_figure *figure, lab_span across, lab_span up);

/* gnuplot.c */
typedef struct lab_gnuplot {
    FILE *pipe; /* to it */
    pid_t process;
    int folder; /* descriptor of the lab's folder, its current one */
} lab_gnuplot;

bool lab_gnuplot_is_installed(void);
bool lab_gnuplot_start(lab_gnuplot *p);
bool lab_gnuplot_end(lab_gnuplot *p); /* whether it drew all that it was given */

#endif
