/* The settings of a run: one struct, one set of tables. `train` takes them all as flags; a lab takes the tables it
 * needs, with defaults of its own. */
#ifndef MASKGRAD_OPTIONS_H
#define MASKGRAD_OPTIONS_H

#include "flags.h"
#include "trainer.h"

typedef struct mg_run_options {
    mg_data_options data;
    mg_train_options train; /* train.seed is the seed of everything, the draw from a grammar included */
    int eval_iters;         /* batches an evaluation */
    int64_t eval_interval, log_interval;
    int64_t save_interval; /* 0: eval_interval */
    int threads;           /* 0: one a processor */
    const char *name;      /* the run's; NULL: of the data and the mask */
    const char *out_dir;   /* NULL: runs/<name> */
    const char *init_from; /* "scratch", "resume" or a checkpoint */
    bool force;            /* replace a run that is already there */
} mg_run_options;

mg_run_options mg_run_defaults(void);
/* Derived values get their numbers: the learning rate's schedule, save_interval, the seed of the data. */
void mg_run_options_resolve(mg_run_options *options);

/* Their offsets are about mg_run_options. Each ends with an empty row. */
extern const mg_flag mg_data_flags[];     /* --data --tokens --column --merges --validation --grammar-size */
extern const mg_flag mg_model_flags[];    /* --n-layer --n-head --n-embd --block-size --dropout --init-std … */
extern const mg_flag mg_lesson_flags[];   /* --mask --lookahead --leak --no-scale --no-output-projection */
extern const mg_flag mg_training_flags[]; /* --batch-size --max-iters --lr … --seed --eval-interval --eval-iters … */
extern const mg_flag mg_keeping_flags[];  /* --log-interval --save-interval: of train alone */
extern const mg_flag mg_machine_flags[];  /* --threads */
extern const mg_flag mg_folder_flags[];   /* --name --out-dir --init-from --resume --force: of train alone */

/* All of them; NULL ends the list. */
extern const mg_flag *const mg_run_flags[];
/* The first setting of role FIXED in which two runs differ; NULL if there is none. */
const mg_flag *mg_run_options_conflict(const mg_run_options *a, const mg_run_options *b);
/* runs/<name>, or without a name runs/<data>-<mask>: where a run goes that is not told where. */
void mg_run_default_dir(const mg_run_options *options, char *path, size_t size);

/* The sizes of a model in words: "2 layers, 4 heads, width 64, context 32". */
void mg_model_words(const mg_gpt_config *config, char *text, size_t size);
/* The mask in words: "causal", "none", "lookahead 2", with the leaky head behind it if there is one. */
void mg_mask_words(const mg_gpt_config *config, char *text, size_t size);
/* "all" or a number of positions, as --lookahead reads it; "causal" or "none", as --mask reads it. */
mg_status mg_lookahead_parse(const char *text, void *lookahead, mg_error *error);
mg_status mg_mask_parse(const char *text, void *lookahead, mg_error *error);

#endif
