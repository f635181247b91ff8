/* The runs of `compare` as one tidy table: a row per run and step. */
#include "atomic_file.h"
#include "compare_groups.h"
#include "csv_table.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const mg_run_group *group_of(const mg_run_groups *groups, int run) {
    for (int g = 0; g < groups->n; g++)
        for (int i = 0; i < groups->group[g].n; i++)
            if (groups->group[g].run[i] == run) return &groups->group[g];
    return NULL;
}

/* The seed has a column of its own, unless it tells groups apart. */
static bool has_seed(const mg_run_groups *groups) {
    for (int s = 0; s < groups->n_settings; s++)
        if (strcmp(groups->setting[s], "seed") == 0) return true;
    return false;
}

/* ---- CSV ---- */

/* What begins each of a run's rows, made once. Free with free(). */
static char *csv_beginning(const mg_run_groups *groups, const mg_run_set *set, int run) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    const mg_run_group *group = group_of(groups, run);
    mg_csv_write_cell(out, set->record[run].dir.path);
    for (int s = 0; s < groups->n_settings; s++) {
        putc(',', out);
        mg_csv_write_cell(out, group->value[s]);
    }
    if (!has_seed(groups)) fprintf(out, ",%" PRIu64, set->record[run].options.train.seed);
    fclose(out);
    return text;
}

static void csv_rows(FILE *out, const mg_run_log_table *log, const char *beginning) {
    for (ptrdiff_t i = 0; i < log->n; i++)
        fprintf(out, "%s,%s\n", beginning, mg_run_log_format(&log->row[i]).text);
}

static mg_status out_of_memory(mg_atomic_text *file, const char *path, mg_error *error) {
    mg_atomic_text_abandon(file);
    return mg_error_set(error, MG_ERR_MEMORY, "out of memory for %s", path);
}

mg_status mg_groups_write_csv(const char *path, const mg_run_groups *groups, const mg_run_set *set, mg_error *error) {
    mg_atomic_text file;
    mg_status status = mg_atomic_text_begin(&file, path, error);
    if (status != MG_OK) return status;
    fputs("run", file.out);
    for (int s = 0; s < groups->n_settings; s++) fprintf(file.out, ",%s", groups->setting[s]);
    fprintf(file.out, "%s,step,split,loss,lr_at_step,grad_norm,tokens,seconds\n", has_seed(groups) ? "" : ",seed");
    for (int run = 0; run < set->n; run++) {
        char *beginning = csv_beginning(groups, set, run);
        if (!beginning) return out_of_memory(&file, path, error);
        csv_rows(file.out, &set->record[run].log, beginning);
        free(beginning);
    }
    return mg_atomic_text_end(&file, error);
}

/* ---- JSON ---- */

/* A value as it was typed: a number or true, false where JSON has it so, else a text. */
static json_t *json_of(const char *text) {
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    bool plain = json_is_number(value) || json_is_boolean(value);
    if (plain) return value;
    json_decref(value);
    return strcmp(text, "-") == 0 ? json_null() : json_string(text);
}

/* "{"run": "…", "lr": 0.001, "seed": 1", without the brace that ends it. Free with free(). */
static char *json_beginning(const mg_run_groups *groups, const mg_run_set *set, int run) {
    enum { DIGITS = 15 };
    const mg_run_group *group = group_of(groups, run);
    json_t *object = json_object();
    json_object_set_new(object, "run", json_string(set->record[run].dir.path));
    for (int s = 0; s < groups->n_settings; s++)
        json_object_set_new(object, groups->setting[s], json_of(group->value[s]));
    if (!has_seed(groups))
        json_object_set_new(object, "seed", json_integer((json_int_t)set->record[run].options.train.seed));
    char *text = json_dumps(object, JSON_REAL_PRECISION(DIGITS));
    json_decref(object);
    if (text) text[strlen(text) - 1] = '\0';
    return text;
}

static void json_number(FILE *out, const char *name, double number) {
    if (isfinite(number))
        fprintf(out, ", \"%s\": %.9g", name, number);
    else
        fprintf(out, ", \"%s\": null", name);
}

static void json_rows(FILE *out, const mg_run_log_table *log, const char *beginning, bool *first) {
    for (ptrdiff_t i = 0; i < log->n; i++) {
        const mg_run_log_row *row = &log->row[i];
        fprintf(out, "%s%s, \"step\": %" PRId64 ", \"split\": \"%s\"", *first ? "\n" : ",\n", beginning, row->step,
                row->validation ? "val" : "train");
        json_number(out, "loss", row->loss);
        json_number(out, "lr_at_step", row->lr);
        json_number(out, "grad_norm", row->grad_norm);
        fprintf(out, ", \"tokens\": %" PRId64 ", \"seconds\": %.6f}", row->tokens, row->seconds);
        *first = false;
    }
}

mg_status mg_groups_write_json(const char *path, const mg_run_groups *groups, const mg_run_set *set, mg_error *error) {
    mg_atomic_text file;
    bool first = true;
    mg_status status = mg_atomic_text_begin(&file, path, error);
    if (status != MG_OK) return status;
    putc('[', file.out);
    for (int run = 0; run < set->n; run++) {
        char *beginning = json_beginning(groups, set, run);
        if (!beginning) return out_of_memory(&file, path, error);
        json_rows(file.out, &set->record[run].log, beginning, &first);
        free(beginning);
    }
    fputs("\n]\n", file.out);
    return mg_atomic_text_end(&file, error);
}
