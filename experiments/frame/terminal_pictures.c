/* Curves and heat maps in characters. */
#include "lab_private.h"
#include "wrap.h"

#include <math.h>
#include <string.h>

enum { PLOT_COLUMNS = LAB_COLUMNS - 14, PLOT_LINES = 14, N_GLYPHS = 6, N_LETTERS = 26 };

static const char *const glyphs_utf8[N_GLYPHS] = {"●", "○", "▲", "△", "■", "□"};
static const char *const glyphs_ascii[N_GLYPHS] = {"*", "o", "x", "+", "#", "@"};
static const char *const letters[N_LETTERS] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m",
                                               "n", "o", "p", "q", "r", "s", "t", "u", "v", "w", "x", "y", "z"};

/* A grid of glyphs, NULL where nothing is; what is drawn first stays on top. */
typedef struct grid {
    int columns; /* at most PLOT_COLUMNS, after an axis of 11 */
    const char *at[PLOT_LINES][PLOT_COLUMNS];
} grid;

static void put(grid *g, double along_x, double along_y, const char *glyph) {
    int column = (int)lround(along_x * (g->columns - 1)), line = (int)lround((1 - along_y) * (PLOT_LINES - 1));
    if (column < 0 || column >= g->columns || line < 0 || line >= PLOT_LINES || g->at[line][column]) return;
    g->at[line][column] = glyph;
}

/* Two floors have two marks. */
static const char *dash_of(const lab_figure *figure, int k, bool utf8) {
    static const char *const marks[][2] = {{"-", "╌"}, {"=", "═"}, {".", "┄"}};
    return marks[lab_floor_index(figure, k) % 3][utf8];
}

static bool is_dashed(const lab_series *s) {
    return s->color == LAB_FLOOR || s->shape == LAB_SHAPE_FIT;
}

/* The mark of the i-th series that is not dashed: letters where there are more series than shapes. */
static const char *glyph_of(const lab_figure *figure, int i, bool utf8) {
    int n = 0;
    for (int k = 0; k < figure->series.n; k++) {
        const lab_series *s = figure->series.item[k];
        n += !is_dashed(s) && s->shape != LAB_SHAPE_THIN;
    }
    if (n > N_GLYPHS) return letters[i % N_LETTERS];
    return (utf8 ? glyphs_utf8 : glyphs_ascii)[i];
}

static void put_series(grid *g, const lab_figure *figure, const lab_series *s, const char *glyph) {
    const lab_axes *axes = &figure->axes;
    lab_span x = lab_span_x(figure), y = lab_span_y(figure);
    for (int i = 0; i < s->n; i++) {
        if (!lab_can_show(figure, s->x[i], s->y[i])) continue;
        put(g, lab_along(x, axes->log_x, s->x[i]), lab_along(y, axes->log_y, s->y[i]), glyph);
    }
}

static void put_level(grid *g, const lab_figure *figure, double level, const char *dash) {
    double along = lab_along(lab_span_y(figure), figure->axes.log_y, level);
    for (int c = 0; c < g->columns; c += 2) put(g, c / (g->columns - 1.0), along, dash);
}

static void print_grid(const grid *g, const lab_figure *figure, bool utf8) {
    lab_span y = lab_span_y(figure);
    for (int r = 0; r < PLOT_LINES; r++) {
        char tick[16] = "";
        double along = 1 - r / (PLOT_LINES - 1.0);
        if (r == 0 || r == PLOT_LINES - 1 || r == PLOT_LINES / 2)
            snprintf(tick, sizeof tick, "%.3g",
                     figure->axes.log_y ? y.low * pow(y.high / y.low, along) : y.low + along * (y.high - y.low));
        printf("%9s %s", tick, utf8 ? "│" : "|");
        int last = g->columns;
        while (last > 0 && !g->at[r][last - 1]) last--;
        for (int c = 0; c < last; c++) fputs(g->at[r][c] ? g->at[r][c] : " ", stdout);
        fputs("\n", stdout);
    }
    printf("%9s %s", "", utf8 ? "└" : "+");
    for (int c = 0; c < g->columns; c++) fputs(utf8 ? "─" : "-", stdout);
    fputs("\n", stdout);
}

/* A column of names is as wide as its longest, up to a limit. */
static void widen(int *width, const char *text, int limit) {
    int needs = mg_text_columns(text);
    if (needs > limit) needs = limit;
    if (needs > *width) *width = needs;
}

