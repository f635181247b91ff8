/* What a report says besides the lab's own texts: a picture in words, for those who do not see it, and the words of
 * report.js. */
#include "lab_private.h"
#include "language.h"

#include <string.h>

static const struct {
    const char *key, *text;
} words[] = {
    {"all", N_("all maps")},
    {"panel", N_("which map to show")},
    {"linear", N_("linear")},
    {"log", N_("log")},
    {"axis", N_("linear or logarithmic")},
    {"reset", N_("whole range")},
    {"toggle", N_("show or hide")},
    {"absent", N_("does not exist")},
    {"alarm", N_("should not be there, or is not a number")},
    {"contents", N_("contents")},
    {"keys", N_("← → turn · v verdicts · p page")},
    {"hint", N_("Point at a curve or a cell for its values, drag along a curve to zoom, and press p for the projector.")},
};

void lab_write_words(FILE *out) {
    fputs("<script type=\"application/json\" id=\"words\">{", out);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        fprintf(out, "%s\"%s\":\"%s\"", i ? "," : "", words[i].key, mg_words(words[i].text));
    fputs("}</script>\n", out);
}

enum { MOST_NAMED = 8 }; /* series of a figure */

/* "masked from 3.2958 to 1.4470"; a level is in its name already. */
static const char *in_words(const lab_figure *figure, int k) {
    const lab_series *s = figure->series.item[k];
    int first = 0, last = s->n - 1;
    while (first < s->n && !isfinite(s->y[first])) first++;
    while (last > first && !isfinite(s->y[last])) last--;
    if (s->shape == LAB_SHAPE_LEVEL) return lab_legend(figure, k);
    if (first == s->n) return lab_format(figure->lab, "%s: no values", s->label);
    if (s->shape == LAB_SHAPE_BARS || s->shape == LAB_SHAPE_POINTS) {
        double low = INFINITY, high = -INFINITY;
        for (int i = 0; i < s->n; i++) {
            low = fmin(low, s->y[i]);
            high = fmax(high, s->y[i]);
        }
        return lab_format(figure->lab, "%s between %.4g and %.4g", s->label, low, high);
    }
    return lab_format(figure->lab, "%s from %.4g to %.4g", s->label, s->y[first], s->y[last]);
}

const char *lab_figure_in_words(const lab_figure *figure) {
    mg_lab *lab = figure->lab;
    lab_span x = lab_span_x(figure);
    const char *text = figure->places ? lab_format(lab, "%s, %s for %d places", figure->title, figure->axes.y, figure->n_places)
                                      : lab_format(lab, "%s, %s against %s from %.4g to %.4g", figure->title,
                                                   figure->axes.y, figure->axes.x, x.low, x.high);
    int named = 0;
    for (int k = 0; k < figure->series.n; k++) {
        if (((const lab_series *)figure->series.item[k])->shape == LAB_SHAPE_THIN || named++ >= MOST_NAMED) continue;
        text = lab_format(lab, "%s%s %s", text, named == 1 ? ":" : ";", in_words(figure, k));
    }
    return named > MOST_NAMED ? lab_format(lab, "%s; and %d more", text, named - MOST_NAMED) : text;
}

const char *lab_heat_in_words(const lab_heatmap *map) {
    mg_lab *lab = map->lab;
    lab_span span = lab_heat_span(map);
    long absent = 0, alarm = 0;
    for (int p = 0; p < map->panels.n; p++) {
        const lab_panel *panel = map->panels.item[p];
        for (int i = 0; i < panel->n_rows * panel->n_columns; i++) {
            lab_cell kind = lab_cell_kind(map, panel, i / panel->n_columns, i % panel->n_columns);
            absent += kind == LAB_CELL_ABSENT;
            alarm += kind == LAB_CELL_ALARM;
        }
    }
    const lab_panel *first = map->panels.item[0];
    const char *text = lab_format(lab, "%s, %s of %d rows%s%s and %d columns%s%s: %s from %.3g to %.3g", map->title,
                                  map->panels.n > 1 ? lab_format(lab, "%d maps", map->panels.n) : "a map", first->n_rows,
                                  map->scale.rows[0] ? ", " : "", map->scale.rows, first->n_columns,
                                  map->scale.columns[0] ? ", " : "", map->scale.columns,
                                  map->scale.unit[0] ? map->scale.unit : "values", span.low, span.high);
    if (absent) text = lab_format(lab, "%s; %ld cells do not exist", text, absent);
    return alarm ? lab_format(lab, "%s; %ld cells should not be there or are not numbers", text, alarm) : text;
}
