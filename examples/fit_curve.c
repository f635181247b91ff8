/* A network of one hidden layer learns a curve, y = sin(3x): parameters, a forward pass, a backward pass, AdamW. */
#include <maskgrad/maskgrad.h>

#include <math.h>
#include <stdio.h>

enum { POINTS = 64, HIDDEN = 32, STEPS = 1000 };

/* y = tanh(x W1 + b1) W2 + b2: (POINTS,1) */
static mg_tensor *predict(mg_tape *tape, mg_params *p, mg_tensor *x) {
    mg_tensor *hidden = mg_tanh(tape, mg_linear(tape, x, &p->param[0].tensor, &p->param[1].tensor));
    return mg_linear(tape, hidden, &p->param[2].tensor, &p->param[3].tensor);
}

static double train_step(mg_tape *tape, mg_params *p, mg_adamw *adamw, const mg_real *curve_x, const mg_real *curve_y) {
    mg_tensor *x = mg_values(tape, 2, (ptrdiff_t[]){POINTS, 1}, curve_x);
    mg_tensor *y = mg_values(tape, 2, (ptrdiff_t[]){POINTS, 1}, curve_y);
    mg_tensor *error = mg_sub(tape, predict(tape, p, x), y);
    mg_tensor *loss = mg_mean(tape, mg_mul(tape, error, error), MG_ALL_AXES);
    mg_backward(tape, loss);
    mg_adamw_step(adamw, p, 1e-2, 1); /* clears the gradients too */
    double value = (double)loss->data[0];
    mg_tape_reset(tape); /* x, y, loss and what is between them are gone; the parameters stay */
    return value;
}

int main(void) {
    const mg_param_spec specs[] = {{"w1", 2, {1, HIDDEN}}, {"b1", 1, {HIDDEN}}, {"w2", 2, {HIDDEN, 1}}, {"b2", 1, {1}}};
    mg_error error;
    mg_params *params;
    mg_adamw *adamw;
    mg_tape *tape;
    if (mg_tape_new(&tape, &error) || mg_params_new(&params, 4, specs, true, &error) ||
        mg_adamw_new(&adamw, params, 0.9, 0.999, 0, &error))
        return fprintf(stderr, "%s\n", error.message), 1;
    for (int i = 0; i < params->n; i++)
        for (ptrdiff_t k = 0; k < mg_size(&params->param[i].tensor); k++)
            params->param[i].tensor.data[k] = (mg_real)mg_rng_normal((mg_rng){1, MG_STREAM_INIT, (uint32_t)i},
                                                                     (uint64_t)k);

    mg_real x[POINTS], y[POINTS];
    for (int i = 0; i < POINTS; i++) {
        x[i] = (mg_real)(2.0 * i / (POINTS - 1) - 1);
        y[i] = (mg_real)sin(3 * (double)x[i]);
    }
    for (int step = 0; step <= STEPS; step++) {
        double loss = train_step(tape, params, adamw, x, y);
        if (step % 200 == 0) printf("step %4d: mean squared error %.6f\n", step, loss);
    }
    mg_adamw_free(adamw);
    mg_params_free(params);
    mg_tape_free(tape);
    return 0;
}
