/* The task of lab nope: at every position of a text of random words, say the position's number. */
#include "adamw.h"
#include "lab_private.h"
#include "nope.h"
#include "training.h"

#include <string.h>

enum { EVALUATION_BATCHES = 20 };

mg_gpt_config nope_config(const nope_options *o, int lookahead, bool positions) {
    mg_gpt_config c = {0};
    c.n_layer = o->n_layer;
    c.n_head = o->n_head;
    c.n_embd = o->n_embd;
    c.block_size = o->block_size;
    c.vocab_size = o->block_size + 1 + NOPE_WORDS;
    c.mask = mg_lookahead(lookahead);
    c.no_positions = !positions;
    mg_gpt_config_fill(&c);
    return c;
}

void nope_text(const mg_lab *lab, int T, uint64_t number, int *ids) {
    mg_rng rng = {lab_asked(lab)->seed, MG_STREAM_LAB, 2};
    ids[0] = nope_first(T);
    for (int t = 1; t < T; t++)
        ids[t] = nope_word(T, (int)mg_rng_below(rng, number * (uint64_t)T + (uint64_t)t, NOPE_WORDS));
}

/* Batch `number`: what the evaluation sees comes after all that training can. */
static void draw(const mg_lab *lab, const nope_options *o, uint64_t number, int *ids, int *targets) {
    int B = o->batch_size, T = o->block_size;
    for (int b = 0; b < B; b++) {
        nope_text(lab, T, number * (uint64_t)B + (uint64_t)b, ids + b * T);
        for (int t = 0; t < T; t++) targets[b * T + t] = t;
    }
}

static mg_status train(mg_lab *lab, const nope_options *o, nope_variant *v, mg_adamw *adamw, mg_tape *tape, int *ids,
                       int *targets, mg_error *error) {
    mg_params *params = mg_gpt_params(v->gpt);
    mg_lr_schedule schedule = {.lr = o->lr, .min_lr = o->lr / 10, .warmup_iters = 20, .decay_iters = o->max_iters};
    mg_status status = MG_OK;
    for (int64_t step = 0; step < o->max_iters && !status; step++) {
        draw(lab, o, (uint64_t)step, ids, targets);
        mg_tensor *loss = mg_gpt_loss(v->gpt, tape, ids, targets, o->batch_size, o->block_size, NULL, NULL);
        v->curve[step] = (double)loss->data[0];
        if (step % 20 == 0) lab_progress(lab, v->name, step, o->max_iters, "loss %.3f", v->curve[step]);
        if (!isfinite(v->curve[step])) break;
        mg_backward(tape, loss);
        mg_adamw_step(adamw, params, mg_lr_at(&schedule, step), mg_clip_scale(mg_params_grad_norm(params), 1));
        mg_tape_reset(tape);
        status = lab_interrupted(lab, error);
    }
    mg_tape_reset(tape);
    lab_progress(lab, v->name, o->max_iters, o->max_iters, "loss %.3f", v->curve[o->max_iters - 1]);
    return status;
}

static void evaluate(const mg_lab *lab, const nope_options *o, nope_variant *v, mg_tape *tape, int *ids, int *targets) {
    int B = o->batch_size, T = o->block_size, V = mg_gpt_get_config(v->gpt)->vocab_size;
    double share = 1.0 / (EVALUATION_BATCHES * B);
    mg_tape_record(tape, false);
    for (int i = 0; i < EVALUATION_BATCHES; i++) {
        draw(lab, o, (uint64_t)(o->max_iters + i), ids, targets);
        mg_tensor *logits = mg_gpt_forward(v->gpt, tape, ids, B, T, NULL);
        const mg_real *p = mg_log_softmax(tape, logits)->data; /* (B,T,V) */
        for (int k = 0; k < B * T; k++) {
            const mg_real *log_p = p + (ptrdiff_t)k * V;
            v->position_loss[k % T] -= (double)log_p[k % T] * share;
            for (int said = 0; said < T; said++)
                v->said[k % T * T + said] += (mg_real)(exp((double)log_p[said]) * share);
        }
        mg_tape_reset(tape);
    }
    v->loss = 0;
    for (int t = 0; t < T; t++) v->loss += v->position_loss[t] / T;
}

mg_status nope_train(mg_lab *lab, const nope_options *o, nope_variant *v, mg_error *error) {
    int T = o->block_size;
    mg_gpt_config config = nope_config(o, v->lookahead, v->positions);
    v->curve = lab_numbers(lab, (ptrdiff_t)o->max_iters);
    for (int64_t i = 0; i < o->max_iters; i++) v->curve[i] = NAN;
    v->position_loss = lab_numbers(lab, T);
    v->said = lab_reals(lab, (ptrdiff_t)T * T);
    int *ids = lab_memory(lab, (size_t)o->batch_size * (size_t)T, sizeof *ids);
    int *targets = lab_memory(lab, (size_t)o->batch_size * (size_t)T, sizeof *targets);
    mg_adamw *adamw = NULL;
    mg_tape *tape;
    mg_tape_new(&tape, NULL);
    lab_need_memory(tape, "a tape");
    mg_tape_recycle_gradients(tape, true);
    mg_status status = mg_gpt_new(&v->gpt, &config, lab_asked(lab)->seed, error);
    if (!status) status = mg_adamw_new(&adamw, mg_gpt_params(v->gpt), 0.9, 0.99, 0, error);
    if (!status) status = train(lab, o, v, adamw, tape, ids, targets, error);
    v->loss = NAN;
    if (!status && mg_params_find_not_finite(mg_gpt_params(v->gpt)) == NULL) evaluate(lab, o, v, tape, ids, targets);
    mg_tape_free(tape);
    mg_adamw_free(adamw);
    return status;
}
