#include "trainer.h"
#include "clock.h"
#include "parallel.h"
#include "sum_tree.h"
#include "train_settings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct mg_trainer {
    mg_train_options options;
    const mg_corpus *corpus;
    mg_gpt *gpt;
    mg_adamw *adamw;
    mg_tape *tape;
    int *ids, *targets; /* of a whole step: (grad_accum, batch_size, block_size) */
    mg_alarm *alarm;    /* or NULL */
    mg_real *row_loss;  /* of the same windows, for the alarm; or NULL */
    double *micro_loss; /* (grad_accum) */
    mg_sum_tree sum;    /* of the micro-batches' gradients */
    mg_ranks *ranks;    /* that share the micro-batches; NULL: this process computes all */
    mg_real *scratch;   /* for their sum, or NULL */
    int64_t tokens;
    double best_loss;
};

/* ---- Making one ---- */

/* Bytes that training takes, by purpose. */
typedef struct memory_needs {
    double model;   /* each parameter with its gradients and AdamW's two moments */
    double windows; /* ids and targets of a whole step */
    double pass;    /* what a micro-batch leaves on the tape */
} memory_needs;

/* The numbers per token are on the low side (bench shows 18 to 23 per layer and unit of width, without the logits): a
 * run that is refused would not have fitted. */
static memory_needs needs_of(const mg_train_options *o) {
    const mg_gpt_config *c = &o->model;
    double L = c->n_layer, C = c->n_embd, V = c->vocab_size, T = c->block_size, real = sizeof(mg_real);
    return (memory_needs){
        .model = (4 + mg_sum_most_blocks(0, o->grad_accum)) * real * (12 * L * C * C + (V + T) * C),
        .windows = 2 * sizeof(int) * T * o->batch_size * o->grad_accum,
        .pass = real * T * o->batch_size * (16 * L * C + 2 * V),
    };
}

/* In floating point, so that sizes are known to be sane before anything multiplies them as whole numbers. */
static mg_status check_memory(const mg_train_options *o, mg_error *error) {
    const double GIB = 1 << 30;
    memory_needs n = needs_of(o);
    double has = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE), all = n.model + n.windows + n.pass;
    if (has <= 0 || all <= has) return MG_OK;
    const mg_gpt_config *c = &o->model;
    if (n.model > n.windows && n.model > n.pass)
        return mg_error_set(error, MG_ERR_INPUT,
                            "--n-embd %d with --n-layer %d is too large: the model and its optimizer take about "
                            "%.1f GiB, and this machine has %.1f GiB",
                            c->n_embd, c->n_layer, n.model / GIB, has / GIB);
    if (n.windows > n.pass)
        return mg_error_set(error, MG_ERR_INPUT,
                            "--grad-accum %d times --batch-size %d times --block-size %d is too large: the windows of "
                            "a step take about %.1f GiB, and this machine has %.1f GiB",
                            o->grad_accum, o->batch_size, c->block_size, n.windows / GIB, has / GIB);
    return mg_error_set(error, MG_ERR_INPUT,
                        "--batch-size %d times --block-size %d is too large: a step takes about %.1f GiB, and this "
                        "machine has %.1f GiB; a smaller --batch-size with a larger --grad-accum takes less",
                        o->batch_size, c->block_size, all / GIB, has / GIB);
}

/* The windows of a step; check_memory has checked their size. */
static mg_status make_batch(mg_trainer *trainer, mg_error *error) {
    const mg_train_options *o = &trainer->options;
    size_t n = (size_t)o->batch_size * (size_t)o->grad_accum * (size_t)o->model.block_size;
    trainer->ids = mg_alloc(n, sizeof(int), "the ids of a step", error);
    trainer->targets = mg_alloc(n, sizeof(int), "the targets of a step", error);
    trainer->micro_loss = mg_alloc((size_t)o->grad_accum, sizeof(double), "the losses of a step", error);
    return trainer->ids && trainer->targets && trainer->micro_loss ? MG_OK : MG_ERR_MEMORY;
}

/* The micro-batches that this process computes. */
static mg_range own_micro_batches(const mg_trainer *trainer) {
    ptrdiff_t n = trainer->options.grad_accum;
    const mg_ranks *ranks = trainer->ranks;
    return mg_ranks_are_many(ranks) ? mg_tile_range(n, n / ranks->count, ranks->rank) : (mg_range){0, n};
}

