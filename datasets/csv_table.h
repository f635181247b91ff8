/* A CSV file as a table of cells (RFC 4180, read by libcsv in strict mode). */
#ifndef MASKGRAD_CSV_TABLE_H
#define MASKGRAD_CSV_TABLE_H

#include "tokenizer.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct mg_csv_table mg_csv_table;

/* The first record is the header. A byte order mark is skipped, and so are a first line "sep=;", as Excel writes it,
 * and blank lines. `trim` drops the spaces around unquoted fields, which RFC 4180 counts as content. Refused with
 * `name` and the line: bad quoting (with the line where the field began), a record with more or fewer fields than the
 * header, a field or a header that is too long (file_limits.h), no header. */
mg_status mg_csv_parse(mg_csv_table **table, const char *bytes, size_t length, const char *name, bool trim,
                       char delimiter, mg_error *error);
void mg_csv_free(mg_csv_table *table);
/* The character that separates the fields of a file which should have these columns: what the line "sep=;" says, else
 * the one of comma, semicolon, tab and bar with which the header holds most of them, else most fields. *found is how
 * many of them it holds then. */
mg_status mg_csv_delimiter(const char *bytes, size_t length, const char *const *columns, int n_columns, char *delimiter,
                           int *found, mg_error *error);

int mg_csv_columns(const mg_csv_table *table);
ptrdiff_t mg_csv_rows(const mg_csv_table *table); /* without the header */
/* The bytes of a cell are also 0-terminated, and live as long as the table. Row -1 is the header. */
mg_token mg_csv_cell(const mg_csv_table *table, ptrdiff_t row, int column);
ptrdiff_t mg_csv_line(const mg_csv_table *table, ptrdiff_t row); /* where it begins, from 1 */
int mg_csv_find(const mg_csv_table *table, const char *column);  /* the number of the first of that name, or -1 */
/* "'a', 'b', 'c'", for messages; many are cut short with "…". */
typedef struct mg_csv_names_text {
    char text[512];
} mg_csv_names_text;
mg_csv_names_text mg_csv_names(const mg_csv_table *table);

/* The cells of one column, without keeping the others: *text is allocated, 0-terminated, and holds
 * *rows cells. Without a delimiter (0), mg_csv_delimiter finds it. `joint` goes between two cells. The column must
 * occur exactly once, else MG_ERR_INPUT lists the header's columns; others may repeat a name or have none, as often in
 * spreadsheets. */
mg_status mg_csv_read_column(const char *bytes, size_t length, const char *name, const char *column, char delimiter,
                             char joint, char **text, size_t *text_length, ptrdiff_t *rows, mg_error *error);

/* Write one cell by RFC 4180: quoted when it holds a comma, a quote or a line end, or spaces at its edge,
 * which readers trim. */
void mg_csv_write_cell(FILE *out, const char *text);

#endif
