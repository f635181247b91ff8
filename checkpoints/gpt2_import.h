/* GPT-2 weights into a checkpoint: from the folder of files that Hugging Face publishes. */
#ifndef MASKGRAD_GPT2_IMPORT_H
#define MASKGRAD_GPT2_IMPORT_H

#include "checkpoint.h"
#include "weight.h"

typedef enum mg_import_fate {
    MG_IMPORT_MATCHED,
    MG_IMPORT_SKIPPED, /* a tensor that the model does not need; `text` says why */
    MG_IMPORT_MISSING,
    MG_IMPORT_NOTICE /* anything else, in `text` */
} mg_import_fate;

typedef struct mg_import_event {
    mg_import_fate fate;
    const mg_param_spec *parameter; /* of the model, if matched or missing */
    const mg_weight *weight;        /* of the file, if matched or skipped */
    const char *text;
} mg_import_event;

typedef struct mg_import_options {
    bool allow_nan;  /* also accept numbers that are NaN or infinite */
    bool transposed; /* the matrices of the blocks are (out, in), as PyTorch's nn.Linear has them */
    void (*tell)(const mg_import_event *event, void *user);
    void *user;
} mg_import_options;

/* Read the folder. The caller owns *checkpoint (weights and tokenizer, of kind NONE without merges). The numbers go
 * straight into the model's parameters. Every parameter must be there exactly once, in its shape; on failure
 * *checkpoint is empty and the error names the file and the tensor. */
MG_API mg_status mg_gpt2_import(mg_checkpoint *checkpoint, const char *folder, const mg_import_options *options,
                                mg_error *error);

/* ---- Not installed: between maskgrad's own files ---- */
/* A summary of what a model computes: a transposed matrix, or a layer out of place, passes every check of shapes but
 * shows here. */
enum { MG_FINGERPRINT_IDS = 8, MG_FINGERPRINT_LOGITS = 4 };

typedef struct mg_fingerprint {
    int n_ids, ids[MG_FINGERPRINT_IDS]; /* the prompt */
    uint64_t hash; /* FNV-1a of the bits of all logits; specific to one build and one BLAS kernel */
    int n_logits;
    double logits[MG_FINGERPRINT_LOGITS]; /* of the first ids, after the whole prompt */
} mg_fingerprint;
mg_status mg_gpt_fingerprint(mg_gpt *gpt, mg_fingerprint *fingerprint, mg_error *error);

#ifndef MG_LIBRARY /* whose line a failure names: error.h */
MG_CALLED(mg_status, mg_gpt2_import, (checkpoint, folder), (checkpoint, folder, options, error),
          mg_checkpoint *checkpoint, const char *folder, const mg_import_options *options, mg_error *error)
#define mg_gpt2_import(...) MG_AT(mg_gpt2_import, __VA_ARGS__)
#endif

#endif
