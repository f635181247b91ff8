/* A run folder: run.json, log.csv, position.csv, checkpoint.h5, samples.txt, and the lock that keeps a second process
 * out. docs/run-folder.md describes the files. */
#ifndef MASKGRAD_RUN_DIR_H
#define MASKGRAD_RUN_DIR_H

#include "options.h"

typedef struct mg_run_dir {
    char *path;
    char *run_json, *log, *position, *checkpoint, *samples; /* the files' paths */
    int lock;                                               /* file descriptor; -1: not locked */
} mg_run_dir;

/* The paths alone; nothing is touched. */
mg_status mg_run_dir_name(mg_run_dir *dir, const char *path, mg_error *error);
/* The same, made if it is not there (with the folders above it), writable, and locked: MG_ERR_STATE if another process
 * works in it. */
mg_status mg_run_dir_open(mg_run_dir *dir, const char *path, mg_error *error);
void mg_run_dir_close(mg_run_dir *dir);
bool mg_run_dir_holds_run(const mg_run_dir *dir);

/* What run.json says besides the settings. */
typedef struct mg_run_facts {
    uint64_t data_hash;
    const char *data_name;
    int vocab_size;
    ptrdiff_t n_parameters, n_tokens, n_train;
} mg_run_facts;
/* Written whole or not at all. */
mg_status mg_run_json_write(const char *path, const mg_run_options *options, const mg_run_facts *facts,
                            mg_error *error);

typedef struct mg_run_json mg_run_json;
/* Read it into *options, of which the texts live as long as *json. */
mg_status mg_run_json_read(mg_run_json **json, const char *path, mg_run_options *options, mg_error *error);
uint64_t mg_run_json_data_hash(const mg_run_json *json);
const char *mg_run_json_data_name(const mg_run_json *json);
void mg_run_json_free(mg_run_json *json);
/* The first setting of role FIXED in which two runs differ; NULL if there is none. */
const mg_flag *mg_run_options_conflict(const mg_run_options *a, const mg_run_options *b);

#endif
