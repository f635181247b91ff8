/* Training losses of runs, averaged over stretches of steps, so that the curves of hundreds of runs can be drawn. */
#ifndef MASKGRAD_CURVES_H
#define MASKGRAD_CURVES_H

#include "groups.h"

enum { MG_CURVE_POINTS = 150 };

typedef struct mg_curve {
    int n; /* points */
    double x[MG_CURVE_POINTS], y[MG_CURVE_POINTS], spread[MG_CURVE_POINTS];
} mg_curve;

/* Steps per point such that no run has more than MG_CURVE_POINTS. */
int64_t mg_curve_stretch(const mg_run_record *records, int n);
/* One run: the mean of each stretch at its middle step; NaN where the log has no row. */
void mg_curve_of_run(mg_curve *curve, const mg_run_record *record, int64_t stretch);
/* A group: the means over its runs, and their standard errors (NaN below two runs). */
void mg_curve_of_group(mg_curve *curve, const mg_run_group *group, const mg_run_record *records, int64_t stretch);

#endif