/* The blocks of the gradients' sum, besides that of the parameters: none for a single micro-batch. */
static mg_status make_sum(mg_trainer *trainer, mg_error *error) {
    mg_sum_tree *sum = &trainer->sum;
    mg_range own = own_micro_batches(trainer);
    int n_blocks = mg_sum_most_blocks(own.begin, own.end);
    while (sum->n_zeros > n_blocks) mg_free(sum->zeros[--sum->n_zeros]);
    for (sum->size = mg_gpt_params(trainer->gpt)->size; sum->n_zeros < n_blocks; sum->n_zeros++) {
        mg_real *block = mg_alloc_zero((size_t)sum->size, sizeof(mg_real), "the micro-batches' gradients", error);
        if (!block) return MG_ERR_MEMORY;
        sum->zeros[sum->n_zeros] = block;
    }
    return MG_OK;
}

static mg_status build(mg_trainer *trainer, mg_error *error) {
    mg_train_options *o = &trainer->options;
    mg_train_options_fill(o);
    int n_tokens = mg_tokenizer_size(trainer->corpus->tokenizer);
    if (o->model.vocab_size == 0) o->model.vocab_size = n_tokens;
    if (o->model.vocab_size < n_tokens)
        return mg_error_set(error, MG_ERR_INPUT, "the data has %d different tokens, the model's vocabulary only %d",
                            n_tokens, o->model.vocab_size);
    mg_status status = mg_train_options_check(o, error);
    if (status == MG_OK && o->model.documents)
        status = mg_corpus_document_end(trainer->corpus, &o->model.document_end, error);
    if (status == MG_OK) status = mg_gpt_config_check(&o->model, error);
    if (status == MG_OK) status = mg_corpus_check(trainer->corpus, o->model.block_size, error);
    if (status == MG_OK) status = check_memory(o, error);
    if (status == MG_OK) status = make_batch(trainer, error);
    if (status == MG_OK) status = mg_gpt_new(&trainer->gpt, &o->model, o->seed, error);
    if (status == MG_OK) status = make_sum(trainer, error);
    if (status != MG_OK) return status;
    mg_tape_new(&trainer->tape, error);
    if (!trainer->tape) return MG_ERR_MEMORY;
    mg_tape_recycle_gradients(trainer->tape, true);
    return mg_adamw_new(&trainer->adamw, mg_gpt_params(trainer->gpt), o->beta1, o->beta2, o->weight_decay, error);
}

mg_status mg_trainer_new(mg_trainer **trainer, const mg_train_options *options, const mg_corpus *corpus,
                         mg_error *error) {
    *trainer = NULL;
    mg_trainer *made = mg_alloc_zero(1, sizeof *made, "a trainer", error);
    if (!made) return MG_ERR_MEMORY;
    made->options = *options;
    made->corpus = corpus;
    made->best_loss = NAN;
    mg_status status = build(made, error);
    if (status != MG_OK) {
        mg_trainer_free(made);
        return status;
    }
    *trainer = made;
    return MG_OK;
}

void mg_trainer_free(mg_trainer *trainer) {
    if (!trainer) return;
    mg_adamw_free(trainer->adamw);
    mg_gpt_free(trainer->gpt);
    if (trainer->tape) mg_tape_free(trainer->tape);
    mg_free(trainer->ids);
    mg_free(trainer->targets);
    mg_free(trainer->row_loss);
    mg_free(trainer->micro_loss);
    mg_free(trainer->scratch);
    for (int i = 0; i < trainer->sum.n_zeros; i++) mg_free(trainer->sum.zeros[i]);
    for (int i = 0; i < trainer->sum.n; i++) mg_free(trainer->sum.node[i].block); /* of a step that failed */
    mg_alarm_free(trainer->alarm);
    mg_free(trainer);
}

mg_status mg_trainer_set_ranks(mg_trainer *trainer, mg_ranks *ranks, mg_error *error) {
    int n = trainer->options.grad_accum;
    mg_status status = mg_ranks_check(ranks, n, error);
    if (status != MG_OK || !mg_ranks_are_many(ranks)) return status;
    trainer->ranks = ranks;
    size_t needed = mg_ranks_sum_scratch(ranks, n, trainer->sum.size);
    mg_free(trainer->scratch);
    trainer->scratch = mg_alloc(needed, sizeof(mg_real), "the other ranks' gradients", error);
    return trainer->scratch ? make_sum(trainer, error) : MG_ERR_MEMORY;
}

