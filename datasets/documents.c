#define _GNU_SOURCE /* memmem */
#include "documents.h"
#include "csv_table.h"
#include "hash.h"
#include "heap.h"
#include "read_text.h"
#include "tokenizer_internal.h"

#include <string.h>

/* The text of one file, and where it is in its block: a byte order mark is skipped, not moved. */
typedef struct part {
    const char *path; /* for messages */
    char *block, *text;
    size_t length;
} part;

static const char *shown_path(const char *path) {
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

/* ---- One file ---- */

static ptrdiff_t count(const char *text, size_t length, char wanted) {
    ptrdiff_t n = 0;
    for (size_t i = 0; i < length; i++) n += text[i] == wanted;
    return n;
}

static void skip_mark(mg_documents *d, part *p) {
    if (p->length < 3 || memcmp(p->text, "\xEF\xBB\xBF", 3) != 0) return;
    d->n_marks++;
    p->text += 3;
    p->length -= 3;
}

/* Lines end with \n: \r is dropped, but where it ends the lines of a text that has no \n, it becomes one. */
static void tidy_returns(mg_documents *d, part *p, bool keep) {
    ptrdiff_t n = count(p->text, p->length, '\r');
    d->n_returns += n;
    if (n == 0 || keep) return;
    bool is_old_mac = !memchr(p->text, '\n', p->length);
    d->n_old_mac += is_old_mac;
    size_t to = 0;
    for (size_t from = 0; from < p->length; from++) {
        if (p->text[from] != '\r')
            p->text[to++] = p->text[from];
        else if (is_old_mac)
            p->text[to++] = '\n';
    }
    p->length = to;
}

/* <|endoftext|> is counted, or becomes a 0 byte. */
static void mark_specials(mg_documents *d, part *p, bool special) {
    static const char literal[] = MG_END_OF_TEXT;
    enum { LENGTH = sizeof literal - 1 };
    size_t to = 0, from = 0;
    for (const char *found; from < p->length; from += LENGTH) {
        found = memmem(p->text + from, p->length - from, literal, LENGTH);
        size_t n = found ? (size_t)(found - p->text) - from : p->length - from;
        if (special) memmove(p->text + to, p->text + from, n);
        to += n;
        from += n;
        if (!found) break;
        d->n_literal++;
        if (special) p->text[to++] = '\0';
    }
    if (special) p->length = to;
}

static mg_status take_column(mg_documents *d, part *p, const mg_documents_options *o, mg_error *error) {
    char *text;
    size_t length;
    ptrdiff_t rows;
    mg_status status = mg_csv_read_column(p->text, p->length, shown_path(p->path), o->column, o->delimiter,
                                          o->mark ? '\0' : '\n', &text, &length, &rows, error);
    if (status != MG_OK) return status;
    mg_free(p->block);
    *p = (part){p->path, text, text, length};
    if (rows == 0) return mg_error_set(error, MG_ERR_FORMAT, "%s has a header but no rows", shown_path(p->path));
    d->rows += rows;
    return MG_OK;
}

/* From a file's bytes to its text. */
static mg_status work_up(mg_documents *d, part *p, const mg_documents_options *o, mg_error *error) {
    mg_status status = MG_OK;
    d->hash = mg_fnv1a(d->hash, p->text, p->length);
    if (o->column)
        status = take_column(d, p, o, error);
    else
        skip_mark(d, p);
    if (status != MG_OK) return status;
    tidy_returns(d, p, o->keep_returns);
    mark_specials(d, p, o->special);
    if (o->column && !o->mark) d->line_ends += count(p->text, p->length, '\n');
    return MG_OK;
}

/* ---- All files ---- */

mg_status mg_documents_begin(mg_documents *d, const mg_data_options *data, mg_error *error) {
    bool doubt;
    *d = (mg_documents){.hash = MG_FNV_START};
    mg_status status = mg_data_files_find(&d->files, data->path, error);
    if (status != MG_OK) return status;
    d->end = mg_alloc((size_t)d->files.n, sizeof *d->end, "a list of files", error);
    if (!d->end) return MG_ERR_MEMORY;
    status = mg_read_data(d->files.path[0], data->encoding, &d->text, &d->length, &doubt, error);
    d->n_doubtful += status == MG_OK && doubt;
    return status;
}

/* Between two files: a line ends, or a document. */
static mg_status append(mg_documents *d, size_t *room, const part *p, const mg_documents_options *o, bool last,
                        mg_error *error) {
    size_t needed = d->length + p->length + 2;
    if (needed > *room) {
        size_t wanted = needed > 2 * *room ? needed : 2 * *room;
        char *grown = mg_alloc_grow(d->text, d->length, wanted, 1, "the texts of several files", error);
        if (!grown) return MG_ERR_MEMORY;
        d->text = grown;
        *room = wanted;
    }
    memcpy(d->text + d->length, p->text, p->length);
    d->length += p->length;
    bool ends = d->length > 0 && d->text[d->length - 1] == (o->mark ? '\0' : '\n');
    if (!last && (!ends || o->column)) d->text[d->length++] = o->mark ? '\0' : '\n';
    d->text[d->length] = '\0';
    return MG_OK;
}

static mg_status join(mg_documents *d, part *first, const mg_documents_options *o, mg_error *error) {
    size_t room = 0;
    mg_status status = MG_OK;
    for (int i = 0; i < d->files.n && status == MG_OK; i++) {
        part next = {.path = d->files.path[i]};
        part *p = i == 0 ? first : &next;
        bool doubt = false;
        if (i > 0) {
            d->hash = mg_fnv1a(d->hash, "", 1);
            status = mg_read_data(next.path, o->encoding, &next.block, &next.length, &doubt, error);
            next.text = next.block;
            d->n_doubtful += status == MG_OK && doubt;
            if (status == MG_OK) status = work_up(d, &next, o, error);
        }
        if (status == MG_OK) status = append(d, &room, p, o, i + 1 == d->files.n, error);
        d->end[i] = d->length;
        mg_free(next.block);
    }
    return status;
}

mg_status mg_documents_join(mg_documents *d, const mg_documents_options *o, mg_error *error) {
    part first = {d->files.path[0], d->text, d->text, d->length};
    d->text = NULL;
    d->length = 0;
    mg_status status = work_up(d, &first, o, error);
    if (status == MG_OK && d->files.n == 1) {
        memmove(first.block, first.text, first.length);
        first.block[first.length] = '\0';
        d->text = first.block;
        d->length = d->end[0] = first.length;
        first.block = NULL;
    } else if (status == MG_OK) {
        status = join(d, &first, o, error);
    }
    mg_free(first.block);
    if (status == MG_OK) d->n_ends = count(d->text, d->length, '\0');
    if (status == MG_OK && o->column && !o->mark) d->line_ends -= d->rows - d->files.n; /* those between rows */
    return status;
}

void mg_documents_free(mg_documents *d) {
    mg_data_files_free(&d->files);
    mg_free(d->text);
    mg_free(d->end);
    *d = (mg_documents){0};
}
