#include "checkpoint.h"
#include "fields.h"
#include "parameters_h5.h"
#include "regular_file.h"
#include "seal.h"
#include "tokenizer_h5.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- From the outside in: seal, format, configuration, shapes; only then is memory allocated. ---- */

static mg_status check_root(const mg_h5 *h5, mg_checkpoint_info *info) {
    char format[64];
    int64_t version = 0, complete = 0;
    bool has_format = false, has_complete = false;
    mg_status status = mg_h5_has_attribute(h5, "/", "format", &has_format);
    if (status == MG_OK && !has_format)
        return mg_h5_error(h5, "is HDF5, but not a maskgrad checkpoint: it has no root attribute 'format'");
    if (status == MG_OK) status = mg_h5_read_text(h5, "/", "format", format, sizeof format);
    if (status != MG_OK) return status;
    if (strcmp(format, MG_CHECKPOINT_FORMAT) != 0)
        return mg_h5_error(h5, "is not a maskgrad checkpoint: its format is '%s', not '%s'", format,
                           MG_CHECKPOINT_FORMAT);
    status = mg_h5_read_int(h5, "/", "format_version", &version);
    if (status != MG_OK) return status;
    if (version > MG_CHECKPOINT_VERSION)
        return mg_h5_error(h5,
                           "has format version %" PRId64 ", but this program reads up to version %d: use a newer one",
                           version, MG_CHECKPOINT_VERSION);
    if (version < 1) return mg_h5_error(h5, "has format version %" PRId64 ", which does not exist", version);
    info->format_version = (int)version;
    status = mg_h5_has_attribute(h5, "/", "complete", &has_complete);
    if (status == MG_OK && has_complete) status = mg_h5_read_int(h5, "/", "complete", &complete);
    if (status != MG_OK) return status;
    if (complete != 1) return mg_h5_error(h5, "is half-written: its root attribute 'complete' is not 1");
    return mg_h5_read_text(h5, "/", "creator", info->creator, sizeof info->creator);
}

static mg_status read_config(const mg_h5 *h5, int version, mg_gpt_config *config) {
    *config = (mg_gpt_config){0};
    mg_status status = mg_fields_read(h5, MG_CONFIG_GROUP, mg_config_fields, version, config);
    if (status != MG_OK) return status;
    mg_error why = {0};
    if (mg_gpt_config_check(config, &why) != MG_OK)
        return mg_h5_error(h5, "its configuration is not possible: %s", why.message);
    int64_t held = -1;
    status = mg_h5_count(h5, MG_MODEL_GROUP, &held);
    if (status != MG_OK) return status;
    if (held < 0) return mg_h5_error(h5, "the group %s is missing", MG_MODEL_GROUP);
    /* Refuse a number of layers that the file cannot hold before anything is allocated per layer. */
    if (config->n_layer > held)
        return mg_h5_error(h5, "n_layer is %d, but %s holds only %" PRId64 " parameters", config->n_layer,
                           MG_MODEL_GROUP, held);
    return MG_OK;
}

/* Deflate packs 1032 bytes into one at best; datasets that share their bytes could claim any number. */
static mg_status check_claim(const mg_h5 *h5, const mg_checkpoint_info *info, int n, const mg_param_spec *specs) {
    double numbers = 0;
    for (int i = 0; i < n; i++) numbers += (double)mg_shape_size(specs[i].ndim, specs[i].dim);
    if (info->has_optimizer) numbers *= 3;
    if (numbers * 4 <= 1032 * (double)info->bytes) return MG_OK;
    return mg_h5_error(h5, "its configuration needs %.0f numbers, more than its %" PRId64 " bytes can hold", numbers,
                       info->bytes);
}

