/* The names of a figure's points, each where it hides nothing. */
#include "plot.h"
#include "wrap.h"

#include <math.h>

enum { MOST_NAMES = 256, NAME_LETTER = 8, NAME_HIGH = 15 };

typedef struct box {
    double left, right, middle; /* logical pixels; all are NAME_HIGH high */
} box;

static bool is_free(const box *taken, int n, box wanted) {
    if (wanted.left < LAB_FRAME_LEFT + 2 || wanted.right > LAB_FRAME_RIGHT + 10) return false;
    for (int i = 0; i < n; i++)
        if (fabs(taken[i].middle - wanted.middle) < NAME_HIGH && taken[i].left < wanted.right &&
            wanted.left < taken[i].right)
            return false;
    return true;
}

/* A name is right of its point, else left, above, below or at a corner; where all of that is taken there is none. */
static void plot_name(FILE *pipe, const lab_plot_layout *f, const char *name, double x, double y, box *taken, int *n) {
    static const struct {
        double across, up, from; /* from: the part of its width that lies left of the place */
        const char *how;
    } sides[] = {{8, 0, 0, "left"},  {-8, 0, 1, "right"},  {0, 16, 0.5, "center"}, {0, -16, 0.5, "center"},
                 {8, 16, 0, "left"}, {-8, 16, 1, "right"}, {8, -16, 0, "left"},    {-8, -16, 1, "right"}};
    double width = NAME_LETTER * mg_text_columns(name);
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        double left = x + sides[i].across - sides[i].from * width;
        box wanted = {left, left + width, y - sides[i].up};
        if (*n == MOST_NAMES || wanted.middle > f->bottom - NAME_HIGH / 2 || !is_free(taken, *n, wanted)) continue;
        taken[(*n)++] = wanted;
        lab_plot_label(pipe, f, name, x + sides[i].across, wanted.middle, sides[i].how, 0x444444);
        return;
    }
}

void lab_plot_names(FILE *pipe, const lab_figure *figure, lab_span across, lab_span up) {
    lab_plot_layout f = lab_plot_layout_of(figure);
    box taken[MOST_NAMES];
    int n = 0;
    for (int pass = 0; pass < 2; pass++) /* first the points themselves, which no name may hide */
        for (int k = 0; k < figure->series.n; k++) {
            const lab_series *s = lab_series_of(figure, k);
            for (int i = 0; i < s->n && s->names; i++) {
                if (!lab_can_show(figure, s->x[i], s->y[i])) continue;
                double x = f.left + (LAB_FRAME_RIGHT - f.left) * lab_along(across, figure->axes.log_x, s->x[i]);
                double y = f.bottom - (f.bottom - f.top) * lab_along(up, figure->axes.log_y, s->y[i]);
                if (pass == 1)
                    plot_name(pipe, &f, s->names[i], x, y, taken, &n);
                else if (n < MOST_NAMES)
                    taken[n++] = (box){x - 4, x + 4, y};
            }
        }
}
