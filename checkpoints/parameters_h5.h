/* A model's parameters, or what the optimizer keeps for each, as one dataset each in a group. */
#ifndef MASKGRAD_PARAMETERS_H5_H
#define MASKGRAD_PARAMETERS_H5_H

#include "h5.h"
#include "params.h"

/* The paths in the file; each name of the format is written only here. */
#define MG_CONFIG_GROUP "/config"
#define MG_MODEL_GROUP "/model"
#define MG_OPTIMIZER_GROUP "/optimizer"
#define MG_FIRST_MOMENT_GROUP "/optimizer/m"
#define MG_SECOND_MOMENT_GROUP "/optimizer/v"
#define MG_TRAIN_GROUP "/train"

typedef struct mg_h5_path {
    char text[MG_PARAM_NAME + 32];
} mg_h5_path;
mg_h5_path mg_h5_member(const char *group, const char *name); /* "/model/wte" */

/* Make the group and write from `block`, which is laid out as the parameters' values. */
mg_status mg_parameters_h5_write(const mg_h5 *h5, const char *group, const mg_params *params, const mg_real *block);
mg_status mg_parameters_h5_read(const mg_h5 *h5, const char *group, const mg_params *params, mg_real *block);
/* Whether the group holds exactly these, with these shapes. */
mg_status mg_parameters_h5_check(const mg_h5 *h5, const char *group, int n, const mg_param_spec *specs);

#endif
