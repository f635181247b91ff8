#include "gpt2_folder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char weight_suffix[] = ".weight";

static bool is_embedding(const char *parameter) {
    return strcmp(parameter, "wte") == 0 || strcmp(parameter, "wpe") == 0;
}

void mg_gpt2_key(const char *parameter, char *key, size_t size) {
    snprintf(key, size, "%s%s", parameter, is_embedding(parameter) ? weight_suffix : "");
}

bool mg_gpt2_is_parameter(const char *key, const char *parameter) {
    size_t n = strlen(parameter);
    if (strncmp(key, parameter, n) != 0) return false;
    return key[n] == '\0' || (is_embedding(parameter) && strcmp(key + n, weight_suffix) == 0);
}

bool mg_gpt2_path_set(mg_gpt2_path *path, const char *folder, const char *name) {
    size_t length = strlen(folder);
    const char *slash = length > 0 && folder[length - 1] == '/' ? "" : "/";
    return snprintf(path->text, sizeof path->text, "%s%s%s", folder, slash, name) < (int)sizeof path->text;
}

/* Whether the folder has the file; then *path names it. */
static bool find(mg_gpt2_path *path, const char *folder, const char *name) {
    struct stat about;
    if (mg_gpt2_path_set(path, folder, name) && stat(path->text, &about) == 0) return true;
    path->text[0] = '\0';
    return false;
}

static mg_status check_folder(const char *folder, mg_error *error) {
    struct stat about;
    if (stat(folder, &about) != 0)
        return mg_error_set(error, MG_ERR_IO, "'%s' cannot be read: %s", folder, strerror(errno));
    if (S_ISDIR(about.st_mode)) return MG_OK;
    return mg_error_set(error, MG_ERR_IO, "'%s' is a file: give the folder with config.json and model.safetensors",
                        folder);
}

static mg_status no_weights(const char *folder, mg_error *error) {
    mg_gpt2_path path;
    if (find(&path, folder, "model.safetensors.index.json"))
        return mg_error_set(error, MG_ERR_FORMAT,
                            "'%s' holds a sharded model, split into several files: only one model.safetensors can be "
                            "imported",
                            folder);
    if (find(&path, folder, "pytorch_model.bin") || find(&path, folder, "pytorch_model.bin.index.json"))
        return mg_error_set(error, MG_ERR_FORMAT,
                            "'%s' is a pickle, which could run any program, so it is not read: get the same weights as "
                            "model.safetensors",
                            path.text);
    return mg_error_set(error, MG_ERR_FORMAT, "'%s' has neither model.safetensors nor tf_model.h5", folder);
}

mg_status mg_gpt2_folder_find(mg_gpt2_folder *found, const char *folder, mg_error *error) {
    mg_status status = check_folder(folder, error);
    if (status != MG_OK) return status;
    if (!find(&found->config, folder, MG_GPT2_CONFIG))
        return mg_error_set(error, MG_ERR_FORMAT, "'%s' has no config.json, which lists the model's sizes", folder);
    found->keras = false;
    if (!find(&found->weights, folder, MG_GPT2_WEIGHTS)) {
        found->keras = find(&found->weights, folder, "tf_model.h5");
        if (!found->keras) return no_weights(folder, error);
    }
    if (!find(&found->merges, folder, MG_GPT2_MERGES)) find(&found->merges, folder, MG_GPT2_OLD_MERGES);
    if (!find(&found->vocab, folder, MG_GPT2_VOCAB)) find(&found->vocab, folder, MG_GPT2_OLD_VOCAB);
    find(&found->rest, folder, MG_GPT2_REST);
    return MG_OK;
}
