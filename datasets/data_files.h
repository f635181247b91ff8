/* Which files --data names: a file, all files of a folder, standard input, or several of these. */
#ifndef MASKGRAD_DATA_FILES_H
#define MASKGRAD_DATA_FILES_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct mg_data_files {
    char **path; /* owned; "-" is standard input */
    int n, room;
    int n_empty; /* files of folders without a byte, which are left out */
} mg_data_files;

/* `paths` holds one path per line. A folder means its files and those of its folders, in the order of their names
 * as bytes; names that begin with a dot are left out. MG_ERR_IO for what cannot be read, MG_ERR_FORMAT for a folder
 * without files, or with too many (file_limits.h). */
mg_status mg_data_files_find(mg_data_files *files, const char *paths, mg_error *error);
void mg_data_files_free(mg_data_files *files);
/* Whether standard input, which cannot be read again later, is among them. */
bool mg_data_is_stream(const char *paths);
/* What to call such data, in one line: the last part of its path, "stdin", or "a.txt and 2 more". */
void mg_data_name(const char *paths, char *name, size_t size);

#endif
