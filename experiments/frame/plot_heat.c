/* A heat map for gnuplot: every cell is a rectangle in one coordinate system, in which a cell is 1 x 1 and y grows
 * upward, so that panels, tokens and the color bar can be placed to the point. */
#include "lab_private.h"
#include "wrap.h"

#include <math.h>
#include <string.h>

enum {
    PANELS_ACROSS = 3,
    MOST_OF_TWO = 24 /* columns of each of two panels side by side */,
    BAR_STEPS = 64,
    MOST_TICKS = 6,
    LINE = 17 /* logical pixels of a line of ticks */
};
/* Ticks shrink to this part of their size before every second one is left out. */
#define SMALLEST_TEXT 0.7
/* Logical pixels for 1, 2 and 3 panels side by side: few of them need not be wide, and their text reads larger. */
static const double widest[PANELS_ACROSS] = {640, 820, 940};

/* All lengths in cells, but cell, which is the size of one in logical pixels. */
typedef struct layout {
    double cell, letter, left, top, gap_x, gap_y, width, height, text /* size of the ticks: 1 or less */;
    int across, down, tick_step;
} layout;

static int longest_tick(const lab_heatmap *map, bool rows) {
    int longest = 1;
    for (int p = 0; p < map->panels.n; p++) {
        const lab_panel *panel = map->panels.item[p];
        int n = rows ? panel->n_rows : panel->n_columns;
        for (int i = 0; i < n; i++) {
            int width = mg_text_columns(lab_tick(map->lab, rows ? panel->row_labels : panel->column_labels, i));
            if (width > longest) longest = width;
        }
    }
    return longest > 12 ? 12 : longest;
}

static int longest_title(const lab_heatmap *map) {
    int longest = 0;
    for (int p = 0; p < map->panels.n; p++) {
        int width = mg_text_columns(((const lab_panel *)map->panels.item[p])->title);
        if (width > longest) longest = width;
    }
    return longest;
}

static const char *bar_title(const lab_heatmap *map) {
    return lab_format(map->lab, map->scale.log ? "%s, log" : "%s", map->scale.unit);
}

static layout lay_out(const lab_heatmap *map) {
    int rows = 1, columns = 1, n = map->panels.n;
    for (int p = 0; p < n; p++) {
        const lab_panel *panel = map->panels.item[p];
        if (panel->n_rows > rows) rows = panel->n_rows;
        if (panel->n_columns > columns) columns = panel->n_columns;
    }
    layout l = {.across = n < PANELS_ACROSS ? n : PANELS_ACROSS};
    if (n == 4) l.across = 2;
    if (n == 2 && columns > MOST_OF_TWO) l.across = 1;
    l.down = (n + l.across - 1) / l.across;
    int row_letters = longest_tick(map, true) + (*map->scale.rows ? 2 : 0), column_letters = longest_tick(map, false);
    /* A letter is about 8 pixels wide and a line 18 high. */
    double across_pixels = widest[l.across - 1] - 90 - l.across * (8.0 * row_letters + 22);
    l.cell = fmin(across_pixels / (l.across * columns), l.across == 1 ? 52 : 44);
    l.cell = fmax(l.cell, 3);
    l.letter = 8 / l.cell;
    l.left = row_letters * l.letter + 14 / l.cell;
    bool turned = column_letters * 8 + 4 > l.cell;
    l.top = (turned ? column_letters * 8 + 8 : 22) / l.cell + (28 + (*map->scale.columns ? 20 : 0)) / l.cell;
    double title = 9 * longest_title(map) / l.cell, room = 8 / l.cell;
    l.left = fmax(l.left, (title - columns) / 2);
    l.gap_x = fmax(fmax(columns + l.left, title), l.left + (columns + title) / 2) + room;
    l.gap_y = rows + l.top + 14 / l.cell;
    l.width = l.across * l.gap_x + fmax(84, 20 + 9 * mg_text_columns(bar_title(map))) / l.cell;
    l.height = l.down * l.gap_y + 6 / l.cell;
    l.text = l.cell >= LINE ? 1 : fmax(l.cell / LINE, SMALLEST_TEXT);
    l.tick_step = (int)ceil(LINE * l.text / l.cell);
    return l;
}

lab_canvas lab_heat_canvas(const lab_heatmap *map) {
    layout l = lay_out(map);
    return (lab_canvas){(int)(l.width * l.cell), (int)(l.height * l.cell)};
}

typedef struct place {
    double x, y;
} place;

/* The center of a cell. */
static place center(const layout *l, int panel, int row, int column) {
    return (place){panel % l->across * l->gap_x + l->left + column + 0.5,
                   -(panel / l->across * l->gap_y + l->top + row + 0.5)};
}

