/* The command `compare`: the numbers of two or more runs, and their curves in one picture. */
#include "compare.h"
#include "columns.h"
#include "commands.h"
#include "compare_groups.h"
#include "compare_page.h"
#include "flags.h"
#include "lab_private.h"
#include "language.h"
#include "printable.h"
#include "say.h"
#include "utf8.h"
#include "wrap.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_PATHS = 10000, FEW_RUNS = 8 };

static const mg_command_line line = {
    .name = "compare",
    .arguments = "RUN...",
    .min_arguments = 1,
    .max_arguments = MAX_PATHS,
    .doc =
        "Compare run folders, or all runs in a folder: how they ended, where they diverge, which settings differ, and "
        "their curves in one picture. Runs that differ only in their seed are a group, of which means and standard "
        "errors are shown; of more than eight runs, only these are.",
};

typedef struct compare_options {
    const char *out_dir, *by, *csv, *json;
    double to_loss;
    bool html;
} compare_options;

#define ROWS_OF compare_options
#include "flag_rows.h"
/* clang-format off */
static const mg_setting flags[] = {
    {.name = "out-dir", .also = "o", TEXT(out_dir, "DIR"), .help = "Folder for the picture and its numbers"},
    {.name = "by", TEXT(by, "FLAG,..."), .help = "Group runs by these flags of train [all in which they differ, but the seed]"},
    {.name = "to-loss", REAL(to_loss, 0, 1e9), .help = "Also measure the seconds to a validation loss of at most this"},
    {.name = "html", ON(html), .help = "Also write report.html: tables, and curves with values under the pointer"},
    {.name = "csv", TEXT(csv, "FILE"), .help = "Write all rows of all logs to one CSV: a row per run and step"},
    {.name = "json", TEXT(json, "FILE"), .help = "The same as a JSON list"},
    {0},
};
/* clang-format on */

/* ---- Tables ---- */

static int widest(const mg_run_record *records, int n) {
    int width = mg_utf8_columns(mg_words("run"));
    for (int i = 0; i < n; i++) {
        int columns = mg_utf8_columns(mg_shown(records[i].dir.path).text);
        if (columns > width) width = columns;
    }
    return width;
}

/* A run's folder, and blanks up to the width: printf counts bytes. */
static void print_path(const char *before, const mg_run_record *record, int width) {
    mg_shown_text path = mg_shown(record->dir.path);
    printf("%s%s%*s", before, path.text, width - mg_utf8_columns(path.text), "");
}

static void print_number(const char *format, double number, bool known, int width) {
    char text[32] = "-";
    if (known) snprintf(text, sizeof text, format, number);
    printf("  %*s", width, text);
}

/* Losses are in nats per token, and comparable where the tokens are the same. */
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

/* A loss in nats per token as bits per character, comparable across tokenizers; NaN where the run does not say. */
static double bits_per_character(const mg_run_record *record, const mg_run_log_row *row) {
    double characters = mg_run_json_characters_per_token(record->json);
    return row && characters > 0 ? row->loss / characters / log(2) : NAN;
}

static void print_units(const mg_run_record *records, int n, unit found) {
    bool known = true;
    for (int i = 0; i < n; i++) known = known && mg_run_json_characters_per_token(records[i].json) > 0;
    mg_print_wrapped(
        stdout, mg_columns(stdout), "", "  ",
        "train: the last step's windows; val: mean over the windows of an evaluation; best: the lowest val; nats "
        "per token");
    if (found == OTHER_TOKENS)
        mg_print_wrapped(
            stdout, mg_columns(stdout), "", "  ",
            known ? "The tokens differ, so these losses cannot be compared; on the same text, bits per character "
                    "(of the last val) can."
                  : "The tokens differ, so these losses cannot be compared.");
    if (found == OTHER_DATA)
        mg_print_wrapped(stdout, mg_columns(stdout), "", "  ",
                         "The data differ, so these losses are only comparable as far as the data are.");
}

