#include "adamw.h"

#include "check.h"

static const mg_param_spec specs[] = {{"w", 2, {2, 3}}, {"b", 1, {3, 0}}};

static void fill_grads(mg_params *params, int step) {
    for (int i = 0; i < params->n; i++) {
        mg_tensor *t = &params->param[i].tensor;
        for (ptrdiff_t k = 0; k < mg_size(t); k++) t->grad[k] = (mg_real)(0.1 * (double)(k + 1) * (step % 2 ? -1 : 1));
    }
}

/* The algorithm again, one number at a time and in double. */
static void follows_the_algorithm(void **state) {
    (void)state;
    mg_params *params;
    mg_adamw *adamw;
    mg_params_new(&params, 2, specs, true, NULL);
    mg_adamw_new(&adamw, params, 0.9, 0.95, 0.1, NULL);
    double w[2][6] = {{0}}, m[2][6] = {{0}}, v[2][6] = {{0}};
    for (int i = 0; i < 2; i++)
        for (ptrdiff_t k = 0; k < mg_size(&params->param[i].tensor); k++)
            w[i][k] = params->param[i].tensor.data[k] = (mg_real)(0.3 * (double)(k - 2));
    for (int step = 1; step <= 10; step++) {
        fill_grads(params, step);
        mg_adamw_step(adamw, params, 0.01, 0.5);
        for (int i = 0; i < 2; i++)
            for (ptrdiff_t k = 0; k < mg_size(&params->param[i].tensor); k++) {
                double g = 0.5 * 0.1 * (double)(k + 1) * (step % 2 ? -1 : 1);
                m[i][k] = 0.9 * m[i][k] + 0.1 * g;
                v[i][k] = 0.95 * v[i][k] + 0.05 * g * g;
                if (i == 0) w[i][k] -= 0.01 * 0.1 * w[i][k];
                w[i][k] -= 0.01 * (m[i][k] / (1 - pow(0.9, step))) / (sqrt(v[i][k] / (1 - pow(0.95, step))) + 1e-8);
                assert_close(params->param[i].tensor.data[k], w[i][k], 1e-6);
                assert_true(params->param[i].tensor.grad[k] == 0);
            }
    }
    assert_int_equal(adamw->step, 10);
    mg_adamw_free(adamw);
    mg_params_free(params);
}

/* One parameter, the gradients in turn, and the same in double all the way: the largest difference of a value, as a
 * share of the way that AdamW has taken it. */
static double worst_difference(double beta1, double beta2, double decay, int steps, int n, const double *gradient) {
    const mg_param_spec one = {"w", 2, {1, 1}};
    const double lr = 1e-3;
    mg_params *params;
    mg_adamw *adamw;
    mg_params_new(&params, 1, &one, true, NULL);
    mg_adamw_new(&adamw, params, beta1, beta2, decay, NULL);
    mg_tensor *t = &params->param[0].tensor;
    double w = t->data[0] = 1, m = 0, v = 0, way = 0, worst = 0;
    for (int step = 1; step <= steps; step++) {
        double g = (double)(mg_real)gradient[step % n];
        t->grad[0] = (mg_real)g;
        mg_adamw_step(adamw, params, lr, 1);
        m = beta1 * m + (1 - beta1) * g;
        v = beta2 * v + (1 - beta2) * g * g;
        double update = lr * m / -expm1(step * log(beta1)) / (sqrt(v / -expm1(step * log(beta2))) + 1e-8);
        way += fabs(update) + lr * decay * fabs(w);
        w -= lr * decay * w + update;
        double difference = fabs((double)t->data[0] - w) / way;
        if (!(difference <= worst)) worst = difference;
    }
    mg_adamw_free(adamw);
    mg_params_free(params);
    return worst;
}

/* A β that a float rounds to 1 is as good as any. What is left is the rounding of the value itself, up to 6e-8 in each
 * step of 1e-3. */
static void follows_it_for_every_beta(void **state) {
    (void)state;
    const double beta[] = {0, 0.5, 0.9, 0.99, 0.999, 0.999999, 0.99999999, 1 - 1e-12, 1 - 0x1p-53};
    const double constant[] = {0.5}, changing[] = {0.5, -0.1, 3, 1e-3, 0.2, -7, 1e-6};
    const double tolerance = sizeof(mg_real) == sizeof(float) ? 1e-4 : 1e-9;
    for (int a = 0; a < 9; a++)
        for (int b = 0; b < 9; b++) {
            double worst = worst_difference(beta[a], beta[b], 0, 10, 1, constant);
            worst = fmax(worst, worst_difference(beta[a], beta[b], 0.1, 10, 7, changing));
            if (worst <= tolerance) continue;
            fail_msg("betas %.17g and %.17g: %g of the way off", beta[a], beta[b], worst);
        }
    for (int b = 0; b < 9; b++) {
        double worst = worst_difference(0.9, beta[b], 0, 10000, 1, constant);
        worst = fmax(worst, worst_difference(beta[b], 0.95, 0.1, 10000, 7, changing));
        if (worst <= tolerance) continue;
        fail_msg("beta %.17g, 10000 steps: %g of the way off", beta[b], worst);
    }
}

