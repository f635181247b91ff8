/* The settings that define a training run, as tables about mg_train_options (train_options.h): the model, the mask and
 * attention, the training. */
#ifndef MASKGRAD_TRAIN_SETTINGS_H
#define MASKGRAD_TRAIN_SETTINGS_H

#include "setting.h"
#include "train_options.h"

extern const mg_setting mg_model_settings[];    /* --n-layer --n-head --n-embd --block-size --dropout --init-std … */
extern const mg_setting mg_lesson_settings[];   /* --mask --lookahead --leak --no-scale … */
extern const mg_setting mg_training_settings[]; /* --batch-size --max-iters --lr … --seed */
extern const mg_settings mg_train_settings[];   /* all three */

/* What the program starts from: nanoGPT's values, at the size of a toy. min_lr (NaN) and decay_iters (0) follow from
 * others, which may still change: resolve puts in a tenth of lr, and what 0 stands for. */
mg_train_options mg_train_defaults(void);
void mg_train_options_resolve(mg_train_options *options);

/* The sizes of a model in words: "2 layers, 4 heads, width 64, context 32". */
void mg_model_words(const mg_gpt_config *config, char *text, size_t size);
/* The mask in words: "causal", "window:64", "documents", "lookahead 2", followed by the leaky head if there is one. */
void mg_mask_words(const mg_gpt_config *config, char *text, size_t size);
/* The mask of a model as --mask reads it: "causal", "none", "window:64", "documents" … */
mg_status mg_mask_parse(const char *text, mg_gpt_config *model, mg_error *error);

#endif
