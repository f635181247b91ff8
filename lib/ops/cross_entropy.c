/* loss = mean over the rows that count of  m − l_target + log Σ_v exp(l_v − m),  l = logits (N,V), m = max l, in nats.
 *
 *     dl_v = (exp(l_v − m) / Σ_v exp(l_v − m) − [v = target]) / (rows that count)
 *
 * Forward keeps two numbers per row, m and the sum; backward computes the probabilities from them where it writes the
 * gradient, so there is never a second copy of the logits. m and the logarithm are not kept as one number, in which m
 * would round the logarithm away.
 *
 * The edges are log_softmax's: a target with probability 0 has loss +inf, and a row of only −inf passes no gradient. */
#include "ops.h"
#include "parallel.h"
#include "rows.h"

#include <string.h>

enum { TILE_ROWS = 64 };

typedef struct saved {
    int *targets;     /* (N), as given */
    mg_real *shift;   /* (N), m */
    mg_real *inverse; /* (N), 1 / Σ exp(l − m); 0 where all logits are −inf */
    int ignore;
    ptrdiff_t counted;
} saved;

typedef struct job {
    ptrdiff_t n, v;
    const mg_real *logits;
    mg_real *loss; /* (N) */
    mg_real *dlogits, beta, factor;
    saved s;
} job;

/* Σ_v exp(l_v − m), and m. */
MG_KERNEL static double sum_of_exp(ptrdiff_t v, const mg_real *restrict logits, mg_real *shift) {
    *shift = mg_softmax_shift(v, logits);
    return mg_softmax_sum(v, logits, *shift);
}

MG_KERNEL static void add_probabilities(ptrdiff_t v, const mg_real *restrict logits, mg_real shift, mg_real factor,
                                        mg_real beta, mg_real *restrict dlogits) {
    for (ptrdiff_t j = 0; beta == 0 && j < v; j++) dlogits[j] = 0;
#pragma omp simd
    for (ptrdiff_t j = 0; j < v; j++) dlogits[j] += factor * mg_exp_real(mg_softmax_below(logits[j], shift));
}

static void forward_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const job *j = context;
    mg_range r = mg_tile_range(j->n, TILE_ROWS, tile);
    for (ptrdiff_t i = r.begin; i < r.end; i++) {
        j->loss[i] = 0;
        if (j->s.targets[i] == j->s.ignore) continue;
        const mg_real *row = j->logits + i * j->v;
        double sum = sum_of_exp(j->v, row, &j->s.shift[i]);
        double below = (double)mg_softmax_below(row[j->s.targets[i]], j->s.shift[i]);
        j->loss[i] = (mg_real)((sum == 0 ? 0 : mg_log_double(sum)) - below);
        j->s.inverse[i] = sum == 0 ? 0 : (mg_real)(1 / sum);
    }
}

static void backward_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const job *j = context;
    mg_range r = mg_tile_range(j->n, TILE_ROWS, tile);
    for (ptrdiff_t i = r.begin; i < r.end; i++) {
        mg_real *row = j->dlogits + i * j->v, inverse = j->s.inverse[i];
        if (j->s.targets[i] != j->s.ignore && inverse != 0) {
            add_probabilities(j->v, j->logits + i * j->v, j->s.shift[i], j->factor * inverse, j->beta, row);
            row[j->s.targets[i]] -= j->factor;
        } else if (j->beta == 0) {
            memset(row, 0, (size_t)j->v * sizeof *row);
        }
    }
}

static void cross_entropy_backward(mg_tape *tape, const mg_node *node) {
    mg_tensor *logits = node->in[0];
    job j = {.v = logits->dim[logits->ndim - 1], .logits = logits->data, .s = *(const saved *)node->saved};
    j.n = mg_size(logits) / j.v;
    j.factor = j.s.counted ? node->out->grad[0] / (mg_real)j.s.counted : 0;
    j.dlogits = mg_grad_beta(tape, logits, &j.beta);
    if (j.dlogits) mg_parallel(mg_tile_count(j.n, TILE_ROWS), backward_tile, &j, 0);
}

static const mg_op op = {"cross_entropy", cross_entropy_backward};

mg_tensor *(mg_cross_entropy)(mg_tape *tape, mg_tensor *logits, const int *targets, int ignore, mg_real *row_loss) {
    MG_OP_CHECK(tape, &op, logits->ndim >= 1, "the logits are %s; they must be (…, V)", mg_shape(logits).text);
    job j = {.v = logits->dim[logits->ndim - 1], .logits = logits->data, .s.ignore = ignore};
    j.n = mg_size(logits) / j.v;
    j.s.targets = mg_tape_alloc(tape, (size_t)j.n, sizeof(int), "cross_entropy's targets");
    j.s.shift = mg_tape_alloc(tape, (size_t)j.n, sizeof(mg_real), "cross_entropy's greatest logits");
    j.s.inverse = mg_tape_alloc(tape, (size_t)j.n, sizeof(mg_real), "cross_entropy's sums");
    memcpy(j.s.targets, targets, (size_t)j.n * sizeof(int));
    for (ptrdiff_t i = 0; i < j.n; i++) {
        MG_OP_CHECK(tape, &op, targets[i] == ignore || (targets[i] >= 0 && targets[i] < j.v),
                    "target %d at row %td is not a column of logits %s", targets[i], i, mg_shape(logits).text);
        if (targets[i] != ignore) j.s.counted++;
    }
    j.loss = row_loss ? row_loss : mg_tape_alloc(tape, (size_t)j.n, sizeof(mg_real), "cross_entropy's losses");
    mg_parallel(mg_tile_count(j.n, TILE_ROWS), forward_tile, &j, 0);
    double sum = 0;
    for (ptrdiff_t i = 0; i < j.n; i++) sum += (double)j.loss[i];
    mg_tensor *loss = mg_tape_output(tape, 0, NULL);
    loss->data[0] = j.s.counted ? (mg_real)(sum / (double)j.s.counted) : 0;
    saved *s = mg_tape_alloc(tape, 1, sizeof *s, "cross_entropy's state");
    *s = j.s;
    mg_tape_append(tape, &op, loss, 1, &logits, s);
    return loss;
}
