#include "csv_table.h"
#include "file_limits.h"
#include "heap.h"

#include "check.h"

static mg_error error;

static mg_csv_table *parse(const char *csv, bool trim) {
    mg_csv_table *table;
    mg_status status = mg_csv_parse(&table, csv, strlen(csv), "t.csv", trim, ',', &error);
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
    assert_string_equal(mg_csv_names(t).text, "'id', 'text'");
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
        {"a,b\n1,x\"y\n", "t.csv, line 2: misplaced \""},
        {"a,b\n1,\"x\"y\n", "t.csv, line 2: misplaced \""},
        {"a,b\n1,\"x\n2,\"y\"\n", "t.csv, line 3: misplaced \" in the field that begins on line 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mg_csv_table *table;
        assert_int_equal(mg_csv_parse(&table, cases[i][0], strlen(cases[i][0]), "t.csv", false, ',', &error),
                         MG_ERR_FORMAT);
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
    assert_int_equal(mg_csv_parse(&table, csv, length, "t.csv", false, ',', &error), MG_ERR_FORMAT);
    assert_says(error.message, "begins on line 2 is longer than 16 MiB");
    memset(csv, 'x', length);
    memcpy(csv, "a\n", 2);
    assert_int_equal(mg_csv_parse(&table, csv, length, "t.csv", false, ',', &error), MG_ERR_FORMAT);
    assert_says(error.message, "begins on line 2 is longer than 16 MiB");
    mg_free(csv);
}

/* As spreadsheets write them: columns without a name, and some with the same one. */
static const char spam[] = "v1,v2,,,\nham,\"Go, now\",,,\nspam,Free,,\"x\ny\",\n,,,,\n";

static mg_status read_column(const char *csv, const char *column, char **text, size_t *length, ptrdiff_t *rows) {
    return mg_csv_read_column(csv, strlen(csv), "t.csv", column, 0, '\n', text, length, rows, &error);
}

static void assert_column(const char *csv, const char *column, const char *expected, ptrdiff_t n_rows) {
    char *text;
    size_t length;
    ptrdiff_t rows;
    assert_int_equal(read_column(csv, column, &text, &length, &rows), MG_OK);
    assert_string_equal(text, expected);
    assert_int_equal(length, strlen(expected));
    assert_int_equal(rows, n_rows);
    mg_free(text);
}

static void assert_no_column(const char *csv, const char *column, mg_status status, const char *part) {
    char *text;
    size_t length;
    ptrdiff_t rows;
    assert_int_equal(read_column(csv, column, &text, &length, &rows), status);
    assert_says(error.message, part);
    assert_null(text);
}

static void only_the_column_asked_for_must_be_unique(void **state) {
    (void)state;
    assert_column(spam, "v1", "ham\nspam\n", 3);
    assert_column(spam, "v2", "Go, now\nFree\n", 3);
    assert_column("a,a,b\n1,2,3\n", "b", "3", 1);
    assert_column(",text\n0,x\n1,y\n", "", "0\n1", 2); /* the index column of pandas */
    assert_column("a\n", "a", "", 0);
    assert_column("a\n\"\"\n", "a", "", 1);
    assert_column("a\n\"x\n\ny\"", "a", "x\n\ny", 1);
    assert_no_column("a,a,b\n1,2,3\n", "a", MG_ERR_INPUT, "t.csv has 2 columns 'a': rename");
    assert_no_column(spam, "", MG_ERR_INPUT, "t.csv has 3 columns ''");
    assert_no_column(spam, "v3", MG_ERR_INPUT, "t.csv has no column 'v3'; it has 'v1', 'v2', '', '', ''");
    assert_no_column("a,b\n1\n", "a", MG_ERR_FORMAT, "line 2: the number of fields is 1, but the header has 2");
    assert_no_column("a\n\"1\n", "a", MG_ERR_FORMAT, "line 2: the quoted field");
    assert_no_column("", "a", MG_ERR_FORMAT, "is empty");
    mg_csv_table *t = parse(spam, false);
    assert_int_equal(mg_csv_columns(t), 5);
    assert_cell(t, 1, 3, "x\ny");
    mg_csv_free(t);
}

/* 300,000 columns took minutes when each name was compared with all before it. */
static void too_many_columns_are_refused(void **state) {
    (void)state;
    enum { N = 300000 };
    char *csv = mg_alloc(2 * N + 1, 1, "a test", NULL), *text;
    for (int i = 0; i < N; i++) memcpy(csv + 2 * i, "a,", 2);
    size_t length;
    ptrdiff_t rows;
    mg_csv_table *table;
    for (int n = MG_CSV_MOST_COLUMNS - 1; n <= MG_CSV_MOST_COLUMNS + 1; n++) { /* and one more: the last is empty */
        mg_status expected = n < MG_CSV_MOST_COLUMNS ? MG_OK : MG_ERR_FORMAT;
        assert_int_equal(mg_csv_parse(&table, csv, 2 * (size_t)n, "t.csv", false, ',', &error), expected);
        mg_csv_free(table);
    }
    assert_int_equal(mg_csv_parse(&table, csv, 2 * N, "t.csv", false, ',', &error), MG_ERR_FORMAT);
    assert_says(error.message, "t.csv, line 1: a CSV file may have at most 16384 columns");
    assert_int_equal(mg_csv_read_column(csv, 2 * N, "t.csv", "a", 0, '\n', &text, &length, &rows, &error),
                     MG_ERR_FORMAT);
    assert_says(error.message, "16384");
    csv[1] = '\n'; /* a row may have no more than its header either */
    assert_int_equal(mg_csv_parse(&table, csv, 2 * N, "t.csv", false, ',', &error), MG_ERR_FORMAT);
    assert_says(error.message, "t.csv, line 2: ");
    mg_free(csv);
}

static void names_are_shown_escaped_and_cut(void **state) {
    (void)state;
    mg_csv_table *t = parse("\x1B[31m,b\n1,2\n", false);
    assert_string_equal(mg_csv_names(t).text, "'\\x1B[31m', 'b'");
    mg_csv_free(t);
    char csv[4096] = "";
    for (int i = 0; i < 60; i++) sprintf(csv + strlen(csv), "column number %d,", i);
    t = parse(csv, false);
    const char *names = mg_csv_names(t).text;
    size_t length = strlen(names);
    assert_true(length > 400 && length < 512);
    assert_string_equal(names + length - 5, ", …");
    mg_csv_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_rfc_4180_says),        cmocka_unit_test(trims_on_request),
        cmocka_unit_test(lines_may_end_in_cr_alone),       cmocka_unit_test(malformed_files_are_refused),
        cmocka_unit_test(a_swallowed_file_hits_the_limit), cmocka_unit_test(only_the_column_asked_for_must_be_unique),
        cmocka_unit_test(too_many_columns_are_refused),    cmocka_unit_test(names_are_shown_escaped_and_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
