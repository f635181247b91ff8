/* A whole GPT against PyTorch in float64: logits, loss, every parameter's gradient, and ten steps of AdamW with
 * clipping (tests/reference/gpt.h5), under each mask. */
#include "adamw.h"
#include "arithmetic.h"
#include "gpt.h"
#include "reference.h"

enum { STEPS = 10 };

/* A batch a step. */
typedef struct batches {
    ptrdiff_t B, T;
    int *ids, *targets; /* (STEPS,B,T) */
} batches;

static int64_t integer(hid_t object, const char *name, int place) {
    int64_t value[3] = {0};
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    assert_true(attribute >= 0);
    assert_true(H5Aread(attribute, H5T_NATIVE_INT64, value) >= 0);
    H5Aclose(attribute);
    return value[place];
}

static double real(hid_t object, const char *name) {
    double value = NAN;
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    assert_true(attribute >= 0);
    assert_true(H5Aread(attribute, H5T_NATIVE_DOUBLE, &value) >= 0);
    H5Aclose(attribute);
    return value;
}

static int *read_ints(hid_t file, const char *name, ptrdiff_t *B, ptrdiff_t *T) {
    reference r = read_reference(file, name);
    assert_int_equal(r.ndim, 3);
    assert_int_equal(r.dim[0], STEPS);
    *B = r.dim[1];
    *T = r.dim[2];
    int *to = calloc((size_t)r.n, sizeof *to);
    assert_non_null(to);
    for (ptrdiff_t i = 0; i < r.n; i++) to[i] = (int)r.data[i];
    free(r.data);
    return to;
}

static batches read_batches(hid_t file) {
    batches b;
    b.ids = read_ints(file, "ids", &b.B, &b.T);
    b.targets = read_ints(file, "targets", &b.B, &b.T);
    return b;
}

static mg_gpt *read_model(hid_t file, hid_t variant) {
    mg_gpt_config c = {0};
    c.n_layer = (int)integer(file, "n_layer", 0);
    c.n_head = (int)integer(file, "n_head", 0);
    c.n_embd = (int)integer(file, "n_embd", 0);
    c.block_size = (int)integer(file, "block_size", 0);
    c.vocab_size = (int)integer(file, "vocab_size", 0);
    c.mask = (mg_mask){(mg_mask_kind)integer(variant, "mask", 0), (int)integer(variant, "mask", 1)};
    c.leak_layer = (int)integer(variant, "leak", 0);
    c.leak_head = (int)integer(variant, "leak", 1);
    c.leak_lookahead = (int)integer(variant, "leak", 2);
    c.no_scale = integer(variant, "scale", 0) == 0;
    c.no_output_projection = integer(variant, "output_projection", 0) == 0;
    mg_gpt *gpt;
    mg_error error;
    if (mg_gpt_new_zeros(&gpt, &c, true, &error) != MG_OK) fail_msg("%s", error.message);
    mg_params *params = mg_gpt_params(gpt);
    hid_t start = H5Gopen2(file, "start", H5P_DEFAULT);
    for (int i = 0; i < params->n; i++) {
        reference r = read_reference(start, params->param[i].name);
        assert_int_equal(r.n, mg_size(&params->param[i].tensor));
        for (ptrdiff_t k = 0; k < r.n; k++) params->param[i].tensor.data[k] = (mg_real)r.data[k];
        free(r.data);
    }
    H5Gclose(start);
    return gpt;
}

/* The bias of the keys adds the same to all scores of a query, which the softmax does not see: its gradient is 0 but
 * for rounding, and AdamW makes steps of up to full length of that. No other number of the model depends on it, so
 * PyTorch's noise takes the place of ours. Returns how far they were apart. */
static double forget_the_keys_bias(const char *name, mg_real *ours, const double *theirs, ptrdiff_t n) {
    double moved = 0;
    if (!strstr(name, "c_attn.bias")) return 0;
    for (ptrdiff_t i = n / 3; i < 2 * n / 3; i++) {
        moved = fmax(moved, fabs((double)ours[i] - theirs[i]));
        ours[i] = (mg_real)theirs[i];
    }
    return moved;
}

typedef struct errors {
    double logits, gradient, loss, norm, after;
} errors;

static double error_of(const mg_real *ours, hid_t group, const char *name) {
    reference theirs = read_reference(group, name);
    double error = relative_error(ours, theirs.data, theirs.n);
    free(theirs.data);
    return error;
}

static double worst_gradient(const mg_params *params, hid_t group) {
    double worst = 0;
    for (int i = 0; i < params->n; i++)
        worst = fmax(worst, error_of(params->param[i].tensor.grad, group, params->param[i].name));
    return worst;
}

