/* maskgrad compare: the numbers of two or more runs (trainers/compare.h) and their curves in one picture. */
#include "compare.h"
#include "experiment_commands.h"
#include "lab_private.h"

#include <math.h>
#include <stdio.h>

enum { MAX_RUNS = 100 };

static const mg_command_line line = {
    .name = "compare",
    .arguments = "RUN RUN...",
    .min_arguments = 2,
    .max_arguments = MAX_RUNS,
    .doc = "Two or more run folders side by side: how they ended, where they part, in which settings they differ, and "
           "their curves in one picture.",
};

typedef struct compare_options {
    const char *out_dir;
} compare_options;

static const mg_flag compare_flags[] = {
    {.name = "out-dir",
     .also = "o",
     .kind = MG_FLAG_TEXT,
     .offset = offsetof(compare_options, out_dir),
     .argument = "DIR",
     .help = "Folder for the picture and its numbers"},
    {0},
};

static lab_colour colour_of(const mg_run_record *record, int i, int n) {
    if (n > 2) return lab_step(i, n);
    return record->options.train.model.lookahead == 0 ? LAB_MASKED : LAB_UNMASKED;
}

/* One curve: the rows of one split, training losses averaged over stretches so that n_points are left. */
static void draw_split(mg_lab *lab, lab_figure *figure, const mg_run_record *record, bool validation,
                       lab_colour colour) {
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
        lab_points(figure, colour, label, kept, x, y);
    else
        lab_line(figure, colour, label, kept, x, y);
}

static mg_status draw(const mg_run_record *records, int n, const char *out_dir, mg_error *error) {
    mg_lab *lab = lab_new(NULL, error);
    if (!lab) return MG_ERR_MEMORY;
    lab->settings.out_dir = out_dir;
    lab_figure *figure = lab_figure_begin(lab, "loss", "Runs side by side",
                                          (lab_axes){.x = "step", .y = "loss (nats a token)", .y_from_zero = true});
    for (int i = 0; i < n; i++) {
        lab_colour colour = colour_of(&records[i], i, n);
        /* Two runs under the same mask still want two colours. */
        if (n == 2 && i == 1 && colour == colour_of(&records[0], 0, n)) colour = LAB_GREEN;
        draw_split(lab, figure, &records[i], false, colour);
        draw_split(lab, figure, &records[i], true, colour);
    }
    lab_figure_end(figure, "Lines: training, points: validation.");
    mg_status status = mg_make_folders(out_dir, NULL, error);
    if (status == MG_OK) status = lab_write_numbers(lab, error);
    if (status == MG_OK) {
        lab_draw_pictures(lab);
        printf("\nThe curves are in %s/loss.%s\n", out_dir, lab->pictures ? "png" : "csv");
    }
    lab_free(lab);
    return status;
}

int mg_compare_command(int argc, char **argv) {
    compare_options own = {.out_dir = "runs/compare"};
    const mg_flag_table tables[] = {{compare_flags, &own}, {NULL, NULL}};
    const char *paths[MAX_RUNS];
    static mg_run_record records[MAX_RUNS];
    mg_error error;
    int n = mg_flags_parse(&line, tables, argc, argv, paths), n_read = 0;
    while (n_read < n && mg_run_record_read(&records[n_read], paths[n_read], &error) == MG_OK) n_read++;
    mg_status status = n_read == n ? MG_OK : error.status;
    if (status == MG_OK) {
        mg_compare_print(records, n);
        status = draw(records, n, own.out_dir, &error);
    }
    for (int i = 0; i < n_read; i++) mg_run_record_free(&records[i]);
    return mg_command_end(&line, status, &error);
}
