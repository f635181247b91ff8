#include "groups.h"
#include "grid.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SETTINGS = 64, TEXT_SIZE = MG_SETTING_ROOM };

/* ---- Settings as they are typed ---- */

/* The row of --mask, which says most of what the row of --lookahead holds. */
static const mg_setting *row_of_mask(void) {
    for (const mg_setting *row = mg_lesson_settings; !mg_setting_is_end(row); row++)
        if (row->name && strcmp(row->name, "mask") == 0) return row;
    return NULL;
}

const char *mg_run_typed(const mg_setting *setting, const mg_run_options *options, size_t base, char *text,
                         size_t size) {
    const void *values = (const char *)options + base;
    char formatted[TEXT_SIZE];
    const mg_setting *mask = row_of_mask();
    if (strcmp(setting->name, "lookahead") == 0) {
        mg_setting_format(mask, values, formatted, sizeof formatted);
        if (formatted[0]) setting = mask;
    }
    mg_setting_format(setting, values, formatted, sizeof formatted);
    if (setting->kind == MG_SETTING_REAL) snprintf(formatted, sizeof formatted, "%.15g", strtod(formatted, NULL));
    if (mg_setting_is_switch(setting)) {
        bool on = (strcmp(formatted, "true") == 0) == (setting->kind == MG_SETTING_ON);
        snprintf(formatted, sizeof formatted, "%s", on ? "true" : "false");
    }
    if (text) snprintf(text, size, "%s", formatted[0] ? formatted : "-");
    return setting->name;
}

/* ---- Which settings differ ---- */

typedef struct difference {
    const mg_setting *setting;
    size_t base;
} difference;

