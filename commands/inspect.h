/* What `maskgrad inspect` knows about a file, and its two output formats. */
#ifndef MASKGRAD_INSPECT_H
#define MASKGRAD_INSPECT_H

#include "checkpoint.h"

typedef struct mg_inspection {
    const char *path;
    mg_checkpoint_info info;
    mg_checkpoint checkpoint;
    bool verified; /* every dataset was read, the optimizer's too */
} mg_inspection;

/* The training mask in words. */
typedef struct mg_mask_text {
    char text[256];
} mg_mask_text;
mg_mask_text mg_mask_in_words(const mg_gpt_config *config);

typedef struct mg_parameter_summary {
    double norm;          /* L2, of the finite numbers */
    ptrdiff_t not_finite; /* how many are NaN or infinite */
} mg_parameter_summary;
mg_parameter_summary mg_parameter_summarize(const mg_param *parameter);

void mg_inspect_print(mg_inspection *inspection); /* on stdout, within 80 columns */
/* One JSON object on stdout. MG_ERR_MEMORY if memory runs out. */
mg_status mg_inspect_print_json(mg_inspection *inspection, mg_error *error);

#endif