static mg_status check_parameters(const mg_h5 *h5, const mg_checkpoint_info *info) {
    int n = mg_gpt_specs(&info->config, NULL);
    mg_param_spec *specs = mg_alloc((size_t)n, sizeof *specs, "the list of parameters", h5->error);
    if (!specs) return MG_ERR_MEMORY;
    mg_gpt_specs(&info->config, specs);
    mg_status status = check_claim(h5, info, n, specs);
    if (status == MG_OK) status = mg_parameters_h5_check(h5, MG_MODEL_GROUP, n, specs);
    if (status == MG_OK && info->has_optimizer) status = mg_parameters_h5_check(h5, MG_FIRST_MOMENT_GROUP, n, specs);
    if (status == MG_OK && info->has_optimizer) status = mg_parameters_h5_check(h5, MG_SECOND_MOMENT_GROUP, n, specs);
    mg_free(specs);
    return status;
}

static mg_status check_counts(const mg_h5 *h5, const mg_checkpoint_info *info) {
    if (info->train.step < 0 || info->train.tokens < 0)
        return mg_h5_error(h5, "step and tokens of %s must not be negative", MG_TRAIN_GROUP);
    if (info->has_optimizer && info->optimizer.step < 0)
        return mg_h5_error(h5, "step of %s must not be negative", MG_OPTIMIZER_GROUP);
    return MG_OK;
}

static mg_status read_info(const mg_h5 *h5, mg_checkpoint_info *info) {
    mg_status status = check_root(h5, info);
    if (status == MG_OK) status = read_config(h5, info->format_version, &info->config);
    if (status == MG_OK)
        status = mg_fields_read(h5, MG_TRAIN_GROUP, mg_train_fields, info->format_version, &info->train);
    if (status == MG_OK) status = mg_h5_has(h5, MG_OPTIMIZER_GROUP, &info->has_optimizer);
    if (status == MG_OK && info->has_optimizer)
        status = mg_fields_read(h5, MG_OPTIMIZER_GROUP, mg_optimizer_fields, info->format_version, &info->optimizer);
    if (status == MG_OK) status = check_counts(h5, info);
    if (status == MG_OK) status = check_parameters(h5, info);
    if (status == MG_OK) status = mg_h5_has(h5, MG_TOKENIZER_GROUP, &info->has_tokenizer);
    if (status == MG_OK && info->has_tokenizer)
        status = mg_tokenizer_h5_kind(h5, info->config.vocab_size, &info->tokenizer_kind);
    return status;
}

/* An open checkpoint: the seal is compared and HDF5 reads through the same descriptor, whatever is renamed meanwhile.
 */
typedef struct reader {
    const char *path;
    mg_error *error;
    int fd;
    struct stat before;
    mg_h5 h5;
    mg_checkpoint_info info;
} reader;

static void close_checkpoint(reader *r) {
    if (r->fd < 0) return;
    if (r->h5.path) mg_h5_close(&r->h5);
    close(r->fd);
    r->fd = -1;
}

/* A run folder that is there has no such file in it. */
static bool is_missing_in_folder(const char *path, int folder_length) {
    char folder[4096];
    struct stat about;
    if (lstat(path, &about) == 0 || errno != ENOENT) return false;
    snprintf(folder, sizeof folder, "%.*s", folder_length, path);
    return stat(folder, &about) == 0 && S_ISDIR(about.st_mode);
}

static mg_status open_file(const char *path, int *fd, size_t *bytes, mg_error *error) {
    mg_status status = mg_open_regular(path, fd, bytes, error);
    const char *name = strrchr(path, '/');
    int length = name ? (int)(name - path) : 0;
    if (status == MG_OK || length == 0 || strcmp(name + 1, MG_CHECKPOINT_NAME) != 0) return status;
    if (!is_missing_in_folder(path, length)) return status;
    return mg_error_set(error, MG_ERR_IO,
                        "%.*s holds no run, or one that has saved nothing yet: there is no " MG_CHECKPOINT_NAME
                        " in it",
                        length, path);
}

