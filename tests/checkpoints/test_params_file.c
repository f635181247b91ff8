/* The parameters of a network that is not a GPT, saved and loaded. */
#include "params_file.h"

#include "check.h"

#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/maskgrad-params-XXXXXX";
static char path[64];
static mg_error error;

static int make_folder(void **state) {
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/net.h5", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static const mg_param_spec specs[] = {{"scalar", 0, {0}}, {"bias", 1, {3}}, {"filter", 4, {2, 3, 2, 2}}};

static mg_params *network(const mg_param_spec *list, int n) {
    mg_params *params;
    assert_int_equal(mg_params_new(&params, n, list, true, NULL), MG_OK);
    return params;
}

static mg_params *saved_network(void) {
    mg_params *params = network(specs, 3);
    for (int i = 0; i < params->n; i++)
        for (ptrdiff_t k = 0; k < mg_size(&params->param[i].tensor); k++)
            params->param[i].tensor.data[k] = (mg_real)(100 * i + (double)k + 0.5);
    assert_int_equal(mg_params_save(path, params, &error), MG_OK);
    return params;
}

static void what_is_saved_is_loaded(void **state) {
    (void)state;
    mg_params *saved = saved_network(), *loaded = network(specs, 3);
    loaded->grads[0] = 7;
    assert_int_equal(mg_params_load(path, loaded, &error), MG_OK);
    assert_memory_equal(saved->values, loaded->values, (size_t)saved->size * sizeof(mg_real));
    assert_true(loaded->grads[0] == 7);
    mg_params_free(saved);
    mg_params_free(loaded);
}

static void what_does_not_fit_is_named(void **state) {
    (void)state;
    mg_params_free(saved_network());
    const mg_param_spec longer[] = {{"scalar", 0, {0}}, {"bias", 1, {4}}, {"filter", 4, {2, 3, 2, 2}}};
    const mg_param_spec other[] = {{"scalar", 0, {0}}, {"offset", 1, {3}}, {"filter", 4, {2, 3, 2, 2}}};
    const struct {
        const mg_param_spec *specs;
        int n;
        const char *says;
    } wrong[] = {{longer, 3, "bias"}, {other, 3, "offset"}, {specs, 2, "more than the 2 parameters"}};
    for (int i = 0; i < 3; i++) {
        mg_params *params = network(wrong[i].specs, wrong[i].n);
        assert_int_equal(mg_params_load(path, params, &error), MG_ERR_FORMAT);
        assert_says(error.message, wrong[i].says);
        assert_says(error.message, "net.h5");
        for (ptrdiff_t k = 0; k < params->size; k++) assert_true(params->values[k] == 0);
        mg_params_free(params);
    }
}

static void names_that_no_file_can_hold_are_refused(void **state) {
    (void)state;
    mg_params *kept = saved_network();
    const mg_param_spec slash = {"a/b", 1, {1}}, dots = {"..", 1, {1}}, empty = {"", 1, {1}};
    const mg_param_spec twice[] = {{"w", 1, {1}}, {"w", 1, {2}}};
    const mg_param_spec *wrong[] = {&slash, &dots, &empty, twice};
    for (int i = 0; i < 4; i++) {
        mg_params *params = network(wrong[i], i < 3 ? 1 : 2);
        assert_int_equal(mg_params_save(path, params, &error), MG_ERR_INPUT);
        mg_params_free(params);
    }
    assert_says(error.message, "two parameters are called 'w'");
    assert_int_equal(mg_params_load(path, kept, &error), MG_OK); /* the file that was there is there */
    mg_params_free(kept);
}

static void a_damaged_file_is_refused(void **state) {
    (void)state;
    mg_params *params = saved_network();
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, 3000, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, 3000, SEEK_SET);
    fputc(byte ^ 1, file);
    fclose(file);
    assert_int_equal(mg_params_load(path, params, &error), MG_ERR_FORMAT);
    assert_int_equal(mg_params_load("/nonexistent/net.h5", params, &error), MG_ERR_IO);
    mg_params_free(params);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_saved_is_loaded),
        cmocka_unit_test(what_does_not_fit_is_named),
        cmocka_unit_test(names_that_no_file_can_hold_are_refused),
        cmocka_unit_test(a_damaged_file_is_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
