#include "compare.h"
#include "columns.h"
#include "utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

mg_status mg_run_record_read(mg_run_record *record, const char *path, mg_error *error) {
    *record = (mg_run_record){.dir = {.lock = -1}};
    mg_status status = mg_run_dir_name(&record->dir, path, error);
    if (status == MG_OK) status = mg_run_json_read(&record->json, record->dir.run_json, &record->options, error);
    if (status == MG_OK) status = mg_run_log_read(&record->log, record->dir.log, error);
    if (status != MG_OK) mg_run_record_free(record);
    return status;
}

void mg_run_record_free(mg_run_record *record) {
    mg_run_log_table_free(&record->log);
    mg_run_json_free(record->json);
    mg_run_dir_close(&record->dir);
}

/* ---- Numbers ---- */

/* The next row of a split at or behind *at; NULL at the end. */
static const mg_run_log_row *next_row(const mg_run_log_table *table, bool validation, ptrdiff_t *at) {
    while (*at < table->n && table->row[*at].validation != validation) ++*at;
    return *at < table->n ? &table->row[*at] : NULL;
}

mg_run_log_difference mg_run_log_compare(const mg_run_log_table *a, const mg_run_log_table *b, bool validation) {
    mg_run_log_difference d = {.first_differs = -1, .largest_at = -1};
    ptrdiff_t i = 0, j = 0;
    for (;;) {
        const mg_run_log_row *x = next_row(a, validation, &i), *y = next_row(b, validation, &j);
        if (!x || !y) return d;
        if (x->step != y->step) {
            *(x->step < y->step ? &i : &j) += 1;
            continue;
        }
        double difference = fabs(x->loss - y->loss);
        d.common++;
        if (difference > 0 && d.first_differs < 0) d.first_differs = x->step;
        if (difference > d.largest) {
            d.largest = difference;
            d.largest_at = x->step;
        }
        i++;
        j++;
    }
}

typedef struct outcome {
    const mg_run_log_row *train, *validation, *best; /* last of each split, and the lowest of validation; or NULL */
} outcome;

static outcome outcome_of(const mg_run_log_table *table) {
    outcome o = {0};
    for (ptrdiff_t i = 0; i < table->n; i++) {
        const mg_run_log_row *row = &table->row[i];
        if (!row->validation) {
            o.train = row;
            continue;
        }
        o.validation = row;
        if (!o.best || row->loss < o.best->loss) o.best = row;
    }
    return o;
}

/* ---- Tables ---- */

static int widest(const mg_run_record *records, int n) {
    int width = (int)strlen("setting");
    for (int i = 0; i < n; i++) {
        int columns = mg_utf8_columns(records[i].dir.path);
        if (columns > width) width = columns;
    }
    return width;
}

/* How many blanks fill a text up to the width: printf counts bytes. */
static int padding(const char *text, int width) {
    return width - mg_utf8_columns(text);
}

static void print_number(const char *format, double number, bool known, int width) {
    char text[32] = "-";
    if (known) snprintf(text, sizeof text, format, number);
    printf("  %*s", width, text);
}

/* Losses are nats a token, and compare where a token is the same. */
typedef enum unit { SAME_UNIT, OTHER_DATA, OTHER_TOKENS } unit;

static unit unit_of(const mg_run_record *records, int n) {
    unit found = SAME_UNIT;
    for (int i = 1; i < n; i++) {
        const mg_run_json *a = records[0].json, *b = records[i].json;
        const char *kind_a = mg_run_json_tokenizer(a), *kind_b = mg_run_json_tokenizer(b);
        bool kinds_differ = kind_a && kind_b && strcmp(kind_a, kind_b) != 0;
        if (kinds_differ || mg_run_json_vocab_size(a) != mg_run_json_vocab_size(b)) return OTHER_TOKENS;
        if (mg_run_json_data_hash(a) != mg_run_json_data_hash(b)) found = OTHER_DATA;
    }
    return found;
}

/* A loss in nats a token as bits a character, which are the same for all tokens; NaN where the run does not tell. */
static double bits_a_character(const mg_run_record *record, const mg_run_log_row *row) {
    double characters = mg_run_json_characters_a_token(record->json);
    return row && characters > 0 ? row->loss / characters / log(2) : NAN;
}

