/* run.json: every setting of a run, and what it ran on. A resumed run takes its settings from here. */
#ifndef MASKGRAD_RUN_JSON_H
#define MASKGRAD_RUN_JSON_H

#include "options.h"

/* What run.json says besides the settings. */
typedef struct mg_run_facts {
    uint64_t data_hash;
    const char *data_name;
    const char *tokenizer; /* "char" */
    int vocab_size;
    ptrdiff_t n_parameters, n_tokens, n_train;
    double characters_per_token; /* of the validation split */
} mg_run_facts;
/* Written whole or not at all. */
mg_status mg_run_json_write(const char *path, const mg_run_options *options, const mg_run_facts *facts,
                            mg_error *error);

typedef struct mg_run_json mg_run_json;
/* Read it into *options, of which the texts live as long as *json. */
mg_status mg_run_json_read(mg_run_json **json, const char *path, mg_run_options *options, mg_error *error);
uint64_t mg_run_json_data_hash(const mg_run_json *json);
const char *mg_run_json_tokenizer(const mg_run_json *json); /* NULL: an older version wrote it */
int mg_run_json_vocab_size(const mg_run_json *json);
double mg_run_json_characters_per_token(const mg_run_json *json); /* 0: as above */
void mg_run_json_free(mg_run_json *json);

#endif
