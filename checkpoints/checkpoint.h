/* A model on disk: HDF5, documented in docs/checkpoint-format.md. Written to a temporary file, flushed, synced and
 * renamed, so that at any kill the old file or the new one is there, whole. */
#ifndef MASKGRAD_CHECKPOINT_H
#define MASKGRAD_CHECKPOINT_H

#include "adamw.h"
#include "gpt.h"
#include "tokenizer.h"

enum { MG_CHECKPOINT_VERSION = 1 };

typedef struct mg_train_state {
    int64_t step;       /* updates done */
    int64_t tokens;     /* seen in training */
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

/* Write it; nothing of `checkpoint` changes. On failure the file that was at `path` is untouched and no temporary file
 * is left: MG_ERR_IO with the system's reason. */
MG_API mg_status mg_checkpoint_save(const char *path, const mg_checkpoint *checkpoint, mg_error *error);
/* Read it: *checkpoint owns what it holds. `trainable`: with gradients and, if the file has it, the optimiser's state;
 * otherwise adamw is NULL. A foreign, newer, truncated, half-written or damaged file, a missing dataset, a wrong shape,
 * an absurd size, an unknown tokenizer: each its own sentence (MG_ERR_FORMAT), and *checkpoint is empty. */
MG_API mg_status mg_checkpoint_load(const char *path, bool trainable, mg_checkpoint *checkpoint, mg_error *error);
MG_API void mg_checkpoint_free(mg_checkpoint *checkpoint);

#endif
