/* run.json: every setting of a run, and what it ran on. A resumed run takes its settings from here. */
#ifndef MASKGRAD_RUN_JSON_H
#define MASKGRAD_RUN_JSON_H

#include "options.h"

typedef struct mg_run_json mg_run_json;

/* What run.json says besides the settings. */
typedef struct mg_run_facts {
    uint64_t data_hash;
    const char *data_name;
    const char *tokenizer; /* "char" */
    int vocab_size;
    ptrdiff_t n_parameters, n_tokens, n_train;
    double characters_per_token; /* of the validation split */
    int ranks;                   /* how many processes train together: information only */
    const mg_run_json *before;   /* of the resumed run, whose machines stay on record; or NULL */
    int64_t step;                /* at which this process begins */
} mg_run_facts;
/* Written whole or not at all. */
mg_status mg_run_json_write(const char *path, const mg_run_options *options, const mg_run_facts *facts,
                            mg_error *error);

/* Read it into *options, whose texts live as long as *json. The file is not trusted: a key that is unknown or
 * missing, of another kind or out of range is named (MG_ERR_FORMAT). */
mg_status mg_run_json_read(mg_run_json **json, const char *path, mg_run_options *options, mg_error *error);
uint64_t mg_run_json_data_hash(const mg_run_json *json);
const char *mg_run_json_tokenizer(const mg_run_json *json); /* NULL: an older version wrote it */
int mg_run_json_vocab_size(const mg_run_json *json);
double mg_run_json_characters_per_token(const mg_run_json *json); /* 0: as above */
/* If this machine's bits may differ from those of the machine that wrote it (arithmetic, precision, BLAS kernel,
 * compiler): the difference in words, in `text`. Else NULL. */
const char *mg_run_json_other_machine(const mg_run_json *json, char *text, size_t size);
void mg_run_json_free(mg_run_json *json);

#endif
