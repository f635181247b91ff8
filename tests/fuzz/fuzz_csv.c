/* A CSV file, whatever it is: no crash, and if it is accepted, every cell can be read. */
#include "csv_table.h"
#include "heap.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition) abort();
}

static void check_cells(const mg_csv_table *table) {
    for (ptrdiff_t row = -1; row < mg_csv_rows(table); row++) {
        for (int column = 0; column < mg_csv_columns(table); column++) {
            mg_token cell = mg_csv_cell(table, row, column);
            require(strlen(cell.bytes) <= cell.length && cell.bytes[cell.length] == '\0');
        }
        if (row > 0) require(mg_csv_line(table, row) > mg_csv_line(table, row - 1));
    }
    require(strlen(mg_csv_names(table).text) < sizeof(mg_csv_names_text));
}

/* A column on its own is that of the table. */
static void check_column(const mg_csv_table *table, int column, const char *text, size_t length, ptrdiff_t rows) {
    require(rows == mg_csv_rows(table));
    for (ptrdiff_t row = 0; row < rows; row++) {
        mg_token cell = mg_csv_cell(table, row, column);
        size_t begin = row > 0; /* the newline */
        require(begin + cell.length <= length);
        for (size_t i = 0; i < cell.length; i++) require(text[begin + i] == (cell.bytes[i] ? cell.bytes[i] : '\n'));
        text += begin + cell.length;
        length -= begin + cell.length;
    }
    require(length == 0);
}

static void check_columns(const mg_csv_table *table, const char *data, size_t size) {
    for (int column = 0; column < mg_csv_columns(table) && column < 8; column++) {
        const char *name = mg_csv_cell(table, -1, column).bytes;
        char *text;
        size_t length;
        ptrdiff_t rows;
        mg_error error;
        mg_status status = mg_csv_read_column(data, size, "fuzz", name, ',', '\n', &text, &length, &rows, &error);
        require(status == MG_OK || (status == MG_ERR_INPUT && error.message[0] != '\0'));
        if (status == MG_OK) check_column(table, column, text, length, rows);
        if (status == MG_OK) mg_free(text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (int trim = 0; trim < 2; trim++) {
        mg_csv_table *table;
        mg_error error;
        mg_status status = mg_csv_parse(&table, (const char *)data, size, "fuzz", trim, ',', &error);
        if (status == MG_OK) check_cells(table);
        if (status == MG_OK && !trim) check_columns(table, (const char *)data, size);
        if (status == MG_OK) mg_csv_free(table);
        require(status == MG_OK || (status != MG_ERR_MEMORY && error.status == status && error.message[0] != '\0'));
    }
    return 0;
}
