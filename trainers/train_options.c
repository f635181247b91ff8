#include "train_options.h"

#include <inttypes.h>
#include <math.h>

void mg_train_options_fill(mg_train_options *o) {
    mg_gpt_config_fill(&o->model);
    if (o->batch_size == 0) o->batch_size = 16;
    if (o->grad_accum == 0) o->grad_accum = 1;
    if (o->max_iters == 0) o->max_iters = 1500;
    if (o->schedule.lr == 0) o->schedule.lr = 1e-3;
    if (o->schedule.decay_iters == 0) o->schedule.decay_iters = o->max_iters;
    if (o->beta1 == 0 && !o->betas_are_set) o->beta1 = 0.9;
    if (o->beta2 == 0 && !o->betas_are_set) o->beta2 = 0.99; /* nanoGPT's value for few tokens per step */
    o->betas_are_set = true;
}

static mg_status check_count(const char *name, int64_t value, int64_t least, mg_error *error) {
    if (value >= least) return MG_OK;
    return mg_error_set(error, MG_ERR_INPUT, "%s is %" PRId64 "; it must be at least %" PRId64, name, value, least);
}

static mg_status check_real(const char *name, double value, mg_error *error) {
    if (value >= 0 && value < INFINITY) return MG_OK;
    return mg_error_set(error, MG_ERR_INPUT, "%s is %g; it must be 0 or a positive number", name, value);
}

mg_status mg_train_options_check(const mg_train_options *o, mg_error *error) {
    const mg_lr_schedule *s = &o->schedule;
    mg_status status = check_count("batch_size", o->batch_size, 1, error);
    if (!status) status = check_count("grad_accum", o->grad_accum, 1, error);
    if (!status) status = check_count("max_iters", o->max_iters, 1, error);
    if (!status) status = check_count("warmup_iters", s->warmup_iters, 0, error);
    if (!status) status = check_count("decay_iters", s->decay_iters, 1, error);
    if (!status) status = check_real("lr", s->lr, error);
    if (!status) status = check_real("min_lr", s->min_lr, error);
    if (!status) status = check_real("grad_clip", o->grad_clip, error);
    if (!status && s->min_lr > s->lr)
        status = mg_error_set(error, MG_ERR_INPUT, "--min-lr %g is above --lr %g", s->min_lr, s->lr);
    return status;
}
