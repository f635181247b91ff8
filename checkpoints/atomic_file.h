/* A file is replaced completely or not at all. */
#ifndef MASKGRAD_ATOMIC_FILE_H
#define MASKGRAD_ATOMIC_FILE_H

#include "error.h"

#include <stdbool.h>
#include <stdio.h>

/* MG_ERR_IO if there is something at `path` that is not a regular file: renaming over a device would remove it. */
mg_status mg_atomic_file_check(const char *path, mg_error *error);
/* The name under which `path` is written first: .maskgrad-tmp-PID-NAME in the same folder, which no other process uses.
 * Free with mg_free; NULL if memory runs out. */
char *mg_temporary_path(const char *path, mg_error *error);
/* Whether a file with this name is left over from a process that was killed. */
bool mg_temporary_is_left_over(const char *name);

typedef struct mg_atomic_file {
    int fd; /* of the temporary file, empty, for reading and writing */
    const char *path;
    char *temporary;
} mg_atomic_file;

/* Keeps `path`. MG_ERR_IO with the system's reason, MG_ERR_MEMORY. End it with one of the others, after a failure too.
 */
mg_status mg_atomic_file_begin(mg_atomic_file *file, const char *path, mg_error *error);
/* Sync, rename to PATH, sync the folder. MG_ERR_IO: the old file is as it was and the temporary one is gone. */
mg_status mg_atomic_file_commit(mg_atomic_file *file, mg_error *error);
void mg_atomic_file_abandon(mg_atomic_file *file);

/* The same as a stream, for texts. After begin, call end, abandon or finish. */
typedef struct mg_atomic_text {
    FILE *out; /* to print to */
    mg_atomic_file file;
    char path[4096];
} mg_atomic_text;
mg_status mg_atomic_text_begin(mg_atomic_text *text, const char *path, mg_error *error);
/* Commit; MG_ERR_IO also if anything that was printed did not reach the file. */
mg_status mg_atomic_text_end(mg_atomic_text *text, mg_error *error);
void mg_atomic_text_abandon(mg_atomic_text *text);
/* End a text that was printed with MG_OK, abandon it with any other status: the status of both. */
mg_status mg_atomic_text_finish(mg_atomic_text *text, mg_status printed, mg_error *error);

#endif