static void print_bars(mg_lab *lab, const lab_figure *figure, bool utf8) {
    lab_span y = lab_span_y(figure);
    int columns = lab_columns(lab), place = 0, label = 0;
    for (int i = 0; i < figure->n_places; i++) widen(&place, lab_shown_line(lab, figure->places[i]), columns * 3 / 10);
    for (int k = 0; k < figure->series.n; k++)
        widen(&label, lab_shown_line(lab, ((const lab_series *)figure->series.item[k])->label), columns * 3 / 10);
    int longest = columns - place - label - 14;
    longest = longest > 30 ? 30 : longest < 1 ? 1 : longest;
    for (int i = 0; i < figure->n_places; i++)
        for (int k = 0; k < figure->series.n; k++) {
            const lab_series *s = figure->series.item[k];
            if (s->shape != LAB_SHAPE_BARS) continue;
            printf("  %s %s", lab_padded(lab, k ? "" : lab_shown_line(lab, figure->places[i]), place, false),
                   lab_padded(lab, lab_shown_line(lab, s->label), label, false));
            fputs(" ", stdout);
            bool shown = lab_can_show(figure, 1, s->y[i]);
            int length = shown ? (int)lround(longest * lab_along(y, figure->axes.log_y, s->y[i])) : 0;
            for (int c = 0; c < length && c < longest; c++) fputs(utf8 ? "█" : "#", stdout);
            printf(" %.4g\n", s->y[i]);
        }
}

void lab_print_figure(mg_lab *lab, const lab_figure *figure) {
    bool utf8 = lab->settings.terminal.utf8;
    if (figure->places) {
        print_bars(lab, figure, utf8);
        return;
    }
    grid g = {.columns = lab_columns(lab) - 14};
    for (int k = 0, used = 0; k < figure->series.n; k++) {
        const lab_series *s = figure->series.item[k];
        if (s->shape == LAB_SHAPE_LEVEL || s->shape == LAB_SHAPE_THIN) continue;
        put_series(&g, figure, s, is_dashed(s) ? dash_of(figure, k, utf8) : glyph_of(figure, used, utf8));
        used += !is_dashed(s);
    }
    for (int k = 0; k < figure->series.n; k++) {
        const lab_series *s = figure->series.item[k];
        if (s->shape == LAB_SHAPE_LEVEL) put_level(&g, figure, s->y[0], dash_of(figure, k, utf8));
    }
    lab_print_wrapped(lab, "          ", "          ", figure->axes.y);
    print_grid(&g, figure, utf8);
    lab_span x = lab_span_x(figure);
    if (!figure->axes.log_x && fabs(x.low) < 1e-6 * (x.high - x.low)) x.low = 0; /* rounding, not a place */
    const char *name = lab_shown_line(lab, figure->axes.x);
    char low[16], high[16];
    snprintf(low, sizeof low, "%.4g", x.low);
    snprintf(high, sizeof high, "%.4g", x.high);
    /* Between the ends of the axis, as near to its middle as they let it. */
    int room = g.columns - (int)strlen(low) - (int)strlen(high);
    int before = (g.columns - mg_text_columns(name)) / 2 - (int)strlen(low);
    bool fits = room >= mg_text_columns(name) + 2;
    if (before < 1) before = 1;
    if (fits)
        printf("%11s%s%*s%s%*s%s\n", "", low, before, "", name, room - before - mg_text_columns(name), "", high);
    else
        printf("%11s%s%*s%s\n", "", low, room, "", high);
    if (!fits) lab_print_wrapped(lab, "           ", "           ", figure->axes.x);
    for (int k = 0, used = 0; k < figure->series.n; k++) {
        const lab_series *s = figure->series.item[k];
        if (s->shape == LAB_SHAPE_THIN) continue;
        const char *mark = is_dashed(s) ? dash_of(figure, k, utf8) : glyph_of(figure, used, utf8);
        lab_print_wrapped(lab, lab_format(lab, "          %s ", mark), "            ", lab_legend(figure, k));
        used += !is_dashed(s);
    }
}

/* ---- Heat maps ---- */

static const char *const shades_utf8[] = {"░░", "▒▒", "▓▓", "██"};
static const char *const shades_ascii[] = {"::", "++", "**", "##"};
enum { N_SHADES = 4 };

static const char *cell_text(const lab_heatmap *map, lab_span span, const lab_panel *panel, int row, int column,
                             bool utf8) {
    double value = (double)panel->values[(ptrdiff_t)row * panel->n_columns + column];
    switch (lab_cell_kind(map, panel, row, column)) {
    case LAB_CELL_ABSENT: return utf8 ? "· " : ". ";
    case LAB_CELL_ALARM: return "!!";
    case LAB_CELL_ZERO: return "0 ";
    case LAB_CELL_VALUE: break;
    }
    if (value == 0) return "0 ";
    int shade = (int)(N_SHADES * lab_along(span, map->scale.log, value));
    shade = shade < 0 ? 0 : shade >= N_SHADES ? N_SHADES - 1 : shade;
    return (utf8 ? shades_utf8 : shades_ascii)[shade];
}

