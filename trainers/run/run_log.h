/* log.csv: one row per training step and one per evaluation. Each row is one write, so a kill tears the last row at
 * most, and the file can be read while the run continues. */
#ifndef MASKGRAD_RUN_LOG_H
#define MASKGRAD_RUN_LOG_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mg_run_log_row {
    int64_t step;    /* updates done before it */
    bool validation; /* split: val, or train */
    double loss, lr;
    double grad_norm; /* NaN: empty, as in a val row */
    int64_t tokens;   /* seen in training so far */
    double seconds;   /* since the run began, without the pauses between a stop and its resumption */
} mg_run_log_row;

/* The steps done when a row was written: a training row is of the step that follows `step`. */
static inline int64_t mg_run_log_steps_done(const mg_run_log_row *row) {
    return row->step + !row->validation;
}

typedef struct mg_run_log mg_run_log;

/* A new log with its header, in place of any that was there. */
mg_status mg_run_log_create(mg_run_log **log, const char *path, mg_error *error);
/* Continue at `step`: rows of this step and later ones are dropped, and so is a torn last row; `warning` (or "") says
 * so. *last is the last row that stays; its step is -1 if there is none. */
mg_status mg_run_log_resume(mg_run_log **log, const char *path, int64_t step, mg_run_log_row *last, char *warning,
                            size_t size, mg_error *error);
/* A row as the file has it, without the newline. */
typedef struct mg_run_log_text {
    char text[256];
} mg_run_log_text;
mg_run_log_text mg_run_log_format(const mg_run_log_row *row);
mg_status mg_run_log_append(mg_run_log *log, const mg_run_log_row *row, mg_error *error);
mg_status mg_run_log_sync(mg_run_log *log, mg_error *error); /* onto the disk */
void mg_run_log_close(mg_run_log *log);

/* The last whole row of a log that may still grow; false if there is none. Reads the end of the file only. */
bool mg_run_log_last(const char *path, mg_run_log_row *row);
/* Whether there is a log without rows: at most its header. */
bool mg_run_log_is_bare(const char *path);

typedef struct mg_run_log_table {
    mg_run_log_row *row;
    ptrdiff_t n;
    bool torn;   /* a last row without its end was left out */
    int64_t gap; /* training rows before this step are missing; -1: none is */
} mg_run_log_table;
/* The file is not trusted: a line that is not a row is named by its number (MG_ERR_FORMAT). */
mg_status mg_run_log_read(mg_run_log_table *table, const char *path, mg_error *error);
void mg_run_log_table_free(mg_run_log_table *table);

#endif
