#include "gpt2_export.h"

#include "atomic_file.h"
#include "bpe.h"
#include "fields.h"
#include "gpt2_config.h"
#include "gpt2_folder.h"
#include "json_file.h"
#include "safetensors_write.h"
#include "tokenizer_internal.h"
#include "vocab_json.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct job {
    const mg_checkpoint *checkpoint;
    const mg_gpt_config *config;
    const mg_tokenizer *tokenizer; /* or NULL */
    const mg_export_options *options;
    const char *folder;
    bool has_losses;
    mg_error *error;
} job;

static mg_tokenizer_kind kind_of(const job *j) {
    return j->tokenizer ? mg_tokenizer_get_kind(j->tokenizer) : MG_TOKENIZER_NONE;
}

/* ---- What GPT-2's files cannot say ---- */

static bool is_causal(mg_mask mask, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++) {
        mg_interval visible = mg_visible(mask, i, n);
        if (visible.first != 0 || visible.end != i + 1) return false;
    }
    return true;
}

/* In the whole context: a window as wide as that is causal. */
static bool all_causal(const mg_gpt_config *c) {
    if (c->documents) return false;
    for (int layer = 0; layer < c->n_layer; layer++)
        for (int head = 0; head < c->n_head; head++)
            if (!is_causal(mg_gpt_mask(c, layer, head), c->block_size)) return false;
    return true;
}

enum { MOST_LOSSES = 4, LOSS_ROOM = 192 };

/* One sentence per loss; returns how many. */
static int find_losses(const job *j, char loss[MOST_LOSSES][LOSS_ROOM]) {
    const mg_gpt_config *c = j->config;
    int n = 0;
    if (!all_causal(c)) mg_snprintf(loss[n++], LOSS_ROOM, "its mask is %s, and GPT-2's is causal", j->options->mask);
    if (c->no_output_projection)
        mg_snprintf(loss[n++], LOSS_ROOM,
                    "it has no output projection, and gets the identity matrix, which computes the "
                    "same");
    if (c->no_positions)
        mg_snprintf(loss[n++], LOSS_ROOM, "it has no position embeddings, and gets zeros, which compute the same");
    mg_tokenizer_kind kind = kind_of(j);
    if (kind != MG_TOKENIZER_GPT2 && kind != MG_TOKENIZER_NONE)
        mg_snprintf(loss[n++], LOSS_ROOM, "its vocabulary (%s, %s) is not one of byte pairs, as GPT-2's is",
                    mg_tokenizer_kind_name(kind), mg_count(mg_tokenizer_size(j->tokenizer), "token").text);
    return n;
}

static mg_status check_losses(job *j) {
    char loss[MOST_LOSSES][LOSS_ROOM], all[MOST_LOSSES * LOSS_ROOM] = "";
    int n = find_losses(j, loss);
    j->has_losses = n > 0;
    for (int i = 0; i < n; i++) {
        if (j->options->allow_loss) j->options->lost(loss[i], j->options->user);
        size_t at = strlen(all);
        snprintf(all + at, sizeof all - at, "%s%s", i ? "; " : "", loss[i]);
    }
    if (n == 0 || j->options->allow_loss) return MG_OK;
    return mg_error_set(j->error, MG_ERR_INPUT,
                        "GPT-2's files cannot hold this model: %s (--allow-loss exports what they can hold, and writes "
                        "the rest to " MG_GPT2_REST ")",
                        all);
}

static json_t *tokens_of(const mg_tokenizer *tokenizer) {
    json_t *list = json_array();
    for (int id = 0; list && id < mg_tokenizer_size(tokenizer); id++) {
        mg_token token = mg_tokenizer_token(tokenizer, id);
        if (json_array_append_new(list, json_stringn(token.bytes, token.length)) == 0) continue;
        json_decref(list);
        return NULL;
    }
    return list;
}

/* The model's configuration under the names that it has in a checkpoint. */
static json_t *config_of(const mg_gpt_config *config) {
    json_t *object = json_object();
    for (const mg_field *field = mg_config_fields; field->name; field++) {
        const void *member = (const char *)config + field->offset;
        json_t *value = field->type == MG_FIELD_DOUBLE ? json_real(*(const double *)member)
                                                       : json_integer(mg_field_int(field, config));
        json_object_set_new(object, field->name, value);
    }
    return object;
}

