/* Heat maps: collecting them, and what each cell is. */
#include "attention.h"
#include "lab_private.h"

#include <math.h>
#include <string.h>

lab_heatmap *lab_heatmap_begin(mg_lab *lab, const char *name, const char *title, lab_scale scale) {
    lab_heatmap *map = mg_arena_alloc(lab->arena, 1, sizeof *map, "a heat map");
    *map = (lab_heatmap){
        .lab = lab, .name = lab_file_name(lab, name), .title = lab_format(lab, "%s", title), .scale = scale};
    map->scale.unit = lab_format(lab, "%s", scale.unit ? scale.unit : "");
    map->scale.rows = lab_format(lab, "%s", scale.rows ? scale.rows : "");
    map->scale.columns = lab_format(lab, "%s", scale.columns ? scale.columns : "");
    return map;
}

static const char *const *copy_labels(mg_lab *lab, const char *const *labels, int n) {
    if (!labels) return NULL;
    const char **copy = mg_arena_alloc(lab->arena, (size_t)n, sizeof *copy, "labels of a heat map");
    for (int i = 0; i < n; i++) copy[i] = lab_format(lab, "%s", labels[i]);
    return copy;
}

void lab_heatmap_panel(lab_heatmap *map, lab_panel panel) {
    mg_lab *lab = map->lab;
    MG_CHECK(panel.n_rows >= 1 && panel.n_columns >= 1, "a panel of heat map '%s' has %d rows and %d columns",
             map->name, panel.n_rows, panel.n_columns);
    lab_panel *copy = mg_arena_alloc(lab->arena, 1, sizeof *copy, "a panel");
    *copy = panel;
    size_t n = (size_t)panel.n_rows * (size_t)panel.n_columns;
    mg_real *values = mg_arena_alloc(lab->arena, n, sizeof *values, "a panel");
    memcpy(values, panel.values, n * sizeof *values);
    copy->values = values;
    copy->title = lab_format(lab, "%s", panel.title ? panel.title : "");
    copy->row_labels = copy_labels(lab, panel.row_labels, panel.n_rows);
    copy->column_labels = copy_labels(lab, panel.column_labels, panel.n_columns);
    lab_list_add(lab, &map->panels, copy);
}

void lab_heatmap_end(lab_heatmap *map, const char *format, ...) {
    MG_CHECK(map->panels.n >= 1, "heat map '%s' has no panel", map->name);
    va_list arguments;
    va_start(arguments, format);
    map->caption = lab_vformat(map->lab, format, arguments);
    va_end(arguments);
    lab_add_block(map->lab, (lab_block){.kind = LAB_BLOCK_HEATMAP, .heatmap = map});
}

lab_cell lab_cell_kind(const lab_heatmap *map, const lab_panel *panel, int row, int column) {
    double value = (double)panel->values[(ptrdiff_t)row * panel->n_columns + column];
    mg_interval keys = mg_visible(panel->mask, row, panel->n_columns);
    bool forbidden = panel->masked && (column < keys.first || column >= keys.end);
    if (isnan(value) || value == INFINITY) return LAB_CELL_ALARM;
    if (value == -INFINITY || (forbidden && value == 0)) return LAB_CELL_ABSENT;
    if (forbidden) return LAB_CELL_ALARM;
    if (map->scale.log && value <= 0) return value == 0 ? LAB_CELL_ZERO : LAB_CELL_ALARM;
    return LAB_CELL_VALUE;
}

static bool each_cell(const lab_heatmap *map, bool (*stop)(lab_cell kind, double value, void *user), void *user) {
    for (int p = 0; p < map->panels.n; p++) {
        const lab_panel *panel = map->panels.item[p];
        for (int r = 0; r < panel->n_rows; r++)
            for (int c = 0; c < panel->n_columns; c++) {
                double value = (double)panel->values[(ptrdiff_t)r * panel->n_columns + c];
                if (stop(lab_cell_kind(map, panel, r, c), value, user)) return true;
            }
    }
    return false;
}

static bool widen_to(lab_cell kind, double value, void *user) {
    lab_span *span = user;
    if (kind != LAB_CELL_VALUE) return false;
    span->low = fmin(span->low, value);
    span->high = fmax(span->high, value);
    return false;
}

lab_span lab_heat_span(const lab_heatmap *map) {
    if (map->scale.low < map->scale.high) return (lab_span){map->scale.low, map->scale.high};
    lab_span span = {INFINITY, -INFINITY};
    each_cell(map, widen_to, &span);
    if (!(span.low <= span.high)) return (lab_span){map->scale.log ? 0.1 : 0, 1};
    if (map->scale.log) {
        /* What float32 cannot distinguish from rounding gets the lowest color, not most of the scale. */
        span.low = fmax(span.low, span.high * 1e-8);
        return span.low < span.high ? span : (lab_span){span.low / 10, span.high};
    }
    if (span.low >= 0) span.low = 0;
    if (span.low == span.high) span.high = span.low + 1;
    return span;
}

static bool is_kind(lab_cell kind, double value, void *user) {
    (void)value;
    return kind == *(lab_cell *)user;
}

bool lab_heat_has(const lab_heatmap *map, lab_cell kind) {
    return each_cell(map, is_kind, &kind);
}

const char *lab_tick(mg_lab *lab, const char *const *labels, int i) {
    if (!labels) return lab_format(lab, "%d", i);
    const char *text = labels[i];
    if (!*text) return "–";
    if (*text == ' ') return lab_format(lab, "␣%s", text + 1);
    if (strcmp(text, "\n") == 0) return "\\n";
    if (strcmp(text, "\t") == 0) return "\\t";
    char *copy = lab_format(lab, "%s", text);
    for (char *c = copy; *c; c++)
        if ((unsigned char)*c < 32 || *c == 127) *c = '?';
    return copy;
}
