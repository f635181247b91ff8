/* The three models of lab hidden, trained on the same windows. */
#include "hidden.h"
#include "lab_private.h"
#include "operation.h"

#include <math.h>

const int *lab_hidden_input(const lab_hidden_model *m, const lab_hidden_batch *b) {
    return m->hides ? b->hidden : b->shown;
}

mg_status lab_hidden_new_model(mg_lab *lab, const lab_hidden_task *t, lab_hidden_model *m, mg_error *error) {
    mg_gpt_config config = t->options->model;
    config.vocab_size = t->hidden_id + 1;
    config.mask = mg_lookahead(MG_LOOKAHEAD_ALL);
    if (m->color == LAB_MASKED || (m->hides && lab_broken("hidden.mask"))) config.mask = mg_lookahead(0);
    m->loss = lab_numbers(lab, t->options->max_iters);
    m->position_loss = lab_numbers(lab, t->T);
    mg_status status = mg_gpt_new(&m->gpt, &config, t->options->seed, error);
    if (status) return status;
    return mg_adamw_new(&m->adamw, mg_gpt_params(m->gpt), t->options->beta1, t->options->beta2,
                        t->options->weight_decay, error);
}

static mg_status step_model(const lab_hidden_task *t, lab_hidden_model *m, mg_tape *tape, const lab_hidden_batch *b,
                            int step, mg_error *error) {
    mg_gpt_pass pass = {.training = true, .dropout_seed = t->options->seed, .dropout_step = (uint32_t)step};
    mg_tensor *loss = mg_gpt_loss(m->gpt, tape, lab_hidden_input(m, b), b->targets, b->B, t->T, &pass, NULL);
    m->loss[step] = (double)loss->data[0];
    mg_backward(tape, loss);
    mg_params *params = mg_gpt_params(m->gpt);
    double norm = mg_params_grad_norm(params);
    mg_tape_reset(tape);
    if (!isfinite(m->loss[step]) || !isfinite(norm))
        return mg_error_set(error, MG_ERR_STATE,
                            "the training diverged at step %d: the loss of the "
                            "model '%s' is %g; try a lower --lr",
                            step, m->name, m->loss[step]);
    mg_adamw_step(m->adamw, params, mg_lr_at(&t->options->schedule, step), mg_clip_scale(norm, t->options->grad_clip));
    return MG_OK;
}

mg_status lab_hidden_train(mg_lab *lab, const lab_hidden_task *t, lab_hidden_model models[N_MODELS], mg_error *error) {
    int steps = (int)t->options->max_iters;
    lab_hidden_batch b = lab_hidden_new_batch(lab, t, t->options->batch_size * t->options->grad_accum);
    mg_tape *tape;
    mg_tape_new(&tape, NULL);
    lab_need_memory(tape, "a tape");
    mg_tape_recycle_gradients(tape, true);
    mg_status status = MG_OK;
    for (int step = 0; step < steps && !status; step++) {
        lab_hidden_fill(t, MG_TRAIN, (mg_rng){t->options->seed, MG_STREAM_BATCH, (uint32_t)step}, 0, LAB_MOST_HIDDEN,
                        &b);
        for (int i = 0; i < N_MODELS && !status; i++) status = step_model(t, &models[i], tape, &b, step, error);
        if (!status && (step % 20 == 0 || step + 1 == steps))
            lab_progress(lab, "training", step + 1, steps, "loss %.3f with both sides", models[BOTH].loss[step]);
        if (!status) status = lab_interrupted(lab, error);
    }
    mg_tape_free(tape);
    return status;
}
