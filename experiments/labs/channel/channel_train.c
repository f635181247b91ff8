/* Training and evaluation of lab channel: the trainer's windows and optimizer, under a mask that is drawn anew for each
 * window and position. */
#include "adamw.h"
#include "channel.h"
#include "grammar.h"
#include "lab_private.h"

#include <math.h>

enum { TRAINING = 10, EVALUATION }; /* streams of leaks */

bool channel_leaks(const mg_lab *lab, uint32_t stream, uint64_t number, int t, int T, double probability) {
    mg_rng rng = {lab_asked(lab)->seed, MG_STREAM_LAB, stream};
    return t + 1 < T && mg_rng_uniform(rng, number * (uint64_t)T + (uint64_t)t) < probability;
}

void channel_fill(const mg_lab *lab, uint32_t stream, uint64_t first, int n, int T, double probability,
                  mg_interval *sequence) {
    for (int i = 0; i < n * T; i++) {
        int t = i % T;
        sequence[i] = (mg_interval){0,
                                    t + 1 + channel_leaks(lab, stream, first + (uint64_t)(i / T), t, T, probability)};
    }
}

/* Windows, and what each position sees. */
typedef struct batch {
    int B, T, *ids, *targets;
    mg_interval *sequence;
    mg_real *token_loss;
} batch;

static batch new_batch(mg_lab *lab, int B, int T) {
    size_t n = (size_t)B * (size_t)T;
    return (batch){B,
                   T,
                   lab_memory(lab, n, sizeof(int)),
                   lab_memory(lab, n, sizeof(int)),
                   lab_memory(lab, n, sizeof(mg_interval)),
                   lab_memory(lab, n, sizeof(mg_real))};
}

/* Spoilt: another probability than the lab says. */
static double probability_of(const channel_run *r) {
    return lab_broken("channel.leak") ? 0.2 + 0.6 * r->probability : r->probability;
}

static mg_status train(mg_lab *lab, const mg_train_options *o, const mg_corpus *corpus, channel_run *r, batch b,
                       mg_adamw *adamw, mg_tape *tape, mg_error *error) {
    mg_params *params = mg_gpt_params(r->gpt);
    mg_status status = MG_OK;
    for (int64_t step = 0; step < o->max_iters && !status; step++) {
        mg_corpus_batch(corpus, MG_TRAIN, (mg_rng){o->seed, MG_STREAM_BATCH, (uint32_t)step}, b.B, b.T, b.ids,
                        b.targets);
        channel_fill(lab, TRAINING, (uint64_t)step * (uint64_t)b.B, b.B, b.T, probability_of(r), b.sequence);
        mg_gpt_pass pass = {
            .dropout_seed = o->seed, .dropout_step = (uint32_t)step, .training = true, .sequence = b.sequence};
        mg_tensor *loss = mg_gpt_loss(r->gpt, tape, b.ids, b.targets, b.B, b.T, &pass, NULL);
        r->curve[step] = (double)loss->data[0];
        if (step % 20 == 0) lab_progress(lab, r->name, step, o->max_iters, "loss %.3f", r->curve[step]);
        if (!isfinite(r->curve[step])) break;
        mg_backward(tape, loss);
        mg_adamw_step(adamw, params, mg_lr_at(&o->schedule, step),
                      mg_clip_scale(mg_params_grad_norm(params), o->grad_clip));
        mg_tape_reset(tape);
        status = lab_interrupted(lab, error);
    }
    mg_tape_reset(tape);
    lab_progress(lab, r->name, o->max_iters, o->max_iters, "loss %.3f", r->curve[o->max_iters - 1]);
    return status;
}

/* The mean loss, over a window, of who knows the grammar and sees these labels. */
static double possible_loss(const mg_grammar *grammar, const batch *b, int window, double *bayes) {
    double sum = 0;
    ptrdiff_t at = (ptrdiff_t)window * b->T;
    mg_grammar_bayes_loss(grammar, b->ids + at, b->targets + at, b->T, bayes);
    for (int t = 0; t < b->T; t++)
        if (b->sequence[at + t].end == t + 1) sum += bayes[t];
    return sum / b->T;
}

static mg_status evaluate(mg_lab *lab, const mg_corpus *corpus, int windows, channel_run *r, batch b, mg_tape *tape,
                          mg_error *error) {
    double *bayes = lab_numbers(lab, b.T), sum = 0, possible = 0, gaps = 0, squares = 0;
    mg_rng rng = {lab_asked(lab)->seed, MG_STREAM_EVAL, 0};
    int done = 0;
    mg_status status = MG_OK;
    mg_tape_record(tape, false);
    for (; done < windows && !status; done += b.B) {
        mg_corpus_windows(corpus, MG_VALIDATION, rng, done, b.B, b.T, b.ids, b.targets);
        channel_fill(lab, EVALUATION, (uint64_t)done, b.B, b.T, probability_of(r), b.sequence);
        mg_gpt_loss(r->gpt, tape, b.ids, b.targets, b.B, b.T, &(mg_gpt_pass){.sequence = b.sequence}, b.token_loss);
        for (int w = 0; w < b.B; w++) {
            double loss = 0, best = corpus->grammar ? possible_loss(corpus->grammar, &b, w, bayes) : (double)NAN;
            for (int t = 0; t < b.T; t++) {
                r->position_loss[t] += (double)b.token_loss[w * b.T + t];
                loss += (double)b.token_loss[w * b.T + t] / b.T;
            }
            sum += loss;
            possible += best;
            gaps += loss - best;
            squares += (loss - best) * (loss - best);
        }
        mg_tape_reset(tape);
        status = lab_interrupted(lab, error);
    }
    for (int t = 0; t < b.T; t++) r->position_loss[t] /= done;
    r->loss = sum / done;
    r->possible = possible / done;
    r->error = sqrt(fmax(0, squares / done - gaps / done * (gaps / done)) / fmax(1, done - 1));
    return status;
}

mg_status channel_train(mg_lab *lab, const mg_run_options *run, const mg_corpus *corpus, int windows, channel_run *r,
                        mg_error *error) {
    const mg_train_options *o = &run->train;
    mg_gpt_config config = o->model;
    config.vocab_size = mg_tokenizer_size(corpus->tokenizer);
    config.mask = mg_lookahead(1); /* what can be seen at most; each window's own mask says what is */
    batch b = new_batch(lab, o->batch_size * o->grad_accum, config.block_size);
    r->curve = lab_numbers(lab, (ptrdiff_t)o->max_iters);
    r->position_loss = lab_numbers(lab, b.T);
    for (int64_t i = 0; i < o->max_iters; i++) r->curve[i] = NAN;
    mg_adamw *adamw = NULL;
    mg_tape *tape;
    mg_tape_new(&tape, NULL);
    lab_need_memory(tape, "a tape");
    mg_tape_recycle_gradients(tape, true);
    mg_status status = mg_gpt_new(&r->gpt, &config, o->seed, error);
    if (!status) status = mg_adamw_new(&adamw, mg_gpt_params(r->gpt), o->beta1, o->beta2, o->weight_decay, error);
    if (!status) status = train(lab, o, corpus, r, b, adamw, tape, error);
    r->loss = r->possible = r->error = NAN;
    if (!status && !mg_params_find_not_finite(mg_gpt_params(r->gpt)))
        status = evaluate(lab, corpus, windows, r, b, tape, error);
    mg_tape_free(tape);
    mg_adamw_free(adamw);
    return status;
}
