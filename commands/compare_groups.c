#include "compare_groups.h"
#include "columns.h"
#include "curves.h"
#include "lab_private.h"
#include "language.h"
#include "printable.h"
#include "say.h"
#include "utf8.h"
#include "wrap.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Tables ---- */

enum { NUMBERS = 42 }; /* columns of n, mean, sd and se, with the blanks before them */

static void print_cell(double number, int width) {
    if (isfinite(number))
        printf("  %*.4f", width, number);
    else
        printf("  %*s", width, "-");
}

/* "5", or "3/5" where not all runs have the measure. */
static void print_summary(const mg_run_group *group, const mg_summary *s) {
    char n[32];
    snprintf(n, sizeof n, s->n == group->n ? "%d" : "%d/%d", s->n, group->n);
    printf("  %7s", n);
    print_cell(s->mean, 9);
    print_cell(s->sd, 9);
    print_cell(s->se, 9);
    putchar('\n');
}

/* A label that has no room beside its numbers is above them. */
static void print_metric(const mg_run_groups *groups, mg_run_metric metric, const char *title) {
    int room = mg_columns(stdout) - NUMBERS, width = mg_utf8_columns(mg_words("group"));
    for (int g = 0; g < groups->n; g++) {
        int columns = mg_utf8_columns(mg_shown(groups->group[g].label).text);
        if (columns > width && columns <= room) width = columns;
    }
    mg_tell("", "%s:", title);
    printf("%-*s  %7s  %9s  %9s  %9s\n", width, "group", "n", "mean", "sd", "se");
    for (int g = 0; g < groups->n; g++) {
        const mg_run_group *group = &groups->group[g];
        mg_shown_text label = mg_shown(group->label);
        int columns = mg_utf8_columns(label.text);
        if (columns <= room)
            printf("%s%*s", label.text, width - columns, "");
        else {
            mg_tell("  ", "%s", group->label);
            printf("%*s", width, "");
        }
        print_summary(group, &group->metric[metric]);
    }
}

static bool any(const mg_run_groups *groups, mg_run_metric metric) {
    for (int g = 0; g < groups->n; g++)
        if (groups->group[g].metric[metric].n > 0) return true;
    return false;
}

/* Two groups are compared; of more, the pair would have been picked by what is tested. */
static void print_test(const mg_run_groups *groups) {
    if (groups->n != 2) return;
    putchar('\n');
    const mg_run_group *a = &groups->group[0], *b = &groups->group[1];
    mg_welch w = mg_welch_of(&a->metric[MG_METRIC_FINAL], &b->metric[MG_METRIC_FINAL]);
    if (isnan(w.interval.low)) {
        mg_tell("", "No interval for the difference: each group needs two finished seeds or more.");
        return;
    }
    bool apart = w.interval.low > 0 || w.interval.high < 0;
    mg_tell("",
            "The final loss of %s is %.4f below that of %s, 95 %% interval %.4f to %.4f (Welch, %.1f degrees of "
            "freedom)%s.",
            a->label, -w.difference, b->label, -w.interval.high, -w.interval.low, w.df,
            apart ? "" : ": these runs do not tell the two apart");
}

