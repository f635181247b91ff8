#include "csv_table.h"

#include "file_limits.h"
#include "heap.h"
#include "quote.h"

#include <csv.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* libcsv grows a field block by block, by default 128 bytes, and copies it each time: quadratic for long fields. */
enum { LONGEST_FEED = 1 << 16, FIELD_BLOCK = 1 << 18 };

struct mg_csv_table {
    char *text; /* all cells, each with a 0 at its end */
    size_t length, room;
    size_t *start; /* of each cell; one more entry than cells */
    size_t n_cells, cell_room;
    ptrdiff_t *line; /* of each record, the header included */
    size_t n_records, record_room;
    int n_columns;
};

enum { ALL = -1 };

/* libcsv does not count lines and its callbacks cannot stop it: it is fed one line at a time, and these fields keep the
 * state. */
typedef struct reader {
    mg_csv_table *table;
    const char *name;
    const char *only; /* a column: after the header, only the text of its cells is kept; NULL: all columns */
    int wanted;       /* its number, or ALL */
    bool header_only; /* the rest of the file is not read */
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

static mg_status keep(reader *r, const char *field, size_t length) {
    mg_csv_table *t = r->table;
    MG_CHECK(t->length + length < t->room, "a CSV file's cells have more bytes than the file");
    if (length > 0) memcpy(t->text + t->length, field, length);
    t->text[t->length + length] = '\0';
    t->length += length + 1;
    if (r->wanted != ALL) return MG_OK;
    void *start = t->start;
    mg_status status = reserve(&start, t->n_cells + 1, &t->cell_room, t->n_cells + 2, sizeof *t->start, r->error);
    t->start = start;
    if (status != MG_OK) return status;
    if (t->n_cells == 0) t->start[0] = 0;
    t->start[++t->n_cells] = t->length;
    return MG_OK;
}

static void on_field(void *field, size_t length, void *context) {
    reader *r = context;
    size_t column = r->n_fields++;
    r->field_line = r->line;
    if (r->status != MG_OK) return;
    if (column >= MG_CSV_MOST_COLUMNS) {
        r->status = mg_error_set(r->error, MG_ERR_FORMAT, "%s, line %td: a CSV file may have at most %d columns",
                                 r->name, r->record_line, MG_CSV_MOST_COLUMNS);
    } else if (r->wanted == ALL || column == (size_t)r->wanted) {
        r->status = keep(r, field, length);
    }
}

static mg_status find_the_only(reader *r) {
    const mg_csv_table *t = r->table;
    int found = 0;
    for (int column = t->n_columns - 1; column >= 0; column--) {
        if (strcmp(mg_csv_cell(t, -1, column).bytes, r->only) != 0) continue;
        r->wanted = column;
        found++;
    }
    if (found == 1) return MG_OK;
    if (found == 0)
        return mg_error_set(r->error, MG_ERR_INPUT, "%s has no column '%s'; it has %s", r->name, r->only,
                            mg_csv_names(t).text);
    return mg_error_set(r->error, MG_ERR_INPUT, "%s has %d columns '%s': rename all but one of them", r->name, found,
                        r->only);
}

static mg_status add_record(reader *r) {
    mg_csv_table *t = r->table;
    if (t->n_records == 0) {
        t->n_columns = (int)r->n_fields;
    } else if (r->n_fields != (size_t)t->n_columns) {
        return mg_error_set(r->error, MG_ERR_FORMAT, "%s, line %td: the number of fields is %zu, but the header has %d",
                            r->name, r->record_line, r->n_fields, t->n_columns);
    }
    if (r->wanted == ALL) {
        void *line = t->line;
        mg_status status = reserve(&line, t->n_records, &t->record_room, t->n_records + 1, sizeof *t->line, r->error);
        t->line = line;
        if (status != MG_OK) return status;
        t->line[t->n_records] = r->record_line;
    }
    return t->n_records++ == 0 && r->only ? find_the_only(r) : MG_OK;
}

static void on_record(int end, void *context) {
    (void)end;
    reader *r = context;
    r->in_record = false;
    if (r->status == MG_OK) r->status = add_record(r);
    r->n_fields = 0;
}

static mg_status bad_quoting(const reader *r, bool at_end) {
    if (at_end)
        return mg_error_set(r->error, MG_ERR_FORMAT,
                            "%s, line %td: the quoted field that begins here is never closed: a \" is missing", r->name,
                            r->field_line);
    return mg_error_set(r->error, MG_ERR_FORMAT,
                        "%s, line %td: misplaced \" in the field that begins on line %td: put the whole "
                        "field in quotes and double each \" inside it",
                        r->name, r->line, r->field_line);
}

/* The end of the line that begins at `at`, its \n, \r\n or \r included; of a long line, only a part. */
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
        if (r->header_only && r->table->n_records > 0) return MG_OK;
    }
    if (r->status == MG_OK && csv_fini(parser, on_field, on_record, r) != 0) return bad_quoting(r, true);
    return r->status;
}

