#include "compare.h"
#include "regular_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The loss of the last whole row of position.csv; NaN if there is no such file, or it is another. */
static double read_last_position(const char *path) {
    enum { END = 256 };
    char text[END + 1];
    int fd;
    size_t bytes;
    double loss = NAN;
    if (mg_open_regular(path, &fd, &bytes, NULL) != MG_OK) return NAN;
    ssize_t n = pread(fd, text, END, bytes > END ? (off_t)(bytes - END) : 0);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    for (const char *line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        int position;
        bool whole = strchr(line + 1, '\n') != NULL;
        if (whole && sscanf(line + 1, "%d,%lf", &position, &loss) < 2) return NAN;
    }
    return loss;
}

mg_status mg_run_record_read(mg_run_record *record, const char *path, mg_error *error) {
    *record = (mg_run_record){.dir = {.lock = -1}};
    mg_status status = mg_check_run_folder(path, error);
    if (status == MG_OK) status = mg_run_dir_name(&record->dir, path, error);
    if (status == MG_OK) status = mg_run_json_read(&record->json, record->dir.run_json, &record->options, error);
    if (status == MG_OK) status = mg_run_log_read(&record->log, record->dir.log, error);
    if (status == MG_OK && record->log.n == 0)
        status = mg_error_set(error, MG_ERR_STATE, "%s has no rows: the run in %s has not done a step yet",
                              record->dir.log, record->dir.path);
    if (status == MG_OK) status = mg_run_attention_read(&record->attention, record->dir.attention, error);
    if (status == MG_OK) record->last_position = read_last_position(record->dir.position);
    if (status != MG_OK) mg_run_record_free(record);
    return status;
}

void mg_run_record_free(mg_run_record *record) {
    mg_run_log_table_free(&record->log);
    mg_run_attention_free(&record->attention);
    mg_run_json_free(record->json);
    mg_run_dir_close(&record->dir);
}

/* ---- Numbers ---- */

/* The next row of a split at or after *at; NULL at the end. */
static const mg_run_log_row *next_row(const mg_run_log_table *table, bool validation, ptrdiff_t *at) {
    while (*at < table->n && table->row[*at].validation != validation) ++*at;
    return *at < table->n ? &table->row[*at] : NULL;
}

mg_run_log_difference mg_run_log_compare(const mg_run_log_table *a, const mg_run_log_table *b, bool validation) {
    mg_run_log_difference d = {.first_differs = -1, .largest_at = -1};
    ptrdiff_t i = 0, j = 0;
    for (;;) {
        const mg_run_log_row *x = next_row(a, validation, &i), *y = next_row(b, validation, &j);
        if (!x || !y) return d;
        if (x->step != y->step) {
            *(x->step < y->step ? &i : &j) += 1;
            continue;
        }
        double difference = fabs(x->loss - y->loss);
        d.common++;
        if (difference > 0 && d.first_differs < 0) d.first_differs = x->step;
        if (difference > d.largest) {
            d.largest = difference;
            d.largest_at = x->step;
        }
        i++;
        j++;
    }
}

mg_run_outcome mg_run_outcome_of(const mg_run_log_table *table) {
    mg_run_outcome o = {0};
    for (ptrdiff_t i = 0; i < table->n; i++) {
        const mg_run_log_row *row = &table->row[i];
        if (!row->validation) {
            o.train = row;
            continue;
        }
        o.validation = row;
        if (!o.best || row->loss < o.best->loss) o.best = row;
    }
    return o;
}

bool mg_run_record_is_finished(const mg_run_record *record, int64_t *steps) {
    const mg_run_log_row *last = &record->log.row[record->log.n - 1];
    *steps = mg_run_log_steps_done(last);
    return last->validation && last->step == record->options.train.max_iters;
}