static unsigned cell_rgb(const lab_heatmap *map, lab_span span, lab_cell kind, double value) {
    switch (kind) {
    case LAB_CELL_VALUE: return lab_heat_rgb(lab_along(span, map->scale.log, value));
    case LAB_CELL_ZERO: return 0xFFFFFF;
    case LAB_CELL_ABSENT: return 0xEEEEEE;
    case LAB_CELL_ALARM: return 0xD55E00;
    }
    return 0;
}

static void box(FILE *pipe, double x, double y, double half_width, double half_height, unsigned rgb) {
    fprintf(pipe, "%.4f %.4f %.4f %.4f %.4f %.4f %u\n", x, y, x - half_width, x + half_width, y - half_height,
            y + half_height, rgb);
}

/* Its value as short as a cell is wide. */
static void short_number(char text[16], double value) {
    if (value == 0)
        strcpy(text, "0");
    else if (fabs(value) < 0.005)
        snprintf(text, 16, "%.0e", value);
    else if (fabs(value) < 9.95)
        snprintf(text, 16, "%.2f", value);
    else
        snprintf(text, 16, "%.3g", value);
}

static void each_cell(FILE *pipe, const lab_heatmap *map, const layout *l,
                      void (*write)(FILE *, const lab_heatmap *, const layout *, place, lab_cell, double)) {
    for (int p = 0; p < map->panels.n; p++) {
        const lab_panel *panel = map->panels.item[p];
        for (int r = 0; r < panel->n_rows; r++)
            for (int c = 0; c < panel->n_columns; c++)
                write(pipe, map, l, center(l, p, r, c), lab_cell_kind(map, panel, r, c),
                      (double)panel->values[(ptrdiff_t)r * panel->n_columns + c]);
    }
}

static void write_box(FILE *pipe, const lab_heatmap *map, const layout *l, place at, lab_cell kind, double value) {
    /* A hairline of paper between cells that are large enough for it. */
    double half = l->cell >= 10 ? 0.5 - 0.5 / l->cell : 0.5;
    box(pipe, at.x, at.y, half, half, cell_rgb(map, lab_heat_span(map), kind, value));
}

static void write_dot(FILE *pipe, const lab_heatmap *map, const layout *l, place at, lab_cell kind, double value) {
    (void)map, (void)l, (void)value;
    if (kind == LAB_CELL_ABSENT) fprintf(pipe, "%.4f %.4f\n", at.x, at.y);
}

static bool shows_numbers(const lab_heatmap *map, const layout *l) {
    return map->scale.numbers && l->cell >= 28;
}

static void write_number(FILE *pipe, const lab_heatmap *map, const layout *l, place at, lab_cell kind, double value) {
    if (kind == LAB_CELL_ABSENT) return;
    char text[16];
    short_number(text, value);
    bool written = kind == LAB_CELL_VALUE && shows_numbers(map, l);
    if (kind == LAB_CELL_ZERO && l->cell >= 10) written = true, strcpy(text, "0");
    if (kind == LAB_CELL_ALARM) {
        written = true;
        if (!shows_numbers(map, l) || isnan(value)) strcpy(text, "!");
    }
    if (!written) return;
    bool dark = lab_is_dark(cell_rgb(map, lab_heat_span(map), kind, value));
    fprintf(pipe, "%.4f %.4f %s %u\n", at.x, at.y, text, dark ? 0xFFFFFFu : 0x222222u);
}

/* The color bar: beside the first row of panels, as high as the first panel. */
typedef struct bar {
    double x, low, height, half_width;
} bar;

static bar bar_of(const lab_heatmap *map, const layout *l) {
    const lab_panel *first = map->panels.item[0];
    double height = fmax(first->n_rows, 100 / l->cell);
    return (bar){l->across * l->gap_x + 12 / l->cell, -(l->top + height), height, 7 / l->cell};
}

void lab_heat_data(FILE *pipe, const lab_heatmap *map) {
    layout l = lay_out(map);
    fputs("$cells << EOD\n", pipe);
    each_cell(pipe, map, &l, write_box);
    bar b = bar_of(map, &l);
    for (int i = 0; i < BAR_STEPS; i++) {
        double step = b.height / BAR_STEPS;
        box(pipe, b.x, b.low + (i + 0.5) * step, b.half_width, 0.55 * step, lab_heat_rgb(i / (BAR_STEPS - 1.0)));
    }
    fputs("EOD\n$dots << EOD\n", pipe);
    each_cell(pipe, map, &l, write_dot);
    fputs("EOD\n$numbers << EOD\n", pipe);
    each_cell(pipe, map, &l, write_number);
    fputs("EOD\n", pipe);
}

