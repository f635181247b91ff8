/* log.csv: what is written reads back; torn and later rows go; damage is named. */
#include "run_log.h"

#include "check.h"

#include <stdlib.h>
#include <unistd.h>

static char path[64];
static mg_error error;

static void put(const char *text) {
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
}

static void assert_holds(const char *expected) {
    char text[4096] = "";
    FILE *file = fopen(path, "r");
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    assert_string_equal(text, expected);
}

#define HEADER "step,split,loss,lr,grad_norm,tokens,seconds\n"
#define ROW_0 "0,val,3.5,0.001,,0,0.100000\n0,train,3.25,0.001,1.5,32,0.200000\n"
#define ROW_1 "1,train,3.125,0.002,1.25,64,0.300000\n"

static void test_round_trip(void **state) {
    (void)state;
    mg_run_log *log;
    mg_run_log_row train = {7, false, (double)(1.0f / 3), 1e-3 / 7, (double)(2.0f / 7), 1234567890123, 12.5};
    mg_run_log_row validation = {8, true, 2.5, 1e-3, NAN, 1234567890123, 13};
    assert_int_equal(mg_run_log_create(&log, path, &error), MG_OK);
    assert_int_equal(mg_run_log_append(log, &train, &error), MG_OK);
    assert_int_equal(mg_run_log_append(log, &validation, &error), MG_OK);
    assert_int_equal(mg_run_log_sync(log, &error), MG_OK);
    mg_run_log_table table; /* while it is still being written */
    assert_int_equal(mg_run_log_read(&table, path, &error), MG_OK);
    assert_int_equal(table.n, 2);
    assert_false(table.torn);
    assert_true((float)table.row[0].loss == 1.0f / 3); /* nine digits hold a float exactly */
    assert_true((float)table.row[0].grad_norm == 2.0f / 7);
    assert_int_equal(table.row[0].tokens, 1234567890123);
    assert_int_equal(table.row[0].step, 7);
    assert_false(table.row[0].validation);
    assert_true(table.row[1].validation);
    assert_true(isnan(table.row[1].grad_norm));
    mg_run_log_table_free(&table);
    mg_run_log_close(log);
}

static void resume_at(int64_t step, const char *before, const char *after, const char *says) {
    mg_run_log *log;
    mg_run_log_row last;
    char warning[256];
    put(before);
    assert_int_equal(mg_run_log_resume(&log, path, step, &last, warning, sizeof warning, &error), MG_OK);
    mg_run_log_close(log);
    assert_holds(after);
    if (says)
        assert_says(warning, says);
    else
        assert_string_equal(warning, "");
}

static void test_resume(void **state) {
    (void)state;
    resume_at(2, HEADER ROW_0 ROW_1, HEADER ROW_0 ROW_1, NULL);
    resume_at(1, HEADER ROW_0 ROW_1, HEADER ROW_0, "later");
    resume_at(0, HEADER ROW_0 ROW_1, HEADER, "later");
    resume_at(2, HEADER ROW_0 ROW_1 "2,train,3.0", HEADER ROW_0 ROW_1, "ends within a row");
    resume_at(1, HEADER ROW_0 "1,tr", HEADER ROW_0, "ends within a row");
    resume_at(5, HEADER ROW_0 ROW_1, HEADER ROW_0 ROW_1, "is missing the rows before step 5");
    resume_at(0, "step,spl", HEADER, "has no header yet");
    resume_at(0, "", HEADER, "has no header yet"); /* killed before the header was written */
}

static void test_last_row(void **state) {
    (void)state;
    mg_run_log *log;
    mg_run_log_row last;
    char warning[256];
    put(HEADER ROW_0 ROW_1);
    assert_int_equal(mg_run_log_resume(&log, path, 2, &last, warning, sizeof warning, &error), MG_OK);
    mg_run_log_close(log);
    assert_int_equal(last.step, 1);
    assert_close(last.seconds, 0.3, 1e-12);
    unlink(path);
    assert_int_equal(mg_run_log_resume(&log, path, 2, &last, warning, sizeof warning, &error), MG_OK);
    mg_run_log_close(log);
    assert_int_equal(last.step, -1);
    assert_says(warning, "gone");
    assert_holds(HEADER);
}

