/* The settings of a run: one struct, one list of tables. `train` takes them all as flags; a lab takes the tables it
 * needs, with defaults of its own. */
#ifndef MASKGRAD_OPTIONS_H
#define MASKGRAD_OPTIONS_H

#include "corpus.h"
#include "train_settings.h"

typedef enum mg_on_alarm { MG_ALARM_SAY, MG_ALARM_STOP, MG_ALARM_OFF } mg_on_alarm;

typedef struct mg_run_options {
    mg_data_options data;
    mg_train_options train; /* train.seed is the seed of everything, the draw from a grammar included */
    int eval_iters;         /* batches per evaluation */
    int64_t eval_interval, log_interval;
    int64_t save_interval;   /* 0: eval_interval */
    mg_on_alarm on_alarm;    /* what to do once the model reads its labels: alarm.h */
    int64_t sample_interval; /* 0: samples only at the end */
    bool log_attention;      /* write attention.csv: run_attention.h. A resumed run continues the file that is there */
    int threads;             /* 0: one per processor */
    const char *name;        /* of the run; NULL: made from the data and the mask */
    const char *out_dir;     /* NULL: runs/<name> */
    const char *config;      /* a file with flags, or the run.json of another run; NULL: none */
    const char *init_from;   /* "scratch", "resume" or a checkpoint */
    bool force;              /* replace a run that is already there */
    bool auto_resume;        /* continue the run that is already there; without one, begin it */
} mg_run_options;

mg_run_options mg_run_defaults(void);
/* Compute the derived values: the learning rate's schedule, save_interval, the seed of the data. */
void mg_run_options_resolve(mg_run_options *options);

/* About mg_run_options. Each ends with an empty row. */
extern const mg_setting mg_data_settings[];      /* --data --tokens --column --merges --validation --grammar-size */
extern const mg_setting mg_measuring_settings[]; /* --eval-interval --eval-iters */
extern const mg_setting mg_keeping_settings[];   /* --on-alarm --log-attention … --save-interval: only of train */
extern const mg_setting mg_machine_settings[];   /* --threads */
extern const mg_setting mg_folder_settings[];    /* --name --out-dir --init-from --resume --force: only of train */
/* A table of train_settings.h as one about mg_run_options. */
#define MG_SETTINGS_OF_TRAIN(rows)                                                                                     \
    { rows, offsetof(mg_run_options, train) }

/* All of them: what `train` takes as flags, run.json holds and `compare` compares. */
extern const mg_settings mg_run_settings[];

/* runs/<name>, or without a name runs/<data>-<mask>: the default run folder. */
void mg_run_default_dir(const mg_run_options *options, char *path, size_t size);

#endif