static mg_status write_rest(const job *j, FILE *out) {
    mg_tokenizer_kind kind = kind_of(j);
    bool has_tokens = kind != MG_TOKENIZER_GPT2 && kind != MG_TOKENIZER_NONE;
    json_t *tokens = has_tokens ? tokens_of(j->tokenizer) : json_null();
    return mg_json_print(out,
                         json_pack("{s:s, s:s, s:o, s:s, s:o}", "creator", "maskgrad " MASKGRAD_VERSION, "mask",
                                   j->options->mask, "config", config_of(j->config), "tokenizer",
                                   mg_tokenizer_kind_name(kind), "tokens", tokens),
                         j->error);
}

/* ---- The weights ---- */

/* What GPT-2 has and the model has not, and what computes the same. */
typedef struct substitutes {
    mg_real *identity; /* (C,C) */
    mg_real *zeros;    /* (block_size,C), which is also long enough for a bias */
} substitutes;

static mg_status make_substitutes(substitutes *s, const mg_gpt_config *c, mg_error *error) {
    size_t C = (size_t)c->n_embd;
    *s = (substitutes){0};
    if (c->no_output_projection) s->identity = mg_alloc_zero(C * C, sizeof *s->identity, "an identity matrix", error);
    if (c->no_output_projection && !s->identity) return MG_ERR_MEMORY;
    for (size_t i = 0; i < C && s->identity; i++) s->identity[i * C + i] = 1;
    s->zeros = mg_alloc_zero((size_t)c->block_size * C, sizeof *s->zeros, "zeros", error);
    return s->zeros ? MG_OK : MG_ERR_MEMORY;
}

static void fill_tensor(mg_safetensor *tensor, const mg_param_spec *spec, const mg_params *params,
                        const substitutes *s) {
    const mg_param *parameter = mg_params_find(params, spec->name);
    bool is_matrix = spec->ndim == 2 && strcmp(spec->name, "wpe") != 0;
    tensor->spec = *spec;
    tensor->data = parameter ? parameter->tensor.data : is_matrix ? s->identity : s->zeros;
    char key[MG_PARAM_NAME];
    mg_gpt2_key(spec->name, key, sizeof key);
    snprintf(tensor->spec.name, sizeof tensor->spec.name, MG_GPT2_PREFIX "%.*s",
             (int)(sizeof tensor->spec.name - sizeof MG_GPT2_PREFIX), key);
}

static mg_status write_weights(const job *j, FILE *out) {
    mg_gpt_config whole = *j->config;
    whole.no_output_projection = whole.no_positions = false;
    int n = mg_gpt_specs(&whole, NULL);
    mg_param_spec *specs = mg_alloc((size_t)n, sizeof *specs, "the list of parameters", j->error);
    mg_safetensor *tensors = mg_alloc((size_t)n, sizeof *tensors, "the list of tensors", j->error);
    substitutes s;
    mg_status status = make_substitutes(&s, j->config, j->error);
    if (status == MG_OK && (!specs || !tensors)) status = MG_ERR_MEMORY;
    if (status == MG_OK) {
        mg_gpt_specs(&whole, specs);
        for (int i = 0; i < n; i++) fill_tensor(&tensors[i], &specs[i], mg_gpt_params(j->checkpoint->gpt), &s);
        mg_safetensors_write(out, n, tensors);
    }
    mg_free(s.identity);
    mg_free(s.zeros);
    mg_free(tensors);
    mg_free(specs);
    return status;
}

static mg_status write_config(const job *j, FILE *out) {
    int end = kind_of(j) == MG_TOKENIZER_GPT2 ? mg_tokenizer_end_of_text(j->tokenizer) : -1;
    return mg_gpt2_config_write(out, j->config, end, j->error);
}

static mg_status write_vocab(const job *j, FILE *out) {
    return mg_vocab_json_write(out, j->tokenizer, j->error);
}

static mg_status write_merges(const job *j, FILE *out) {
    size_t length;
    const char *merges = mg_tokenizer_merges(j->tokenizer, &length);
    fwrite(merges, 1, length, out);
    return MG_OK;
}

/* ---- The folder ---- */

/* In the order in which they get their names: config.json, without which nobody reads the others, is the last. */
enum { MERGES, VOCAB, REST, WEIGHTS, CONFIG, N_FILES };
static const struct file {
    const char *name;
    mg_status (*write)(const job *, FILE *);
} files[N_FILES] = {
    [MERGES] = {MG_GPT2_MERGES, write_merges}, [VOCAB] = {MG_GPT2_VOCAB, write_vocab},
    [REST] = {MG_GPT2_REST, write_rest},       [WEIGHTS] = {MG_GPT2_WEIGHTS, write_weights},
    [CONFIG] = {MG_GPT2_CONFIG, write_config},
};
/* Older names, under which a reader would find another vocabulary. */
static const char *const old_names[] = {MG_GPT2_OLD_MERGES, MG_GPT2_OLD_VOCAB};
enum { N_NAMES = N_FILES + sizeof old_names / sizeof *old_names };