mg_status mg_trainer_set_alarm(mg_trainer *trainer, mg_error *error) {
    const mg_train_options *o = &trainer->options;
    size_t n = (size_t)o->batch_size * (size_t)o->grad_accum * (size_t)o->model.block_size;
    if (!trainer->row_loss) trainer->row_loss = mg_alloc(n, sizeof(mg_real), "the losses of a step", error);
    if (!trainer->row_loss) return MG_ERR_MEMORY;
    mg_alarm_free(trainer->alarm);
    return mg_alarm_new(&trainer->alarm, trainer->corpus, MG_TRAIN, o->model.block_size, error);
}

const mg_alarm *mg_trainer_alarm(const mg_trainer *trainer) {
    return trainer->alarm;
}

const char *mg_trainer_say_alarm(const mg_trainer *trainer, char *text, size_t size) {
    mg_alarm_reading reading = {.raised_at = -1};
    if (trainer->alarm) reading = mg_alarm_read(trainer->alarm);
    return reading.raised_at < 0 ? NULL : mg_alarm_say(&reading, &trainer->options.model, text, size);
}

/* ---- A step ---- */

/* One draw for all micro-batches: how a step is cut into them does not change its windows. */
static void draw_windows(mg_trainer *trainer) {
    const mg_train_options *o = &trainer->options;
    mg_rng rng = {o->seed, MG_STREAM_BATCH, (uint32_t)trainer->adamw->step};
    mg_corpus_batch(trainer->corpus, MG_TRAIN, rng, (ptrdiff_t)o->batch_size * o->grad_accum, o->model.block_size,
                    trainer->ids, trainer->targets);
}

/* Forward and backward over one micro-batch: the gradient of its own mean. */
static void differentiate(mg_trainer *trainer, ptrdiff_t micro) {
    const mg_train_options *o = &trainer->options;
    ptrdiff_t B = o->batch_size, T = o->model.block_size, begin = micro * B * T;
    mg_gpt_pass pass = {
        .dropout_seed = o->seed,
        .dropout_step = (uint32_t)(trainer->adamw->step * o->grad_accum + micro),
        .training = true,
    };
    mg_tensor *mean = mg_gpt_loss(trainer->gpt, trainer->tape, trainer->ids + begin, trainer->targets + begin, B, T,
                                  &pass, trainer->row_loss ? trainer->row_loss + begin : NULL);
    trainer->micro_loss[micro] = (double)mean->data[0];
    mg_backward(trainer->tape, mean);
    mg_tape_reset(trainer->tape);
}

/* What the other ranks have computed, besides the gradients: the losses. */
static mg_status gather_losses(mg_trainer *trainer, mg_error *error) {
    const mg_train_options *o = &trainer->options;
    mg_ranks *ranks = trainer->ranks;
    size_t each = (size_t)(o->grad_accum / ranks->count);
    size_t rows = each * (size_t)o->batch_size * (size_t)o->model.block_size;
    mg_status status = mg_ranks_gather(ranks, trainer->micro_loss, each * sizeof(double), error);
    if (status != MG_OK || !trainer->row_loss) return status;
    return mg_ranks_gather(ranks, trainer->row_loss, rows * sizeof(mg_real), error);
}

/* All micro-batches; their gradients' sum is in the parameters' block. All are of one size, so the mean over everything
 * is the sum divided by how many they are, which the update's grad_scale does. */
static mg_status accumulate(mg_trainer *trainer, double *loss, mg_error *error) {
    int n = trainer->options.grad_accum;
    mg_range own = own_micro_batches(trainer);
    mg_sum_tree *sum = &trainer->sum;
    mg_params *params = mg_gpt_params(trainer->gpt);
    for (ptrdiff_t micro = own.begin; micro < own.end; micro++) {
        if (micro > own.begin) { /* what is there is the micro-batch's before: a block of zeros takes its place */
            mg_sum_tree_add(sum, (mg_sum_node){micro - 1, 1, params->grads});
            mg_params_exchange_grads(params, sum->zeros[--sum->n_zeros]);
        }
        differentiate(trainer, micro);
    }
    mg_sum_tree_add(sum, (mg_sum_node){own.end - 1, 1, params->grads});
    mg_status status = MG_OK;
    mg_real *all;
    if (mg_ranks_are_many(trainer->ranks))
        status = mg_ranks_sum(trainer->ranks, sum, n, trainer->scratch, &all, error);
    else
        all = mg_sum_tree_finish(sum).block;
    mg_params_exchange_grads(params, all);
    if (status == MG_OK && mg_ranks_are_many(trainer->ranks)) status = gather_losses(trainer, error);
    *loss = status == MG_OK ? mg_sum_doubles(trainer->micro_loss, n) / n : NAN;
    return status;
}