/* The rows' tokens and a space: as wide as the longest, as long as that leaves most of the line to the cells. */
static int gutter(const lab_heatmap *map) {
    int width = 8;
    for (int p = 0; p < map->panels.n; p++) {
        const lab_panel *panel = map->panels.item[p];
        for (int row = 0; panel->row_labels && row < panel->n_rows; row++)
            widen(&width, lab_shown_line(map->lab, lab_tick(map->lab, panel->row_labels, row)),
                  lab_columns(map->lab) / 5);
    }
    return width + 1;
}

static int stride(const lab_heatmap *map, int n) {
    int most = (lab_columns(map->lab) - gutter(map) - 2) / 2;
    return (n + most - 1) / most;
}

static int panel_width(const lab_heatmap *map, const lab_panel *panel) {
    int step = stride(map, panel->n_columns), most = lab_columns(map->lab) - gutter(map) - 2;
    int cells = 2 * ((panel->n_columns + step - 1) / step), title = mg_text_columns(panel->title);
    if (title > most) title = most;
    return gutter(map) + (cells > title ? cells : title) + 2;
}

/* The first letter of a token, after the space that most of GPT-2's begin with, or the last digit of a number. */
static const char *column_tick(mg_lab *lab, const lab_panel *panel, int column) {
    if (!panel->column_labels) return lab_format(lab, "%d ", column % 10);
    static const char space[] = "␣";
    const char *label = lab_tick(lab, panel->column_labels, column);
    size_t skipped = strncmp(label, space, strlen(space)) == 0 && label[strlen(space)] ? strlen(space) : 0;
    const char *tick = lab_shown_line(lab, label + skipped);
    int bytes = 1;
    while (((unsigned char)tick[bytes] & 0xC0) == 0x80) bytes++;
    return lab_format(lab, "%.*s ", bytes, tick);
}

/* Line -2 is the title, -1 the columns' ticks, the others rows: a line that ends where the next panel begins. */
static const char *panel_line(mg_lab *lab, const lab_heatmap *map, const lab_panel *panel, int line, bool utf8) {
    int width = panel_width(map, panel) - gutter(map), row = line * stride(map, panel->n_rows);
    const char *cells = "", *token = "";
    if (line == -2 || row >= panel->n_rows) {
        if (line == -2) cells = lab_shown_line(lab, panel->title);
    } else {
        if (line >= 0) token = lab_shown_line(lab, lab_tick(lab, panel->row_labels, row));
        lab_span span = lab_heat_span(map);
        for (int c = 0; c < panel->n_columns; c += stride(map, panel->n_columns))
            cells = lab_format(lab, "%s%s", cells,
                               line == -1 ? column_tick(lab, panel, c) : cell_text(map, span, panel, row, c, utf8));
    }
    return lab_format(lab, "%s %s", lab_padded(lab, token, gutter(map) - 1, true),
                      lab_padded(lab, cells, width, false));
}

/* Panels side by side from `first`, as many as fit; returns the next one. */
static int print_panels(mg_lab *lab, const lab_heatmap *map, int first, bool utf8) {
    int end = first, width = 0, lines = 0;
    for (; end < map->panels.n; end++) {
        const lab_panel *panel = map->panels.item[end];
        width += panel_width(map, panel);
        if (end > first && width > lab_columns(map->lab)) break;
        int needed = (panel->n_rows + stride(map, panel->n_rows) - 1) / stride(map, panel->n_rows);
        if (needed > lines) lines = needed;
    }
    for (int line = -2; line < lines; line++) {
        const char *text = "";
        for (int p = first; p < end; p++)
            text = lab_format(lab, "%s%s", text, panel_line(lab, map, map->panels.item[p], line, utf8));
        lab_print_line(text);
    }
    const lab_panel *panel = map->panels.item[first];
    int rows = stride(map, panel->n_rows), columns = stride(map, panel->n_columns);
    if (rows > 1 || columns > 1)
        lab_print_wrapped(lab, "  ", "  ", lab_format(lab, "Shown: one row in %d, one column in %d.", rows, columns));
    return end;
}

void lab_print_heatmap(mg_lab *lab, const lab_heatmap *map) {
    bool utf8 = lab->settings.terminal.utf8;
    for (int p = 0; p < map->panels.n;) p = print_panels(lab, map, p, utf8);
    lab_span span = lab_heat_span(map);
    const char *const *shades = utf8 ? shades_utf8 : shades_ascii;
    const char *key = lab_format(lab, "%s %.3g", shades[0], span.low);
    for (int i = 1; i < N_SHADES; i++) key = lab_format(lab, "%s  %s", key, shades[i]);
    key = lab_format(lab, "%s %.3g %s%s; 0: exactly 0; %s: does not exist", key, span.high, map->scale.unit,
                     map->scale.log ? ", by its logarithm" : "", utf8 ? "·" : ".");
    if (lab_heat_has(map, LAB_CELL_ALARM))
        key = lab_format(lab, "%s; !!: should not be there, or is not a number", key);
    lab_print_wrapped(lab, "  ", "  ", key);
}
