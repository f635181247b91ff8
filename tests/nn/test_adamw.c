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
    mg_params params;
    mg_adamw adamw;
    mg_params_init(&params, 2, specs, true, NULL);
    mg_adamw_init(&adamw, &params, 0.9, 0.95, 0.1, NULL);
    double w[2][6] = {{0}}, m[2][6] = {{0}}, v[2][6] = {{0}};
    for (int i = 0; i < 2; i++)
        for (ptrdiff_t k = 0; k < mg_size(&params.param[i].tensor); k++)
            w[i][k] = params.param[i].tensor.data[k] = (mg_real)(0.3 * (double)(k - 2));
    for (int step = 1; step <= 10; step++) {
        fill_grads(&params, step);
        mg_adamw_step(&adamw, &params, 0.01, 0.5);
        for (int i = 0; i < 2; i++)
            for (ptrdiff_t k = 0; k < mg_size(&params.param[i].tensor); k++) {
                double g = 0.5 * 0.1 * (double)(k + 1) * (step % 2 ? -1 : 1);
                m[i][k] = 0.9 * m[i][k] + 0.1 * g;
                v[i][k] = 0.95 * v[i][k] + 0.05 * g * g;
                if (i == 0) w[i][k] -= 0.01 * 0.1 * w[i][k];
                w[i][k] -= 0.01 * (m[i][k] / (1 - pow(0.9, step))) / (sqrt(v[i][k] / (1 - pow(0.95, step))) + 1e-8);
                assert_close(params.param[i].tensor.data[k], w[i][k], 1e-6);
                assert_true(params.param[i].tensor.grad[k] == 0);
            }
    }
    assert_int_equal(adamw.step, 10);
    mg_adamw_free(&adamw);
    mg_params_free(&params);
}

static void norm_and_clip(void **state) {
    (void)state;
    mg_params params;
    mg_params_init(&params, 2, specs, true, NULL);
    assert_int_equal(mg_params_count(&params), 9);
    params.param[0].tensor.grad[0] = 3;
    params.param[1].tensor.grad[2] = 4;
    assert_close(mg_params_grad_norm(&params), 5, 1e-12);
    assert_close(mg_clip_scale(5, 1), 0.2, 1e-15);
    assert_true(mg_clip_scale(5, 0) == 1 && mg_clip_scale(0.5, 1) == 1);
    assert_ptr_equal(mg_params_find(&params, "b"), &params.param[1]);
    assert_null(mg_params_find(&params, "c"));
    mg_params_free(&params);
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
        cmocka_unit_test(norm_and_clip),
        cmocka_unit_test(schedule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
