/* The model that a lab looks into, and texts for it: the user's --checkpoint, or else a small GPT that is trained on
 * the spot. */
#ifndef MASKGRAD_LAB_SUBJECT_H
#define MASKGRAD_LAB_SUBJECT_H

#include "lab_row.h"
#include "model.h"
#include "training.h"

/* The options of the labs that look into a model. */
extern const lab_options lab_subject_options;
/* The option given that says how to read --data, without which it means nothing; NULL: none. */
const char *lab_data_setting(const mg_run_options *run);

typedef struct lab_subject {
    mg_gpt *gpt;
    const mg_tokenizer *tokenizer; /* NULL: ids only, as in an import without merges */
    int n_ids;                     /* ids that a text may hold */
    mg_corpus *corpus;             /* NULL: a checkpoint without --data */
    lab_model loaded;              /* owns a checkpoint's model */
    lab_variant variant;           /* owns one that was trained here */
} lab_subject;

/* What a lab asks of a model, checked before anyone is asked for a guess. */
typedef mg_status lab_subject_check(const mg_lab *lab, const mg_gpt_config *config, mg_error *error);

/* `shape` is what to train where there is no checkpoint. With a checkpoint, --data is read with its tokenizer; a
 * context shorter than `least`, data too short for a window and whatever `check` (or NULL) refuses are MG_ERR_INPUT.
 * Close it after an error too. */
mg_status lab_subject_open(mg_lab *lab, const mg_train_options *shape, int least, lab_subject_check *check,
                           lab_subject *subject, mg_error *error);
void lab_subject_close(lab_subject *subject);

/* n texts of T tokens, and the token that follows each: both (n, T), as long as the lab lives. */
typedef struct lab_text_set {
    int n, T;
    int *ids, *targets;
    const char *source; /* in words: "windows of frases.csv", "written by the model itself" */
} lab_text_set;

/* Windows of the corpus's validation split; without a corpus, texts that the model writes itself at temperature 1: the
 * one thing that every model has, with or without a tokenizer. Drawn by the seed. T is at most the context. */
mg_status lab_subject_texts(mg_lab *lab, lab_subject *subject, int n, int T, lab_text_set *texts, mg_error *error);
/* The labels of n ids on an axis: tokens, or the ids themselves. */
const char **lab_subject_labels(mg_lab *lab, const lab_subject *subject, const int *ids, int n);
/* How many texts of T tokens one can afford passes of: `usual` for a small model, at least 2 for a large one. */
int lab_subject_affords(lab_subject *subject, int usual, int T);

/* The mean of n numbers and the standard error of that mean: 0 for fewer than two. */
typedef struct lab_mean {
    double mean, error;
} lab_mean;
lab_mean lab_mean_of(int n, const double *x);

#endif
