#include "csv_table.h"
#include "heap.h"

#include "check.h"

static mg_error error;

static mg_csv_table *parse(const char *csv, bool trim) {
    mg_csv_table *table;
    mg_status status = mg_csv_parse(&table, csv, strlen(csv), "t.csv", trim, &error);
    if (status != MG_OK) print_error("%s\n", error.message);
    assert_int_equal(status, MG_OK);
    return table;
}

static void assert_cell(const mg_csv_table *table, ptrdiff_t row, int column, const char *expected) {
    mg_token cell = mg_csv_cell(table, row, column);
    assert_string_equal(cell.bytes, expected);
    assert_int_equal(cell.length, strlen(expected));
}

static void reads_what_rfc_4180_says(void **state) {
    (void)state;
    mg_csv_table *t = parse("\xEF\xBB\xBF\"id\",text\r\n1,\"a \"\"b\"\", c\r\nd\"\r\n\r\n2,\n\n3, e ", false);
    assert_int_equal(mg_csv_columns(t), 2);
    assert_int_equal(mg_csv_rows(t), 3);
    assert_int_equal(mg_csv_find(t, "id"), 0);
    assert_int_equal(mg_csv_find(t, "text"), 1);
    assert_int_equal(mg_csv_find(t, "tex"), -1);
    assert_cell(t, 0, 1, "a \"b\", c\r\nd");
    assert_cell(t, 1, 1, "");
    assert_cell(t, 2, 1, " e ");
    assert_int_equal(mg_csv_line(t, 0), 2);
    assert_int_equal(mg_csv_line(t, 1), 5);
    assert_int_equal(mg_csv_line(t, 2), 7);
    char names[64];
    mg_csv_column_names(t, names, sizeof names);
    assert_string_equal(names, "id, text");
    mg_csv_free(t);
}

static void trims_on_request(void **state) {
    (void)state;
    mg_csv_table *t = parse("a, b\n x , \" y \" \n", true);
    assert_cell(t, -1, 1, "b");
    assert_cell(t, 0, 0, "x");
    assert_cell(t, 0, 1, " y ");
    mg_csv_free(t);
}

static void lines_may_end_in_cr_alone(void **state) {
    (void)state;
    mg_csv_table *t = parse("a,b\r1,2\r3,4\r", false);
    assert_int_equal(mg_csv_rows(t), 2);
    assert_int_equal(mg_csv_line(t, 1), 3);
    assert_cell(t, 1, 1, "4");
    mg_csv_free(t);
}

static void malformed_files_are_refused(void **state) {
    (void)state;
    const char *const cases[][2] = {
        {"", "t.csv is empty"},
        {"\n\n", "t.csv is empty"},
        {"a,b\n1,2\n3\n", "t.csv, line 3: the number of fields is 1, but the header has 2"},
        {"a,b\n1,\"x\ny\"\n3,4,5\n", "t.csv, line 4: the number of fields is 3"},
        {"a,b\n1,2\n3,\"open\n5,6\n", "t.csv, line 3: the quoted field that begins here is never closed"},
        {"a,b\n\"x\ny\",\"open\n5,6\n", "t.csv, line 3: the quoted field that begins here"},
        {"a,b\n\"", "t.csv, line 2: the quoted field that begins here"},
        {"a,b\n1,x\"y\n", "t.csv, line 2: a \" stands where it may not"},
        {"a,b\n1,\"x\"y\n", "t.csv, line 2: a \" stands where it may not"},
        {"a,b\n1,\"x\n2,\"y\"\n", "t.csv, line 3: a \" stands where it may not, in the field that begins on line 2"},
        {"a,b,a\n1,2,3\n", "t.csv, line 1: the column 'a' appears twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mg_csv_table *table;
        assert_int_equal(mg_csv_parse(&table, cases[i][0], strlen(cases[i][0]), "t.csv", false, &error), MG_ERR_FORMAT);
        assert_says(error.message, cases[i][1]);
        assert_null(table);
    }
}

static void a_swallowed_file_hits_the_limit(void **state) {
    (void)state;
    size_t length = (size_t)MG_CSV_LONGEST_FIELD + 100;
    char *csv = mg_alloc(length, 1, "a test", NULL);
    memset(csv, 'x', length);
    for (size_t i = 0; i < length; i += 1000) csv[i] = '\n';
    memcpy(csv, "a,b\n1,\"", 7);
    mg_csv_table *table;
    assert_int_equal(mg_csv_parse(&table, csv, length, "t.csv", false, &error), MG_ERR_FORMAT);
    assert_says(error.message, "begins on line 2 is longer than 16 MiB");
    memset(csv, 'x', length);
    memcpy(csv, "a\n", 2);
    assert_int_equal(mg_csv_parse(&table, csv, length, "t.csv", false, &error), MG_ERR_FORMAT);
    assert_says(error.message, "begins on line 2 is longer than 16 MiB");
    mg_free(csv);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_rfc_4180_says),        cmocka_unit_test(trims_on_request),
        cmocka_unit_test(lines_may_end_in_cr_alone),       cmocka_unit_test(malformed_files_are_refused),
        cmocka_unit_test(a_swallowed_file_hits_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
