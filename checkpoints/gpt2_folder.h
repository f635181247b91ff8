/* The files of a GPT-2 in one folder, as they are published. */
#ifndef MASKGRAD_GPT2_FOLDER_H
#define MASKGRAD_GPT2_FOLDER_H

#include "error.h"

#include <stdbool.h>

typedef struct mg_gpt2_path {
    char text[4096]; /* empty: there is no such file */
} mg_gpt2_path;

typedef struct mg_gpt2_folder {
    mg_gpt2_path config;
    mg_gpt2_path weights;       /* model.safetensors, or else tf_model.h5 */
    bool keras;                 /* the latter */
    mg_gpt2_path merges, vocab; /* may be missing; vocab.bpe and encoder.json are their older names */
} mg_gpt2_folder;

/* MG_ERR_IO if it is not a folder; MG_ERR_FORMAT if the configuration or the weights are missing, or the weights are
 * only there in another form. */
mg_status mg_gpt2_folder_find(mg_gpt2_folder *found, const char *folder, mg_error *error);

#endif
