#include "atomic_file.h"
#include "bpe.h"
#include "checkpoint.h"
#include "fields.h"
#include "parameters_h5.h"
#include "seal.h"
#include "tokenizer_h5.h"

static mg_status write_optimizer(const mg_h5 *h5, int version, const mg_checkpoint *c) {
    const mg_params *params = mg_gpt_params(c->gpt);
    mg_status status = mg_h5_write_group(h5, MG_OPTIMIZER_GROUP);
    if (status == MG_OK) status = mg_fields_write(h5, MG_OPTIMIZER_GROUP, mg_optimizer_fields, version, c->adamw);
    /* For human readers: the learning rate of the next update. It follows from /train and is not read back. */
    if (status == MG_OK)
        status = mg_h5_write_double(h5, MG_OPTIMIZER_GROUP, "lr", mg_lr_at(&c->train.schedule, c->adamw->step));
    if (status == MG_OK) status = mg_parameters_h5_write(h5, MG_FIRST_MOMENT_GROUP, params, c->adamw->m);
    if (status == MG_OK) status = mg_parameters_h5_write(h5, MG_SECOND_MOMENT_GROUP, params, c->adamw->v);
    return status;
}

static mg_status write_all(const mg_h5 *h5, const mg_checkpoint *c) {
    const mg_params *params = mg_gpt_params(c->gpt);
    const mg_gpt_config *config = mg_gpt_get_config(c->gpt), usual = {0};
    int version = mg_fields_version(mg_config_fields, config, &usual);
    if (c->tokenizer && mg_tokenizer_has_own_ids(c->tokenizer)) version = MG_CHECKPOINT_VERSION;
    mg_status status = mg_h5_write_text(h5, "/", "format", MG_CHECKPOINT_FORMAT);
    if (status == MG_OK) status = mg_h5_write_int(h5, "/", "format_version", version);
    if (status == MG_OK) status = mg_h5_write_text(h5, "/", "creator", "maskgrad " MASKGRAD_VERSION);
    if (status == MG_OK) status = mg_h5_write_group(h5, MG_CONFIG_GROUP);
    if (status == MG_OK) status = mg_fields_write(h5, MG_CONFIG_GROUP, mg_config_fields, version, config);
    if (status == MG_OK) status = mg_parameters_h5_write(h5, MG_MODEL_GROUP, params, params->values);
    if (status == MG_OK && c->adamw) status = write_optimizer(h5, version, c);
    if (status == MG_OK) status = mg_h5_write_group(h5, MG_TRAIN_GROUP);
    if (status == MG_OK) status = mg_fields_write(h5, MG_TRAIN_GROUP, mg_train_fields, version, &c->train);
    if (status == MG_OK && c->tokenizer) status = mg_tokenizer_h5_write(h5, c->tokenizer);
    /* Last: a file without it is incomplete. */
    if (status == MG_OK) status = mg_h5_write_int(h5, "/", "complete", 1);
    return status;
}

static mg_status write_file(const char *path, const mg_checkpoint *c, int fd, mg_error *error) {
    mg_h5 h5;
    mg_status status = mg_h5_create(&h5, path, fd, MG_SEAL_BYTES, error);
    if (status == MG_OK) status = write_all(&h5, c);
    if (status == MG_OK) status = mg_h5_finish(&h5);
    mg_h5_close(&h5);
    return status == MG_OK ? mg_seal_write(fd, path, error) : status;
}

mg_status mg_checkpoint_save(const char *path, const mg_checkpoint *checkpoint, mg_error *error) {
    int vocab_size = mg_gpt_get_config(checkpoint->gpt)->vocab_size;
    if (checkpoint->tokenizer && mg_tokenizer_size(checkpoint->tokenizer) > vocab_size)
        return mg_error_set(error, MG_ERR_INPUT,
                            "'%s' was not written: the tokenizer has %d tokens, but the model's vocab_size is %d", path,
                            mg_tokenizer_size(checkpoint->tokenizer), vocab_size);
    mg_atomic_file file;
    mg_status status = mg_atomic_file_begin(&file, path, error);
    if (status == MG_OK) status = write_file(path, checkpoint, file.fd, error);
    if (status == MG_OK) status = mg_atomic_file_commit(&file, error);
    mg_atomic_file_abandon(&file);
    return status;
}
