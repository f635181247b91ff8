/* Any network's parameters on disk: HDF5, a float32 dataset for each, in the group /model under its name. Written like
 * a checkpoint, so that at any kill the old file or the new one is there, whole. */
#ifndef MASKGRAD_PARAMS_FILE_H
#define MASKGRAD_PARAMS_FILE_H

#include "params.h"

/* MG_ERR_INPUT for names that no file can hold: empty, "." or "..", with a "/", or twice the same. MG_ERR_IO,
 * MG_ERR_MEMORY; what was at `path` is untouched then. */
MG_API mg_status mg_params_save(const char *path, const mg_params *params, mg_error *error);
/* Read the values into parameters of the same names and shapes; gradients stay. MG_ERR_FORMAT for what is damaged, half
 * written or does not fit, with what differs. *params is as it was if the file is refused before its values are read.
 */
MG_API mg_status mg_params_load(const char *path, mg_params *params, mg_error *error);

#endif
