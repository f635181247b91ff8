#include "compare_page.h"
#include "lab_private.h"
#include "printable.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* "mask=none lr=0.003": the settings in which the runs differ, as typed. */
static const char *settings_of(mg_lab *lab, const mg_run_record *records, int n, int i) {
    const char *text = "";
    mg_setting_cursor at = {0};
    for (const mg_setting *s; (s = mg_setting_next(&at, mg_run_settings));) {
        char value[MG_SETTING_ROOM];
        if (!mg_run_differs(s, at.base, records, n)) continue;
        const char *name = mg_run_typed(s, &records[i].options, at.base, value, sizeof value);
        text = lab_format(lab, "%s%s%s=%s", text, *text ? " " : "", name, mg_shown(value).text);
    }
    return text;
}

static double last_validation(const mg_run_record *record) {
    mg_run_outcome o = mg_run_outcome_of(&record->log);
    return o.validation ? o.validation->loss : NAN;
}

static int by_last_validation(const void *a, const void *b) {
    double x = last_validation(*(const mg_run_record *const *)a), y = last_validation(*(const mg_run_record *const *)b);
    if (isnan(x) || isnan(y)) return isnan(x) - isnan(y);
    return (x > y) - (x < y);
}

static const char *loss_of(mg_lab *lab, const mg_run_log_row *row) {
    return row ? lab_format(lab, "%.4f", row->loss) : "";
}

void mg_compare_page_runs(mg_lab *lab, const mg_run_record *records, int n) {
    const mg_run_record **sorted = mg_arena_alloc(lab->arena, (size_t)n, sizeof *sorted, "runs in order");
    for (int i = 0; i < n; i++) sorted[i] = &records[i];
    qsort(sorted, (size_t)n, sizeof *sorted, by_last_validation);
    lab_table *table = lab_table_begin(lab, "runs", "How they ended", "run\tdiffers in\tsteps\ttrain\tval\tbest\tseconds");
    for (int i = 0; i < n; i++) {
        mg_run_outcome o = mg_run_outcome_of(&sorted[i]->log);
        lab_table_row(table, "%s\t%s\t%" PRId64 "\t%s\t%s\t%s\t%s", mg_shown(sorted[i]->dir.path).text,
                      settings_of(lab, records, n, (int)(sorted[i] - records)), o.train ? o.train->step + 1 : 0,
                      loss_of(lab, o.train), loss_of(lab, o.validation), loss_of(lab, o.best),
                      o.train ? lab_format(lab, "%.1f", o.train->seconds) : "");
    }
    lab_table_end(table, "By the last validation loss, the lowest first; nats per token. Best: the lowest of the run.");
}

static const char *number(mg_lab *lab, double value) {
    return isfinite(value) ? lab_format(lab, "%.4f", value) : "";
}

void mg_compare_page_groups(mg_lab *lab, const mg_run_groups *groups) {
    lab_table *table = lab_table_begin(lab, "groups", "Final validation loss, by group", "group\truns\tmean\tsd\tse");
    for (int g = 0; g < groups->n; g++) {
        const mg_run_group *group = &groups->group[g];
        const mg_summary *s = &group->metric[MG_METRIC_FINAL];
        lab_table_row(table, "%s\t%d\t%s\t%s\t%s", group->label, s->n, number(lab, s->mean), number(lab, s->sd),
                      number(lab, s->se));
    }
    lab_table_end(table, "Means over the finished runs of a group, the lowest first; nats per token. sd: the standard "
                         "deviation; se: the standard error of the mean.");
}