static void print_units(const mg_run_record *records, int n, unit found) {
    bool told = true;
    for (int i = 0; i < n; i++) told = told && mg_run_json_characters_a_token(records[i].json) > 0;
    mg_print_wrapped(stdout, "", "  ",
                     "train: the last step's windows; val: mean over the windows of an evaluation; nats a token");
    if (found == OTHER_TOKENS)
        mg_print_wrapped(stdout, "", "  ",
                         told ? "The tokens differ, so these losses do not compare; on the same text, bits a character "
                                "(of the last val) do."
                              : "The tokens differ, so these losses do not compare.");
    if (found == OTHER_DATA)
        mg_print_wrapped(stdout, "", "  ", "The data differ, so these losses compare only as far as the data do.");
}

static void print_outcomes(const mg_run_record *records, int n, int width) {
    unit found = unit_of(records, n);
    printf("%-*s  %-12s  %8s  %8s  %8s  %8s  %8s  %9s%s\n", width, "run", "mask", "steps", "train", "val", "best val",
           "at step", "seconds", found == OTHER_TOKENS ? "  bits/char" : "");
    for (int i = 0; i < n; i++) {
        outcome o = outcome_of(&records[i].log);
        char mask[128];
        mg_mask_words(&records[i].options.train.model, mask, sizeof mask);
        printf("%s%*s  %-12s  %8" PRId64, records[i].dir.path, padding(records[i].dir.path, width), "", mask,
               o.train ? o.train->step + 1 : 0);
        print_number("%.4f", o.train ? o.train->loss : 0, o.train, 8);
        print_number("%.4f", o.validation ? o.validation->loss : 0, o.validation, 8);
        print_number("%.4f", o.best ? o.best->loss : 0, o.best, 8);
        print_number("%.0f", o.best ? (double)o.best->step : 0, o.best, 8);
        print_number("%.2f", o.train ? o.train->seconds : 0, o.train, 9);
        double bits = bits_a_character(&records[i], o.validation);
        if (found == OTHER_TOKENS) print_number("%.4f", bits, !isnan(bits), 9);
        putchar('\n');
        if (records[i].log.torn) printf("%-*s  its log ends within a row, which is left out\n", width, "");
    }
    print_units(records, n, found);
}

static void print_differences(const mg_run_record *records, int n, int width) {
    for (int i = 1; i < n; i++)
        for (int validation = 0; validation < 2; validation++) {
            mg_run_log_difference d = mg_run_log_compare(&records[0].log, &records[i].log, validation);
            printf("%s%*s  %s losses: %s in common", records[i].dir.path, padding(records[i].dir.path, width), "",
                   validation ? "val  " : "train", mg_count(d.common, "step").text);
            if (d.common > 0 && d.first_differs < 0) printf(", all equal");
            if (d.first_differs >= 0)
                printf(", the first that differs is step %" PRId64 ", the largest difference is %.4g at step %" PRId64,
                       d.first_differs, d.largest, d.largest_at);
            putchar('\n');
        }
}

static bool all_equal(const mg_flag *flag, const mg_run_record *records, int n) {
    for (int i = 1; i < n; i++)
        if (!mg_flag_equal(flag, &records[0].options, &records[i].options)) return false;
    return true;
}

static void print_settings(const mg_run_record *records, int n, int width) {
    bool any = false;
    for (const mg_flag *const *table = mg_run_flags; *table; table++)
        for (const mg_flag *flag = *table; !mg_flag_is_end(flag); flag++) {
            bool is_setting = flag->kind != MG_FLAG_HEADING && flag->role != MG_ROLE_COMMAND;
            if (!is_setting || all_equal(flag, records, n)) continue;
            any = true;
            printf("%s\n", flag->name);
            for (int i = 0; i < n; i++) {
                char value[4096];
                mg_flag_format(flag, &records[i].options, value, sizeof value);
                printf("  %s%*s  %s\n", records[i].dir.path, padding(records[i].dir.path, width), "",
                       value[0] ? value : "-");
            }
        }
    if (!any) puts("none");
}

void mg_compare_print(const mg_run_record *records, int n) {
    int width = widest(records, n);
    print_outcomes(records, n, width);
    printf("\nAgainst %s:\n", records[0].dir.path);
    print_differences(records, n, width);
    puts("\nSettings that differ:");
    print_settings(records, n, width);
}
