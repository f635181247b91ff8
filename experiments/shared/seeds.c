#include "seeds.h"
#include "lab_private.h"

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

bool lab_check_mean_at_most(mg_lab *lab, const char *name, int n, const double *observed, double limit,
                            const char *unit) {
    return lab_check_at_most(lab, name_of(lab, name, n, "upper"), interval_of(n, observed).high, limit, unit);
}

bool lab_check_mean_above(mg_lab *lab, const char *name, int n, const double *observed, double limit,
                          const char *unit) {
    return lab_check_above(lab, name_of(lab, name, n, "lower"), interval_of(n, observed).low, limit, unit);
}

bool lab_check_mean_at_least(mg_lab *lab, const char *name, int n, const double *observed, double limit,
                             const char *unit) {
    return lab_check_at_least(lab, name_of(lab, name, n, "lower"), interval_of(n, observed).low, limit, unit);
}

bool lab_check_mean_near(mg_lab *lab, const char *name, int n, const double *observed, double expected,
                         double tolerance, const char *unit) {
    mg_confidence c = interval_of(n, observed);
    double farther = expected - c.low > c.high - expected ? c.low : c.high;
    return lab_check_near(lab, name_of(lab, name, n, "farther"), farther, expected, tolerance, unit);
}

const char *lab_name_over_seeds(mg_lab *lab, const char *name, int n, const char *which) {
    return n == 1 ? name : lab_format(lab, "%s, %s of %d seeds", name, which, n);
}

const char *lab_mean_text(mg_lab *lab, int n, const double *observed) {
    mg_summary s = mg_summarize(n, observed);
    return n == 1 ? lab_format(lab, "%.4f", s.mean) : lab_format(lab, "%.4f ± %.4f (n = %d)", s.mean, s.se, s.n);
}

void lab_mean_curve(int n, int length, double *const *of_seed, double *mean, double *error) {
    double at[MOST_SEEDS];
    for (int i = 0; i < length; i++) {
        for (int s = 0; s < n; s++) at[s] = of_seed[s][i];
        mg_summary summary = mg_summarize(n, at);
        mean[i] = summary.mean;
        error[i] = summary.se;
    }
}

/* The means of one variant: its training losses over windows of `width` steps, and its validation losses. */
static void draw_means(mg_lab *lab, lab_figure *figure, int n, const lab_training *of_seed, int variant, int width) {
    const lab_training *first = &of_seed[0];
    const lab_variant *v = &first->variant[variant];
    double *x = lab_numbers(lab, first->n_steps), *smooth[MOST_SEEDS], *validation[MOST_SEEDS];
    int places = 0, most = first->n_steps > first->n_evaluations ? first->n_steps : first->n_evaluations;
    for (int s = 0; s < n; s++) {
        smooth[s] = lab_numbers(lab, first->n_steps / width + 1);
        places = lab_smooth(first->n_steps, of_seed[s].variant[variant].loss, width, x, smooth[s]);
        validation[s] = of_seed[s].variant[variant].validation;
    }
    double *mean = lab_numbers(lab, most), *error = lab_numbers(lab, most);
    lab_mean_curve(n, places, smooth, mean, error);
    lab_band(figure, v->color, lab_format(lab, "%s, training", v->name), places, x, mean, error);
    lab_mean_curve(n, first->n_evaluations, validation, mean, error);
    lab_errors(figure, v->color, lab_format(lab, "%s, validation", v->name), first->n_evaluations,
               first->evaluation_step, mean, error);
}

lab_figure *lab_seeded_training_figure(mg_lab *lab, int n, const lab_training *of_seed, const char *name,
                                       const char *title) {
    if (n == 1) return lab_training_figure(lab, of_seed, name, title);
    lab_figure *figure = lab_figure_begin(lab, name, title, lab_loss_axes);
    int width = lab_smooth_width(of_seed);
    for (int i = 0; i < of_seed->n_variants; i++) draw_means(lab, figure, n, of_seed, i, width);
    return figure;
}