/* What may come before the header: a byte order mark, and Excel's line "sep=;". */
typedef struct preamble {
    size_t length;
    int lines;
    char delimiter; /* 0: no such line */
} preamble;

static preamble read_preamble(const char *bytes, size_t length) {
    size_t at = length >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0, end = at;
    preamble p = {.length = at};
    while (end < length && end - at < 10 && bytes[end] != '\n' && bytes[end] != '\r') end++;
    if (end == length || end - at == 10) return p;
    size_t quote = bytes[at] == '"' && bytes[end - 1] == '"' && end - at == 7;
    if (end - at != 5 + 2 * quote || strncasecmp(bytes + at + quote, "sep=", 4) != 0) return p;
    p.delimiter = bytes[at + quote + 4];
    p.length = end + 1 + (bytes[end] == '\r' && end + 1 < length && bytes[end + 1] == '\n');
    p.lines = 1;
    return p;
}

/* In a file whose fields are separated by tabs, a tab is no space. */
static int is_blank(unsigned char byte) {
    return byte == ' ';
}

static int never_space(unsigned char byte) {
    (void)byte;
    return 0;
}

/* Each cell is followed by a byte of the file, or by its end: the cells need no more room than the file. */
static mg_status reserve_text(mg_csv_table *t, size_t length, mg_error *error) {
    t->room = length + 1;
    t->text = mg_alloc(t->room, 1, "the cells of a CSV file", error);
    if (!t->text) return MG_ERR_MEMORY;
    mg_heap_fills_slowly(t->text, t->room);
    return MG_OK;
}

static mg_status parse(reader *r, const char *bytes, size_t length, bool trim, char delimiter) {
    struct csv_parser parser;
    preamble before = read_preamble(bytes, length);
    bytes += before.length;
    length -= before.length;
    r->line = r->record_line = r->field_line = 1 + before.lines;
    mg_status status = reserve_text(r->table, length, r->error);
    if (status != MG_OK) return status;
    if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI | CSV_APPEND_NULL) != 0)
        return mg_error_set(r->error, MG_ERR_MEMORY, "%s: the CSV parser could not start", r->name);
    csv_set_blk_size(&parser, FIELD_BLOCK);
    csv_set_delim(&parser, (unsigned char)delimiter);
    if (!trim)
        csv_set_space_func(&parser, never_space);
    else if (delimiter == '\t')
        csv_set_space_func(&parser, is_blank);
    status = feed(r, &parser, bytes, length);
    csv_free(&parser);
    if (status == MG_OK && r->table->n_records == 0)
        status = mg_error_set(r->error, MG_ERR_FORMAT, "%s is empty; a header line is needed", r->name);
    return status;
}

/* Parse with a reader whose table is still to be made. */
static mg_status parse_new(mg_csv_table **table, reader r, const char *bytes, size_t length, bool trim,
                           char delimiter) {
    *table = r.table = mg_alloc_zero(1, sizeof **table, "a CSV table", r.error);
    if (!*table) return MG_ERR_MEMORY;
    mg_status status = parse(&r, bytes, length, trim, delimiter);
    if (status != MG_OK) {
        mg_csv_free(*table);
        *table = NULL;
    }
    return status;
}

