/* A CSV file, whatever it is: no crash, and if it is accepted, every cell can be read. */
#include "csv_table.h"

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
    char names[256];
    mg_csv_column_names(table, names, sizeof names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (int trim = 0; trim < 2; trim++) {
        mg_csv_table *table;
        mg_error error;
        mg_status status = mg_csv_parse(&table, (const char *)data, size, "fuzz", trim, &error);
        if (status == MG_OK) check_cells(table);
        if (status == MG_OK) mg_csv_free(table);
        require(status == MG_OK || (status != MG_ERR_MEMORY && error.status == status && error.message[0] != '\0'));
    }
    return 0;
}
