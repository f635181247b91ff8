/* The files of a lab's folder that hold numbers. */
#include "csv_table.h"
#include "lab_private.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

mg_status lab_create(const mg_lab *lab, const char *name, const char *ending, mg_atomic_text *file, mg_error *error) {
    char path[sizeof file->path];
    snprintf(path, sizeof path, "%s/%s.%s", lab->settings.out_dir, name, ending);
    return mg_atomic_text_begin(file, path, error);
}

char *lab_read_file(mg_lab *lab, const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    char *content = NULL;
    struct stat found;
    if (fstat(fileno(file), &found) == 0 && S_ISREG(found.st_mode)) {
        size_t wanted = (size_t)found.st_size;
        content = mg_arena_alloc(lab->arena, wanted + 1, 1, "a picture's file");
        *size = fread(content, 1, wanted, file);
        content[*size] = '\0';
        if (*size != wanted) content = NULL;
    }
    fclose(file);
    return content;
}

static void csv_line(FILE *out, int n, const char *const *cells) {
    for (int i = 0; i < n; i++) {
        if (i) fputc(',', out);
        mg_csv_write_cell(out, cells[i]);
    }
    fputc('\n', out);
}

static bool has_names(const lab_figure *figure) {
    for (int k = 0; k < figure->series.n; k++)
        if (((const lab_series *)figure->series.item[k])->names) return true;
    return false;
}

static bool has_spread(const lab_figure *figure) {
    for (int k = 0; k < figure->series.n; k++)
        if (((const lab_series *)figure->series.item[k])->spread) return true;
    return false;
}

static void write_figure(FILE *out, const lab_figure *figure) {
    bool named = has_names(figure), spread = has_spread(figure);
    fprintf(out, "series,x,y%s%s\n", spread ? ",spread" : "", named ? ",name" : "");
    for (int k = 0; k < figure->series.n + figure->verticals.n; k++) {
        const lab_series *s = k < figure->series.n ? figure->series.item[k]
                                                   : figure->verticals.item[k - figure->series.n];
        for (int i = 0; i < s->n; i++) {
            mg_csv_write_cell(out, s->label);
            fputc(',', out);
            if (s->shape == LAB_SHAPE_BARS)
                mg_csv_write_cell(out, figure->places[i]);
            else if (s->shape != LAB_SHAPE_LEVEL || k >= figure->series.n) /* a level has no x, a vertical no y */
                fprintf(out, "%.9g", s->x[i]);
            fputc(',', out);
            if (k < figure->series.n) fprintf(out, "%.9g", s->y[i]);
            if (spread) fputc(',', out);
            if (s->spread) fprintf(out, "%.9g", s->spread[i]);
            if (named) fputc(',', out);
            if (s->names) mg_csv_write_cell(out, s->names[i]);
            fputc('\n', out);
        }
    }
}

static void write_heatmap(FILE *out, const lab_heatmap *map) {
    static const char *const kinds[] = {
        [LAB_CELL_VALUE] = "yes", [LAB_CELL_ZERO] = "yes", [LAB_CELL_ABSENT] = "no", [LAB_CELL_ALARM] = "alarm"};
    fputs("panel,row,column,row_label,column_label,exists,value\n", out);
    for (int p = 0; p < map->panels.n; p++) {
        const lab_panel *panel = map->panels.item[p];
        for (int r = 0; r < panel->n_rows; r++)
            for (int c = 0; c < panel->n_columns; c++) {
                mg_csv_write_cell(out, panel->title);
                fprintf(out, ",%d,%d,", r, c);
                mg_csv_write_cell(out, panel->row_labels ? panel->row_labels[r] : "");
                fputc(',', out);
                mg_csv_write_cell(out, panel->column_labels ? panel->column_labels[c] : "");
                fprintf(out, ",%s,%.9g\n", kinds[lab_cell_kind(map, panel, r, c)],
                        (double)panel->values[(ptrdiff_t)r * panel->n_columns + c]);
            }
    }
}

static mg_status write_block(const mg_lab *lab, const lab_block *block, mg_error *error) {
    if (block->kind == LAB_BLOCK_NOTE || block->kind == LAB_BLOCK_TEXTS) return MG_OK;
    const char *name = block->kind == LAB_BLOCK_FIGURE    ? block->figure->name
                       : block->kind == LAB_BLOCK_HEATMAP ? block->heatmap->name
                                                          : block->table->name;
    mg_atomic_text file;
    mg_status status = lab_create(lab, name, "csv", &file, error);
    if (status != MG_OK) return status;
    FILE *out = file.out;
    if (block->kind == LAB_BLOCK_FIGURE) write_figure(out, block->figure);
    if (block->kind == LAB_BLOCK_HEATMAP) write_heatmap(out, block->heatmap);
    if (block->kind == LAB_BLOCK_TABLE)
        for (int i = 0; i < block->table->rows.n; i++)
            csv_line(out, block->table->n_columns, block->table->rows.item[i]);
    return mg_atomic_text_end(&file, error);
}

static mg_status write_summary(const mg_lab *lab, mg_error *error) {
    mg_atomic_text file;
    mg_status status = lab_create(lab, "summary", "csv", &file, error);
    if (status != MG_OK) return status;
    FILE *out = file.out;
    csv_line(out, 4, (const char *const[]){"check", "expected", "observed", "verdict"});
    for (int i = 0; i < lab->checks.n; i++) {
        const lab_check *c = lab->checks.item[i];
        csv_line(out, 4, (const char *const[]){c->name, c->expected, c->observed, lab_verdict_names[c->verdict]});
    }
    return mg_atomic_text_end(&file, error);
}

static mg_status write_questions(const mg_lab *lab, mg_error *error) {
    mg_atomic_text file;
    mg_status status = lab_create(lab, "questions", "csv", &file, error);
    if (status != MG_OK) return status;
    csv_line(file.out, 4, (const char *const[]){"question", "unit", "guess", "measured"});
    for (int i = 0; i < lab->questions.n; i++) {
        const lab_question *q = lab->questions.item[i];
        char number[2][32] = {"", ""};
        if (!isnan(q->guess)) snprintf(number[0], sizeof *number, "%.9g", q->guess);
        if (!isnan(q->answer)) snprintf(number[1], sizeof *number, "%.9g", q->answer);
        csv_line(file.out, 4, (const char *const[]){q->text, q->unit, number[0], number[1]});
    }
    return mg_atomic_text_end(&file, error);
}

mg_status lab_write_numbers(const mg_lab *lab, mg_error *error) {
    mg_status status = lab->checks.n > 0 ? write_summary(lab, error) : MG_OK;
    if (status == MG_OK && lab->questions.n > 0) status = write_questions(lab, error);
    for (int i = 0; i < lab->blocks.n && status == MG_OK; i++) status = write_block(lab, lab->blocks.item[i], error);
    return status;
}