mg_status mg_csv_parse(mg_csv_table **table, const char *bytes, size_t length, const char *name, bool trim,
                       char delimiter, mg_error *error) {
    return parse_new(table, (reader){.name = name, .wanted = ALL, .error = error}, bytes, length, trim, delimiter);
}

/* ---- Which character separates the fields ---- */

/* How many of the wanted columns the header has, if this character separates its fields, and how many fields. */
static mg_status count_columns(const char *bytes, size_t length, char delimiter, const char *const *columns, int n,
                               int *found, size_t *fields, mg_error *error) {
    mg_csv_table *header;
    reader r = {.name = "", .wanted = ALL, .header_only = true, .error = error};
    *found = 0;
    *fields = 1;
    mg_status status = parse_new(&header, r, bytes, length, true, delimiter);
    if (status == MG_ERR_FORMAT) return MG_OK; /* whoever reads the file says why */
    if (status != MG_OK) return status;
    for (int i = 0; i < n; i++) *found += mg_csv_find(header, columns[i]) >= 0;
    *fields = (size_t)mg_csv_columns(header);
    mg_csv_free(header);
    return MG_OK;
}

mg_status mg_csv_delimiter(const char *bytes, size_t length, const char *const *columns, int n, char *delimiter,
                           int *found, mg_error *error) {
    static const char candidates[] = {',', ';', '\t', '|'}; /* from the most to the least usual */
    enum { LONGEST_HEADER = 1 << 20 };
    char named = read_preamble(bytes, length).delimiter;
    size_t most_fields = 0;
    *found = -1;
    if (length > LONGEST_HEADER) length = LONGEST_HEADER;
    for (size_t i = 0; i < (named ? 1 : sizeof candidates); i++) {
        char candidate = named ? named : candidates[i];
        int columns_found;
        size_t fields;
        mg_status status = count_columns(bytes, length, candidate, columns, n, &columns_found, &fields, error);
        if (status != MG_OK) return status;
        if (columns_found < *found || (columns_found == *found && (*found > 0 || fields <= most_fields))) continue;
        *found = columns_found;
        most_fields = fields;
        *delimiter = candidate;
    }
    return MG_OK;
}

mg_status mg_csv_read_column(const char *bytes, size_t length, const char *name, const char *column, char delimiter,
                             char joint, char **text, size_t *text_length, ptrdiff_t *rows, mg_error *error) {
    mg_csv_table *t;
    *text = NULL;
    int found;
    mg_status status = delimiter ? MG_OK : mg_csv_delimiter(bytes, length, &column, 1, &delimiter, &found, error);
    if (status != MG_OK) return status;
    reader r = {.name = name, .only = column, .wanted = ALL, .error = error};
    status = parse_new(&t, r, bytes, length, false, delimiter);
    if (status != MG_OK) return status;
    size_t header = t->start[t->n_columns];
    *rows = mg_csv_rows(t);
    *text_length = t->length - header - (*rows > 0); /* the last 0 is no newline */
    memmove(t->text, t->text + header, *text_length);
    for (char *end = t->text; (end = memchr(end, '\0', *text_length - (size_t)(end - t->text)));) *end++ = joint;
    t->text[*text_length] = '\0';
    *text = t->text;
    t->text = NULL;
    mg_csv_free(t);
    return MG_OK;
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

mg_csv_names_text mg_csv_names(const mg_csv_table *t) {
    static const char cut[] = ", …";
    mg_csv_names_text names = {""};
    size_t at = 0;
    for (int column = 0; column < t->n_columns; column++) {
        mg_quoted name = mg_quote(mg_csv_cell(t, -1, column));
        bool is_full = at + strlen(name.text) + sizeof ", " + sizeof cut > sizeof names.text;
        at += (size_t)snprintf(names.text + at, sizeof names.text - at, "%s%s", is_full || at == 0 ? "" : ", ",
                               is_full ? cut : name.text);
        if (is_full) break;
    }
    return names;
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