static bool is_wanted(const job *j, int i) {
    if (i == MERGES || i == VOCAB) return kind_of(j) == MG_TOKENIZER_GPT2;
    return i < N_FILES && (i != REST || j->has_losses);
}

static mg_gpt2_path path_of(const job *j, int i) {
    mg_gpt2_path path;
    mg_gpt2_path_set(&path, j->folder, i < N_FILES ? files[i].name : old_names[i - N_FILES]);
    return path;
}

static mg_status check_room(const job *j) {
    for (int i = 0; i < N_NAMES && !j->options->force; i++)
        if (access(path_of(j, i).text, F_OK) == 0)
            return mg_error_set(j->error, MG_ERR_INPUT, "'%s' is already there; --force replaces it",
                                path_of(j, i).text);
    return MG_OK;
}

/* *made: it was not there. */
static mg_status make_folder(const job *j, bool *made) {
    struct stat about;
    mg_gpt2_path longest;
    if (!mg_gpt2_path_set(&longest, j->folder, MG_GPT2_WEIGHTS))
        return mg_error_set(j->error, MG_ERR_INPUT, "the name of the folder to export to is too long");
    *made = mkdir(j->folder, 0777) == 0;
    if (*made || (errno == EEXIST && stat(j->folder, &about) == 0 && S_ISDIR(about.st_mode))) return MG_OK;
    if (errno == EEXIST) errno = ENOTDIR;
    return mg_error_set(j->error, MG_ERR_IO, "the folder '%s' cannot be made: %s", j->folder, strerror(errno));
}

/* All of a file in its temporary place. What does not fit on the disk is noticed here, before any has its name. */
static mg_status write_file(const job *j, int i, mg_atomic_text *text) {
    mg_status status = files[i].write(j, text->out);
    errno = 0;
    if (status != MG_OK || (fflush(text->out) == 0 && !ferror(text->out))) return status;
    return mg_error_set(j->error, MG_ERR_IO, "'%s' cannot be written: %s", text->path,
                        errno ? strerror(errno) : "only a part reached the disk");
}

static mg_status write_files(const job *j) {
    mg_atomic_text text[N_FILES];
    bool open[N_FILES] = {false};
    mg_status status = MG_OK;
    for (int i = 0; i < N_FILES && status == MG_OK; i++) {
        if (!is_wanted(j, i)) continue;
        status = mg_atomic_text_begin(&text[i], path_of(j, i).text, j->error);
        open[i] = status == MG_OK;
        if (open[i]) status = write_file(j, i, &text[i]);
    }
    for (int i = 0; i < N_FILES; i++) {
        if (!open[i]) continue;
        if (status == MG_OK)
            status = mg_atomic_text_end(&text[i], j->error);
        else
            mg_atomic_text_abandon(&text[i]);
    }
    return status;
}

/* A file of an earlier export that this one does not have, such as merges.txt, would be read with it. */
static mg_status remove_others(const job *j) {
    for (int i = 0; i < N_NAMES; i++) {
        mg_gpt2_path path = path_of(j, i);
        char sentence[sizeof path.text + 64];
        if (is_wanted(j, i) || access(path.text, F_OK) != 0) continue;
        if (unlink(path.text) != 0)
            return mg_error_set(j->error, MG_ERR_IO, "'%s' does not belong to this model and cannot be removed: %s",
                                path.text, strerror(errno));
        mg_snprintf(sentence, sizeof sentence, "'%s' did not belong to this model: removed", path.text);
        j->options->lost(sentence, j->options->user);
    }
    return MG_OK;
}

mg_status mg_gpt2_export(const char *folder, const mg_checkpoint *checkpoint, const mg_export_options *options,
                         mg_error *error) {
    bool made = false;
    job j = {.checkpoint = checkpoint,
             .config = mg_gpt_get_config(checkpoint->gpt),
             .tokenizer = checkpoint->tokenizer,
             .options = options,
             .folder = folder,
             .error = error};
    mg_status status = check_losses(&j);
    if (status == MG_OK) status = make_folder(&j, &made);
    if (status == MG_OK) status = check_room(&j);
    if (status == MG_OK) status = write_files(&j);
    if (status == MG_OK && options->force) status = remove_others(&j);
    if (status != MG_OK && made) rmdir(folder);
    for (int i = 0; i < N_FILES && status == MG_OK; i++)
        if (is_wanted(&j, i)) options->written(path_of(&j, i).text, options->user);
    return status;
}
