/* What a sample says about its mean, and two samples about their difference. Only finite numbers count. */
#ifndef MASKGRAD_STATISTICS_H
#define MASKGRAD_STATISTICS_H

typedef struct mg_summary {
    int n;       /* finite numbers */
    double mean; /* NaN without one */
    double sd;   /* of a sample, with n - 1; NaN below two */
    double se;   /* of the mean: sd / sqrt(n) */
} mg_summary;
mg_summary mg_summarize(int n, const double *x);

/* The p-quantile of Student's t with df > 0 degrees of freedom, 0 < p < 1. */
double mg_student_quantile(double p, double df);

typedef struct mg_confidence {
    double low, high; /* NaN: too few numbers */
} mg_confidence;
/* The 95 % interval of a mean, by Student's t: n at least 2. */
mg_confidence mg_mean_interval(const mg_summary *s);

typedef struct mg_welch {
    double difference;      /* mean of a minus mean of b */
    double df;              /* Welch and Satterthwaite's, for unequal variances */
    mg_confidence interval; /* 95 % */
} mg_welch;
/* B. L. Welch, "The generalization of 'Student's' problem when several different population variances are involved",
 * Biometrika 34 (1947). Both need two numbers. */
mg_welch mg_welch_of(const mg_summary *a, const mg_summary *b);

#endif
