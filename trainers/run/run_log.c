#include "run_log.h"
#include "heap.h"
#include "regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char header[] = "step,split,loss,lr,grad_norm,tokens,seconds\n";

struct mg_run_log {
    int file;
    char *path;
};

static mg_status system_error(const char *what, const char *path, mg_error *error) {
    return mg_error_set(error, MG_ERR_IO, "%s %s: %s", what, path, strerror(errno));
}

/* ---- Writing ---- */

static mg_status write_text(mg_run_log *log, const char *text, size_t size, mg_error *error) {
    ssize_t written;
    do written = write(log->file, text, size);
    while (written < 0 && errno == EINTR);
    if (written < 0) return system_error("cannot write", log->path, error);
    if ((size_t)written == size) return MG_OK;
    errno = ENOSPC; /* a file takes less than it is given only when there is no room */
    return system_error("cannot write", log->path, error);
}

static mg_status open_log(mg_run_log **log, const char *path, int flags, mg_error *error) {
    *log = NULL;
    mg_run_log *made = mg_alloc_zero(1, sizeof *made, "a log", error);
    if (!made) return MG_ERR_MEMORY;
    made->path = mg_strdup(path, error);
    made->file = made->path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC | flags, 0666) : -1;
    if (made->file < 0) {
        mg_status status = made->path ? system_error("cannot write", path, error) : MG_ERR_MEMORY;
        mg_run_log_close(made);
        return status;
    }
    *log = made;
    return MG_OK;
}

mg_status mg_run_log_create(mg_run_log **log, const char *path, mg_error *error) {
    mg_status status = open_log(log, path, O_CREAT | O_TRUNC, error);
    if (status == MG_OK) status = write_text(*log, header, strlen(header), error);
    if (status != MG_OK) {
        mg_run_log_close(*log);
        *log = NULL;
    }
    return status;
}

mg_run_log_text mg_run_log_format(const mg_run_log_row *row) {
    mg_run_log_text line;
    char norm[40] = "";
    if (!isnan(row->grad_norm)) snprintf(norm, sizeof norm, "%.9g", row->grad_norm);
    snprintf(line.text, sizeof line.text, "%" PRId64 ",%s,%.9g,%.9g,%s,%" PRId64 ",%.6f", row->step,
             row->validation ? "val" : "train", row->loss, row->lr, norm, row->tokens, row->seconds);
    return line;
}

mg_status mg_run_log_append(mg_run_log *log, const mg_run_log_row *row, mg_error *error) {
    char line[sizeof(mg_run_log_text) + 1];
    int n = snprintf(line, sizeof line, "%s\n", mg_run_log_format(row).text);
    return write_text(log, line, (size_t)n, error);
}

mg_status mg_run_log_sync(mg_run_log *log, mg_error *error) {
    return fsync(log->file) == 0 ? MG_OK : system_error("cannot write", log->path, error);
}

void mg_run_log_close(mg_run_log *log) {
    if (!log) return;
    if (log->file >= 0) close(log->file);
    mg_free(log->path);
    mg_free(log);
}

/* ---- Reading ---- */

static mg_status read_all(const char *path, char **text, size_t *size, mg_error *error) {
    int fd;
    *text = NULL;
    mg_status status = mg_open_regular(path, &fd, size, error);
    if (status != MG_OK) return status;
    FILE *file = fdopen(fd, "rb");
    *text = file ? mg_alloc(*size + 1, 1, path, error) : NULL;
    if (*text) {
        *size = fread(*text, 1, *size, file);
        (*text)[*size] = '\0';
        status = ferror(file) ? system_error("cannot read", path, error) : MG_OK;
    } else {
        status = file ? MG_ERR_MEMORY : system_error("cannot read", path, error);
    }
    if (file)
        fclose(file);
    else
        close(fd);
    if (status == MG_OK) return MG_OK;
    mg_free(*text);
    *text = NULL;
    return status;
}

/* One field as a number, as we write them: decimal digits, or nan and inf, which a diverging run logs. */
static bool take_number(const char **text, double *number, char separator) {
    size_t length = strspn(*text, "0123456789+-.e");
    const char *digits = **text == '-' ? *text + 1 : *text;
    if (strncmp(digits, "nan", 3) == 0 || strncmp(digits, "inf", 3) == 0) length = (size_t)(digits - *text) + 3;
    char *end;
    *number = strtod(*text, &end);
    if (length == 0 || end != *text + length || *end != separator) return false;
    *text = end + 1;
    return true;
}

/* A count has digits only, and fits a double. */
static bool take_count(const char **text, int64_t *count, char separator) {
    size_t length = strspn(*text, "0123456789");
    if (length == 0 || length > 15 || (*text)[length] != separator) return false;
    *count = strtoll(*text, NULL, 10);
    *text += length + 1;
    return true;
}

