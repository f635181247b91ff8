#include "curves.h"

#include <math.h>

int64_t mg_curve_stretch(const mg_run_record *records, int n) {
    int64_t last = 0;
    for (int i = 0; i < n; i++) {
        const mg_run_log_table *log = &records[i].log;
        if (log->n > 0 && log->row[log->n - 1].step > last) last = log->row[log->n - 1].step;
    }
    return last / MG_CURVE_POINTS + 1;
}

void mg_curve_of_run(mg_curve *curve, const mg_run_record *record, int64_t stretch) {
    int count[MG_CURVE_POINTS] = {0};
    *curve = (mg_curve){0};
    for (ptrdiff_t i = 0; i < record->log.n; i++) {
        const mg_run_log_row *row = &record->log.row[i];
        int at = (int)(row->step / stretch);
        if (row->validation || at >= MG_CURVE_POINTS) continue;
        curve->y[at] += row->loss;
        count[at]++;
        if (at >= curve->n) curve->n = at + 1;
    }
    for (int p = 0; p < curve->n; p++) {
        curve->x[p] = ((double)p + 0.5) * (double)stretch - 0.5;
        curve->y[p] = count[p] > 0 ? curve->y[p] / count[p] : NAN;
        curve->spread[p] = NAN;
    }
}

/* Sums of y and y^2 around a first value, so that nothing cancels. */
void mg_curve_of_group(mg_curve *curve, const mg_run_group *group, const mg_run_record *records, int64_t stretch) {
    double sum[MG_CURVE_POINTS] = {0}, squares[MG_CURVE_POINTS] = {0}, around[MG_CURVE_POINTS];
    int count[MG_CURVE_POINTS] = {0};
    *curve = (mg_curve){0};
    for (int i = 0; i < group->n; i++) {
        mg_curve one;
        mg_curve_of_run(&one, &records[group->run[i]], stretch);
        for (int p = 0; p < one.n; p++) {
            curve->x[p] = one.x[p];
            if (p >= curve->n) curve->n = p + 1;
            if (!isfinite(one.y[p])) continue;
            if (count[p]++ == 0) around[p] = one.y[p];
            sum[p] += one.y[p] - around[p];
            squares[p] += (one.y[p] - around[p]) * (one.y[p] - around[p]);
        }
    }
    for (int p = 0; p < curve->n; p++) {
        int n = count[p];
        curve->y[p] = n > 0 ? around[p] + sum[p] / n : NAN;
        double variance = n > 1 ? (squares[p] - sum[p] * sum[p] / n) / (n - 1) : NAN;
        curve->spread[p] = n > 1 ? sqrt(fmax(variance, 0) / n) : NAN;
    }
}
