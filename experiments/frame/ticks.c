/* Where an axis or a color bar is marked: at round values, or at the data's own. */
#include "lab_private.h"

#include <math.h>
#include <string.h>

/* Steps of 1, 2 or 5 times a power of ten, as many as there may be. */
static int even_ticks(lab_span span, int most, double *at) {
    double power = pow(10, floor(log10((span.high - span.low) / most)));
    static const double steps[] = {1, 2, 5, 10, 20};
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
        double step = steps[s] * power, slack = 1e-9 * step;
        long first = lround(ceil((span.low - slack) / step)), last = lround(floor((span.high + slack) / step));
        if (last - first + 1 > most) continue;
        for (long i = first; i <= last; i++) at[i - first] = (double)i * step;
        return (int)(last - first + 1);
    }
    return 0;
}

/* The multiples of powers of ten in a span: 1, 2 and 5 of each, or 1, or 1 of each second, third, … power. */
static int log_ticks(lab_span span, int most, double *at) {
    static const double multiples[] = {1, 2, 5};
    int low = (int)floor(log10(span.low)), high = (int)floor(log10(span.high) + 1e-9);
    for (int n_multiples = 3; n_multiples >= 1; n_multiples -= 2)
        for (int stride = 1; stride <= (n_multiples > 1 ? 1 : high - low + 1); stride++) {
            int n = 0;
            for (int power = high; power >= low; power -= stride)
                for (int m = n_multiples - 1; m >= 0; m--) {
                    double value = multiples[m] * pow(10, power);
                    bool within = value >= span.low * (1 - 1e-9) && value <= span.high * (1 + 1e-9);
                    if (within && n++ < most) at[n - 1] = value;
                }
            if (n <= most) return n;
        }
    return 0;
}

int lab_ticks(lab_span span, bool log_scale, int most, double *at) {
    int n = log_scale ? log_ticks(span, most, at) : even_ticks(span, most, at);
    if (n >= 2) return n;
    at[0] = span.low; /* too narrow for round values */
    at[1] = span.high;
    return 2;
}

/* 10⁻⁵ and 2·10⁻⁵ where decimals would be long; else as %g. */
const char *lab_tick_number(mg_lab *lab, double value) {
    if (value == 0 || (fabs(value) >= 1e-3 && fabs(value) < 1e5))
        return lab_format(lab, "%.3g", value == 0 ? 0 : value);
    int power = (int)floor(log10(fabs(value)) + 1e-9);
    static const char *const raised[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    const char *exponent = power < 0 ? "⁻" : "", *digits = lab_format(lab, "%d", power < 0 ? -power : power);
    for (const char *d = digits; *d; d++) exponent = lab_format(lab, "%s%s", exponent, raised[*d - '0']);
    const char *mantissa = lab_format(lab, "%.2g", value / pow(10, power));
    bool one = strcmp(mantissa, "1") == 0;
    return lab_format(lab, "%s%s10%s", one ? "" : mantissa, one ? "" : "·", exponent);
}

/* The places of a logarithmic axis, if they are few: 4, 16, … 1024 and not 10, 100, 1000. */
int lab_own_places(const lab_figure *figure, int most, double *at) {
    int n = 0;
    for (int k = 0; k < figure->series.n; k++) {
        const lab_series *s = figure->series.item[k];
        if (s->shape != LAB_SHAPE_LINE && s->shape != LAB_SHAPE_ERRORS && s->shape != LAB_SHAPE_POINTS) continue;
        for (int i = 0; i < s->n; i++) {
            int j = 0;
            while (j < n && at[j] != s->x[i]) j++;
            if (j < n || !lab_can_show(figure, s->x[i], s->y[i])) continue;
            if (n == most) return 0;
            at[n++] = s->x[i];
        }
    }
    return n;
}
