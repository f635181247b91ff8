/* How lines are told apart that lie on each other, and floors from each other. */
#include "lab_private.h"

#include <math.h>

/* At a quarter of their points or more one would hide the other. */
static bool overlap(const lab_figure *figure, const lab_series *a, const lab_series *b) {
    if (a->n != b->n) return false;
    lab_span y = lab_span_y(figure);
    int shared = 0, near = 0;
    for (int i = 0; i < a->n; i++) {
        if (a->x[i] != b->x[i] || !lab_can_show(figure, a->x[i], a->y[i]) || !lab_can_show(figure, b->x[i], b->y[i]))
            continue;
        double apart = lab_along(y, figure->axes.log_y, a->y[i]) - lab_along(y, figure->axes.log_y, b->y[i]);
        shared++;
        near += fabs(apart) < 0.01;
    }
    return shared > 0 && 4 * near >= shared;
}

static bool is_plain_line(const lab_series *s) {
    return s->shape == LAB_SHAPE_LINE && s->color != LAB_FLOOR;
}

/* Lines in one place share it: of n, the first is whole and each one above it covers one part less of a period of n. */
static const char *shared_dash(mg_lab *lab, const lab_figure *figure, int k) {
    int below = 0, above = 0;
    for (int i = 0; i < figure->series.n; i++) {
        const lab_series *other = figure->series.item[i];
        if (i == k || !is_plain_line(other) || !overlap(figure, figure->series.item[k], other)) continue;
        below += i < k;
        above += i > k;
    }
    if (below == 0) return "dt 1";
    enum { PART = 5 };
    return lab_format(lab, "dt (%d,%d)", PART * (above + 1), PART * below);
}

const char *lab_dash(const lab_figure *figure, int k) {
    static const char *const floors[] = {"dt (9,5)", "dt (2,4)", "dt (12,4,2,4)"};
    const lab_series *s = figure->series.item[k];
    if (is_plain_line(s)) return shared_dash(figure->lab, figure, k);
    if (s->shape == LAB_SHAPE_FIT) return floors[0];
    return s->color == LAB_FLOOR ? floors[lab_floor_index(figure, k) % 3] : "dt 1";
}

int lab_floor_index(const lab_figure *figure, int k) {
    int index = 0;
    for (int i = 0; i < k; i++) {
        const lab_series *s = figure->series.item[i];
        index += s->color == LAB_FLOOR && s->shape != LAB_SHAPE_POINTS;
    }
    return index;
}
