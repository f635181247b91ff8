#include "params_file.h"
#include "atomic_file.h"
#include "parameters_h5.h"
#include "regular_file.h"
#include "seal.h"

#include <string.h>
#include <unistd.h>

static const char FORMAT[] = "maskgrad-parameters";
enum { VERSION = 1 };

static mg_status check_names(const char *path, const mg_params *params, mg_error *error) {
    for (int i = 0; i < params->n; i++) {
        const char *name = params->param[i].name;
        if (name[0] == '\0' || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            return mg_error_set(error, MG_ERR_INPUT,
                                "'%s' was not written: '%s' cannot be a parameter's name in a file", path, name);
        if (mg_params_find(params, name) != &params->param[i])
            return mg_error_set(error, MG_ERR_INPUT, "'%s' was not written: two parameters are called '%s'", path,
                                name);
    }
    return MG_OK;
}

static mg_status write_file(const char *path, const mg_params *params, int fd, mg_error *error) {
    mg_h5 h5;
    mg_status status = mg_h5_create(&h5, path, fd, MG_SEAL_BYTES, error);
    if (status == MG_OK) status = mg_h5_write_text(&h5, "/", "format", FORMAT);
    if (status == MG_OK) status = mg_h5_write_int(&h5, "/", "format_version", VERSION);
    if (status == MG_OK) status = mg_h5_write_text(&h5, "/", "creator", "maskgrad " MASKGRAD_VERSION);
    if (status == MG_OK) status = mg_parameters_h5_write(&h5, MG_MODEL_GROUP, params, params->values);
    if (status == MG_OK) status = mg_h5_write_int(&h5, "/", "complete", 1);
    if (status == MG_OK) status = mg_h5_finish(&h5);
    mg_h5_close(&h5);
    return status == MG_OK ? mg_seal_write(fd, path, error) : status;
}

mg_status mg_params_save(const char *path, const mg_params *params, mg_error *error) {
    mg_status status = check_names(path, params, error);
    if (status != MG_OK) return status;
    mg_atomic_file file;
    status = mg_atomic_file_begin(&file, path, error);
    if (status == MG_OK) status = write_file(path, params, file.fd, error);
    if (status == MG_OK) status = mg_atomic_file_commit(&file, error);
    mg_atomic_file_abandon(&file);
    return status;
}

static mg_status check_root(const mg_h5 *h5) {
    char format[64];
    int64_t version = 0, complete = 0;
    bool has_format = false, has_complete = false;
    mg_status status = mg_h5_has_attribute(h5, "/", "format", &has_format);
    if (status == MG_OK && !has_format)
        return mg_h5_error(h5, "is HDF5, but not written by maskgrad: it has no root attribute 'format'");
    if (status == MG_OK) status = mg_h5_read_text(h5, "/", "format", format, sizeof format);
    if (status != MG_OK) return status;
    if (strcmp(format, FORMAT) != 0) return mg_h5_error(h5, "has the format '%s', not '%s'", format, FORMAT);
    status = mg_h5_read_int(h5, "/", "format_version", &version);
    if (status == MG_OK && version != VERSION)
        return mg_h5_error(h5, "has format version %lld, not %d", (long long)version, VERSION);
    if (status == MG_OK) status = mg_h5_has_attribute(h5, "/", "complete", &has_complete);
    if (status == MG_OK && has_complete) status = mg_h5_read_int(h5, "/", "complete", &complete);
    if (status == MG_OK && complete != 1) return mg_h5_error(h5, "is half-written: 'complete' is not 1");
    return status;
}

static mg_status check_shapes(const mg_h5 *h5, const mg_params *params) {
    mg_param_spec *specs = mg_alloc_zero((size_t)params->n, sizeof *specs, "the list of parameters", h5->error);
    if (!specs) return MG_ERR_MEMORY;
    for (int i = 0; i < params->n; i++) {
        memcpy(specs[i].name, params->param[i].name, sizeof specs[i].name);
        specs[i].ndim = params->param[i].tensor.ndim;
        memcpy(specs[i].dim, params->param[i].tensor.dim, sizeof specs[i].dim);
    }
    mg_status status = mg_parameters_h5_check(h5, MG_MODEL_GROUP, params->n, specs);
    mg_free(specs);
    return status;
}

static mg_status read_file(const char *path, int fd, size_t bytes, mg_params *params, mg_error *error) {
    mg_seal_report seal;
    mg_h5 h5;
    mg_status status = mg_seal_check(fd, bytes, path, &seal, error);
    if (status != MG_OK) return status;
    status = mg_h5_open(&h5, path, fd, bytes, error);
    if (status == MG_OK) status = check_root(&h5);
    if (status == MG_OK) status = check_shapes(&h5, params);
    if (status == MG_OK) status = mg_parameters_h5_read(&h5, MG_MODEL_GROUP, params, params->values);
    mg_h5_close(&h5);
    return status;
}

mg_status mg_params_load(const char *path, mg_params *params, mg_error *error) {
    int fd;
    size_t bytes;
    mg_status status = check_names(path, params, error);
    if (status == MG_OK) status = mg_open_regular(path, &fd, &bytes, error);
    if (status != MG_OK) return status;
    status = read_file(path, fd, bytes, params, error);
    close(fd);
    return status;
}