/* They say where, how long and how often, and not what is learned. */
static bool is_beside_the_point(const char *name) {
    static const char *const names[] = {"name",          "threads",  "log-interval", "save-interval",
                                        "eval-interval", "on-alarm", "merges"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

/* The final learning rate where it is a tenth of the highest, and the end of its decay where that is the last step. */
static bool follows_from_others(const char *name, const mg_run_record *records, int n) {
    bool is_rate = strcmp(name, "min-lr") == 0, is_decay = strcmp(name, "lr-decay-iters") == 0;
    for (int i = 0; i < n; i++) {
        const mg_train_options *o = &records[i].options.train;
        if (is_rate && o->schedule.min_lr != o->schedule.lr / 10) return false;
        if (is_decay && o->schedule.decay_iters != o->max_iters) return false;
    }
    return is_rate || is_decay;
}

static bool same_data(const mg_run_record *records, int n) {
    for (int i = 1; i < n; i++)
        if (mg_run_json_data_hash(records[i].json) != mg_run_json_data_hash(records[0].json)) return false;
    return true;
}

static bool differs(const difference *d, const mg_run_record *records, int n) {
    const char *first = (const char *)&records[0].options + d->base;
    char wanted[TEXT_SIZE], found[TEXT_SIZE];
    mg_setting_format(d->setting, first, wanted, sizeof wanted);
    for (int i = 1; i < n; i++) {
        mg_setting_format(d->setting, (const char *)&records[i].options + d->base, found, sizeof found);
        if (strcmp(wanted, found) != 0) return true;
    }
    return false;
}

bool mg_run_differs(const mg_setting *setting, size_t base, const mg_run_record *records, int n) {
    difference d = {setting, base};
    if (is_beside_the_point(setting->name) || !differs(&d, records, n)) return false;
    if (strcmp(setting->name, "data") == 0 && same_data(records, n)) return false; /* one file in two places */
    return !follows_from_others(setting->name, records, n);
}

static int find_differences(difference *found, const mg_run_record *records, int n) {
    int count = 0;
    mg_setting_cursor at = {0};
    for (const mg_setting *s; count < MOST_SETTINGS && (s = mg_setting_next(&at, mg_run_settings));)
        if (strcmp(s->name, "seed") != 0 && mg_run_differs(s, at.base, records, n))
            found[count++] = (difference){s, at.base};
    return count;
}

static mg_status find_named(difference *found, int *n, const char *by, mg_error *error) {
    *n = 0;
    while (*by) {
        size_t length = strcspn(by, ",");
        mg_sweep_choice named;
        mg_status status = mg_sweep_find(by, length, &named, error);
        if (status != MG_OK) return status;
        mg_setting_cursor at = {0};
        for (const mg_setting *s; *n < MOST_SETTINGS && (s = mg_setting_next(&at, mg_run_settings));)
            if (mg_sweep_is_same(s, at.base, named.setting, named.base)) found[(*n)++] = (difference){s, at.base};
        by += length + (by[length] == ',');
    }
    return MG_OK;
}

/* ---- Groups ---- */

static const char *keep(mg_run_groups *groups, const char *text) {
    char *copy = mg_arena_alloc(groups->arena, strlen(text) + 1, 1, "a group of runs");
    return strcpy(copy, text);
}

/* A setting's name for all runs: lookahead if one of them has a mask that only --lookahead can say. */
static const char *name_of(const difference *d, const mg_run_record *records, int n) {
    const char *name = d->setting->name;
    for (int i = 0; i < n; i++) {
        const char *typed = mg_run_typed(d->setting, &records[i].options, d->base, NULL, 0);
        if (i == 0 || strcmp(typed, d->setting->name) == 0) name = typed;
    }
    return name;
}

static void name_group(mg_run_groups *groups, mg_run_group *group) {
    char label[2 * TEXT_SIZE] = "";
    size_t at = 0;
    for (int s = 0; s < groups->n_settings && at < sizeof label; s++)
        at += (size_t)snprintf(label + at, sizeof label - at, "%s%s=%s", s > 0 ? " " : "", groups->setting[s],
                               group->value[s]);
    group->label = keep(groups, groups->n_settings > 0 ? label : "all runs");
}

static bool belongs(const mg_run_groups *groups, const mg_run_group *group, const char *const *value) {
    for (int s = 0; s < groups->n_settings; s++)
        if (strcmp(group->value[s], value[s]) != 0) return false;
    return true;
}

static void put_run(mg_run_groups *groups, const difference *by, const mg_run_record *records, int n, int run) {
    const char **value = mg_arena_alloc(groups->arena, (size_t)groups->n_settings + 1, sizeof *value, "a group");
    for (int s = 0; s < groups->n_settings; s++) {
        char text[TEXT_SIZE];
        mg_run_typed(by[s].setting, &records[run].options, by[s].base, text, sizeof text);
        value[s] = keep(groups, text);
    }
    int at = 0;
    while (at < groups->n && !belongs(groups, &groups->group[at], value)) at++;
    mg_run_group *group = &groups->group[at];
    if (at == groups->n) {
        *group = (mg_run_group){.value = value};
        group->run = mg_arena_alloc(groups->arena, (size_t)n, sizeof *group->run, "a group of runs");
        name_group(groups, group);
        groups->n++;
    }
    group->run[group->n++] = run;
}

static int by_final_loss(const void *a, const void *b) {
    const mg_run_group *x = a, *y = b;
    double mx = x->metric[MG_METRIC_FINAL].mean, my = y->metric[MG_METRIC_FINAL].mean;
    if (isnan(mx) || isnan(my)) return isnan(mx) - isnan(my);
    return (mx > my) - (mx < my);
}

/* ---- Measures ---- */

static double seconds_to(const mg_run_log_table *log, double loss) {
    for (ptrdiff_t i = 0; i < log->n; i++)
        if (log->row[i].validation && log->row[i].loss <= loss) return log->row[i].seconds;
    return NAN;
}

static void measure(mg_run_groups *groups, const mg_run_record *records, int n, double loss) {
    for (int m = 0; m < MG_N_METRICS; m++)
        groups->measured[m] = mg_arena_alloc(groups->arena, (size_t)n, sizeof(double), "measures");
    for (int i = 0; i < n; i++) {
        int64_t steps;
        bool finished = mg_run_record_is_finished(&records[i], &steps);
        groups->measured[MG_METRIC_FINAL][i] = finished ? mg_run_outcome_of(&records[i].log).validation->loss : NAN;
        groups->measured[MG_METRIC_LAST][i] = finished ? records[i].last_position : NAN;
        groups->measured[MG_METRIC_SECONDS][i] = seconds_to(&records[i].log, loss);
    }
}

static void summarize(mg_run_groups *groups, mg_run_group *group) {
    mg_arena_mark mark = mg_arena_here(groups->arena);
    double *x = mg_arena_alloc(groups->arena, (size_t)group->n, sizeof *x, "measures");
    for (int m = 0; m < MG_N_METRICS; m++) {
        for (int i = 0; i < group->n; i++) x[i] = groups->measured[m][group->run[i]];
        group->metric[m] = mg_summarize(group->n, x);
    }
    mg_arena_rewind(groups->arena, mark);
}

/* ---- All of it ---- */

static void list_pooled(mg_run_groups *groups, const difference *all, int n_all, const difference *by, int n_by,
                        const mg_run_record *records, int n) {
    groups->pooled = mg_arena_alloc(groups->arena, (size_t)n_all + 1, sizeof *groups->pooled, "settings");
    for (int i = 0; i < n_all; i++) {
        bool used = false;
        for (int s = 0; s < n_by; s++) used = used || by[s].setting == all[i].setting;
        if (!used) groups->pooled[groups->n_pooled++] = name_of(&all[i], records, n);
    }
}

mg_status mg_run_groups_make(mg_run_groups *groups, const mg_run_record *records, int n, const char *by, double loss,
                             mg_error *error) {
    difference all[MOST_SETTINGS], named[MOST_SETTINGS];
    int n_named = 0, n_all = find_differences(all, records, n);
    *groups = (mg_run_groups){0};
    mg_status status = by ? find_named(named, &n_named, by, error) : MG_OK;
    if (status == MG_OK) status = mg_arena_new(&groups->arena, error);
    if (status != MG_OK) return status;
    const difference *chosen = by ? named : all;
    groups->n_settings = by ? n_named : n_all;
    groups->setting = mg_arena_alloc(groups->arena, MOST_SETTINGS, sizeof *groups->setting, "settings");
    for (int s = 0; s < groups->n_settings; s++) groups->setting[s] = name_of(&chosen[s], records, n);
    list_pooled(groups, all, n_all, chosen, groups->n_settings, records, n);
    groups->group = mg_arena_alloc(groups->arena, (size_t)n, sizeof *groups->group, "groups of runs");
    for (int run = 0; run < n; run++) put_run(groups, chosen, records, n, run);
    measure(groups, records, n, loss);
    for (int g = 0; g < groups->n; g++) summarize(groups, &groups->group[g]);
    qsort(groups->group, (size_t)groups->n, sizeof *groups->group, by_final_loss);
    return MG_OK;
}

void mg_run_groups_free(mg_run_groups *groups) {
    if (groups->arena) mg_arena_free(groups->arena);
    *groups = (mg_run_groups){0};
}

bool mg_run_groups_repeat(const mg_run_groups *groups) {
    for (int g = 0; g < groups->n; g++)
        if (groups->group[g].n > 1) return true;
    return false;
}