/* The widths of a table of outcomes. A row that does not fit the terminal beside its run's name is below it. */
typedef struct outcome_table {
    int name, mask;
    bool bits, below;
} outcome_table;

enum { NUMBERS = 54, BITS = 11 }; /* columns that the numbers take */

static outcome_table table_of(const mg_run_record *records, int n, int width, bool bits) {
    outcome_table table = {.name = width, .mask = mg_utf8_columns(mg_words("mask")), .bits = bits};
    for (int i = 0; i < n; i++) {
        char mask[128];
        mg_mask_words(&records[i].options.train.model, mask, sizeof mask);
        if ((int)strlen(mask) > table.mask) table.mask = (int)strlen(mask);
    }
    table.below = width + 2 + table.mask + NUMBERS + (bits ? BITS : 0) > mg_columns(stdout);
    return table;
}

static void print_heading(const outcome_table *table) {
    if (table->below)
        mg_printf("run, mask\n");
    else
        mg_printf("%-*s  %-*s", table->name, "run", table->mask, "mask");
    mg_printf("  %7s  %7s  %7s  %7s  %7s  %7s%s\n", "steps", "train", "val", "best", "at step", "seconds",
              table->bits ? "  bits/char" : "");
}

static void print_outcome(const outcome_table *table, const mg_run_record *record) {
    mg_run_outcome o = mg_run_outcome_of(&record->log);
    char mask[128];
    mg_mask_words(&record->options.train.model, mask, sizeof mask);
    if (table->below)
        printf("%s, %s\n", mg_shown(record->dir.path).text, mask);
    else {
        print_path("", record, table->name);
        printf("  %-*s", table->mask, mask);
    }
    printf("  %7" PRId64, o.train ? o.train->step + 1 : 0);
    print_number("%.4f", o.train ? o.train->loss : 0, o.train, 7);
    print_number("%.4f", o.validation ? o.validation->loss : 0, o.validation, 7);
    print_number("%.4f", o.best ? o.best->loss : 0, o.best, 7);
    print_number("%.0f", o.best ? (double)o.best->step : 0, o.best, 7);
    print_number("%.2f", o.train ? o.train->seconds : 0, o.train, 7);
    double bits = bits_per_character(record, o.validation);
    if (table->bits) print_number("%.4f", bits, !isnan(bits), 9);
    putchar('\n');
    if (record->log.gap >= 0) mg_printf("  its log has no rows before step %" PRId64 "\n", record->log.gap);
    if (record->log.torn) mg_printf("  its log ends in the middle of a row; that row is left out\n");
}

static void print_outcomes(const mg_run_record *records, int n, int width) {
    unit found = unit_of(records, n);
    outcome_table table = table_of(records, n, width, found == OTHER_TOKENS);
    print_heading(&table);
    for (int i = 0; i < n; i++) print_outcome(&table, &records[i]);
    print_units(records, n, found);
}

/* "train losses: 20 steps in common, all equal" */
static void name_difference(const mg_run_log_difference *d, bool validation, char *text, size_t size) {
    int at = mg_snprintf(text, size, "%s losses: %s in common", validation ? "val  " : "train",
                         mg_count(d->common, "step").text);
    if (d->common > 0 && d->first_differs < 0) mg_snprintf(text + at, size - (size_t)at, ", all equal");
    if (d->first_differs >= 0)
        mg_snprintf(text + at, size - (size_t)at,
                    ", the first difference is at step %" PRId64 ", the largest difference is %.4g at step %" PRId64,
                    d->first_differs, d->largest, d->largest_at);
}

static void print_differences(const mg_run_record *records, int n) {
    for (int i = 1; i < n; i++)
        for (int validation = 0; validation < 2; validation++) {
            mg_run_log_difference d = mg_run_log_compare(&records[0].log, &records[i].log, validation);
            char text[512];
            name_difference(&d, validation, text, sizeof text);
            mg_tell("    ", "%s  %s", records[i].dir.path, text);
        }
}

