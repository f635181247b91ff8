/* Settings as text: strict, and back without loss. */
#include "options.h"

#include "check.h"

/* A setting of the run, and where its values are in *options. */
static const mg_setting *find(const char *name, mg_run_options *options, void **values) {
    for (const mg_settings *table = mg_run_settings; table->rows; table++)
        for (const mg_setting *s = table->rows; !mg_setting_is_end(s); s++)
            if (s->name && strcmp(s->name, name) == 0) {
                *values = (char *)options + table->base;
                return s;
            }
    fail_msg("there is no setting %s", name);
    return NULL;
}

static void refused(const char *name, const char *text) {
    mg_run_options options = mg_run_defaults(), before = options;
    mg_error error;
    void *values, *old;
    const mg_setting *setting = find(name, &options, &values);
    find(name, &before, &old);
    assert_int_equal(mg_setting_set(setting, values, text, &error), MG_ERR_INPUT);
    assert_says(error.message, name);
    if (text[0]) assert_says(error.message, text);
    if (setting->kind != MG_SETTING_CUSTOM) assert_true(mg_setting_equal(setting, values, old));
}

static void taken(const char *name, const char *text, const char *back) {
    mg_run_options options = mg_run_defaults();
    mg_error error;
    char formatted[256];
    void *values;
    const mg_setting *setting = find(name, &options, &values);
    assert_int_equal(mg_setting_set(setting, values, text, &error), MG_OK);
    mg_setting_format(setting, values, formatted, sizeof formatted);
    assert_string_equal(formatted, back);
}

static void test_numbers_are_strict(void **state) {
    (void)state;
    const char *const not_counts[] = {
        "0", "-1", "", " 1", "1 ", "1x", "x", "1.5", "1e3", "0x10", "nan", "inf", "99999999999999999999"};
    for (size_t i = 0; i < sizeof not_counts / sizeof *not_counts; i++) {
        refused("n-layer", not_counts[i]);
        refused("max-iters", not_counts[i]);
    }
    const char *const not_rates[] = {"0", "-1", "", " 1", "1 ", "1x", "nan", "inf", "-inf", "1e999", "infinity"};
    for (size_t i = 0; i < sizeof not_rates / sizeof *not_rates; i++) refused("lr", not_rates[i]);
    refused("beta1", "1");
    taken("beta1", "0", "0");
    taken("beta2", "0", "0");
    taken("validation", "0", "0");
    refused("validation", "1");
    taken("lr", "1e30", "1e+30");
    taken("lr", ".5", "0.5");
    taken("lr", "0.1", "0.1");
    taken("lr", "0.30000000000000004", "0.30000000000000004");
    taken("n-layer", "007", "7");
    taken("seed", "9007199254740993", "9007199254740993");
}

static void test_masks(void **state) {
    (void)state;
    taken("lookahead", "0", "0");
    taken("lookahead", "3", "3");
    taken("lookahead", "all", "all");
    const char *const masks[] = {"causal",   "none",    "window:1", "window:1000000", "prefix:0",
                                 "prefix:7", "block:1", "block:8",  "documents",      "documents:run-on"};
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) taken("mask", masks[i], masks[i]);
    /* run.json keeps one setting for both flags. */
    for (size_t i = 2; i < sizeof masks / sizeof *masks; i++) taken("lookahead", masks[i], masks[i]);
    const char *const no_masks[] = {
        "",           "Causal",    "window",  "window:",       "window:0",   "window:-1",         "window:x",
        "window:all", "prefix:-1", "block:0", "block:1000001", "documents:", "documents:restart", "causal:1"};
    for (size_t i = 0; i < sizeof no_masks / sizeof *no_masks; i++) {
        refused("mask", no_masks[i]);
        refused("lookahead", no_masks[i]);
    }
    refused("lookahead", "causal");
    refused("lookahead", "none");
    taken("leak", "0.3:2", "0.3:2");
    taken("leak", "0.3", "0.3:1");
    taken("leak", "1.0:all", "1.0:all");
    taken("leak", "none", "none");
    const char *const bad[] = {"", "1", "1.", ".1", "-1.0", "1.-1", "1.1:", "1.1:x", "1.1x", "1.1:-1", "1.1:0", "a.b"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        mg_run_options options = mg_run_defaults();
        mg_error error;
        void *values;
        const mg_setting *leak = find("leak", &options, &values);
        assert_int_equal(mg_setting_set(leak, values, bad[i], &error), MG_ERR_INPUT);
    }
    refused("lookahead", "-1");
    refused("lookahead", "1x");
    mg_run_options options = mg_run_defaults();
    char words[128];
    mg_mask_words(&options.train.model, words, sizeof words);
    assert_string_equal(words, "causal");
    options.train.model.leak_layer = 1;
    options.train.model.leak_head = 2;
    options.train.model.leak_lookahead = 3;
    mg_mask_words(&options.train.model, words, sizeof words);
    assert_string_equal(words, "causal, leak 1.2:3");
}

static void test_derived(void **state) {
    (void)state;
    mg_run_options options = mg_run_defaults();
    options.train.schedule.lr = 0.5;
    options.train.max_iters = 77;
    options.eval_interval = 11;
    options.train.seed = 3;
    mg_run_options_resolve(&options);
    assert_close(options.train.schedule.min_lr, 0.05, 1e-15);
    assert_int_equal(options.train.schedule.decay_iters, 77);
    assert_int_equal(options.save_interval, 11);
    assert_int_equal(options.data.seed, 3);
}

static void test_names(void **state) {
    (void)state;
    mg_run_options options = mg_run_defaults();
    char path[256];
    options.data.path = "some/where/frases.csv";
    mg_run_default_dir(&options, path, sizeof path);
    assert_string_equal(path, "runs/frases-causal");
    options.train.model.mask = mg_lookahead(2);
    options.train.model.leak_layer = options.train.model.leak_head = 0;
    options.train.model.leak_lookahead = 4;
    mg_run_default_dir(&options, path, sizeof path);
    assert_string_equal(path, "runs/frases-lookahead-2-leak-0.0-4");
    options.train.model.leak_layer = -1;
    options.train.model.mask = (mg_mask){MG_MASK_WINDOW, 64};
    mg_run_default_dir(&options, path, sizeof path);
    assert_string_equal(path, "runs/frases-window-64");
    options.name = "mine";
    mg_run_default_dir(&options, path, sizeof path);
    assert_string_equal(path, "runs/mine");
    taken("name", "..mine", "..mine");
    const char *const bad[] = {"", ".", "..", "../mine", "a/b", "/", "mine/"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) refused("name", bad[i]);
}

static void test_conflicts(void **state) {
    (void)state;
    mg_run_options a = mg_run_defaults(), b;
    mg_run_options_resolve(&a);
    b = a;
    assert_null(mg_settings_conflict(mg_run_settings, &a, &b));
    b.train.max_iters = 5;
    b.threads = 7;
    b.eval_interval = 1;
    assert_null(mg_settings_conflict(mg_run_settings, &a, &b));
    b.train.weight_decay = 0;
    assert_string_equal(mg_settings_conflict(mg_run_settings, &a, &b)->name, "weight-decay");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_are_strict),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_derived),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_conflicts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
