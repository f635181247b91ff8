#include "gradcheck.h"

#include "ops.h"
#include "rng.h"

#include <math.h>
#include <string.h>

#ifdef MG_DOUBLE
static const double STEP = 0x1p-10;
#else
static const double STEP = 0x1p-5;
#endif

typedef struct check {
    mg_tape *tape;
    mg_gradcheck_fn *function;
    void *user;
    int n_in;
    mg_tensor *const *in;
    double *numeric; /* of all inputs, one after another */
    double *slope;   /* of each element of the function's result, at the input that is being moved */
} check;

/* The weight of element i of a result of n elements. */
static double weight(ptrdiff_t i, ptrdiff_t n) {
    return n == 1 ? 1 : mg_rng_normal((mg_rng){0, MG_STREAM_TEST, 0}, (uint64_t)i);
}

/* Runs the function, records the backward, and returns how many elements the result has. */
static ptrdiff_t analytic_gradients(const check *c) {
    for (int i = 0; i < c->n_in; i++) memset(c->in[i]->grad, 0, (size_t)mg_size(c->in[i]) * sizeof(mg_real));
    mg_tensor *y = c->function(c->tape, c->in, c->user), *loss = y;
    ptrdiff_t n = mg_size(y);
    if (n > 1) {
        mg_tensor *weights = mg_constant(c->tape, y->ndim, y->dim);
        for (ptrdiff_t i = 0; i < n; i++) weights->data[i] = (mg_real)weight(i, n);
        loss = mg_sum(c->tape, mg_mul(c->tape, y, weights), MG_ALL_AXES);
    }
    mg_backward(c->tape, loss);
    mg_tape_reset(c->tape);
    return n;
}

/* slope += factor · result, with x moved. The differences are taken before the contraction: less is lost. */
static void add_result(const check *c, mg_real *x, double moved, double factor) {
    mg_real kept = *x;
    *x = (mg_real)((double)kept + moved);
    const mg_tensor *y = c->function(c->tape, c->in, c->user);
    for (ptrdiff_t i = 0; i < mg_size(y); i++) c->slope[i] += factor * (double)y->data[i];
    mg_tape_reset(c->tape);
    *x = kept;
}

static double numeric_gradient(const check *c, mg_real *x, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++) c->slope[i] = 0;
    add_result(c, x, STEP, 8);
    add_result(c, x, -STEP, -8);
    add_result(c, x, 2 * STEP, -1);
    add_result(c, x, -2 * STEP, 1);
    double sum = 0;
    for (ptrdiff_t i = 0; i < n; i++) sum += (double)(mg_real)weight(i, n) * c->slope[i];
    return sum / (12 * STEP);
}

static void numeric_gradients(const check *c, ptrdiff_t n) {
    mg_tape_record(c->tape, false);
    double *to = c->numeric;
    for (int i = 0; i < c->n_in; i++)
        for (ptrdiff_t j = 0; j < mg_size(c->in[i]); j++) *to++ = numeric_gradient(c, &c->in[i]->data[j], n);
}

static double largest_gradient(const mg_tensor *x, const double *numeric) {
    double largest = 0;
    for (ptrdiff_t j = 0; j < mg_size(x); j++)
        largest = fmax(largest, fmax(fabs(numeric[j]), fabs((double)x->grad[j])));
    return largest;
}

/* What NaN compares as: worse than anything. */
static double relative(double difference, double scale) {
    if (difference == 0) return 0;
    return isnan(difference) ? INFINITY : fabs(difference) / scale;
}

static mg_gradcheck_result compare(const check *c) {
    mg_gradcheck_result worst = {.worst = -1};
    const double *numeric = c->numeric;
    double overall = 0;
    for (int i = 0; i < c->n_in; numeric += mg_size(c->in[i++]))
        overall = fmax(overall, largest_gradient(c->in[i], numeric));
    numeric = c->numeric;
    for (int i = 0; i < c->n_in; numeric += mg_size(c->in[i++])) {
        double scale = fmax(largest_gradient(c->in[i], numeric), 1e-4 * overall);
        for (ptrdiff_t j = 0; j < mg_size(c->in[i]); j++) {
            double analytic = (double)c->in[i]->grad[j], error = relative(analytic - numeric[j], scale);
            if (error > worst.worst) worst = (mg_gradcheck_result){error, i, j, analytic, numeric[j]};
        }
    }
    return worst;
}

mg_status mg_gradcheck(mg_gradcheck_result *result, mg_gradcheck_fn *function, void *user, int n_in,
                       mg_tensor *const *in, mg_error *error) {
    check c = {.function = function, .user = user, .n_in = n_in, .in = in};
    ptrdiff_t total = 0;
    for (int i = 0; i < n_in; i++) {
        MG_CHECK(in[i] && in[i]->requires_grad && in[i]->grad, "gradcheck: input %d has no gradient to compare", i);
        total += mg_size(in[i]);
    }
    mg_tape_new(&c.tape, error);
    if (!c.tape) return MG_ERR_MEMORY;
    ptrdiff_t n = analytic_gradients(&c);
    c.numeric = mg_alloc((size_t)total, sizeof *c.numeric, "numeric gradients", error);
    c.slope = mg_alloc((size_t)n, sizeof *c.slope, "the slopes of a result", error);
    bool enough = c.numeric && c.slope;
    if (enough) {
        numeric_gradients(&c, n);
        *result = compare(&c);
    }
    mg_free(c.slope);
    mg_free(c.numeric);
    mg_tape_free(c.tape);
    return enough ? MG_OK : MG_ERR_MEMORY;
}
