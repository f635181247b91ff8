#include "seeds.h"
#include "lab_private.h"
#include "training.h"

enum { MOST_SEEDS = 1000 };

#define ROWS_OF lab_seeded_options
#include "setting_rows.h"
static const mg_setting seeds_rows[] = {
    {.kind = MG_SETTING_HEADING, .help = "Repetitions:"},
    {.name = "seeds",
     COUNT(seeds, 1, MOST_SEEDS),
     .help = "Train this many times, with --seed and the seeds after it; verdicts are on means with their intervals"},
    {0},
};

const mg_settings lab_seeded_tables[] = {{mg_data_settings, 0},
                                         MG_SETTINGS_OF_TRAIN(mg_model_settings),
                                         MG_SETTINGS_OF_TRAIN(mg_training_settings),
                                         {mg_measuring_settings, 0},
                                         {mg_machine_settings, 0},
                                         {seeds_rows, 0},
                                         {NULL, 0}};

static mg_confidence interval_of(int n, const double *observed) {
    mg_summary s = mg_summarize(n, observed);
    if (s.n < n) return (mg_confidence){NAN, NAN}; /* one that could not be measured never passes */
    return n == 1 ? (mg_confidence){s.mean, s.mean} : mg_mean_interval(&s);
}

static const char *name_of(mg_lab *lab, const char *name, int n, const char *end) {
    return n == 1 ? name : lab_format(lab, "%s (%s end of the mean's 95 %% interval, %d seeds)", name, end, n);
}

bool lab_check_mean_below(mg_lab *lab, const char *name, int n, const double *observed, double limit,
                          const char *unit) {
    return lab_check_below(lab, name_of(lab, name, n, "upper"), interval_of(n, observed).high, limit, unit);
}

bool lab_check_mean_at_least(mg_lab *lab, const char *name, int n, const double *observed, double limit,
                             const char *unit) {
    return lab_check_at_least(lab, name_of(lab, name, n, "lower"), interval_of(n, observed).low, limit, unit);
}

const char *lab_mean_text(mg_lab *lab, int n, const double *observed) {
    mg_summary s = mg_summarize(n, observed);
    return n == 1 ? lab_format(lab, "%.4f", s.mean) : lab_format(lab, "%.4f ± %.4f (n = %d)", s.mean, s.se, s.n);
}
