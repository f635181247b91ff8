/* A run folder: run.json, log.csv, position.csv, checkpoint.h5, samples.txt, and the lock that keeps a second process
 * out. docs/run-folder.md describes the files. */
#ifndef MASKGRAD_RUN_DIR_H
#define MASKGRAD_RUN_DIR_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A folder and those above it. *was_there, unless NULL: how much of `path` names a folder that was there before. */
mg_status mg_make_folders(const char *path, size_t *was_there, mg_error *error);

typedef struct mg_run_dir {
    char *path;
    char *run_json, *log, *position, *checkpoint, *samples, *alarms, *attention; /* the files' paths */
    int lock;                                                                    /* file descriptor; -1: not locked */
    bool made_lock;   /* the lock's file was not there before */
    bool held;        /* it could not be locked, because another process is using it */
    bool claimed;     /* by mg_run_dir_claim: every file in it is ours */
    size_t was_there; /* how much of `path` names a folder that was there before */
} mg_run_dir;

/* MG_ERR_IO, with what is missing, unless `path` is a folder with a run.json in it. */
mg_status mg_check_run_folder(const char *path, mg_error *error);

/* Only the paths; no file is touched. */
mg_status mg_run_dir_name(mg_run_dir *dir, const char *path, mg_error *error);
/* Make the folder if it is not there (with the folders above it), and lock it: MG_ERR_STATE if another process is
 * using it. Temporary files that a killed process of ours left in it are removed. */
mg_status mg_run_dir_lock(mg_run_dir *dir, mg_error *error);
/* Reserve a locked folder for the files of `whose`, such as "maskgrad lab leak". An empty one is marked so (in the
 * lock's file); one that is marked otherwise, or holds files and no mark, is refused with MG_ERR_INPUT. */
mg_status mg_run_dir_claim(mg_run_dir *dir, const char *whose, mg_error *error);
/* Undo mg_run_dir_lock for a run that failed before it wrote anything (in a claimed folder: after it did, nothing
 * happens). What it made is removed: the lock's file, and folders that are empty. It must still be closed. */
void mg_run_dir_unmake(mg_run_dir *dir);
void mg_run_dir_close(mg_run_dir *dir);
/* Whether something would be lost if a new run began here: a checkpoint. */
bool mg_run_dir_holds_run(const mg_run_dir *dir);
/* Whether a run was killed here before it had begun: there is a lock's file and
 * no run.json yet, and the log is at most its header. */
bool mg_run_dir_was_just_begun(const mg_run_dir *dir);
/* Whether the run in the folder has done its steps and its last measurement. Reads the ends of its files only. */
bool mg_run_dir_is_finished(const mg_run_dir *dir, int64_t max_iters);
/* The path of one of the run's files that is there and cannot be proved to be ours: there is no run.json that begins as
 * ours do. NULL if there is none. */
const char *mg_run_dir_foreign_file(const mg_run_dir *dir);
/* MG_ERR_IO, with its name, if a folder, pipe or device is in the place of one of the run's files. */
mg_status mg_run_dir_check_files(const mg_run_dir *dir, mg_error *error);
/* Remove all files of a run. */
void mg_run_dir_clear(const mg_run_dir *dir);

#endif
