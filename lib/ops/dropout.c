/* y = 0 with probability p, x / (1−p) otherwise, so that its mean is x (Srivastava et al. 2014; scaled while training).
 * dL/dx is dL/dy under the same mask, which is drawn again rather than kept. */
#include "operation.h"
#include "ops.h"
#include "parallel.h"

enum { TILE = 4096, WORDS = 4 }; /* elements; random words in a draw */

typedef struct dropout {
    mg_rng rng;
    uint64_t threshold; /* words below it drop their element: p · 2³² */
    mg_real scale;      /* of the others: 1 / (1−p) */
    ptrdiff_t n;
    const mg_real *from;
    mg_real *to;
    mg_real beta; /* 0: write, 1: add */
} dropout;

/* Element i is decided by word i mod 4 of draw i / 4. TILE is a multiple of 4: no draw is shared by two tiles. */
static void dropout_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const dropout *d = context;
    mg_range range = mg_tile_range(d->n, TILE, tile);
    uint32_t words[WORDS];
    for (ptrdiff_t i = range.begin; i < range.end; i++) {
        if (i % WORDS == 0) mg_rng_words(d->rng, (uint64_t)(i / WORDS), words);
        mg_real value = words[i % WORDS] < d->threshold ? 0 : d->from[i] * d->scale;
        d->to[i] = d->beta == 0 ? value : d->to[i] + value;
    }
}

static void run(dropout d) {
    mg_parallel(mg_tile_count(d.n, TILE), dropout_tile, &d, 0);
}

static void dropout_backward(mg_tape *tape, const mg_node *node) {
    dropout back = *(const dropout *)node->saved;
    back.to = mg_grad_beta(tape, node->in[0], &back.beta);
    if (!back.to) return;
    back.from = node->out->grad;
    run(back);
}

static const mg_op op = {"dropout", dropout_backward};

mg_tensor *(mg_dropout)(mg_tape *tape, mg_tensor *x, mg_real p, mg_rng rng) {
    MG_OP_CHECK(tape, &op, p >= 0 && p <= 1, "the probability is 0 to 1, not %g", (double)p);
    mg_tensor *y = mg_tape_output(tape, x->ndim, x->dim);
    dropout *d = mg_tape_alloc(tape, 1, sizeof *d, "the settings of dropout");
    *d = (dropout){.rng = rng,
                   .threshold = (uint64_t)((double)p * 0x1p32),
                   .scale = p < 1 ? 1 / (1 - p) : 0,
                   .n = mg_size(x),
                   .from = x->data,
                   .to = y->data};
    run(*d);
    mg_tape_append(tape, &op, y, 1, &x, d);
    return y;
}