static bool take_split(const char **text, bool *validation) {
    *validation = strncmp(*text, "val,", 4) == 0;
    if (!*validation && strncmp(*text, "train,", 6) != 0) return false;
    *text += *validation ? 4 : 6;
    return true;
}

/* A whole line, which ends with a newline. NULL, or what is wrong with it. */
static const char *parse_row(const char *line, mg_run_log_row *row) {
    if (*line == '\n') return "is empty";
    row->grad_norm = NAN;
    bool well_formed = take_count(&line, &row->step, ',') && take_split(&line, &row->validation) &&
                       take_number(&line, &row->loss, ',') && take_number(&line, &row->lr, ',');
    if (well_formed && *line == ',')
        line++;
    else
        well_formed = well_formed && take_number(&line, &row->grad_norm, ',');
    well_formed = well_formed && take_count(&line, &row->tokens, ',') && take_number(&line, &row->seconds, '\n');
    if (!well_formed) return "is not a row";
    if (!(row->lr >= 0 && row->lr < INFINITY)) return "has a learning rate that is not a number from 0 up";
    if (!(row->seconds >= 0 && row->seconds < 1e15)) return "has seconds that are not a number from 0 up";
    return NULL;
}

/* Steps and tokens never fall from row to row, and a step is trained once. NULL, or what is wrong. */
static const char *check_order(const mg_run_log_row *row, const mg_run_log_row *before) {
    if (!before) return NULL;
    if (row->tokens < before->tokens) return "has fewer tokens than the row before it";
    bool next = row->step > before->step || (row->step == before->step && before->validation);
    return next ? NULL : "has a step that does not follow that of the row before it";
}

/* The step before which training rows are missing, where the file has a later one; -1: none. A log that begins late
 * has no gap: a lost log is started again. */
static int64_t find_gap(const mg_run_log_table *table) {
    for (ptrdiff_t i = 1; i < table->n; i++) {
        const mg_run_log_row *before = &table->row[i - 1];
        if (table->row[i].step > mg_run_log_steps_done(before)) return table->row[i].step;
    }
    return -1;
}

static ptrdiff_t count_lines(const char *text, size_t size) {
    ptrdiff_t n = 0;
    for (size_t i = 0; i < size; i++) n += text[i] == '\n';
    return n;
}

/* Rows from a file's text, up to its last newline. *whole: how many bytes these are. */
static mg_status parse_log(mg_run_log_table *table, const char *text, size_t size, const char *path, size_t *whole,
                           mg_error *error) {
    size_t header_size = strlen(header);
    if (size < header_size && memcmp(text, header, size) == 0) { /* killed while the header was written */
        *whole = 0;
        table->torn = true;
        return MG_OK;
    }
    if (size < header_size || memcmp(text, header, header_size) != 0)
        return mg_error_set(
            error, MG_ERR_FORMAT,
            "%s does not begin with the header %.*s: it is not the log of a run; if it was, put that line "
            "back, or move the file away, and --resume begins a new one",
            path, (int)header_size - 1, header);
    table->row = mg_alloc((size_t)count_lines(text, size), sizeof *table->row, "the rows of a log", error);
    if (!table->row) return MG_ERR_MEMORY;
    const char *line = text + header_size, *end;
    for (int number = 2; (end = strchr(line, '\n')); line = end + 1, number++) {
        mg_run_log_row *row = &table->row[table->n], *before = table->n > 0 ? row - 1 : NULL;
        const char *wrong = parse_row(line, row);
        if (!wrong) wrong = check_order(row, before);
        if (wrong)
            return mg_error_set(error, MG_ERR_FORMAT,
                                "%s, line %d %s of %.*s: '%.*s'; keep a copy, delete this line and those after it, "
                                "and the rows before it can be used",
                                path, number, wrong, (int)header_size - 1, header,
                                (int)(end - line < 200 ? end - line : 200), line);
        table->n++;
    }
    table->gap = find_gap(table);
    *whole = (size_t)(line - text);
    table->torn = *whole < size;
    return MG_OK;
}

static mg_status read_log(mg_run_log_table *table, const char *path, char **text, size_t *size, size_t *whole,
                          mg_error *error) {
    *table = (mg_run_log_table){.gap = -1};
    mg_status status = read_all(path, text, size, error);
    if (status == MG_OK) status = parse_log(table, *text, *size, path, whole, error);
    if (status != MG_OK) {
        mg_run_log_table_free(table);
        mg_free(*text);
        *text = NULL;
    }
    return status;
}

mg_status mg_run_log_read(mg_run_log_table *table, const char *path, mg_error *error) {
    char *text;
    size_t size, whole;
    mg_status status = read_log(table, path, &text, &size, &whole, error);
    mg_free(text);
    return status;
}