static void label(FILE *pipe, const char *text, place at, const char *how, double size, unsigned rgb) {
    fputs("set label ", pipe);
    lab_plot_quoted(pipe, text);
    fprintf(pipe, " at %.4f,%.4f %s font ',%g' tc rgb '#%06X'\n", at.x, at.y, how, size, rgb);
}

static const char *clipped(mg_lab *lab, const char *text) {
    if (mg_text_columns(text) <= 12) return text;
    const char *end = text;
    for (int i = 0; i < 11; i++) do
            end++;
        while (((unsigned char)*end & 0xC0) == 0x80);
    return lab_format(lab, "%.*s…", (int)(end - text), text);
}

static void label_panel(FILE *pipe, const lab_heatmap *map, const layout *l, int p, double size) {
    mg_lab *lab = map->lab;
    const lab_panel *panel = map->panels.item[p];
    bool turned = longest_tick(map, false) * 8 + 4 > l->cell;
    double tick_size = size * l->text;
    for (int r = 0; r < panel->n_rows; r += l->tick_step) {
        place at = center(l, p, r, 0);
        at.x -= 0.5 + 6 / l->cell;
        label(pipe, clipped(lab, lab_tick(lab, panel->row_labels, r)), at, "right", tick_size, 0x333333);
    }
    for (int c = 0; c < panel->n_columns; c += l->tick_step) {
        place at = center(l, p, 0, c);
        at.y += 0.5 + (turned ? 5 : 10) / l->cell;
        label(pipe, clipped(lab, lab_tick(lab, panel->column_labels, c)), at, turned ? "left rotate by 90" : "center",
              tick_size, 0x333333);
    }
    place corner = center(l, p, 0, 0);
    double middle = corner.x - 0.5 + panel->n_columns / 2.0;
    label(pipe, panel->title, (place){middle, corner.y + 0.5 + l->top - 14 / l->cell}, "center", size * 1.12, 0x111111);
    if (*map->scale.columns)
        label(pipe, map->scale.columns, (place){middle, corner.y + 0.5 + l->top - 36 / l->cell}, "center", size,
              0x666666);
    if (*map->scale.rows)
        label(pipe, map->scale.rows,
              (place){corner.x - 0.5 - l->left + 8 / l->cell, corner.y + 0.5 - panel->n_rows / 2.0},
              "center rotate by 90", size, 0x666666);
}

static void label_bar(FILE *pipe, const lab_heatmap *map, const layout *l, double size) {
    bar b = bar_of(map, l);
    lab_span span = lab_heat_span(map);
    double ticks[MOST_TICKS];
    int n = lab_ticks(span, map->scale.log, MOST_TICKS, ticks);
    for (int i = 0; i < n; i++)
        label(pipe, lab_tick_number(map->lab, ticks[i]),
              (place){b.x + b.half_width + 6 / l->cell, b.low + lab_along(span, map->scale.log, ticks[i]) * b.height},
              "left", size, 0x333333);
    label(pipe, bar_title(map), (place){b.x - b.half_width, b.low + b.height + 22 / l->cell}, "left", size, 0x666666);
}

/* Text sizes are in the unit of the terminal: pixels for SVG, points at twice the scale for PNG. */
void lab_heat_plot(FILE *pipe, const lab_heatmap *map, bool png) {
    layout l = lay_out(map);
    double size = png ? 10.5 : 14;
    fputs("unset label\nunset key\nunset tics\nunset border\nset lmargin 0\nset rmargin 0\nset tmargin 0\n"
          "set bmargin 0\n",
          pipe);
    fprintf(pipe, "set xrange [0:%.4f]\nset yrange [%.4f:0]\n", l.width, -l.height);
    for (int p = 0; p < map->panels.n; p++) label_panel(pipe, map, &l, p, size);
    label_bar(pipe, map, &l, size);
    fputs("plot $cells using 1:2:3:4:5:6:7 with boxxyerror fs solid noborder lc rgb variable", pipe);
    if (lab_heat_has(map, LAB_CELL_ABSENT))
        fprintf(pipe, ", $dots using 1:2 with points pt 7 ps %.2f lc rgb '#AAAAAA'", fmin(0.3, l.cell / 40));
    bool any = lab_heat_has(map, LAB_CELL_ALARM) || (lab_heat_has(map, LAB_CELL_ZERO) && l.cell >= 10) ||
               (shows_numbers(map, &l) && lab_heat_has(map, LAB_CELL_VALUE));
    if (any) fprintf(pipe, ", $numbers using 1:2:3:4 with labels center font ',%g' tc rgb variable", size * 0.9);
    fputs("\n", pipe);
}
