/* Combinations: which runs a grid has, in which order, and how they are called. */
#include "check.h"
#include "plan.h"

#include <string.h>

static mg_sweep_grid grid;
static mg_sweep_plan plan;

static int begin(void **state) {
    (void)state;
    assert_int_equal(mg_sweep_grid_new(&grid, NULL), MG_OK);
    plan = (mg_sweep_plan){.grid = &grid, .base = mg_run_defaults(), .program = "maskgrad", .out_dir = "out"};
    return 0;
}

static int end(void **state) {
    (void)state;
    mg_sweep_plan_free(&plan);
    mg_sweep_grid_free(&grid);
    return 0;
}

static void make(int n) {
    mg_error error;
    assert_int_equal(mg_sweep_plan_make(&plan, &error), MG_OK);
    assert_int_equal(plan.n, n);
}

/* The last axis varies fastest; zipped lists are one axis. */
static void every_combination_once(void **state) {
    (void)state;
    assert_int_equal(mg_sweep_grid_add(&grid, "n-layer=2,4", true, NULL), MG_OK);
    assert_int_equal(mg_sweep_grid_add(&grid, "mask=none,window:3", false, NULL), MG_OK);
    assert_int_equal(mg_sweep_grid_add(&grid, "n_embd=64,128", true, NULL), MG_OK);
    assert_int_equal(mg_sweep_grid_add_seeds(&grid, "7,1..2", NULL), MG_OK);
    make(12);
    assert_string_equal(plan.name[0], "n-layer=2,n-embd=64,mask=none,seed=7");
    assert_string_equal(plan.name[1], "n-layer=2,n-embd=64,mask=none,seed=1");
    assert_string_equal(plan.name[3], "n-layer=2,n-embd=64,mask=window:3,seed=7");
    assert_string_equal(plan.name[11], "n-layer=4,n-embd=128,mask=window:3,seed=2");
    mg_run_options options = mg_sweep_options(&plan, 11);
    assert_int_equal(options.train.model.n_layer, 4);
    assert_int_equal(options.train.model.n_embd, 128);
    assert_int_equal(options.train.model.mask.n, 3);
    assert_int_equal(options.train.seed, 2);
    for (int i = 0; i < plan.n; i++)
        for (int j = 0; j < i; j++) assert_string_not_equal(plan.name[i], plan.name[j]);
}

static void switches_are_on_or_off(void **state) {
    (void)state;
    assert_int_equal(mg_sweep_grid_add(&grid, "no-scale=false,true", false, NULL), MG_OK);
    assert_int_equal(mg_sweep_grid_add(&grid, "no-positions=true,false", false, NULL), MG_OK);
    make(4);
    for (int i = 0; i < 4; i++) {
        mg_run_options options = mg_sweep_options(&plan, i);
        char **words = mg_sweep_words(&plan, i, 3);
        int n = 0;
        assert_int_equal(options.train.model.no_scale, i >= 2);
        assert_int_equal(options.train.model.no_positions, i % 2 == 0);
        while (words[n]) n++;
        assert_int_equal(n, 5 + (i >= 2) + (i % 2 == 0));
        assert_string_equal(words[n - 1], "--auto-resume");
        assert_string_equal(words[n - 3], "--threads=3");
    }
}

/* Whatever is typed is one folder's name; different texts have different names, long ones too. */
static void names_are_safe_and_unique(void **state) {
    (void)state;
    char text[3000], a[1200], b[1200];
    memset(a, 'a', sizeof a);
    memset(b, 'a', sizeof b);
    a[sizeof a - 1] = b[sizeof b - 1] = '\0';
    b[sizeof b - 2] = 'b';
    snprintf(text, sizeof text, "data=%s,%s,x/y,x%%2Fy,..,\xc3\xa9 \n;~", a, b);
    assert_int_equal(mg_sweep_grid_add(&grid, text, false, NULL), MG_OK);
    make(6);
    for (int i = 0; i < plan.n; i++) {
        assert_less(strlen(plan.name[i]), 240);
        assert_null(strpbrk(plan.name[i], "/ \n;"));
        for (int j = 0; j < i; j++) assert_string_not_equal(plan.name[i], plan.name[j]);
    }
    assert_string_equal(plan.name[2], "data=x%2Fy");
    assert_string_equal(plan.name[3], "data=x%252Fy");
}

/* Nothing is allocated for what is too much. */
static void too_many_are_refused(void **state) {
    (void)state;
    mg_error error;
    size_t before = mg_allocation_count();
    assert_int_equal(mg_sweep_grid_add_seeds(&grid, "0..999999999999999999", &error), MG_ERR_INPUT);
    assert_says(error.message, "100000");
    assert_int_equal(mg_sweep_grid_add_seeds(&grid, "1..9,18446744073709551615", &error), MG_ERR_INPUT);
    assert_int_equal(mg_allocation_count(), before);
    assert_int_equal(mg_sweep_grid_add_seeds(&grid, "1..1000", NULL), MG_OK);
    for (int i = 0; i < 3; i++) {
        static const char *const lists[] = {"n-layer=1,2,3,4,5,6,7,8,9,10", "n-head=1,2,3,4,5,6,7,8,9,10",
                                            "n-embd=1,2,3,4,5,6,7,8,9,10"};
        assert_int_equal(mg_sweep_grid_add(&grid, lists[i], false, NULL), MG_OK);
    }
    before = mg_allocation_count();
    assert_int_equal(mg_sweep_plan_make(&plan, &error), MG_ERR_INPUT);
    assert_says(error.message, "100000");
    assert_int_equal(mg_allocation_count(), before);
}

static void words_survive_a_shell(void **state) {
    (void)state;
    char line[256] = "";
    FILE *out = fmemopen(line, sizeof line, "w");
    char *const words[] = {"a", "", "b c", "it's", "$x", NULL};
    mg_sweep_print_command(out, words);
    fclose(out);
    assert_string_equal(line, "a '' 'b c' 'it'\\''s' '$x'\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_combination_once, begin, end),
        cmocka_unit_test_setup_teardown(switches_are_on_or_off, begin, end),
        cmocka_unit_test_setup_teardown(names_are_safe_and_unique, begin, end),
        cmocka_unit_test_setup_teardown(too_many_are_refused, begin, end),
        cmocka_unit_test(words_survive_a_shell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
