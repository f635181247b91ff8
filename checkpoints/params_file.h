/* Any network's parameters on disk: HDF5, one float32 dataset per parameter, in the group /model under its name.
 * Written like a checkpoint: whenever the process is killed, either the old or the new file is there, complete. */
#ifndef MASKGRAD_PARAMS_FILE_H
#define MASKGRAD_PARAMS_FILE_H

#include "params.h"

/* MG_ERR_INPUT for names that no file can hold: empty, "." or "..", with a "/", or duplicates. MG_ERR_IO,
 * MG_ERR_MEMORY; the old file at `path` is then untouched. */
MG_API mg_status mg_params_save(const char *path, const mg_params *params, mg_error *error);
/* Read the values into parameters of the same names and shapes; gradients stay. MG_ERR_FORMAT for a file that is
 * damaged, half-written or does not fit, with what differs. *params is unchanged if the file is refused before its
 * values are read. */
MG_API mg_status mg_params_load(const char *path, mg_params *params, mg_error *error);

#ifndef MG_LIBRARY /* whose line a failure names: error.h */
MG_CALLED(mg_status, mg_params_save, (path, params), (path, params, error), const char *path, const mg_params *params,
          mg_error *error)
MG_CALLED(mg_status, mg_params_load, (path, params), (path, params, error), const char *path, mg_params *params,
          mg_error *error)
#define mg_params_save(...) MG_AT(mg_params_save, __VA_ARGS__)
#define mg_params_load(...) MG_AT(mg_params_load, __VA_ARGS__)
#endif

#endif