/* The first parameter that is to blame: with weights or, failing that, gradients that are not finite. */
static void name_culprit(const mg_params *params, char *text, size_t size) {
    const mg_param *weights = mg_params_find_not_finite(params);
    const mg_param *gradient = weights ? NULL : mg_params_find_not_finite_grad(params);
    text[0] = '\0';
    if (weights) mg_snprintf(text, size, " (the weights of '%s' hold NaN or infinity)", weights->name);
    if (gradient) mg_snprintf(text, size, " (first in the gradient of '%s')", gradient->name);
}

static mg_status refuse_update(mg_trainer *trainer, const mg_step *step, mg_error *error) {
    mg_params *params = mg_gpt_params(trainer->gpt);
    char culprit[128];
    name_culprit(params, culprit, sizeof culprit);
    mg_params_zero_grad(params);
    bool is_loss = !isfinite(step->loss);
    double value = is_loss ? step->loss : step->grad_norm;
    const char *of = is_loss ? "loss" : "gradient's norm", *what = isnan(value) ? "not a number" : "infinite";
    if (step->step == 0) /* nothing was learned yet: no learning rate is to blame */
        return mg_error_set(
            error, MG_ERR_STATE,
            "step 0: the %s is %s%s before the first update: the weights that the run starts from are too "
            "large (--init-from, --init-std, --attn-init-std)",
            of, what, culprit);
    return mg_error_set(error, MG_ERR_STATE,
                        "step %lld: the %s is %s%s, so the run stops here; a lower --lr (now %g), a --grad-clip or a "
                        "longer --warmup-iters may help",
                        (long long)step->step, of, what, culprit, step->lr);
}

mg_status mg_trainer_step(mg_trainer *trainer, mg_step *step, mg_error *error) {
    const mg_train_options *o = &trainer->options;
    mg_params *params = mg_gpt_params(trainer->gpt);
    double begin = mg_seconds();
    *step = (mg_step){.step = trainer->adamw->step, .lr = mg_lr_at(&o->schedule, trainer->adamw->step)};
    draw_windows(trainer);
    mg_status status = accumulate(trainer, &step->loss, error);
    if (status != MG_OK) return status;
    step->grad_norm = mg_params_grad_norm(params) / o->grad_accum;
    if (!isfinite(step->loss) || !isfinite(step->grad_norm)) return refuse_update(trainer, step, error);
    if (trainer->alarm)
        step->alarm = mg_alarm_observe(trainer->alarm, step->step, (ptrdiff_t)o->batch_size * o->grad_accum,
                                       trainer->ids, trainer->targets, trainer->row_loss);
    mg_adamw_step(trainer->adamw, params, step->lr, mg_clip_scale(step->grad_norm, o->grad_clip) / o->grad_accum);
    trainer->tokens += (int64_t)o->batch_size * o->grad_accum * o->model.block_size;
    step->tokens = trainer->tokens;
    step->seconds = mg_seconds() - begin;
    return MG_OK;
}

int64_t mg_trainer_steps_done(const mg_trainer *trainer) {
    return trainer->adamw->step;
}

mg_status mg_trainer_evaluate(mg_evaluation *evaluation, mg_trainer *trainer, mg_split split, int n_batches,
                              const mg_stop *stop, mg_error *error) {
    const mg_evaluation_options options = {.split = split,
                                           .n_batches = n_batches,
                                           .batch_size = trainer->options.batch_size,
                                           .seed = trainer->options.seed,
                                           .stop = stop};
    return mg_evaluate_on(evaluation, trainer->gpt, trainer->tape, trainer->corpus, &options, error);
}

/* ---- Looking in ---- */

mg_gpt *mg_trainer_model(mg_trainer *trainer) {
    return trainer->gpt;
}

const mg_train_options *mg_trainer_options(const mg_trainer *trainer) {
    return &trainer->options;
}

void mg_trainer_batch(const mg_trainer *trainer, const int **ids, const int **targets) {
    *ids = trainer->ids;
    *targets = trainer->targets;
}

void mg_trainer_note_loss(mg_trainer *trainer, double validation_loss) {
    if (!(trainer->best_loss <= validation_loss)) trainer->best_loss = validation_loss;
}

/* ---- Checkpoints ---- */

