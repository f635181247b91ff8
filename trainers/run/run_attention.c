#include "run_attention.h"
#include "arithmetic.h"
#include "atomic_file.h"
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

static const char header[] = "step,layer,entropy,relative,saturated\n";
enum { WINDOWS = 16, LONGEST_ROW = 160 };

/* ---- Measuring ---- */

typedef struct sums {
    double entropy, relative, saturated;
    ptrdiff_t rows;
} sums;

/* A row of n scores, -inf where nothing is seen. With Z = Σ exp(s − max): H = ln Z − Σ p (s − max), and 1/Z is the
 * largest weight. */
static void add_row(sums *to, const mg_real *scores, ptrdiff_t n) {
    double max = -INFINITY, z = 0, mean = 0;
    ptrdiff_t visible = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        max = fmax(max, (double)scores[i]);
        visible += scores[i] != (mg_real)-INFINITY;
    }
    if (visible < 2) return;
    for (ptrdiff_t i = 0; i < n; i++) {
        if (scores[i] == (mg_real)-INFINITY) continue;
        double below = (double)scores[i] - max, e = mg_exp_double(below);
        z += e;
        mean += e * below;
    }
    double entropy = mg_log_double(z) - mean / z;
    to->entropy += entropy;
    to->relative += entropy / mg_log_double((double)visible);
    to->saturated += 1 / z > MG_SATURATED;
    to->rows++;
}

/* One window at a time: the scores of all would be (windows, layers, heads, T, T). */
static mg_status measure(mg_gpt *gpt, const mg_corpus *corpus, uint64_t seed, const mg_stop *stop, mg_real *scores,
                         int *ids, sums *layer, mg_error *error) {
    const mg_gpt_config *c = mg_gpt_get_config(gpt);
    ptrdiff_t T = c->block_size, rows = c->n_head * T;
    mg_tape *tape;
    mg_status status = mg_tape_new(&tape, error);
    if (status != MG_OK) return status;
    mg_tape_record(tape, false);
    mg_gpt_capture capture = {.scores = scores};
    const mg_gpt_pass pass = {.capture = &capture};
    for (ptrdiff_t window = 0; window < WINDOWS && status == MG_OK; window++) {
        mg_corpus_windows(corpus, MG_VALIDATION, (mg_rng){seed, MG_STREAM_EVAL, 0}, window, 1, T, ids, ids + T);
        mg_gpt_forward(gpt, tape, ids, 1, T, &pass);
        mg_tape_reset(tape);
        for (int l = 0; l < c->n_layer; l++)
            for (ptrdiff_t row = 0; row < rows; row++) add_row(&layer[l], scores + (l * rows + row) * T, T);
        if (stop && stop->asked(stop->user))
            status = mg_error_set(error, MG_ERR_STOPPED, "the evaluation was interrupted");
    }
    mg_tape_free(tape);
    return status;
}

/* ---- Writing ---- */

static int print_row(char *text, size_t size, const mg_run_attention_row *row) {
    return snprintf(text, size, "%" PRId64 ",%d,%.9g,%.9g,%.9g\n", row->step, row->layer, row->entropy, row->relative,
                    row->saturated);
}

static mg_status append(const char *path, const char *text, size_t size, mg_error *error) {
    int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    ssize_t written = -1;
    if (file >= 0) {
        do written = write(file, text, size);
        while (written < 0 && errno == EINTR);
        if (written >= 0 && (size_t)written < size) errno = ENOSPC;
        close(file);
    }
    if (written >= 0 && (size_t)written == size) return MG_OK;
    return mg_error_set(error, MG_ERR_IO, "cannot write %s: %s", path, strerror(errno));
}

static mg_status write_layers(const char *path, const sums *layer, int n_layer, int64_t step, char *text,
                              mg_error *error) {
    size_t size = 0;
    for (int l = 0; l < n_layer; l++) {
        double n = (double)layer[l].rows; /* 0 where no row sees two keys: nan */
        mg_run_attention_row row = {step, l, layer[l].entropy / n, layer[l].relative / n, layer[l].saturated / n};
        size += (size_t)print_row(text + size, LONGEST_ROW, &row);
    }
    return append(path, text, size, error);
}

