/* inspect --json prints one whole object, or nothing and an error. */
#include "checkpoints/fixture.h"
#include "inspect.h"

#include <jansson.h>

static size_t until_failure; /* how many requests succeed */

static void *allocate(size_t bytes) {
    return until_failure > 0 && until_failure-- ? malloc(bytes) : NULL;
}

static mg_inspection inspection;

static int open_one(void **state) {
    if (fixture_setup(state) != 0) return -1;
    static fixture_name file;
    file = in_folder("caf\xe9.h5"); /* not UTF-8 */
    mg_checkpoint c;
    fixture_small(&c);
    assert_ok(mg_checkpoint_save(file.path, &c, &fixture_error));
    mg_checkpoint_free(&c);
    inspection.path = file.path;
    assert_ok(mg_checkpoint_describe(file.path, &inspection.info, &fixture_error));
    assert_ok(mg_checkpoint_load(&inspection.checkpoint, file.path, true, &fixture_error));
    return 0;
}

static int close_one(void **state) {
    mg_checkpoint_free(&inspection.checkpoint);
    return fixture_teardown(state);
}

/* What it prints; free with free(). */
static unsigned char *print(size_t allocations, mg_status *status, size_t *length) {
    fixture_name out = in_folder("out");
    fflush(stdout);
    int terminal = dup(STDOUT_FILENO);
    FILE *file = fopen(out.path, "wb");
    dup2(fileno(file), STDOUT_FILENO);
    until_failure = allocations;
    json_set_alloc_funcs(allocate, free);
    *status = mg_inspect_print_json(&inspection, &fixture_error);
    json_set_alloc_funcs(malloc, free);
    fflush(stdout);
    dup2(terminal, STDOUT_FILENO);
    close(terminal);
    fclose(file);
    return read_file(out.path, length);
}

static void all_or_nothing(void **state) {
    (void)state;
    size_t whole, length, n = 0;
    mg_status status;
    unsigned char *text = print(SIZE_MAX, &status, &whole);
    assert_int_equal(status, MG_OK);
    json_t *root = json_loadb((const char *)text, whole, JSON_REJECT_DUPLICATES, NULL);
    assert_int_equal(json_object_size(root), 13);
    assert_non_null(strstr(json_string_value(json_object_get(root, "path")), "caf\\xE9.h5"));
    json_decref(root);
    for (status = MG_ERR_MEMORY; status != MG_OK; n++) {
        unsigned char *part = print(n, &status, &length);
        assert_int_equal(length, status == MG_OK ? whole : 0);
        assert_true(status == MG_OK || status == MG_ERR_MEMORY);
        assert_memory_equal(part, text, length);
        free(part);
    }
    assert_less(100, n);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_or_nothing)};
    return cmocka_run_group_tests(tests, open_one, close_one);
}
