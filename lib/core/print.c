#include "tape.h"

enum { MOST = 8, EDGE = 3 }; /* an axis longer than MOST shows so many at each end */

static void print_axis(const mg_tensor *x, int axis, ptrdiff_t at, FILE *out) {
    if (axis == x->ndim) {
        fprintf(out, "%9.4g", (double)x->data[at]);
        return;
    }
    ptrdiff_t n = x->dim[axis];
    bool is_row = axis == x->ndim - 1;
    fputc('[', out);
    for (ptrdiff_t i = 0; i < n; i++) {
        if (i > 0 && !is_row) fprintf(out, "\n%*s", axis + 1, "");
        if (n > MOST && i == EDGE) {
            fputs(is_row ? " ..." : "...", out);
            i = n - EDGE - 1;
            continue;
        }
        print_axis(x, axis + 1, at * n + i, out);
    }
    fputc(']', out);
}

void mg_print(const mg_tensor *x, FILE *out) {
    fprintf(out, "%s ", mg_shape(x).text);
    if (x->ndim > 1) fputc('\n', out);
    print_axis(x, 0, 0, out);
    fputc('\n', out);
}
