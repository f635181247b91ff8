#include "csv_table.h"

#include "heap.h"
#include "quote.h"

#include <csv.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* libcsv grows a field by blocks, 128 bytes unless told, and copies it each time: quadratic for long fields. */
enum { LONGEST_FEED = 1 << 16, FIELD_BLOCK = 1 << 18 };

struct mg_csv_table {
    char *text; /* all cells, each with a 0 behind it */
    size_t length, text_room;
    size_t *start; /* of each cell; one more entry than cells */
    size_t n_cells, cell_room;
    ptrdiff_t *line; /* of each record, the header included */
    size_t n_records, record_room;
    int n_columns;
};

/* libcsv counts no lines and its callbacks cannot stop it: it is fed a line at a time, and these fields remember. */
typedef struct reader {
    mg_csv_table *table;
    const char *name;
    mg_error *error;
    mg_status status;
    ptrdiff_t line;        /* the line that is being fed, from 1 */
    ptrdiff_t record_line; /* where the current record began */
    ptrdiff_t field_line;  /* where the current field began */
    size_t n_fields;       /* of the current record so far */
    bool in_record;
} reader;

static mg_status reserve(void **block, size_t used, size_t *room, size_t needed, size_t size, mg_error *error) {
    if (needed <= *room) return MG_OK;
    size_t wanted = needed > 2 * *room ? needed + 64 : 2 * *room;
    void *grown = mg_alloc_grow(*block, used, wanted, size, "the cells of a CSV file", error);
    if (!grown) return MG_ERR_MEMORY;
    *block = grown;
    *room = wanted;
    return MG_OK;
}

static void on_field(void *field, size_t length, void *context) {
    reader *r = context;
    mg_csv_table *t = r->table;
    r->field_line = r->line;
    r->n_fields++;
    if (r->status != MG_OK) return;
    void *text = t->text, *start = t->start;
    r->status = reserve(&text, t->length, &t->text_room, t->length + length + 1, 1, r->error);
    t->text = text;
    if (r->status != MG_OK) return;
    r->status = reserve(&start, t->n_cells + 1, &t->cell_room, t->n_cells + 2, sizeof *t->start, r->error);
    t->start = start;
    if (r->status != MG_OK) return;
    if (t->n_cells == 0) t->start[0] = 0;
    if (length > 0) memcpy(t->text + t->length, field, length);
    t->text[t->length + length] = '\0';
    t->length += length + 1;
    t->start[++t->n_cells] = t->length;
}

static mg_status check_header(reader *r) {
    mg_csv_table *t = r->table;
    if (r->n_fields > INT_MAX / 2)
        return mg_error_set(r->error, MG_ERR_FORMAT, "%s: %zu columns are too many", r->name, r->n_fields);
    t->n_columns = (int)r->n_fields;
    for (int column = 0; column < t->n_columns; column++) {
        mg_token cell = mg_csv_cell(t, -1, column);
        if (mg_csv_find(t, cell.bytes) < column)
            return mg_error_set(r->error, MG_ERR_FORMAT, "%s, line %td: the column %s appears twice in the header",
                                r->name, r->record_line, mg_quote(cell).text);
    }
    return MG_OK;
}

static void on_record(int end, void *context) {
    (void)end;
    reader *r = context;
    mg_csv_table *t = r->table;
    r->in_record = false;
    if (r->status == MG_OK) {
        void *line = t->line;
        r->status = reserve(&line, t->n_records, &t->record_room, t->n_records + 1, sizeof *t->line, r->error);
        t->line = line;
    }
    if (r->status != MG_OK) return;
    t->line[t->n_records++] = r->record_line;
    if (t->n_records == 1) {
        r->status = check_header(r);
    } else if (r->n_fields != (size_t)t->n_columns) {
        r->status = mg_error_set(r->error, MG_ERR_FORMAT,
                                 "%s, line %td: the number of fields is %zu, but the header has %d", r->name,
                                 r->record_line, r->n_fields, t->n_columns);
    }
    r->n_fields = 0;
}

static mg_status bad_quoting(const reader *r, bool at_end) {
    if (at_end)
        return mg_error_set(r->error, MG_ERR_FORMAT,
                            "%s, line %td: the quoted field that begins here is never closed: a \" is missing", r->name,
                            r->field_line);
    return mg_error_set(
        r->error, MG_ERR_FORMAT,
        "%s, line %td: a \" stands where it may not, in the field that begins on line %td: put the whole "
        "field in quotes and write each \" in it twice",
        r->name, r->line, r->field_line);
}