static void print_settings(const mg_run_record *records, int n, int width) {
    bool any = false;
    mg_setting_cursor at = {0};
    for (const mg_setting *s; (s = mg_setting_next(&at, mg_run_settings));) {
        if (!mg_run_differs(s, at.base, records, n)) continue;
        any = true;
        printf("--%s\n", mg_run_typed(s, &records[0].options, at.base, NULL, 0));
        for (int i = 0; i < n; i++) {
            char value[MG_SETTING_ROOM];
            mg_run_typed(s, &records[i].options, at.base, value, sizeof value);
            print_path("  ", &records[i], width);
            printf("  %s\n", mg_shown(value).text);
        }
    }
    if (!any) mg_printf("none\n");
}

static bool any_attention(const mg_run_record *records, int n) {
    for (int i = 0; i < n; i++)
        if (records[i].attention.n > 0) return true;
    return false;
}

/* The rows of the last evaluation. */
static void print_attention(const mg_run_record *records, int n, int width) {
    if (!any_attention(records, n)) return;
    mg_printf("\nAttention at the last evaluation:\n%-*s  %6s  %5s  %8s  %8s  %9s\n", width, "run", "step", "layer",
              "entropy", "/ ln n", "saturated");
    for (int i = 0; i < n; i++) {
        const mg_run_attention_table *table = &records[i].attention;
        for (ptrdiff_t r = 0; r < table->n; r++) {
            const mg_run_attention_row *row = &table->row[r];
            if (row->step != table->row[table->n - 1].step) continue;
            print_path("", &records[i], width);
            printf("  %6" PRId64 "  %5d  %8.4f  %8.4f  %9.4f\n", row->step, row->layer, row->entropy, row->relative,
                   row->saturated);
        }
    }
    mg_print_wrapped(
        stdout, mg_columns(stdout), "", "  ",
        "entropy: mean over rows, in nats; / ln n: as a share of that of n equal weights; saturated: share "
        "of rows with a weight above 0.99");
}

static void print_tables(const mg_run_record *records, int n) {
    int width = widest(records, n);
    print_outcomes(records, n, width);
    mg_printf("\nAgainst %s:\n", mg_shown(records[0].dir.path).text);
    print_differences(records, n);
    print_attention(records, n, width);
    mg_printf("\nSettings that differ:\n");
    print_settings(records, n, width);
}

/* ---- The picture ---- */

static lab_color color_of(const mg_run_record *record, int i, int n) {
    if (n > 2) return lab_step(i, n);
    return mg_looks_ahead(record->options.train.model.mask) ? LAB_UNMASKED : LAB_MASKED;
}

/* One curve: the rows of one split, training losses averaged over stretches so that n_points are left. */
static void draw_split(mg_lab *lab, lab_figure *figure, const mg_run_record *record, bool validation, lab_color color) {
    enum { POINTS = 150 };
    const mg_run_log_table *log = &record->log;
    int n = 0, kept = 0, in_stretch = 0;
    for (ptrdiff_t i = 0; i < log->n; i++) n += log->row[i].validation == validation;
    int stretch = validation || n < POINTS ? 1 : (n + POINTS - 1) / POINTS;
    double *x = mg_arena_alloc(lab->arena, (size_t)n + 1, sizeof *x, "a curve");
    double *y = mg_arena_alloc(lab->arena, (size_t)n + 1, sizeof *y, "a curve");
    for (ptrdiff_t i = 0; i < log->n; i++) {
        if (log->row[i].validation != validation) continue;
        if (in_stretch == 0) x[kept] = y[kept] = 0;
        x[kept] += (double)log->row[i].step / stretch;
        y[kept] += log->row[i].loss / stretch;
        if (++in_stretch < stretch) continue;
        in_stretch = 0;
        kept++;
    }
    const char *label = lab_format(lab, "%s, %s", record->dir.path, validation ? "validation" : "training");
    if (kept == 0) return;
    if (validation)
        lab_points(figure, color, label, kept, x, y);
    else
        lab_line(figure, color, label, kept, x, y);
}

