#include "parameters_h5.h"

#include <stdio.h>

mg_h5_path mg_h5_member(const char *group, const char *name) {
    mg_h5_path path;
    snprintf(path.text, sizeof path.text, "%s/%s", group, name);
    return path;
}

mg_status mg_parameters_h5_write(const mg_h5 *h5, const char *group, const mg_params *params, const mg_real *block) {
    mg_status status = mg_h5_write_group(h5, group);
    for (int i = 0; i < params->n && status == MG_OK; i++) {
        const mg_param *p = &params->param[i];
        status = mg_h5_write_data(h5, mg_h5_member(group, p->name).text, MG_H5_FLOAT32, p->tensor.ndim, p->tensor.dim,
                                  block + p->offset);
    }
    return status;
}

mg_status mg_parameters_h5_read(const mg_h5 *h5, const char *group, const mg_params *params, mg_real *block) {
    mg_status status = MG_OK;
    for (int i = 0; i < params->n && status == MG_OK; i++) {
        const mg_param *p = &params->param[i];
        status = mg_h5_read_data(h5, mg_h5_member(group, p->name).text, MG_H5_FLOAT32, p->tensor.ndim, p->tensor.dim,
                                 block + p->offset);
    }
    return status;
}

mg_status mg_parameters_h5_check(const mg_h5 *h5, const char *group, int n, const mg_param_spec *specs) {
    mg_status status = MG_OK;
    for (int i = 0; i < n && status == MG_OK; i++)
        status = mg_h5_check_data(h5, mg_h5_member(group, specs[i].name).text, MG_H5_FLOAT32, specs[i].ndim,
                                  specs[i].dim);
    if (status == MG_OK && mg_h5_count(h5, group) != n)
        status = mg_h5_error(h5, "%s holds more than the %d parameters of its configuration", group, n);
    return status;
}
