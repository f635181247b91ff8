/* A run folder: run.json, log.csv, position.csv, checkpoint.h5, samples.txt, and the lock that keeps a second process
 * out. docs/run-folder.md describes the files. */
#ifndef MASKGRAD_RUN_DIR_H
#define MASKGRAD_RUN_DIR_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>

/* A folder and those above it. *was_there, unless NULL: how much of `path` names a folder that was there before. */
mg_status mg_make_folders(const char *path, size_t *was_there, mg_error *error);

typedef struct mg_run_dir {
    char *path;
    char *run_json, *log, *position, *checkpoint, *samples; /* the files' paths */
    int lock;                                               /* file descriptor; -1: not locked */
    size_t was_there; /* so much of `path` is the name of a folder that was there */
} mg_run_dir;

/* The paths alone; nothing is touched. */
mg_status mg_run_dir_name(mg_run_dir *dir, const char *path, mg_error *error);
/* Make the folder if it is not there (with the folders above it), and lock it: MG_ERR_STATE if another process works in
 * it. */
mg_status mg_run_dir_lock(mg_run_dir *dir, mg_error *error);
/* Undo that for a run that failed before it wrote anything: folders that mg_run_dir_lock made are removed if they are
 * empty. Still to be closed. */
void mg_run_dir_unmake(mg_run_dir *dir);
void mg_run_dir_close(mg_run_dir *dir);
/* Whether something would be lost if a new run began here: a checkpoint. */
bool mg_run_dir_holds_run(const mg_run_dir *dir);

#endif
