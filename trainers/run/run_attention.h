/* attention.csv: how flat the rows of attention are at each evaluation, layer by layer. A run without --log-attention
 * has no such file. */
#ifndef MASKGRAD_RUN_ATTENTION_H
#define MASKGRAD_RUN_ATTENTION_H

#include "evaluation.h"

typedef struct mg_run_attention_row {
    int64_t step; /* updates done before it */
    int layer;
    /* Means over heads and rows that see more than one key. */
    double entropy;   /* nats */
    double relative;  /* entropy / ln(visible keys): 1 is a row that weighs all alike, 0 one that looks at one key */
    double saturated; /* share of rows with a weight above MG_SATURATED */
} mg_run_attention_row;
#define MG_SATURATED 0.99

/* Measure all layers on the same validation windows at each call, and append their rows with one write. Changes nothing
 * in the model. MG_ERR_STOPPED if `stop` asks for it, and nothing is written then. */
mg_status mg_run_attention_log(const char *path, mg_gpt *gpt, const mg_corpus *corpus, uint64_t seed, int64_t step,
                               const mg_stop *stop, mg_error *error);
/* Begin, or continue at `step`: rows of this step and later ones are dropped, and so is a torn last row. */
mg_status mg_run_attention_resume(const char *path, int64_t step, mg_error *error);

typedef struct mg_run_attention_table {
    mg_run_attention_row *row; /* steps never fall; n_layer rows per step */
    ptrdiff_t n;
} mg_run_attention_table;
/* No file: no rows. The file is not trusted: a line that is not a row is named by its number (MG_ERR_FORMAT). */
mg_status mg_run_attention_read(mg_run_attention_table *table, const char *path, mg_error *error);
void mg_run_attention_free(mg_run_attention_table *table);

#endif
