/* A checkpoint into GPT-2's files: the way back of gpt2_import.h. */
#ifndef MASKGRAD_GPT2_EXPORT_H
#define MASKGRAD_GPT2_EXPORT_H

#include "checkpoint.h"

typedef struct mg_export_options {
    bool allow_loss;  /* also export what those files cannot say, which is then written beside them */
    bool force;       /* replace the files of an earlier export */
    const char *mask; /* of the model, in words, for messages */
    /* Called for every file that was written, and for every sentence about what was lost or removed. */
    void (*written)(const char *path, void *user);
    void (*lost)(const char *sentence, void *user);
    void *user;
} mg_export_options;

/* Write config.json and model.safetensors into the folder, which is made if it is not there, and vocab.json and
 * merges.txt if the tokenizer is GPT-2's: all of them or, after an error, none. What those cannot say (a mask other
 * than causal, a model without W^O or wpe, another vocabulary) is MG_ERR_INPUT, or with allow_loss written to
 * maskgrad.json; the model is then exported as causal, with the identity matrix for W^O and zeros for wpe, which
 * compute the same. MG_ERR_INPUT if a file is there already, unless `force`; MG_ERR_IO with the system's reason. */
mg_status mg_gpt2_export(const char *folder, const mg_checkpoint *checkpoint, const mg_export_options *options,
                         mg_error *error);

#endif