/* One curve of one layer, or with layer -1 of the mean over layers. */
static void draw_layer(lab_figure *figure, const mg_run_record *record, int layer, const char *label, lab_color color) {
    const mg_run_attention_table *table = &record->attention;
    double *x = mg_arena_alloc(figure->lab->arena, 2 * (size_t)table->n + 1, sizeof *x, "a curve"), *y = x + table->n;
    int n = 0, layers = 0;
    for (ptrdiff_t r = 0; r < table->n; r++) {
        const mg_run_attention_row *row = &table->row[r];
        if (layer >= 0 && row->layer != layer) continue;
        if (n == 0 || x[n - 1] != (double)row->step) {
            x[n] = (double)row->step;
            y[n++] = layers = 0;
        }
        y[n - 1] += (row->saturated - y[n - 1]) / ++layers;
    }
    lab_line(figure, color, label, n, x, y);
}

static void draw_attention(mg_lab *lab, const mg_run_record *records, int n) {
    if (!any_attention(records, n)) return;
    enum { MOST_LINES = 8 };
    int lines = 0, drawn = 0;
    for (int i = 0; i < n; i++) lines += records[i].attention.n > 0 ? records[i].options.train.model.n_layer : 0;
    lab_figure *figure = lab_figure_begin(lab, "saturation",
                                          "Rows of attention in which one key has more than 0.99 of the weight",
                                          (lab_axes){.x = "step", .y = "share of rows", .y_low = 0, .y_high = 1});
    for (int i = 0; i < n; i++) {
        int layers = records[i].attention.n > 0 ? records[i].options.train.model.n_layer : 0;
        if (lines > MOST_LINES && layers > 0) draw_layer(figure, &records[i], -1, records[i].dir.path, lab_step(i, n));
        for (int l = 0; l < layers && lines <= MOST_LINES; l++)
            draw_layer(figure, &records[i], l, lab_format(lab, "%s, layer %d", records[i].dir.path, l),
                       lab_step(drawn++, lines));
    }
    lab_figure_end(figure, "%s", lines > MOST_LINES ? "Means over layers." : "");
}

static void draw_runs(mg_lab *lab, const mg_run_record *records, int n) {
    lab_figure *figure = lab_figure_begin(lab, "loss", "Runs side by side",
                                          (lab_axes){.x = "step", .y = "loss (nats per token)", .y_from_zero = true});
    for (int i = 0; i < n; i++) {
        lab_color color = color_of(&records[i], i, n);
        /* Two runs under the same mask still need two colors. */
        if (n == 2 && i == 1 && color == color_of(&records[0], 0, n)) color = LAB_GREEN;
        draw_split(lab, figure, &records[i], false, color);
        draw_split(lab, figure, &records[i], true, color);
    }
    lab_figure_end(figure, "Lines: training, points: validation.");
}

static const lab_row page = {.name = "compare", .question = "Runs side by side"};

static mg_status write_pictures(mg_lab *lab, const char *out_dir, bool html, mg_error *error) {
    mg_run_dir folder;
    mg_status status = mg_run_dir_name(&folder, out_dir, error);
    if (status != MG_OK) return status;
    status = mg_run_dir_lock(&folder, error);
    if (status == MG_OK) status = mg_run_dir_claim(&folder, "maskgrad compare", error);
    if (status == MG_OK) status = lab_write_numbers(lab, error);
    lab_translate(lab);
    if (status == MG_OK) {
        status = lab_draw_pictures(lab, error);
        mg_shown_text shown = mg_shown(out_dir);
        putchar('\n');
        for (int i = 0; i < lab->blocks.n; i++) {
            const lab_block *block = lab->blocks.item[i];
            bool heat = block->kind == LAB_BLOCK_HEATMAP;
            if (block->kind == LAB_BLOCK_TABLE) continue;
            mg_tell("  ", "%s: %s/%s.%s", heat ? block->heatmap->title : block->figure->title, shown.text,
                    heat ? block->heatmap->name : block->figure->name, lab->pictures ? "png" : "csv");
        }
    }
    if (status == MG_OK && html) status = lab_write_report(lab, error);
    if (status == MG_OK && html) mg_tell("  ", "The page: %s/report.html", mg_shown(out_dir).text);
    mg_run_dir_close(&folder);
    return status;
}

