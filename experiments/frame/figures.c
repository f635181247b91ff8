/* Pictures with axes, and tables: collecting them, and what follows from their numbers. */
#include "lab_private.h"
#include "language.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

lab_figure *lab_figure_begin(mg_lab *lab, const char *name, const char *title, lab_axes axes) {
    lab_figure *figure = mg_arena_alloc(lab->arena, 1, sizeof *figure, "a picture");
    *figure = (lab_figure){
        .lab = lab, .name = lab_file_name(lab, name), .title = lab_format(lab, "%s", title), .axes = axes};
    figure->axes.x = lab_format(lab, "%s", axes.x ? axes.x : "");
    figure->axes.y = lab_format(lab, "%s", axes.y ? axes.y : "");
    return figure;
}

static const char *const *copy_names(mg_lab *lab, int n, const char *const *names) {
    if (!names) return NULL;
    const char **copy = mg_arena_alloc(lab->arena, (size_t)n, sizeof *copy, "names in a picture");
    for (int i = 0; i < n; i++) copy[i] = lab_format(lab, "%s", names[i]);
    return copy;
}

static lab_series *add_series(lab_figure *figure, lab_list *list, lab_shape shape, lab_color color, const char *label,
                              int n, const double *x, const double *y) {
    mg_lab *lab = figure->lab;
    MG_CHECK(n >= 0, "'%s' of picture '%s' has %d points", label, figure->name, n);
    double *copy = mg_arena_alloc(lab->arena, 2 * (size_t)n + 1, sizeof *copy, "a curve");
    for (int i = 0; i < n; i++) {
        copy[i] = x ? x[i] : i;
        copy[n + i] = y ? y[i] : NAN;
    }
    lab_series *series = mg_arena_alloc(lab->arena, 1, sizeof *series, "a curve");
    *series = (lab_series){shape, color, lab_format(lab, "%s", label), n, copy, copy + n, NULL, NULL};
    lab_list_add(lab, list, series);
    return series;
}

void lab_line(lab_figure *figure, lab_color color, const char *label, int n, const double *x, const double *y) {
    add_series(figure, &figure->series, LAB_SHAPE_LINE, color, label, n, x, y);
}

static void add_spread(lab_figure *figure, lab_shape shape, lab_color color, const char *label, int n, const double *x,
                       const double *y, const double *spread) {
    lab_series *series = add_series(figure, &figure->series, shape, color, label, n, x, y);
    double *copy = mg_arena_alloc(figure->lab->arena, (size_t)n + 1, sizeof *copy, "a curve");
    for (int i = 0; i < n; i++) copy[i] = isfinite(spread[i]) ? spread[i] : 0;
    series->spread = copy;
}

void lab_band(lab_figure *figure, lab_color color, const char *label, int n, const double *x, const double *y,
              const double *spread) {
    add_spread(figure, LAB_SHAPE_BAND, color, label, n, x, y, spread);
}

void lab_errors(lab_figure *figure, lab_color color, const char *label, int n, const double *x, const double *y,
                const double *spread) {
    add_spread(figure, LAB_SHAPE_ERRORS, color, label, n, x, y, spread);
}

void lab_thin_line(lab_figure *figure, lab_color color, int n, const double *x, const double *y) {
    add_series(figure, &figure->series, LAB_SHAPE_THIN, color, "", n, x, y);
}

void lab_points(lab_figure *figure, lab_color color, const char *label, int n, const double *x, const double *y) {
    add_series(figure, &figure->series, LAB_SHAPE_POINTS, color, label, n, x, y);
}

void lab_named_points(lab_figure *figure, lab_color color, const char *label, int n, const char *const *names,
                      const double *x, const double *y) {
    lab_series *series = add_series(figure, &figure->series, LAB_SHAPE_POINTS, color, label, n, x, y);
    series->names = copy_names(figure->lab, n, names);
}

void lab_floor_curve(lab_figure *figure, const char *label, int n, const double *x, const double *y) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += y[i];
    lab_line(figure, LAB_FLOOR, lab_format(figure->lab, "%s, mean: %.4g", label, sum / n), n, x, y);
}

void lab_floor(lab_figure *figure, const char *label, double y) {
    add_series(figure, &figure->series, LAB_SHAPE_LEVEL, LAB_FLOOR, label, 1, NULL, &y);
}

void lab_vertical(lab_figure *figure, const char *label, double x) {
    add_series(figure, &figure->verticals, LAB_SHAPE_LEVEL, LAB_FLOOR, label, 1, &x, NULL);
}

