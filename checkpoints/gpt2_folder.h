/* The files of a GPT-2 in one folder, as they are published. */
#ifndef MASKGRAD_GPT2_FOLDER_H
#define MASKGRAD_GPT2_FOLDER_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>

/* Their names. */
#define MG_GPT2_CONFIG "config.json"
#define MG_GPT2_WEIGHTS "model.safetensors"
#define MG_GPT2_MERGES "merges.txt"
#define MG_GPT2_OLD_MERGES "vocab.bpe"
#define MG_GPT2_VOCAB "vocab.json"
#define MG_GPT2_OLD_VOCAB "encoder.json"
/* Ours: what those of GPT-2 cannot say about a model (gpt2_export.h). */
#define MG_GPT2_REST "maskgrad.json"

typedef struct mg_gpt2_path {
    char text[4096]; /* empty: there is no such file */
} mg_gpt2_path;

typedef struct mg_gpt2_folder {
    mg_gpt2_path config;
    mg_gpt2_path weights;       /* model.safetensors, or else tf_model.h5 */
    bool keras;                 /* the latter */
    mg_gpt2_path merges, vocab; /* may be missing */
    mg_gpt2_path rest;          /* is missing where GPT-2's files say all */
} mg_gpt2_folder;

/* The name of a file in the folder; false if it is too long. */
bool mg_gpt2_path_set(mg_gpt2_path *path, const char *folder, const char *name);

/* The tensors' names are those of our parameters, except that the embeddings are "wte" and "wpe" here and "wte.weight"
 * and "wpe.weight" there. Whether `key` is the parameter; and its name there. */
bool mg_gpt2_is_parameter(const char *key, const char *parameter);
void mg_gpt2_key(const char *parameter, char *key, size_t size);
#define MG_GPT2_PREFIX "transformer." /* of all names in the newer files */

/* MG_ERR_IO if it is not a folder; MG_ERR_FORMAT if the configuration or the weights are missing, or the weights are
 * only there in another form. */
mg_status mg_gpt2_folder_find(mg_gpt2_folder *found, const char *folder, mg_error *error);

#endif
