/* Where axes, labels and legend of a figure are. */
#include "plot.h"
#include "wrap.h"

enum { FIGURE_HEIGHT = 400 }; /* logical pixels; more if the legend is long */

static int longest_place(const lab_figure *figure) {
    int longest = 0;
    for (int i = 0; i < figure->n_places; i++) {
        int width = mg_text_columns(figure->places[i]);
        if (width > longest) longest = width;
    }
    return longest;
}

bool lab_places_are_turned(const lab_figure *figure) {
    return (longest_place(figure) + 1) * LAB_PLOT_LETTER * figure->n_places > LAB_FIGURE_WIDTH * 8 / 10;
}

bool lab_places_are_upright(const lab_figure *figure) {
    enum { MOST_SLANTED = 16 };
    return lab_places_are_turned(figure) && figure->n_places > MOST_SLANTED;
}

bool lab_has_entry(const lab_figure *figure, int k) {
    return lab_series_of(figure, k)->shape != LAB_SHAPE_THIN;
}

lab_legend_place lab_place_in_legend(const lab_figure *figure, int k, int longest) {
    enum { AROUND = LAB_LEGEND_SAMPLE + 2 * LAB_PLOT_LETTER, LEFT = 16 };
    if (longest > 0) {
        int width = longest * LAB_PLOT_LETTER + AROUND, across = LAB_FIGURE_WIDTH * 9 / 10 / width, entry = 0;
        if (across < 1) across = 1;
        for (int i = 0; i < k; i++) entry += lab_has_entry(figure, i);
        return (lab_legend_place){LEFT + entry % across * width, entry / across};
    }
    lab_legend_place at = {LEFT, 0};
    for (int i = 0;; i++) {
        double width = lab_has_entry(figure, i) ? mg_text_columns(lab_legend(figure, i)) * LAB_PLOT_LETTER + AROUND : 0;
        if (at.x > LEFT && at.x + width > LAB_FIGURE_WIDTH) at = (lab_legend_place){LEFT, at.line + 1};
        if (i == k) return at;
        at.x += width;
    }
}

static int legend_lines(const lab_figure *figure, int longest) {
    return figure->series.n ? lab_place_in_legend(figure, figure->series.n - 1, longest).line + 1 : 0;
}

lab_plot_layout lab_plot_layout_of(const lab_figure *figure) {
    enum { MOST_LINES = 3 };
    lab_plot_layout f = {.left = LAB_FRAME_LEFT, .longest = 1};
    for (int k = 0; k < figure->series.n; k++) {
        int width = mg_text_columns(lab_legend(figure, k));
        if (width > f.longest) f.longest = width;
    }
    if (legend_lines(figure, f.longest) > MOST_LINES) f.longest = 0;
    int lines = legend_lines(figure, f.longest);
    f.top = 26 + (lines + 1) * LAB_PLOT_LINE;
    f.height = FIGURE_HEIGHT + (lines > 2 ? (lines - 2) * LAB_PLOT_LINE : 0);
    f.bottom = f.height - 3.1 * LAB_PLOT_LINE;
    if (lab_places_are_turned(figure))
        f.bottom = f.height - 2 * LAB_PLOT_LINE -
                   longest_place(figure) * LAB_PLOT_LETTER * (lab_places_are_upright(figure) ? 1 : 0.55);
    return f;
}

lab_canvas lab_figure_canvas(const lab_figure *figure) {
    return (lab_canvas){LAB_FIGURE_WIDTH, (int)lab_plot_layout_of(figure).height};
}