static double worst_parameter(mg_params *params, hid_t group, double most_noise) {
    double worst = 0;
    for (int i = 0; i < params->n; i++) {
        mg_param *p = &params->param[i];
        reference theirs = read_reference(group, p->name);
        double noise = forget_the_keys_bias(p->name, p->tensor.data, theirs.data, theirs.n);
        assert_true(noise <= most_noise);
        worst = fmax(worst, relative_error(p->tensor.data, theirs.data, theirs.n));
        free(theirs.data);
    }
    return worst;
}

static errors run_variant(hid_t file, hid_t variant) {
    errors e = {0};
    batches b = read_batches(file);
    mg_gpt *gpt = read_model(file, variant);
    mg_params *params = mg_gpt_params(gpt);
    mg_adamw *adamw;
    assert_int_equal(
        mg_adamw_new(&adamw, params, real(file, "beta1"), real(file, "beta2"), real(file, "weight_decay"), NULL),
        MG_OK);
    adamw->eps = real(file, "eps");
    double lr = real(file, "lr"), clip = real(file, "clip");
    reference losses = read_reference(variant, "losses"), norms = read_reference(variant, "norms");
    hid_t gradients = H5Gopen2(variant, "grad", H5P_DEFAULT), after = H5Gopen2(variant, "after", H5P_DEFAULT);
    mg_tape *tape = new_tape();
    for (int step = 0; step < STEPS; step++) {
        ptrdiff_t at = step * b.B * b.T;
        mg_tensor *logits = mg_gpt_forward(gpt, tape, b.ids + at, b.B, b.T, NULL);
        if (step == 0) e.logits = error_of(logits->data, variant, "logits");
        mg_tensor *loss = mg_cross_entropy(tape, logits, b.targets + at, -1, NULL);
        mg_backward(tape, loss);
        if (step == 0) e.gradient = worst_gradient(params, gradients);
        double norm = mg_params_grad_norm(params), our_loss = (double)loss->data[0];
        e.loss = fmax(e.loss, fabs(our_loss / losses.data[step] - 1));
        e.norm = fmax(e.norm, fabs(norm / norms.data[step] - 1));
        mg_adamw_step(adamw, params, lr, mg_clip_scale(norm, clip));
        mg_tape_reset(tape);
    }
    e.after = worst_parameter(params, after, STEPS * 2 * lr);
    H5Gclose(gradients);
    H5Gclose(after);
    free(losses.data);
    free(norms.data);
    free(b.ids);
    free(b.targets);
    mg_tape_free(tape);
    mg_adamw_free(adamw);
    mg_gpt_free(gpt);
    return e;
}

typedef struct sweep {
    hid_t file;
    int variants, wrong;
} sweep;

/* Adam divides gradients by their own size, and so blows up the rounding of those that are nearly 0. In float, the one
 * sum per element of portable arithmetic rounds more often than OpenBLAS's several: 1.3e-5 in one of the nine. */
static const double AFTER = MG_ONE_SUM && sizeof(mg_real) == sizeof(float) ? 3e-5 : TOLERANCE;

static herr_t each_variant(hid_t parent, const char *name, const H5L_info_t *info, void *user) {
    (void)info;
    sweep *s = user;
    hid_t variant = H5Gopen2(parent, name, H5P_DEFAULT);
    errors e = run_variant(s->file, variant);
    H5Gclose(variant);
    print_message("%-22s%12.2e%12.2e%12.2e%12.2e%12.2e\n", name, e.logits, e.gradient, e.loss, e.norm, e.after);
    s->variants++;
    bool right = e.logits <= TOLERANCE && e.gradient <= TOLERANCE && e.loss <= TOLERANCE && e.norm <= TOLERANCE &&
                 e.after <= AFTER;
    s->wrong += !right;
    return 0;
}

static void a_gpt_agrees_with_pytorch(void **state) {
    (void)state;
    sweep s = {.file = open_reference("gpt.h5")};
    hid_t variants = H5Gopen2(s.file, "variants", H5P_DEFAULT);
    print_message("%-22s%12s%12s%12s%12s%12s\n", "model", "logits", "gradients", "ten losses", "ten norms", "after");
    assert_true(H5Literate(variants, H5_INDEX_NAME, H5_ITER_INC, NULL, each_variant, &s) >= 0);
    H5Gclose(variants);
    H5Fclose(s.file);
    assert_int_equal(s.variants, 9);
    assert_int_equal(s.wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_gpt_agrees_with_pytorch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
