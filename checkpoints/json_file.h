/* A JSON file of a known kind, read completely. */
#ifndef MASKGRAD_JSON_FILE_H
#define MASKGRAD_JSON_FILE_H

#include "error.h"

#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

/* The caller owns *json (json_decref). MG_ERR_IO for what cannot be read or is not a regular file; MG_ERR_FORMAT for
 * more than `most` bytes, a git-lfs pointer, a repeated key, or what is not JSON, with line and column. */
mg_status mg_json_file_read(const char *path, size_t most, json_t **json, mg_error *error);
/* Print it, one key per line and every number exactly, and free it. NULL is MG_ERR_MEMORY: it could not be made. */
mg_status mg_json_print(FILE *out, json_t *json, mg_error *error);

#endif