/* On success close it; a failure has closed it. */
static mg_status open_checkpoint(reader *r, const char *path, mg_error *error) {
    *r = (reader){.path = path, .error = error, .fd = -1};
    size_t bytes = 0;
    mg_seal_report seal = {0};
    mg_status status = open_file(path, &r->fd, &bytes, error);
    if (status == MG_OK && fstat(r->fd, &r->before) != 0)
        status = mg_error_set(error, MG_ERR_IO, "'%s' cannot be read: %s", path, strerror(errno));
    if (status == MG_OK) status = mg_seal_check(r->fd, bytes, path, &seal, error);
    r->info.sealed = seal.sealed;
    r->info.bytes = seal.length;
    if (status == MG_OK) status = mg_h5_open(&r->h5, path, r->fd, bytes, error);
    if (status == MG_OK) status = read_info(&r->h5, &r->info);
    if (status != MG_OK) close_checkpoint(r);
    return status;
}

/* Whether everything that was read is one state of the file: another process may have written to it meanwhile. */
static mg_status check_unchanged(const reader *r) {
    struct stat now;
    const struct timespec *a = &r->before.st_mtim, *b = &now.st_mtim;
    if (fstat(r->fd, &now) == 0 && now.st_size == r->before.st_size && a->tv_sec == b->tv_sec &&
        a->tv_nsec == b->tv_nsec)
        return MG_OK;
    return mg_error_set(r->error, MG_ERR_IO, "'%s' changed while it was being read: try again", r->path);
}

mg_status mg_checkpoint_describe(const char *path, mg_checkpoint_info *info, mg_error *error) {
    reader r;
    mg_status status = open_checkpoint(&r, path, error);
    *info = r.info;
    if (status == MG_OK) status = check_unchanged(&r);
    close_checkpoint(&r);
    return status;
}

/* ---- The content ---- */

static mg_status read_optimizer(const mg_h5 *h5, const mg_checkpoint_info *info, mg_checkpoint *c) {
    const mg_params *params = mg_gpt_params(c->gpt);
    const mg_adamw *told = &info->optimizer;
    mg_error why;
    mg_status status = mg_adamw_new(&c->adamw, params, told->beta1, told->beta2, told->weight_decay, &why);
    if (status == MG_ERR_INPUT) return mg_h5_error(h5, "%s: %s", MG_OPTIMIZER_GROUP, why.message);
    if (status != MG_OK) return mg_error_set(h5->error, status, "%s", why.message);
    c->adamw->step = told->step;
    c->adamw->eps = told->eps;
    status = mg_parameters_h5_read(h5, MG_FIRST_MOMENT_GROUP, params, c->adamw->m);
    if (status == MG_OK) status = mg_parameters_h5_read(h5, MG_SECOND_MOMENT_GROUP, params, c->adamw->v);
    return status;
}

static mg_status read_content(const mg_h5 *h5, const mg_checkpoint_info *info, bool trainable, mg_checkpoint *c) {
    c->train = info->train;
    mg_status status = mg_gpt_new_zeros(&c->gpt, &info->config, trainable, h5->error);
    if (status == MG_OK) {
        const mg_params *params = mg_gpt_params(c->gpt);
        status = mg_parameters_h5_read(h5, MG_MODEL_GROUP, params, params->values);
    }
    if (status == MG_OK && trainable && info->has_optimizer) status = read_optimizer(h5, info, c);
    if (status == MG_OK && info->has_tokenizer)
        status = mg_tokenizer_h5_read(h5, info->config.vocab_size, &c->tokenizer);
    return status;
}

mg_status mg_checkpoint_load(mg_checkpoint *checkpoint, const char *path, bool trainable, mg_error *error) {
    *checkpoint = (mg_checkpoint){0};
    reader r;
    mg_status status = open_checkpoint(&r, path, error);
    if (status == MG_OK) status = read_content(&r.h5, &r.info, trainable, checkpoint);
    if (status == MG_OK) status = check_unchanged(&r);
    close_checkpoint(&r);
    if (status != MG_OK) mg_checkpoint_free(checkpoint);
    return status;
}

void mg_checkpoint_free(mg_checkpoint *checkpoint) {
    mg_adamw_free(checkpoint->adamw);
    mg_gpt_free(checkpoint->gpt);
    mg_tokenizer_free(checkpoint->tokenizer);
    *checkpoint = (mg_checkpoint){0};
}