static void print_pooled(const mg_run_groups *groups) {
    char names[1024];
    size_t at = 0;
    if (groups->n_pooled == 0) return;
    for (int i = 0; i < groups->n_pooled && at < sizeof names; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", groups->pooled[i]);
    mg_tell("", "The runs of a group also differ in %s.", names);
}

void mg_groups_tell_unfinished(const mg_run_set *set) {
    enum { MOST_NAMES = 8 };
    char *names = NULL;
    size_t size;
    int n = 0;
    FILE *out = open_memstream(&names, &size);
    if (!out) return;
    for (int i = 0; i < set->n; i++) {
        const mg_run_record *run = &set->record[i];
        int64_t steps;
        if (mg_run_record_is_finished(run, &steps) || n++ >= MOST_NAMES) continue;
        fprintf(out, "%s%s (step %" PRId64 " of %" PRId64 ")", n > 1 ? ", " : "", run->dir.path, steps,
                run->options.train.max_iters);
    }
    fclose(out);
    char more[32] = "";
    if (n > MOST_NAMES) mg_snprintf(more, sizeof more, ", and %d more", n - MOST_NAMES);
    if (n > 0) mg_tell("", "%s %s not finished: %s%s", mg_count(n, "run").text, n == 1 ? "is" : "are", names, more);
    free(names);
}

void mg_groups_print(const mg_run_groups *groups, const mg_run_set *set, double loss) {
    mg_tell("", "%s in %s; means over runs, losses in nats per token.", mg_count(set->n, "run").text,
            mg_count(groups->n, "group").text);
    mg_groups_tell_unfinished(set);
    print_pooled(groups);
    putchar('\n');
    print_metric(groups, MG_METRIC_FINAL, "Final validation loss");
    if (any(groups, MG_METRIC_LAST)) {
        putchar('\n');
        print_metric(groups, MG_METRIC_LAST, "Loss at the last position");
    }
    if (!isnan(loss)) {
        char title[128];
        snprintf(title, sizeof title, "Seconds to a validation loss of %.15g (n: the runs that reached it)", loss);
        putchar('\n');
        print_metric(groups, MG_METRIC_SECONDS, title);
    }
    print_test(groups);
}

/* ---- Pictures ---- */

enum { MOST_GROUPS = 8, MOST_THIN = 80 };

static void draw_losses(mg_lab *lab, const mg_run_groups *groups, const mg_run_set *set) {
    int shown = groups->n < MOST_GROUPS ? groups->n : MOST_GROUPS, runs = 0;
    int64_t stretch = mg_curve_stretch(set->record, set->n);
    mg_curve curve;
    lab_figure *figure = lab_figure_begin(lab, "loss", "Training loss: means over runs",
                                          (lab_axes){.x = "step", .y = "loss (nats per token)", .y_from_zero = true});
    for (int g = 0; g < shown; g++) runs += groups->group[g].n;
    for (int g = 0; g < shown && runs <= MOST_THIN; g++)
        for (int i = 0; i < groups->group[g].n; i++) {
            mg_curve_of_run(&curve, &set->record[groups->group[g].run[i]], stretch);
            lab_thin_line(figure, lab_step(g, shown), curve.n, curve.x, curve.y);
        }
    for (int g = 0; g < shown; g++) {
        mg_curve_of_group(&curve, &groups->group[g], set->record, stretch);
        lab_band(figure, lab_step(g, shown), groups->group[g].label, curve.n, curve.x, curve.y, curve.spread);
    }
    lab_figure_end(figure, "Bands: the standard error of the mean.");
}

static int by_value(const void *a, const void *b) {
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    char *end_x, *end_y;
    double nx = strtod(x, &end_x), ny = strtod(y, &end_y);
    if (*end_x == '\0' && *end_y == '\0') return (nx > ny) - (nx < ny);
    return strcmp(x, y);
}

/* The different values of setting s, in order. */
static int values_of(mg_lab *lab, const mg_run_groups *groups, int s, const char ***value) {
    int n = 0;
    *value = mg_arena_alloc(lab->arena, (size_t)groups->n, sizeof **value, "values of a setting");
    for (int g = 0; g < groups->n; g++) {
        int i = 0;
        while (i < n && strcmp((*value)[i], groups->group[g].value[s]) != 0) i++;
        if (i == n) (*value)[n++] = groups->group[g].value[s];
    }
    qsort(*value, (size_t)n, sizeof **value, by_value);
    return n;
}

static const mg_run_group *find_group(const mg_run_groups *groups, const char *first, const char *second) {
    for (int g = 0; g < groups->n; g++) {
        const char **value = groups->group[g].value;
        if (strcmp(value[0], first) == 0 && (!second || strcmp(value[1], second) == 0)) return &groups->group[g];
    }
    return NULL;
}

static void draw_two(mg_lab *lab, const mg_run_groups *groups) {
    const char **row, **column;
    int n_rows = values_of(lab, groups, 0, &row), n_columns = values_of(lab, groups, 1, &column);
    mg_real *mean = mg_arena_alloc(lab->arena, (size_t)n_rows * (size_t)n_columns, sizeof *mean, "a heat map");
    for (int r = 0; r < n_rows; r++)
        for (int c = 0; c < n_columns; c++) {
            const mg_run_group *group = find_group(groups, row[r], column[c]);
            mean[r * n_columns + c] = group && group->metric[MG_METRIC_FINAL].n > 0
                                          ? (mg_real)group->metric[MG_METRIC_FINAL].mean
                                          : -(mg_real)INFINITY;
        }
    lab_heatmap *map = lab_heatmap_begin(
        lab, "final-loss", "Final validation loss",
        (lab_scale){
            .unit = "nats per token", .numbers = true, .rows = groups->setting[0], .columns = groups->setting[1]});
    lab_heatmap_panel(map, (lab_panel){.title = "",
                                       .n_rows = n_rows,
                                       .n_columns = n_columns,
                                       .values = mean,
                                       .row_labels = row,
                                       .column_labels = column});
    lab_heatmap_end(map, "Means over runs.");
}

static bool all_numbers(int n, const char *const *value, double *number) {
    for (int i = 0; i < n; i++) {
        char *end;
        number[i] = strtod(value[i], &end);
        if (end == value[i] || *end) return false;
    }
    return true;
}

static void draw_one(mg_lab *lab, const mg_run_groups *groups) {
    enum { DECADE = 10 };
    const char **value;
    int n = values_of(lab, groups, 0, &value);
    double *x = mg_arena_alloc(lab->arena, 3 * (size_t)n, sizeof *x, "a curve"), *y = x + n, *se = y + n;
    for (int i = 0; i < n; i++) {
        const mg_summary *s = &find_group(groups, value[i], NULL)->metric[MG_METRIC_FINAL];
        y[i] = s->mean;
        se[i] = s->se;
    }
    bool numbers = all_numbers(n, value, x);
    lab_axes axes = {.x = groups->setting[0], .y = "final validation loss (nats per token)"};
    axes.log_x = numbers && x[0] > 0 && x[n - 1] >= DECADE * x[0];
    lab_figure *figure = lab_figure_begin(lab, "final-loss", "Final validation loss", axes);
    if (numbers)
        lab_errors(figure, LAB_MASKED, "mean over runs", n, x, y, se);
    else
        lab_bars(figure, LAB_MASKED, "mean over runs", n, value, y);
    lab_figure_end(figure, numbers ? "Bars: the standard error of the mean." : "");
}

void mg_groups_draw(mg_lab *lab, const mg_run_groups *groups, const mg_run_set *set) {
    draw_losses(lab, groups, set);
    if (groups->n_settings == 1 && groups->n > 1) draw_one(lab, groups);
    if (groups->n_settings == 2) draw_two(lab, groups);
}