mg_checkpoint mg_trainer_checkpoint(mg_trainer *trainer) {
    const mg_train_options *o = &trainer->options;
    return (mg_checkpoint){
        .gpt = trainer->gpt,
        .tokenizer = trainer->corpus->tokenizer,
        .adamw = trainer->adamw,
        .train = {.step = trainer->adamw->step,
                  .tokens = trainer->tokens,
                  .seed = o->seed,
                  .data_hash = trainer->corpus->hash,
                  .best_loss = trainer->best_loss,
                  .schedule = o->schedule,
                  .grad_clip = o->grad_clip,
                  .batch_size = o->batch_size,
                  .grad_accum = o->grad_accum},
    };
}

mg_status mg_trainer_take_weights(mg_trainer *trainer, const mg_checkpoint *checkpoint, mg_error *error) {
    const mg_params *from = mg_gpt_params(checkpoint->gpt);
    mg_params *to = mg_gpt_params(trainer->gpt);
    for (int i = 0; i < to->n; i++) {
        const mg_param *source = mg_params_find(from, to->param[i].name);
        if (!source)
            return mg_error_set(error, MG_ERR_INPUT, "the checkpoint has no parameter '%s'", to->param[i].name);
        if (!mg_same_shape(&source->tensor, &to->param[i].tensor))
            return mg_error_set(error, MG_ERR_INPUT, "the checkpoint's '%s' is %s, the run's is %s", to->param[i].name,
                                mg_shape(&source->tensor).text, mg_shape(&to->param[i].tensor).text);
    }
    if (from->n != to->n || from->size != to->size)
        return mg_error_set(error, MG_ERR_INPUT, "the checkpoint has %d parameters, the run has %d", from->n, to->n);
    const mg_param *spoiled = mg_params_find_not_finite(from);
    if (spoiled)
        return mg_error_set(
            error, MG_ERR_FORMAT,
            "the checkpoint's '%s' holds NaN or infinity, from which nothing can be learned; start from "
            "an earlier checkpoint",
            spoiled->name);
    memcpy(to->values, from->values, (size_t)to->size * sizeof *to->values);
    return MG_OK;
}

/* The options of the run that a checkpoint was saved by: what its file says of them, and the rest from `o`. */
static mg_train_options options_of(const mg_checkpoint *checkpoint, const mg_train_options *o) {
    const mg_train_state *train = &checkpoint->train;
    mg_train_options saved = *o;
    saved.model = *mg_gpt_get_config(checkpoint->gpt);
    saved.batch_size = train->batch_size;
    saved.grad_accum = train->grad_accum;
    saved.schedule = train->schedule;
    saved.grad_clip = train->grad_clip;
    saved.seed = train->seed;
    saved.beta1 = checkpoint->adamw->beta1;
    saved.beta2 = checkpoint->adamw->beta2;
    saved.weight_decay = checkpoint->adamw->weight_decay;
    return saved;
}

static mg_status check_same_run(const mg_trainer *trainer, const mg_checkpoint *checkpoint, mg_error *error) {
    static const char NOT_THIS_RUNS[] = "the checkpoint is not this run's";
    if (!checkpoint->adamw) return mg_error_set(error, MG_ERR_INPUT, "%s: it has no optimizer state", NOT_THIS_RUNS);
    if (checkpoint->train.data_hash != trainer->corpus->hash)
        return mg_error_set(error, MG_ERR_INPUT, "%s: it was trained on different data", NOT_THIS_RUNS);
    mg_train_options saved = options_of(checkpoint, &trainer->options);
    const mg_setting *differs = mg_settings_conflict(mg_train_settings, &saved, &trainer->options);
    if (!differs) return MG_OK;
    char was[256], is[256];
    mg_setting_format(differs, &saved, was, sizeof was);
    mg_setting_format(differs, &trainer->options, is, sizeof is);
    return mg_error_set(error, MG_ERR_INPUT, "%s: its %s is %s, the run's is %s", NOT_THIS_RUNS, differs->name, was,
                        is);
}

mg_status mg_trainer_restore(mg_trainer *trainer, const mg_checkpoint *checkpoint, mg_error *error) {
    mg_status status = check_same_run(trainer, checkpoint, error);
    if (status == MG_OK) status = mg_trainer_take_weights(trainer, checkpoint, error);
    if (status != MG_OK) return status;
    size_t bytes = (size_t)trainer->adamw->size * sizeof(mg_real);
    memcpy(trainer->adamw->m, checkpoint->adamw->m, bytes);
    memcpy(trainer->adamw->v, checkpoint->adamw->v, bytes);
    trainer->adamw->step = checkpoint->adamw->step;
    trainer->tokens = checkpoint->train.tokens;
    trainer->best_loss = checkpoint->train.best_loss;
    return MG_OK;
}