void lab_bars(lab_figure *figure, lab_color color, const char *label, int n, const char *const *names,
              const double *y) {
    MG_CHECK(!figure->places || figure->n_places == n, "the bars of picture '%s' have %d and %d names", figure->name,
             figure->n_places, n);
    if (!figure->places) {
        figure->places = copy_names(figure->lab, n, names);
        figure->n_places = n;
    }
    add_series(figure, &figure->series, LAB_SHAPE_BARS, color, label, n, NULL, y);
}

double lab_fit_power(lab_figure *figure, lab_color color, const char *label, int n, const double *x, const double *y) {
    /* Least squares of log y on log x. */
    double count = 0, sum_x = 0, sum_y = 0, low = INFINITY, high = 0;
    for (int i = 0; i < n; i++) {
        if (!(isfinite(x[i]) && isfinite(y[i]) && x[i] > 0 && y[i] > 0)) continue;
        count++;
        sum_x += log(x[i]);
        sum_y += log(y[i]);
        low = fmin(low, x[i]);
        high = fmax(high, x[i]);
    }
    double covariance = 0, variance = 0;
    for (int i = 0; i < n; i++) {
        if (!(isfinite(x[i]) && isfinite(y[i]) && x[i] > 0 && y[i] > 0)) continue;
        double dx = log(x[i]) - sum_x / count;
        covariance += dx * (log(y[i]) - sum_y / count);
        variance += dx * dx;
    }
    if (!(count >= 2 && variance > 0)) return NAN;
    double power = covariance / variance, factor = exp(sum_y / count - power * sum_x / count);

    enum { STEPS = 33 };
    double fit_x[STEPS], fit_y[STEPS];
    for (int i = 0; i < STEPS; i++) {
        fit_x[i] = low * pow(high / low, i / (STEPS - 1.0));
        fit_y[i] = factor * pow(fit_x[i], power);
    }
    add_series(figure, &figure->series, LAB_SHAPE_FIT, color, lab_format(figure->lab, "%s: x^%.2f", label, power),
               STEPS, fit_x, fit_y);
    return power;
}

void lab_figure_end(lab_figure *figure, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    figure->caption = lab_vformat(figure->lab, format, arguments);
    va_end(arguments);
    lab_add_block(figure->lab, (lab_block){.kind = LAB_BLOCK_FIGURE, .figure = figure});
}

bool lab_is_shown(const lab_figure *figure, int k) {
    const lab_series *s = figure->series.item[k];
    int i = 0;
    while (i < s->n && !lab_can_show(figure, s->x[i], s->y[i])) i++;
    return i < s->n;
}

/* A floor with its value, and what a logarithmic axis cannot show. */
const char *lab_legend(const lab_figure *figure, int k) {
    const lab_series *s = figure->series.item[k];
    if (s->shape == LAB_SHAPE_LEVEL) return lab_format(figure->lab, "%s: %.4g", s->label, s->y[0]);
    bool all_zero = s->n > 0 && !lab_is_shown(figure, k);
    for (int i = 0; i < s->n; i++) all_zero = all_zero && s->y[i] == 0;
    return all_zero ? lab_format(figure->lab, "%s: 0", s->label) : s->label;
}

/* ---- The extent of the axes ---- */

bool lab_can_show(const lab_figure *figure, double x, double y) {
    return isfinite(x) && isfinite(y) && (!figure->axes.log_x || x > 0) && (!figure->axes.log_y || y > 0);
}

static void widen(lab_span *span, double value) {
    span->low = fmin(span->low, value);
    span->high = fmax(span->high, value);
}

static lab_span usable(lab_span span, bool log) {
    if (!(span.low <= span.high)) return (lab_span){log ? 0.1 : 0, 1}; /* nothing to show */
    if (span.low < span.high) return span;
    if (log) return (lab_span){span.low / 2, span.high * 2};
    double half = span.low != 0 ? fabs(span.low) / 2 : 0.5;
    return (lab_span){span.low - half, span.high + half};
}

lab_span lab_with_room(lab_span span, bool log_scale, double part) {
    if (log_scale) {
        double room = pow(span.high / span.low, part);
        return (lab_span){span.low / room, span.high * room};
    }
    double room = part * (span.high - span.low);
    return (lab_span){span.low - room, span.high + room};
}

lab_span lab_span_x(const lab_figure *figure) {
    lab_span span = {INFINITY, -INFINITY};
    for (int k = 0; k < figure->series.n; k++) {
        const lab_series *s = figure->series.item[k];
        for (int i = 0; i < s->n && s->shape != LAB_SHAPE_LEVEL; i++)
            if (lab_can_show(figure, s->x[i], s->y[i])) widen(&span, s->x[i]);
    }
    for (int k = 0; k < figure->verticals.n; k++) {
        const lab_series *s = figure->verticals.item[k];
        if (lab_can_show(figure, s->x[0], 1)) widen(&span, s->x[0]);
    }
    if (figure->places) return (lab_span){-0.6, figure->n_places - 0.4};
    return usable(span, figure->axes.log_x);
}