mg_status mg_run_attention_log(const char *path, mg_gpt *gpt, const mg_corpus *corpus, uint64_t seed, int64_t step,
                               const mg_stop *stop, mg_error *error) {
    const mg_gpt_config *c = mg_gpt_get_config(gpt);
    size_t L = (size_t)c->n_layer, T = (size_t)c->block_size;
    mg_real *scores = mg_alloc(L * (size_t)c->n_head * T * T, sizeof *scores, "the scores of a window", error);
    int *ids = mg_alloc(2 * T, sizeof *ids, "a window", error);
    sums *layer = mg_alloc_zero(L, sizeof *layer, "sums over rows", error);
    char *text = mg_alloc(L, LONGEST_ROW, "rows of attention.csv", error);
    mg_status status = scores && ids && layer && text ? MG_OK : MG_ERR_MEMORY;
    if (status == MG_OK) status = measure(gpt, corpus, seed, stop, scores, ids, layer, error);
    if (status == MG_OK) status = write_layers(path, layer, c->n_layer, step, text, error);
    mg_free(scores);
    mg_free(ids);
    mg_free(layer);
    mg_free(text);
    return status;
}

mg_status mg_run_attention_resume(const char *path, int64_t step, mg_error *error) {
    mg_run_attention_table table;
    mg_status status = mg_run_attention_read(&table, path, error);
    if (status != MG_OK) return status;
    mg_atomic_text file;
    status = mg_atomic_text_begin(&file, path, error);
    if (status == MG_OK) {
        fputs(header, file.out);
        for (ptrdiff_t i = 0; i < table.n && table.row[i].step < step; i++) {
            char text[LONGEST_ROW];
            print_row(text, sizeof text, &table.row[i]);
            fputs(text, file.out);
        }
        status = mg_atomic_text_end(&file, error);
    }
    mg_run_attention_free(&table);
    return status;
}

/* ---- Reading ---- */

static bool parse_row(const char *line, mg_run_attention_row *row) {
    int end = 0;
    return line[strspn(line, "0123456789,.+-einaf")] == '\n' &&
           sscanf(line, "%15" SCNd64 ",%9d,%lf,%lf,%lf%n", &row->step, &row->layer, &row->entropy, &row->relative,
                  &row->saturated, &end) == 5 &&
           line[end] == '\n' && row->step >= 0 && row->layer >= 0;
}

static mg_status parse(mg_run_attention_table *table, FILE *file, size_t bytes, const char *path, mg_error *error) {
    char line[LONGEST_ROW];
    table->row = mg_alloc(bytes / strlen("0,0,0,0,0\n") + 1, sizeof *table->row, path, error);
    if (!table->row) return MG_ERR_MEMORY;
    for (int number = 1; fgets(line, sizeof line, file); number++) {
        bool whole = strchr(line, '\n') != NULL;
        if (!whole && feof(file)) return MG_OK; /* torn by a kill */
        mg_run_attention_row *row = &table->row[table->n];
        if (number == 1 && strcmp(line, header) == 0) continue;
        if (number == 1 || !whole || !parse_row(line, row) || (table->n > 0 && row->step < row[-1].step))
            return mg_error_set(error, MG_ERR_FORMAT, "%s, line %d is not %s %.*s: '%.*s'", path, number,
                                number == 1 ? "the header" : "a row of", (int)strlen(header) - 1, header,
                                (int)strcspn(line, "\n"), line);
        table->n++;
    }
    return MG_OK;
}

mg_status mg_run_attention_read(mg_run_attention_table *table, const char *path, mg_error *error) {
    *table = (mg_run_attention_table){0};
    if (access(path, F_OK) != 0) return MG_OK;
    int descriptor;
    size_t bytes;
    mg_status status = mg_open_regular(path, &descriptor, &bytes, error);
    if (status != MG_OK) return status;
    FILE *file = fdopen(descriptor, "rb");
    if (!file) {
        close(descriptor);
        return mg_error_set(error, MG_ERR_IO, "cannot read %s: %s", path, strerror(errno));
    }
    status = parse(table, file, bytes, path, error);
    fclose(file);
    if (status != MG_OK) mg_run_attention_free(table);
    return status;
}

void mg_run_attention_free(mg_run_attention_table *table) {
    mg_free(table->row);
    *table = (mg_run_attention_table){0};
}