/* The end of the line that begins at `at`, its \n, \r\n or \r included; at most some way further. */
static size_t line_end(const char *bytes, size_t at, size_t length, bool *is_whole) {
    size_t limit = length - at > LONGEST_FEED ? at + LONGEST_FEED : length;
    while (at < limit && bytes[at] != '\n' && bytes[at] != '\r') at++;
    *is_whole = at < limit;
    if (at < limit && bytes[at] == '\r' && at + 1 < length && bytes[at + 1] == '\n') at++;
    return at < limit ? at + 1 : limit;
}

static mg_status feed(reader *r, struct csv_parser *parser, const char *bytes, size_t length) {
    bool is_whole;
    for (size_t at = 0, end; at < length && r->status == MG_OK; at = end) {
        end = line_end(bytes, at, length, &is_whole);
        if (!r->in_record) r->record_line = r->field_line = r->line;
        r->in_record = r->in_record || (bytes[at] != '\n' && bytes[at] != '\r');
        if (csv_parse(parser, bytes + at, end - at, on_field, on_record, r) != end - at) {
            if (csv_error(parser) == CSV_EPARSE) return bad_quoting(r, false);
            return mg_error_set(r->error, MG_ERR_MEMORY, "%s, line %td: %s", r->name, r->line,
                                csv_strerror(csv_error(parser)));
        }
        if (parser->entry_pos > MG_CSV_LONGEST_FIELD)
            return mg_error_set(r->error, MG_ERR_FORMAT,
                                "%s: the field that begins on line %td is longer than %d MiB; is a \" missing?",
                                r->name, r->field_line, MG_CSV_LONGEST_FIELD >> 20);
        if (is_whole) r->line++;
    }
    if (r->status == MG_OK && csv_fini(parser, on_field, on_record, r) != 0) return bad_quoting(r, true);
    return r->status;
}

static int never_space(unsigned char byte) {
    (void)byte;
    return 0;
}

static mg_status parse(mg_csv_table *table, const char *bytes, size_t length, const char *name, bool trim,
                       mg_error *error) {
    struct csv_parser parser;
    if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI | CSV_APPEND_NULL) != 0)
        return mg_error_set(error, MG_ERR_MEMORY, "%s: the CSV parser could not start", name);
    csv_set_blk_size(&parser, FIELD_BLOCK);
    if (!trim) csv_set_space_func(&parser, never_space);
    if (length >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0) {
        bytes += 3;
        length -= 3;
    }
    reader r = {.table = table, .name = name, .error = error, .line = 1, .record_line = 1, .field_line = 1};
    mg_status status = feed(&r, &parser, bytes, length);
    csv_free(&parser);
    if (status == MG_OK && table->n_records == 0)
        status = mg_error_set(error, MG_ERR_FORMAT, "%s is empty; a header line is needed", name);
    return status;
}

mg_status mg_csv_parse(mg_csv_table **table, const char *bytes, size_t length, const char *name, bool trim,
                       mg_error *error) {
    *table = mg_alloc_zero(1, sizeof **table, "a CSV table", error);
    if (!*table) return MG_ERR_MEMORY;
    mg_status status = parse(*table, bytes, length, name, trim, error);
    if (status != MG_OK) {
        mg_csv_free(*table);
        *table = NULL;
    }
    return status;
}

void mg_csv_free(mg_csv_table *t) {
    if (!t) return;
    mg_free(t->text);
    mg_free(t->start);
    mg_free(t->line);
    mg_free(t);
}

int mg_csv_columns(const mg_csv_table *t) {
    return t->n_columns;
}

ptrdiff_t mg_csv_rows(const mg_csv_table *t) {
    return (ptrdiff_t)t->n_records - 1;
}

mg_token mg_csv_cell(const mg_csv_table *t, ptrdiff_t row, int column) {
    size_t cell = (size_t)(row + 1) * (size_t)t->n_columns + (size_t)column;
    return (mg_token){t->text + t->start[cell], t->start[cell + 1] - t->start[cell] - 1};
}

ptrdiff_t mg_csv_line(const mg_csv_table *t, ptrdiff_t row) {
    return t->line[row + 1];
}

int mg_csv_find(const mg_csv_table *t, const char *name) {
    for (int column = 0; column < t->n_columns; column++)
        if (strcmp(mg_csv_cell(t, -1, column).bytes, name) == 0) return column;
    return -1;
}

void mg_csv_column_names(const mg_csv_table *t, char *text, size_t room) {
    size_t at = 0;
    text[0] = '\0';
    for (int column = 0; column < t->n_columns && at < room; column++)
        at += (size_t)snprintf(text + at, room - at, "%s%s", column ? ", " : "", mg_csv_cell(t, -1, column).bytes);
}

void mg_csv_write_cell(FILE *out, const char *text) {
    size_t length = strlen(text);
    bool edge = length > 0 && (text[0] == ' ' || text[length - 1] == ' ');
    if (!edge && !strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (const char *c = text; *c; c++) {
        if (*c == '"') fputc('"', out);
        fputc(*c, out);
    }
    fputc('"', out);
}
