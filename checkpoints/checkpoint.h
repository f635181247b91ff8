/* A model on disk: HDF5, documented in docs/checkpoint-format.md. Written to a temporary file, flushed, synced and
 * renamed: whenever the process is killed, either the old or the new file is there, complete. */
#ifndef MASKGRAD_CHECKPOINT_H
#define MASKGRAD_CHECKPOINT_H

#include "adamw.h"
#include "gpt.h"
#include "tokenizer.h"

#define MG_CHECKPOINT_FORMAT "maskgrad-checkpoint"
#define MG_CHECKPOINT_NAME "checkpoint.h5" /* in a run folder */
enum { MG_CHECKPOINT_VERSION = 2 };        /* the newest; a file has the lowest that can hold it */

typedef struct mg_train_state {
    int64_t step;   /* updates done */
    int64_t tokens; /* seen in training */
    uint64_t seed;
    uint64_t data_hash; /* mg_corpus.hash */
    double best_loss;   /* lowest validation loss so far; NaN if none was measured */
    mg_lr_schedule schedule;
    double grad_clip;
    int batch_size, grad_accum;
} mg_train_state;

typedef struct mg_checkpoint {
    mg_gpt *gpt;
    mg_tokenizer *tokenizer; /* or NULL */
    mg_adamw *adamw;         /* NULL: weights only */
    mg_train_state train;
} mg_checkpoint;

/* Write it; nothing of `checkpoint` changes, and the same state gives the same bytes. Numbers go straight from the
 * model to the file, without a copy. On failure the old file at `path` is untouched and no temporary file is left:
 * MG_ERR_IO with the system's reason, MG_ERR_MEMORY, or MG_ERR_INPUT for a tokenizer with more tokens than the model's
 * vocabulary. */
MG_API mg_status mg_checkpoint_save(const char *path, const mg_checkpoint *checkpoint, mg_error *error);
/* Read it: *checkpoint owns what it holds. `trainable`: with gradients and, if the file has it, the optimizer's state;
 * otherwise adamw is NULL. A foreign, newer, truncated, half-written or damaged file, a missing dataset, a wrong shape,
 * an absurd size, an unknown tokenizer: each has its own sentence (MG_ERR_FORMAT), and *checkpoint is empty. */
MG_API mg_status mg_checkpoint_load(mg_checkpoint *checkpoint, const char *path, bool trainable, mg_error *error);
MG_API void mg_checkpoint_free(mg_checkpoint *checkpoint);

/* ---- Not installed: between maskgrad's own files ---- */
/* What a checkpoint says about itself, without its parameters. */
typedef struct mg_checkpoint_info {
    int format_version;
    char creator[64];
    int64_t bytes; /* of the file */
    bool sealed;   /* has the checksum of the whole file; another program may have rewritten it without */
    mg_gpt_config config;
    mg_train_state train;
    bool has_optimizer;
    mg_adamw optimizer; /* its settings, if there is one; m and v are NULL */
    bool has_tokenizer;
    mg_tokenizer_kind tokenizer_kind;
} mg_checkpoint_info;
/* Reads and checks everything but the datasets' content; the seal, if there is one, covers that too. Errors as for
 * load. */
mg_status mg_checkpoint_describe(const char *path, mg_checkpoint_info *info, mg_error *error);
/* A checkpoint as users name it: its file, or the run folder that it is in. `path` has room for the longer name. */
void mg_checkpoint_path(const char *asked, char *path, size_t size);

#ifndef MG_LIBRARY /* whose line a failure names: error.h */
MG_CALLED(mg_status, mg_checkpoint_save, (path, checkpoint), (path, checkpoint, error), const char *path,
          const mg_checkpoint *checkpoint, mg_error *error)
MG_CALLED(mg_status, mg_checkpoint_load, (checkpoint, path), (checkpoint, path, trainable, error),
          mg_checkpoint *checkpoint, const char *path, bool trainable, mg_error *error)
#define mg_checkpoint_save(...) MG_AT(mg_checkpoint_save, __VA_ARGS__)
#define mg_checkpoint_load(...) MG_AT(mg_checkpoint_load, __VA_ARGS__)
#endif

#endif