/* ---- All of it ---- */

/* Few runs are shown one by one; groups where there are repetitions, or too many runs for that. */
static mg_status show(const compare_options *own, const mg_run_set *set, const mg_run_groups *groups, mg_error *error) {
    int n_shown = set->n + set->repeated; /* side by side, a folder may be shown with itself */
    bool each = n_shown <= FEW_RUNS && !own->by;
    bool grouped = !each || mg_run_groups_repeat(groups) || !isnan(own->to_loss);
    mg_lab *lab = lab_new(&page, error);
    if (!lab) return MG_ERR_MEMORY;
    lab->settings.out_dir = own->out_dir;
    if (each) print_tables(set->record, n_shown);
    if (each && grouped) putchar('\n');
    if (grouped) mg_groups_print(groups, set, own->to_loss);
    if (!grouped) mg_groups_tell_unfinished(set);
    if (set->repeated > 0)
        mg_tell("", "%s given again, such as %s: each folder counts once.", mg_count(set->repeated, "run").text,
                set->record[set->n].dir.path);
    if (set->not_begun > 0) mg_tell("", "%s without a step yet: left out.", mg_count(set->not_begun, "run").text);
    if (own->html && grouped) mg_compare_page_groups(lab, groups);
    if (grouped)
        mg_groups_draw(lab, groups, set);
    else
        draw_runs(lab, set->record, n_shown);
    if (each) draw_attention(lab, set->record, n_shown);
    if (own->html) mg_compare_page_runs(lab, set->record, n_shown);
    mg_status status = write_pictures(lab, own->out_dir, own->html, error);
    lab_free(lab);
    if (status == MG_OK && own->csv) status = mg_groups_write_csv(own->csv, groups, set, error);
    if (status == MG_OK && own->json) status = mg_groups_write_json(own->json, groups, set, error);
    return status;
}

static mg_status compare(const compare_options *own, int n, const char *const *paths, mg_error *error) {
    mg_run_set set;
    mg_run_groups groups = {0};
    mg_status status = mg_run_gather(&set, n, paths, error);
    if (status != MG_OK) return status;
    if (set.n + set.repeated < 2)
        status = mg_error_set(error, MG_ERR_INPUT, "one run is nothing to compare: name two or more");
    if (set.n == 0) status = mg_error_set(error, MG_ERR_STATE, "no run in %s has done a step yet", paths[0]);
    if (status == MG_OK) status = mg_run_groups_make(&groups, set.record, set.n, own->by, own->to_loss, error);
    if (status == MG_OK) status = show(own, &set, &groups, error);
    mg_run_groups_free(&groups);
    mg_run_set_free(&set);
    return status;
}

static int run_command(int argc, char **argv) {
    compare_options own = {.out_dir = "runs/compare", .to_loss = NAN};
    const mg_flag_table tables[] = {{flags, &own}, {NULL, NULL}};
    static const char *paths[MAX_PATHS];
    mg_error error;
    int n = mg_flags_parse(&line, tables, argc, argv, paths, NULL);
    mg_refuse_empty(&line, "out-dir", "folder", own.out_dir);
    return mg_command_end(&line, compare(&own, n, paths, &error), &error);
}

const mg_command mg_compare_command = {"compare", N_("Runs side by side, and groups of them with error bars"),
                                       run_command};