static void test_damage_is_named(void **state) {
    (void)state;
    mg_run_log_table table;
    const char *const bad[] = {
        HEADER "0,train,x,0.001,1,32,0.1\n",
        HEADER "0,test,1,0.001,1,32,0.1\n",
        HEADER "0,train,1,0.001,1,32\n",
        HEADER "0,train,1,0.001,1,32,0.1,9\n",
        HEADER "-1,train,1,0.001,1,32,0.1\n",
        HEADER ",train,1,0.001,1,32,0.1\n",
        HEADER HEADER,
        HEADER "\n",
        HEADER "0x1,train,1,0.001,1,32,0.1\n",
        HEADER "0,train,0x1p3,0.001,1,32,0.1\n",
        HEADER "0,train,1,0x1,1,32,0.1\n",
        HEADER "1e0,train,1,0.001,1,32,0.1\n",
        HEADER " 0,train,1,0.001,1,32,0.1\n",
        HEADER "0,train,1,nan,1,32,0.1\n",
        HEADER "0,train,1,-1,1,32,0.1\n",
        HEADER "0,train,1,0.001,1,32,nan\n",
        HEADER "0,train,1,0.001,1,32,-5\n",
        HEADER "0,train,1,0.001,1,,0.1\n",
        HEADER "0,train,,0.001,1,32,0.1\n",
        HEADER "0,train,infinity,0.001,1,32,0.1\n",
        HEADER "9999999999999999,train,1,0.001,1,32,0.1\n",
        HEADER "0,train,1,0.001,1,32,0.1\r\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put(bad[i]);
        assert_int_equal(mg_run_log_read(&table, path, &error), MG_ERR_FORMAT);
        assert_says(error.message, "line 2");
    }
    const char *const bad_pairs[][2] = {
        {ROW_1 "1,train,1,0.001,1,64,0.3\n", "does not follow"},
        {ROW_1 "0,train,1,0.001,1,64,0.3\n", "does not follow"},
        {ROW_1 "1,val,1,0.001,,64,0.3\n", "does not follow"},
        {ROW_1 "2,train,1,0.001,1,63,0.3\n", "fewer tokens"},
        {ROW_1 "\n", "is empty"},
    };
    for (size_t i = 0; i < sizeof bad_pairs / sizeof *bad_pairs; i++) {
        char text[512];
        snprintf(text, sizeof text, HEADER "%s", bad_pairs[i][0]);
        put(text);
        assert_int_equal(mg_run_log_read(&table, path, &error), MG_ERR_FORMAT);
        assert_says(error.message, "line 3");
        assert_says(error.message, bad_pairs[i][1]);
    }
    put(HEADER "0,val,inf,0.001,,0,0.1\n0,train,nan,0.001,-nan,1,0.1\n"); /* a run that diverges writes these */
    assert_int_equal(mg_run_log_read(&table, path, &error), MG_OK);
    mg_run_log_table_free(&table);
    put("a,b\n1,2\n");
    assert_int_equal(mg_run_log_read(&table, path, &error), MG_ERR_FORMAT);
    assert_says(error.message, "header");
    assert_int_equal(mg_run_log_read(&table, "/nowhere/log.csv", &error), MG_ERR_IO);
}

static void test_missing_rows(void **state) {
    (void)state;
    mg_run_log_table table;
    put(HEADER ROW_0 ROW_1);
    assert_int_equal(mg_run_log_read(&table, path, &error), MG_OK);
    assert_int_equal(table.gap, -1);
    mg_run_log_table_free(&table);
    put(HEADER ROW_0 ROW_1 "4,train,1,0.001,1,96,0.4\n");
    assert_int_equal(mg_run_log_read(&table, path, &error), MG_OK);
    assert_int_equal(table.gap, 4);
    mg_run_log_table_free(&table);
    put(HEADER ROW_0 "2,val,1,0.001,,64,0.4\n");
    assert_int_equal(mg_run_log_read(&table, path, &error), MG_OK);
    assert_int_equal(table.gap, 2);
    mg_run_log_table_free(&table);
    resume_at(5, HEADER ROW_0 ROW_1 "4,train,1,0.001,1,96,0.4\n", HEADER ROW_0 ROW_1 "4,train,1,0.001,1,96,0.4\n",
              "has no rows before step 4");
}

static int setup(void **state) {
    (void)state;
    strcpy(path, "/tmp/maskgrad-log-XXXXXX");
    int file = mkstemp(path);
    return file < 0 ? -1 : close(file);
}

static int teardown(void **state) {
    (void)state;
    return unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),      cmocka_unit_test(test_resume),       cmocka_unit_test(test_last_row),
        cmocka_unit_test(test_damage_is_named), cmocka_unit_test(test_missing_rows),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
