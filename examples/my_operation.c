/* An operation of one's own, and its gradient checked against differences:
 *
 *     y = x / (1 + |x|)        dy/dx = 1 / (1 + |x|)² */
#include <maskgrad/maskgrad_ops.h>

#include <math.h>

static void softsign_backward(mg_tape *tape, const mg_node *node) {
    mg_tensor *x = node->in[0];
    mg_real *dx = mg_grad(tape, x); /* to be added to; NULL if nobody asks for it */
    for (ptrdiff_t i = 0; dx && i < mg_size(x); i++) {
        mg_real d = 1 + (mg_real)fabs((double)x->data[i]);
        dx[i] += node->out->grad[i] / (d * d);
    }
}

static const mg_op softsign_op = {"softsign", softsign_backward};

static mg_tensor *softsign(mg_tape *tape, mg_tensor *x) {
    MG_OP_CHECK(tape, &softsign_op, x, "x is NULL");
    mg_tensor *y = mg_tape_output(tape, x->ndim, x->dim);
    for (ptrdiff_t i = 0; i < mg_size(x); i++) y->data[i] = x->data[i] / (1 + (mg_real)fabs((double)x->data[i]));
    mg_tape_append(tape, &softsign_op, y, 1, &x, NULL);
    return y;
}

/* Optional: a failure in softsign(…) then names the line that called it. */
MG_CALLED(mg_tensor *, softsign, (tape, x), (tape, x), mg_tape *tape, mg_tensor *x)
#define softsign(...) MG_AT(softsign, __VA_ARGS__)

static mg_tensor *function(mg_tape *tape, mg_tensor *const *in, void *user) {
    (void)user;
    return softsign(tape, mg_scale(tape, in[0], 2));
}

int main(void) {
    mg_error error;
    mg_tape *tape;
    mg_gradcheck_result worst;
    if (mg_tape_new(&tape, &error)) return fprintf(stderr, "%s\n", error.message), 1;
    mg_tensor *x = mg_leaf(tape, 2, (ptrdiff_t[]){2, 3});
    for (int i = 0; i < 6; i++) x->data[i] = (mg_real)(i - 2.5);
    mg_print(softsign(tape, x), stdout);
    if (mg_gradcheck(&worst, function, NULL, 1, &x, &error)) return fprintf(stderr, "%s\n", error.message), 1;
    printf("largest relative error of the gradient: %.0e\n", worst.worst);
    mg_tape_free(tape);
    return worst.worst < 1e-3 ? 0 : 1;
}
