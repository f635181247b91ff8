/* Two or more runs side by side, in numbers. */
#ifndef MASKGRAD_COMPARE_H
#define MASKGRAD_COMPARE_H

#include "run_attention.h"
#include "run_dir.h"
#include "run_json.h"
#include "run_log.h"

typedef struct mg_run_record {
    mg_run_dir dir;
    mg_run_json *json;
    mg_run_options options;
    mg_run_log_table log;
    mg_run_attention_table attention; /* empty if the run did not log it */
    double last_position;             /* the loss at the last position of position.csv; NaN: there is none yet */
} mg_run_record;
mg_status mg_run_record_read(mg_run_record *record, const char *path, mg_error *error);
void mg_run_record_free(mg_run_record *record);

/* The training losses of two logs at the steps both have. */
typedef struct mg_run_log_difference {
    ptrdiff_t common;      /* steps */
    int64_t first_differs; /* -1: none */
    double largest;        /* |a − b| */
    int64_t largest_at;
} mg_run_log_difference;
mg_run_log_difference mg_run_log_compare(const mg_run_log_table *a, const mg_run_log_table *b, bool validation);

/* How a run ended. Each is NULL where there is no such row. */
typedef struct mg_run_outcome {
    const mg_run_log_row *train, *validation; /* the last of each split */
    const mg_run_log_row *best;               /* the lowest of validation */
} mg_run_outcome;
mg_run_outcome mg_run_outcome_of(const mg_run_log_table *table);
/* Whether all steps are done and measured, so that the last validation loss is the final one. *steps: done so far. */
bool mg_run_record_is_finished(const mg_run_record *record, int64_t *steps);

#endif