lab_span lab_span_y(const lab_figure *figure) {
    const lab_axes *axes = &figure->axes;
    if (axes->y_low < axes->y_high) return (lab_span){axes->y_low, axes->y_high};
    lab_span span = {INFINITY, -INFINITY};
    for (int k = 0; k < figure->series.n; k++) {
        const lab_series *s = figure->series.item[k];
        for (int i = 0; i < s->n; i++) {
            double x = s->shape == LAB_SHAPE_LEVEL ? 1 : s->x[i];
            for (int side = -1; side <= 1; side++) {
                double y = s->y[i] + side * (s->spread ? s->spread[i] : 0);
                if (lab_can_show(figure, x, y)) widen(&span, y);
            }
        }
    }
    if (!axes->log_y && (figure->places || axes->y_from_zero)) widen(&span, 0);
    bool none_below_zero = !axes->log_y && span.low >= 0;
    span = lab_with_room(usable(span, axes->log_y), axes->log_y, 0.04);
    if (none_below_zero && span.low < 0) span.low = 0;
    return span;
}

double lab_along(lab_span span, bool log_scale, double value) {
    if (log_scale) return log(value / span.low) / log(span.high / span.low);
    return (value - span.low) / (span.high - span.low);
}

/* ---- Tables ---- */

enum { UNIT_SEPARATOR = 31 }; /* separates cells while they are one text; no cell holds it */

static char *divided_at_tabs(mg_lab *lab, const char *text) {
    char *divided = lab_format(lab, "%s", text);
    for (char *c = divided; *c; c++)
        if (*c == '\t') *c = UNIT_SEPARATOR;
    return divided;
}

/* Where the next cell begins; NULL: there is none. */
static char *cut_cell(char *text) {
    char *end = strchr(text, UNIT_SEPARATOR);
    if (end) *end++ = '\0';
    return end;
}

/* `words` is the same row in the user's language. */
static void add_cells(lab_table *table, char *text, char *words) {
    mg_lab *lab = table->lab;
    int n = 1;
    for (const char *c = text; *c; c++) n += *c == UNIT_SEPARATOR;
    if (table->rows.n == 0) table->n_columns = n;
    MG_CHECK(n == table->n_columns, "a row of table '%s' has %d cells, its header %d", table->name, n,
             table->n_columns);
    const char **cells = mg_arena_alloc(lab->arena, (size_t)n, sizeof *cells, "a table's row");
    for (int i = 0; i < n; i++) {
        cells[i] = text;
        text = cut_cell(text);
        const char *shown = words;
        words = words ? cut_cell(words) : NULL;
        if (shown) lab_remember(lab, cells[i], shown);
    }
    lab_list_add(lab, &table->rows, cells);
}

lab_table *lab_table_begin(mg_lab *lab, const char *name, const char *title, const char *columns) {
    lab_table *table = mg_arena_alloc(lab->arena, 1, sizeof *table, "a table");
    *table = (lab_table){.lab = lab, .name = lab_file_name(lab, name), .title = lab_format(lab, "%s", title)};
    add_cells(table, divided_at_tabs(lab, columns), divided_at_tabs(lab, mg_words(columns)));
    return table;
}

void lab_table_row(lab_table *table, const char *format, ...) {
    /* The tabs of the format divide the cells, those inside an argument do not: so the format is divided first. */
    const char *divided = divided_at_tabs(table->lab, format);
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    char *text = lab_vformat(table->lab, divided, arguments);
    char *words = lab_vwords(table->lab, divided_at_tabs(table->lab, mg_words(format)), again);
    va_end(again);
    va_end(arguments);
    add_cells(table, text, words);
}

/* What a cell of numbers may say instead of one. */
static bool is_none(const char *cell) {
    static const char *const words[] = {"", "-", "–", N_("never")};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(cell, words[i]) == 0 || strcmp(cell, mg_words(words[i])) == 0) return true;
    return false;
}

static bool is_number(const char *cell) {
    char *end;
    strtod(cell, &end);
    while (*end == ' ' || *end == '%') end++;
    return end != cell && *end == '\0';
}

bool lab_column_is_numbers(const lab_table *table, int column) {
    int numbers = 0;
    for (int r = 1; r < table->rows.n; r++) {
        const char *cell = ((const char *const *)table->rows.item[r])[column];
        if (is_number(cell))
            numbers++;
        else if (!is_none(cell))
            return false;
    }
    return numbers > 0;
}

void lab_table_end(lab_table *table, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    table->caption = lab_vformat(table->lab, format, arguments);
    va_end(arguments);
    lab_add_block(table->lab, (lab_block){.kind = LAB_BLOCK_TABLE, .table = table});
}
