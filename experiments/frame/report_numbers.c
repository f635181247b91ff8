/* A picture's numbers as JSON in the report, the same as in its CSV: report.js draws them. */
#include "lab_private.h"
#include "printable.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_VALUES = 200000 }; /* of a picture: with more it stays an image, or its page would be slow */

static json_t *number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *numbers(int n, const double *values) {
    json_t *array = json_array();
    for (int i = 0; values && i < n; i++) json_array_append_new(array, number(values[i]));
    return array;
}

/* A token need not be UTF-8. */
static json_t *shown(const char *text) {
    json_t *string = json_string(text);
    return string ? string : json_string(mg_shown(text).text);
}

static json_t *texts(int n, const char *const *values) {
    json_t *array = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(array, shown(values[i]));
    return array;
}

static json_t *span(lab_span of) {
    return json_pack("[oo]", number(of.low), number(of.high));
}

/* "dt (9,5)" of gnuplot is "9,5" of SVG. */
static const char *dashes(mg_lab *lab, const char *gnuplot) {
    const char *from = strchr(gnuplot, '(');
    return from ? lab_format(lab, "%.*s", (int)strcspn(from + 1, ")"), from + 1) : NULL;
}

static json_t *series(const lab_figure *figure, int k) {
    static const char *const shapes[] = {
        [LAB_SHAPE_LINE] = "line",     [LAB_SHAPE_THIN] = "thin", [LAB_SHAPE_BAND] = "band", [LAB_SHAPE_ERRORS] = "errors",
        [LAB_SHAPE_POINTS] = "points", [LAB_SHAPE_BARS] = "bars", [LAB_SHAPE_FIT] = "fit",   [LAB_SHAPE_LEVEL] = "level"};
    const lab_series *s = figure->series.item[k];
    bool thin = s->shape == LAB_SHAPE_THIN, level = s->shape == LAB_SHAPE_LEVEL;
    return json_pack("{ss ss ss* so* so* sb so so so* so*}", "shape", shapes[s->shape], "rgb",
                     lab_format(figure->lab, "#%06x", lab_rgb(s->color)), "dash", dashes(figure->lab, lab_dash(figure, k)),
                     "label", thin ? NULL : shown(lab_legend(figure, k)), "plain", s->label ? shown(s->label) : NULL, "entry", !thin, "x",
                     numbers(level ? 0 : s->n, s->x), "y", numbers(s->n, s->y), "spread",
                     s->spread ? numbers(s->n, s->spread) : NULL, "names", s->names ? texts(s->n, s->names) : NULL);
}

static json_t *figure_numbers(const lab_figure *figure) {
    int values = 0;
    json_t *all = json_array(), *verticals = json_array();
    for (int k = 0; k < figure->series.n; k++) {
        values += ((const lab_series *)figure->series.item[k])->n;
        if (values <= MOST_VALUES) json_array_append_new(all, series(figure, k));
    }
    for (int k = 0; k < figure->verticals.n; k++) {
        const lab_series *s = figure->verticals.item[k];
        json_array_append_new(verticals, json_pack("{so so}", "x", number(s->x[0]), "label", shown(s->label)));
    }
    json_t *made = json_pack("{ss ss sb sb so so so* so so}", "x", figure->axes.x, "y", figure->axes.y, "logX",
                             figure->axes.log_x, "logY", figure->axes.log_y, "spanX",
                             span(lab_with_room(lab_span_x(figure), figure->axes.log_x, 0.015)), "spanY",
                             span(lab_span_y(figure)), "places",
                             figure->places ? texts(figure->n_places, figure->places) : NULL, "series", all, "verticals",
                             verticals);
    if (values <= MOST_VALUES) return made;
    json_decref(made);
    return NULL;
}

static json_t *ticks(mg_lab *lab, const char *const *labels, int n) {
    json_t *array = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(array, shown(lab_tick(lab, labels, i)));
    return array;
}

/* One letter per cell: v a value, 0 exactly 0, - absent, ! an alarm. */
static json_t *panel_numbers(const lab_heatmap *map, const lab_panel *panel) {
    static const char letters[] = {
        [LAB_CELL_VALUE] = 'v', [LAB_CELL_ZERO] = '0', [LAB_CELL_ABSENT] = '-', [LAB_CELL_ALARM] = '!'};
    ptrdiff_t n = (ptrdiff_t)panel->n_rows * panel->n_columns;
    char *kinds = mg_arena_alloc(map->lab->arena, (size_t)n + 1, 1, "the cells of a map");
    json_t *values = json_array();
    for (ptrdiff_t i = 0; i < n; i++) {
        int row = (int)(i / panel->n_columns), column = (int)(i % panel->n_columns);
        kinds[i] = letters[lab_cell_kind(map, panel, row, column)];
        json_array_append_new(values, number((double)panel->values[i]));
    }
    kinds[n] = '\0';
    return json_pack("{so so so so ss}", "title", shown(panel->title), "rows", ticks(map->lab, panel->row_labels, panel->n_rows),
                     "columns", ticks(map->lab, panel->column_labels, panel->n_columns), "values", values, "kinds", kinds);
}

/* Rows and columns are the same tokens, as in a map of attention. */
static bool is_of_tokens(const lab_panel *panel) {
    if (!panel->row_labels || !panel->column_labels || panel->n_rows != panel->n_columns) return false;
    for (int i = 0; i < panel->n_rows; i++)
        if (strcmp(panel->row_labels[i], panel->column_labels[i]) != 0) return false;
    return true;
}

static json_t *map_numbers(const lab_heatmap *map) {
    ptrdiff_t values = 0;
    bool tokens = true;
    for (int p = 0; p < map->panels.n; p++) {
        const lab_panel *panel = map->panels.item[p];
        values += (ptrdiff_t)panel->n_rows * panel->n_columns;
        tokens = tokens && is_of_tokens(panel);
    }
    if (values > MOST_VALUES) return NULL;
    json_t *panels = json_array();
    for (int p = 0; p < map->panels.n; p++) json_array_append_new(panels, panel_numbers(map, map->panels.item[p]));
    return json_pack("{ss ss ss sb sb sb so so}", "unit", map->scale.unit, "rows", map->scale.rows, "columns",
                     map->scale.columns, "log", map->scale.log, "numbers", map->scale.numbers, "tokens", tokens, "span",
                     span(lab_heat_span(map)), "panels", panels);
}

static void write_numbers(FILE *out, json_t *json) {
    char *text = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    if (text) {
        fputs("<script type=\"application/json\" class=\"numbers\">", out);
        for (const char *c = text; *c; c++) /* so that no text of it can end the script */
            if (*c == '<')
                fputs("\\u003c", out);
            else
                fputc(*c, out);
        fputs("</script>\n", out);
    }
    free(text);
    json_decref(json);
}

void lab_write_block_numbers(FILE *out, const lab_block *block) {
    write_numbers(out, block->kind == LAB_BLOCK_FIGURE ? figure_numbers(block->figure) : map_numbers(block->heatmap));
}