void mg_run_log_table_free(mg_run_log_table *table) {
    mg_free(table->row);
    *table = (mg_run_log_table){0};
}

/* Up to `size` bytes of the file's end; the number of them, or -1. */
static ssize_t read_end(const char *path, char *text, size_t size, size_t *bytes) {
    int fd;
    if (mg_open_regular(path, &fd, bytes, NULL) != MG_OK) return -1;
    ssize_t n = pread(fd, text, size, *bytes > size ? (off_t)(*bytes - size) : 0);
    close(fd);
    return n;
}

bool mg_run_log_last(const char *path, mg_run_log_row *row) {
    char text[1024];
    size_t bytes;
    ssize_t n = read_end(path, text, sizeof text - 1, &bytes);
    while (n > 0 && text[n - 1] != '\n') n--;
    if (n <= 1) return false;
    text[n] = '\0';
    ssize_t begin = n - 1;
    while (begin > 0 && text[begin - 1] != '\n') begin--;
    return begin > 0 && parse_row(text + begin, row) == NULL;
}

bool mg_run_log_is_bare(const char *path) {
    char text[sizeof header];
    size_t bytes;
    ssize_t n = read_end(path, text, sizeof text, &bytes);
    return n >= 0 && bytes < sizeof header && (size_t)n == bytes && memcmp(text, header, bytes) == 0;
}

/* ---- Resuming ---- */

/* How many of the rows belong before `step`: steps never fall from row to row. */
static ptrdiff_t rows_before(const mg_run_log_table *table, int64_t step) {
    ptrdiff_t n = 0;
    while (n < table->n && table->row[n].step < step) n++;
    return n;
}

/* The bytes of the header and the first n rows. */
static size_t bytes_of(const char *text, ptrdiff_t n) {
    const char *end = text;
    for (ptrdiff_t i = 0; i <= n; i++) end = strchr(end, '\n') + 1;
    return (size_t)(end - text);
}

/* The evaluation at the end of a run whose last checkpoint is of the same step: nothing is lost by dropping it. */
static bool is_last_evaluation(const mg_run_log_table *table, ptrdiff_t row, int64_t step) {
    return row == table->n - 1 && table->row[row].validation && table->row[row].step == step;
}

static void describe(char *warning, size_t size, const char *path, const mg_run_log_table *table, bool has_header,
                     ptrdiff_t kept, int64_t step) {
    warning[0] = '\0';
    size_t n = 0;
    if (!has_header)
        n = (size_t)mg_snprintf(warning, size, "%s has no header yet and is started again", path);
    else if (table->torn)
        n = (size_t)mg_snprintf(warning, size, "%s ends within a row, which is dropped", path);
    if (n < size && kept < table->n && !is_last_evaluation(table, kept, step))
        n += (size_t)mg_snprintf(warning + n, size - n,
                                 "%srows of step %" PRId64 " and later (%td) are dropped from %s", n ? "; " : "", step,
                                 table->n - kept, path);
    if (n < size && table->gap >= 0 && table->gap < step)
        n += (size_t)mg_snprintf(warning + n, size - n, "%s%s has no rows before step %" PRId64, n ? "; " : "", path,
                                 table->gap);
    if (n < size && step > 0 && (kept == 0 || table->row[kept - 1].step != step - 1))
        mg_snprintf(warning + n, size - n, "%s%s is missing the rows before step %" PRId64, n ? "; " : "", path, step);
}

mg_status mg_run_log_resume(mg_run_log **log, const char *path, int64_t step, mg_run_log_row *last, char *warning,
                            size_t size, mg_error *error) {
    mg_run_log_table table;
    char *text;
    size_t length, whole;
    *log = NULL;
    *last = (mg_run_log_row){.step = -1};
    if (access(path, F_OK) != 0) {
        mg_snprintf(warning, size, "%s is gone: a new one begins at step %" PRId64, path, step);
        return mg_run_log_create(log, path, error);
    }
    mg_status status = read_log(&table, path, &text, &length, &whole, error);
    if (status != MG_OK) return status;
    ptrdiff_t kept = rows_before(&table, step);
    describe(warning, size, path, &table, whole > 0, kept, step);
    if (kept > 0) *last = table.row[kept - 1];
    size_t bytes = whole == 0 ? 0 : bytes_of(text, kept);
    mg_run_log_table_free(&table);
    mg_free(text);

    status = open_log(log, path, 0, error);
    if (status != MG_OK) return status;
    if (ftruncate((*log)->file, (off_t)bytes) != 0)
        status = system_error("cannot write", path, error);
    else if (bytes == 0)
        status = write_text(*log, header, strlen(header), error);
    if (status == MG_OK) return MG_OK;
    mg_run_log_close(*log);
    *log = NULL;
    return status;
}
