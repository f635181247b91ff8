/* What the playground's page calls: one model that trains on a corpus of ids which the page brings. A worker of the
 * page has one; natively, tests/portable/playground.c has one.
 *
 * Every call works on the one model. Those that can fail return 0, and playground_message() says why. */
#include "playground.h"
#include "adamw.h"
#include "gpt.h"
#include "hash.h"

#include <string.h>

enum { MOST_TOKENS = 4096, N_HEAD = 4 };

static struct {
    mg_gpt *gpt;
    mg_tape *tape;
    mg_adamw *adamw;
    int *corpus;
    ptrdiff_t corpus_size;
    int batch;
    uint64_t seed;
    double lr;
    int64_t step;
    int ids[MOST_TOKENS], targets[MOST_TOKENS];
    mg_real row_loss[MOST_TOKENS];
    mg_real *maps; /* (n_layer, n_head, T, T) */
    double by_position[MOST_TOKENS];
    mg_error error;
} p;

const char *playground_message(void) {
    return p.error.message;
}

static void drop_model(void) {
    mg_gpt_free(p.gpt);
    mg_tape_free(p.tape);
    mg_adamw_free(p.adamw);
    mg_free(p.maps);
    p.gpt = NULL;
    p.tape = NULL;
    p.adamw = NULL;
    p.maps = NULL;
}

int *playground_corpus(int n) {
    mg_free(p.corpus);
    p.corpus = mg_alloc((size_t)n, sizeof *p.corpus, "the corpus", &p.error);
    p.corpus_size = p.corpus ? n : 0;
    return p.corpus;
}

int playground_new(int n_layer, int n_embd, int context, int batch, int vocab_size, unsigned seed, double lr) {
    drop_model();
    if (context < 1 || batch < 1 || batch * context > MOST_TOKENS || context >= p.corpus_size) {
        mg_error_set(&p.error, MG_ERR_INPUT, "%d windows of %d tokens do not fit a corpus of %td, or are more than %d",
                     batch, context, p.corpus_size, MOST_TOKENS);
        return 0;
    }
    mg_gpt_config c = {
        .n_layer = n_layer, .n_head = N_HEAD, .n_embd = n_embd, .block_size = context, .vocab_size = vocab_size};
    p.batch = batch;
    p.seed = seed;
    p.lr = lr;
    p.step = 0;
    if (mg_gpt_new(&p.gpt, &c, seed, &p.error) || mg_tape_new(&p.tape, &p.error) ||
        mg_adamw_new(&p.adamw, mg_gpt_params(p.gpt), 0.9, 0.99, 0.1, &p.error))
        return 0;
    p.maps = mg_alloc((size_t)(n_layer * N_HEAD * context * context), sizeof *p.maps, "the maps", &p.error);
    mg_tape_recycle_gradients(p.tape, true);
    return p.maps != NULL;
}

void playground_mask(int kind, int n) {
    mg_gpt_set_mask(p.gpt, (mg_mask){kind == 1 ? MG_MASK_WINDOW : MG_MASK_LOOKAHEAD, n < 0 ? MG_LOOKAHEAD_ALL : n});
}

static void draw_batch(int T) {
    mg_rng rng = {p.seed, MG_STREAM_BATCH, (uint32_t)p.step};
    for (int b = 0; b < p.batch; b++) {
        const int *window = p.corpus + mg_rng_below(rng, (uint64_t)b, (uint64_t)(p.corpus_size - T));
        memcpy(p.ids + b * T, window, (size_t)T * sizeof *p.ids);
        memcpy(p.targets + b * T, window + 1, (size_t)T * sizeof *p.ids);
    }
}

double playground_step(void) {
    mg_params *params = mg_gpt_params(p.gpt);
    int T = mg_gpt_get_config(p.gpt)->block_size;
    draw_batch(T);
    mg_tensor *l = mg_gpt_loss(p.gpt, p.tape, p.ids, p.targets, p.batch, T, NULL, p.row_loss);
    double loss = (double)l->data[0];
    mg_backward(p.tape, l);
    mg_tape_reset(p.tape);
    mg_lr_schedule schedule = {.lr = p.lr, .min_lr = p.lr, .warmup_iters = 20};
    mg_adamw_step(p.adamw, params, mg_lr_at(&schedule, p.step), mg_clip_scale(mg_params_grad_norm(params), 1));
    p.step++;
    return loss;
}

const double *playground_by_position(void) {
    int T = mg_gpt_get_config(p.gpt)->block_size;
    for (int t = 0; t < T; t++) {
        p.by_position[t] = 0;
        for (int b = 0; b < p.batch; b++) p.by_position[t] += (double)p.row_loss[b * T + t] / p.batch;
    }
    return p.by_position;
}

const mg_real *playground_maps(void) {
    int T = mg_gpt_get_config(p.gpt)->block_size;
    mg_gpt_capture capture = {.weights = p.maps};
    mg_tape_record(p.tape, false);
    mg_gpt_forward(p.gpt, p.tape, p.corpus, 1, T, &(mg_gpt_pass){.capture = &capture});
    mg_tape_reset(p.tape);
    mg_tape_record(p.tape, true);
    return p.maps;
}

uint64_t playground_hash(void) {
    const mg_params *params = mg_gpt_params(p.gpt);
    return mg_fnv1a(MG_FNV_START, params->values, (size_t)params->size * sizeof *params->values);
}
