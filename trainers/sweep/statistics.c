#include "statistics.h"

#include <math.h>

mg_summary mg_summarize(int n, const double *x) {
    mg_summary s = {.mean = NAN, .sd = NAN, .se = NAN};
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) {
        if (!isfinite(x[i])) continue;
        sum += x[i];
        s.n++;
    }
    if (s.n > 0) s.mean = sum / s.n;
    for (int i = 0; i < n; i++)
        if (isfinite(x[i])) squares += (x[i] - s.mean) * (x[i] - s.mean);
    if (s.n < 2) return s;
    s.sd = sqrt(squares / (s.n - 1));
    s.se = s.sd / sqrt(s.n);
    return s;
}

/* ---- Student's t ---- */

/* The continued fraction of the incomplete beta function, by Lentz's method (DLMF 8.17.22). */
static double beta_fraction(double a, double b, double x) {
    enum { MOST_TERMS = 10000 };
    const double tiny = 1e-300, close = 1e-16;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double value = d;
    for (int m = 1; m < MOST_TERMS; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        const double term[] = {even, odd};
        double change = 1;
        for (int i = 0; i < 2; i++) {
            d = 1 + term[i] * d;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = 1 + term[i] / c;
            if (fabs(c) < tiny) c = tiny;
            change = c * d;
            value *= change;
        }
        if (fabs(change - 1) < close) break;
    }
    return value;
}

/* The regularized incomplete beta function I_x(a, b). */
static double beta(double a, double b, double x) {
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* P(T > t) for t >= 0. */
static double upper_tail(double t, double df) {
    return 0.5 * beta(0.5 * df, 0.5, df / (df + t * t));
}

double mg_student_quantile(double p, double df) {
    if (p < 0.5) return -mg_student_quantile(1 - p, df);
    double low = 0, high = 1;
    while (upper_tail(high, df) > 1 - p && high < 1e300) high *= 2;
    for (int i = 0; i < 200 && high - low > 1e-15 * high; i++) {
        double middle = 0.5 * (low + high);
        *(upper_tail(middle, df) > 1 - p ? &low : &high) = middle;
    }
    return 0.5 * (low + high);
}

/* ---- Intervals ---- */

static mg_confidence around(double middle, double se, double df) {
    if (!(df > 0)) return (mg_confidence){NAN, NAN};
    double half = se == 0 ? 0 : se * mg_student_quantile(0.975, df);
    return (mg_confidence){middle - half, middle + half};
}

mg_confidence mg_mean_interval(const mg_summary *s) {
    return around(s->mean, s->se, s->n - 1);
}

mg_welch mg_welch_of(const mg_summary *a, const mg_summary *b) {
    mg_welch w = {.difference = a->mean - b->mean, .df = NAN, .interval = {NAN, NAN}};
    if (a->n < 2 || b->n < 2) return w;
    double va = a->se * a->se, vb = b->se * b->se;
    w.df = va + vb > 0 ? (va + vb) * (va + vb) / (va * va / (a->n - 1) + vb * vb / (b->n - 1)) : a->n + b->n - 2;
    w.interval = around(w.difference, sqrt(va + vb), w.df);
    return w;
}
