#include "model.h"
#include "lab_private.h"
#include "training.h"

#include <math.h>
#include <string.h>

/* Padding at the end of a model's vocabulary has no token: only ids below the tokenizer's size do. */
static int n_tokens(const mg_checkpoint *checkpoint) {
    return checkpoint->tokenizer && mg_tokenizer_get_kind(checkpoint->tokenizer) != MG_TOKENIZER_NONE
               ? mg_tokenizer_size(checkpoint->tokenizer)
               : mg_gpt_get_config(checkpoint->gpt)->vocab_size;
}

static void draw_ids(const mg_lab *lab, lab_model *model) {
    mg_rng rng = {lab_asked(lab)->seed, MG_STREAM_LAB, 0};
    uint64_t n = (uint64_t)n_tokens(&model->checkpoint);
    for (int i = 0; i < model->T; i++) model->ids[i] = (int)mg_rng_below(rng, (uint64_t)i, n);
}

mg_status lab_encode_prompt(mg_lab *lab, const mg_tokenizer *tokenizer, int most, int *ids, int *T, mg_error *error) {
    const char *prompt = lab_asked(lab)->prompt;
    int *all;
    size_t n;
    mg_error reason;
    mg_status status = mg_tokenizer_encode(&all, &n, tokenizer, prompt, strlen(prompt), &reason);
    if (status) return mg_error_set(error, status, "--prompt: %s", reason.message);
    *T = n < (size_t)most ? (int)n : most;
    memcpy(ids, all, (size_t)*T * sizeof *ids);
    mg_free(all);
    if (n < (size_t)LAB_LEAST_TO_SEE)
        return mg_error_set(error, MG_ERR_INPUT, "--prompt '%s' has %s: give a text of at least %d", prompt,
                            mg_count((int64_t)n, "token").text, LAB_LEAST_TO_SEE);
    if (n > (size_t)most) lab_note(lab, "The prompt has %zu tokens; the first %d are looked at.", n, most);
    return MG_OK;
}

static mg_status encode_for(mg_lab *lab, lab_model *model, mg_error *error) {
    if (!model->checkpoint.tokenizer)
        return mg_error_set(
            error, MG_ERR_INPUT,
            "--prompt: %s has no tokenizer to read a text with; without --prompt, ids are drawn at random",
            lab_asked(lab)->checkpoint);
    return lab_encode_prompt(lab, model->checkpoint.tokenizer, model->T, model->ids, &model->T, error);
}

static void label(mg_lab *lab, lab_model *model) {
    const mg_tokenizer *tokenizer = model->checkpoint.tokenizer;
    if (tokenizer && mg_tokenizer_get_kind(tokenizer) != MG_TOKENIZER_NONE) {
        model->labels = lab_token_labels(lab, tokenizer, model->ids, model->T);
        return;
    }
    model->labels = mg_arena_alloc(lab->arena, (size_t)model->T, sizeof *model->labels, "a lab's labels");
    for (int i = 0; i < model->T; i++) model->labels[i] = lab_format(lab, "%d", model->ids[i]);
}

/* Weights that are no numbers show nothing, and what is computed from them would look like silence. */
static mg_status check_numbers(const mg_gpt *gpt, const char *name, mg_error *error) {
    const mg_params *params = mg_gpt_params((mg_gpt *)gpt);
    for (int i = 0; i < params->n; i++) {
        const mg_param *p = &params->param[i];
        int64_t bad = 0;
        for (ptrdiff_t k = 0; k < mg_size(&p->tensor); k++) bad += !isfinite(p->tensor.data[k]);
        if (bad)
            return mg_error_set(error, MG_ERR_FORMAT,
                                "%s: %s holds %s that %s NaN or infinite; nothing can be measured on such a model",
                                name, p->name, mg_count(bad, "number").text, bad == 1 ? "is" : "are");
    }
    return MG_OK;
}

/* Whether a model is large enough to show something. */
static mg_status check_shape(const mg_gpt_config *config, const char *name, int least, mg_error *error) {
    if (config->block_size < least)
        return mg_error_set(error, MG_ERR_INPUT, "%s has a context of %s; this lab needs at least %d", name,
                            mg_count(config->block_size, "token").text, least);
    if (config->n_embd == 1)
        return mg_error_set(error, MG_ERR_INPUT,
                            "%s has a width of 1, which layer norm turns into a constant: no token has an "
                            "influence; the labs need a width of 2 or more",
                            name);
    return MG_OK;
}

mg_status lab_model_load(mg_lab *lab, int least, int most, lab_model *model, mg_error *error) {
    *model = (lab_model){0};
    char path[4096];
    mg_checkpoint_path(lab_asked(lab)->checkpoint, path, sizeof path);
    mg_status status = mg_checkpoint_load(&model->checkpoint, path, false, error);
    if (status) return status;
    const mg_gpt_config *config = mg_gpt_get_config(model->checkpoint.gpt);
    status = check_shape(config, lab_asked(lab)->checkpoint, least, error);
    if (!status) status = check_numbers(model->checkpoint.gpt, lab_asked(lab)->checkpoint, error);
    if (status) {
        lab_model_free(model);
        return status;
    }
    if (most > config->block_size) most = config->block_size;
    model->ids = mg_arena_alloc(lab->arena, (size_t)most, sizeof *model->ids, "a lab's ids");
    model->T = most;
    if (lab_asked(lab)->prompt)
        status = encode_for(lab, model, error);
    else
        draw_ids(lab, model);
    if (status) {
        lab_model_free(model);
        return status;
    }
    label(lab, model);
    char mask[128], words[128];
    mg_mask_words(config, mask, sizeof mask);
    mg_model_words(config, words, sizeof words);
    lab_setting(lab, "model", "%s, mask: %s", words, mask);
    return MG_OK;
}

void lab_model_free(lab_model *model) {
    mg_checkpoint_free(&model->checkpoint);
}

mg_real *lab_attention_maps(mg_lab *lab, mg_gpt *gpt, const int *ids, int T) {
    const mg_gpt_config *config = mg_gpt_get_config(gpt);
    size_t n = (size_t)config->n_layer * (size_t)config->n_head * (size_t)T * (size_t)T;
    mg_gpt_capture capture = {.weights = mg_arena_alloc(lab->arena, n, sizeof(mg_real), "attention maps")};
    mg_tape *tape;
    mg_tape_new(&tape, NULL);
    lab_need_memory(tape, "a tape");
    mg_tape_record(tape, false);
    mg_gpt_forward(gpt, tape, ids, 1, T, &(mg_gpt_pass){.capture = &capture});
    mg_tape_free(tape);
    return capture.weights;
}

void lab_model_note_limits(mg_lab *lab, const char *what) {
    lab_note(
        lab,
        "%s of this checkpoint's weights in maskgrad's own forward pass. If another program trained them, this says "
        "nothing about that program's mask: `maskgrad audit -- PROGRAM` asks it.",
        what);
}