static void steps_of_the_right_size(void **state) {
    (void)state;
    const mg_param_spec one = {"w", 1, {1, 0}};
    for (int which = 0; which < 2; which++) {
        mg_params *params;
        mg_adamw *adamw;
        mg_params_new(&params, 1, &one, true, NULL);
        mg_adamw_new(&adamw, params, which == 0 ? 0.9 : 0.99999999, 0.99999999, 0, NULL);
        params->values[0] = 1;
        for (int step = 0; step < 10; step++) {
            params->grads[0] = (mg_real)0.5;
            mg_adamw_step(adamw, params, 1e-3, 1);
        }
        assert_close(params->values[0], 0.99000013, 3e-7);
        mg_adamw_free(adamw);
        mg_params_free(params);
    }
}

/* lr · λ that 1 − lr · λ would round away. */
static void a_small_decay_is_a_decay(void **state) {
    (void)state;
    const mg_param_spec one = {"w", 2, {1, 1}};
    mg_params *params;
    mg_adamw *adamw;
    mg_params_new(&params, 1, &one, true, NULL);
    mg_adamw_new(&adamw, params, 0.9, 0.999, 0.1, NULL);
    params->values[0] = 1;
    for (int step = 0; step < 1000; step++) mg_adamw_step(adamw, params, 1e-6, 1);
    assert_close(1 - (double)params->values[0], 1000 * 1e-7, 3e-5);
    mg_adamw_free(adamw);
    mg_params_free(params);
}

static void other_betas_are_refused(void **state) {
    (void)state;
    mg_params *params;
    mg_adamw *adamw;
    mg_params_new(&params, 2, specs, true, NULL);
    const double wrong[] = {1, -0.1, 2, NAN};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(mg_adamw_new(&adamw, params, wrong[i], 0.9, 0, NULL), MG_ERR_INPUT);
        assert_int_equal(mg_adamw_new(&adamw, params, 0.9, wrong[i], 0, NULL), MG_ERR_INPUT);
    }
    mg_params_free(params);
}

static void norm_and_clip(void **state) {
    (void)state;
    mg_params *params;
    mg_params_new(&params, 2, specs, true, NULL);
    assert_int_equal(mg_params_count(params), 9);
    params->param[0].tensor.grad[0] = 3;
    params->param[1].tensor.grad[2] = 4;
    assert_close(mg_params_grad_norm(params), 5, 1e-12);
    assert_close(mg_clip_scale(5, 1), 0.2, 1e-15);
    assert_true(mg_clip_scale(5, 0) == 1 && mg_clip_scale(0.5, 1) == 1);
    assert_ptr_equal(mg_params_find(params, "b"), &params->param[1]);
    assert_null(mg_params_find(params, "c"));
    mg_params_free(params);
}

static void norms_of_many_and_of_large_gradients(void **state) {
    (void)state;
    const mg_param_spec many = {"w", 2, {1500, 1000}};
    mg_params *params;
    mg_params_new(&params, 1, &many, true, NULL);
    for (ptrdiff_t i = 0; i < 1500 * 1000; i++) params->grads[i] = (mg_real)0.1;
    assert_close(mg_params_grad_norm(params), (double)(mg_real)0.1 * sqrt(1500 * 1000), 1e-9);
    params->grads[77] = (mg_real)-1e30;
    assert_close(mg_params_grad_norm(params) / (double)(mg_real)1e30, 1, 1e-12);
    params->grads[5] = INFINITY;
    assert_true(isinf(mg_params_grad_norm(params)));
    params->grads[6] = NAN;
    assert_true(isnan(mg_params_grad_norm(params)));
    mg_params_free(params);
}

static void schedule(void **state) {
    (void)state;
    mg_lr_schedule s = {1, 0.1, 10, 110};
    assert_close(mg_lr_at(&s, 0), 1.0 / 11, 1e-12);
    assert_close(mg_lr_at(&s, 10), 1, 1e-12);
    assert_close(mg_lr_at(&s, 60), 0.55, 1e-12);
    assert_close(mg_lr_at(&s, 110), 0.1, 1e-12);
    assert_close(mg_lr_at(&s, 100000), 0.1, 1e-12);
    mg_lr_schedule flat = {1, 1, 0, 0};
    assert_close(mg_lr_at(&flat, 0), 1, 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_the_algorithm),
        cmocka_unit_test(follows_it_for_every_beta),
        cmocka_unit_test(steps_of_the_right_size),
        cmocka_unit_test(a_small_decay_is_a_decay),
        cmocka_unit_test(other_betas_are_refused),
        cmocka_unit_test(norm_and_clip),
        cmocka_unit_test(norms_of_many_and_of_large_gradients),
        cmocka_unit_test(schedule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
