/* loss = mean over the rows that count of  log Σ_v exp(l_v) − l_target,  l = logits (N,V), in nats.
 *
 *     dl_v = (softmax(l)_v − [v = target]) / (rows that count)
 *
 * Forward keeps one number a row, the log of the sum; backward computes the probabilities from it where it writes the
 * gradient, so there is never a second copy of the logits. */
#include "ops.h"
#include "parallel.h"
#include "simd.h"

#include <string.h>

enum { TILE_ROWS = 64 };

typedef struct saved {
    int *targets;     /* (N), as given */
    mg_real *log_sum; /* (N) */
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

MG_KERNEL static mg_real log_sum_exp(ptrdiff_t v, const mg_real *restrict logits) {
    mg_real max = mg_greatest(v, logits), sum = 0;
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t j = 0; j < v; j++) sum += mg_exp_real(logits[j] - max);
    return max + mg_log_real(sum);
}

MG_KERNEL static void add_probabilities(ptrdiff_t v, const mg_real *restrict logits, mg_real log_sum, mg_real factor,
                                        mg_real beta, mg_real *restrict dlogits) {
    for (ptrdiff_t j = 0; beta == 0 && j < v; j++) dlogits[j] = 0;
#pragma omp simd
    for (ptrdiff_t j = 0; j < v; j++) dlogits[j] += factor * mg_exp_real(logits[j] - log_sum);
}

static void forward_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const job *j = context;
    mg_range r = mg_tile_range(j->n, TILE_ROWS, tile);
    for (ptrdiff_t i = r.begin; i < r.end; i++) {
        bool counts = j->s.targets[i] != j->s.ignore;
        const mg_real *row = j->logits + i * j->v;
        j->s.log_sum[i] = counts ? log_sum_exp(j->v, row) : 0;
        j->loss[i] = counts ? j->s.log_sum[i] - row[j->s.targets[i]] : 0;
    }
}

static void backward_tile(void *context, ptrdiff_t tile, void *workspace) {
    (void)workspace;
    const job *j = context;
    mg_range r = mg_tile_range(j->n, TILE_ROWS, tile);
    for (ptrdiff_t i = r.begin; i < r.end; i++) {
        mg_real *row = j->dlogits + i * j->v;
        if (j->s.targets[i] != j->s.ignore) {
            add_probabilities(j->v, j->logits + i * j->v, j->s.log_sum[i], j->factor, j->beta, row);
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
    j.s.log_sum = mg_tape_alloc(tape, (size_t)j.n, sizeof(mg_real), "cross_entropy's sums");
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
