/* Settings from a file: a CSV or a JSON list, one point per row. */
#include "csv_table.h"
#include "grid.h"
#include "heap.h"
#include "read_text.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { MOST_BYTES = 64 << 20 };

/* "FILE, line 3: reason" */
static mg_status name_row(const char *path, const char *what, ptrdiff_t number, mg_error *error) {
    mg_error reason = *error;
    return mg_error_set(error, reason.status, "%s, %s %td: %s", path, what, number, reason.message);
}

static mg_status check_choice(const mg_sweep_choice *choice, mg_error *error) {
    mg_run_options scratch = mg_run_defaults();
    return mg_sweep_choice_apply(choice, &scratch, error);
}

/* ---- CSV ---- */

static mg_status take_header(mg_sweep_grid *grid, mg_sweep_axis *axis, const mg_csv_table *csv, mg_error *error) {
    for (int c = 0; c < mg_csv_columns(csv); c++) {
        mg_sweep_choice choice;
        mg_token name = mg_csv_cell(csv, -1, c);
        mg_status status = mg_sweep_find(name.bytes, name.length, &choice, error);
        if (status == MG_OK) status = mg_sweep_axis_add(grid, axis, choice, error);
        if (status != MG_OK) return status;
    }
    return MG_OK;
}

static mg_status take_cells(const mg_sweep_grid *grid, const mg_sweep_axis *axis, const mg_csv_table *csv,
                            const char *path, mg_error *error) {
    for (int r = 0; r < axis->n_points; r++)
        for (int c = 0; c < axis->n_settings; c++) {
            mg_token cell = mg_csv_cell(csv, r, c);
            mg_sweep_choice *choice = &axis->column[c][r];
            if (cell.length == 0) continue;
            choice->text = mg_sweep_grid_keep(grid, cell.bytes, cell.length);
            if (check_choice(choice, error) != MG_OK) return name_row(path, "line", mg_csv_line(csv, r), error);
        }
    return MG_OK;
}

static mg_status check_rows(int64_t n, const char *path, mg_error *error) {
    if (n == 0) return mg_error_set(error, MG_ERR_INPUT, "%s has no rows: each names the settings of a run", path);
    if (n > MG_SWEEP_MAX_RUNS)
        return mg_error_set(error, MG_ERR_INPUT, "%s has %lld rows; one sweep has at most %d runs", path, (long long)n,
                            MG_SWEEP_MAX_RUNS);
    return MG_OK;
}

static mg_status add_csv(mg_sweep_grid *grid, const char *text, size_t length, const char *path, mg_error *error) {
    mg_csv_table *csv;
    mg_sweep_axis *axis = NULL;
    mg_status status = mg_csv_parse(&csv, text, length, path, true, ',', error);
    if (status != MG_OK) return status;
    status = check_rows(mg_csv_rows(csv), path, error);
    if (status == MG_OK) status = mg_sweep_grid_new_axis(grid, (int)mg_csv_rows(csv), &axis, error);
    if (status == MG_OK && take_header(grid, axis, csv, error) != MG_OK) status = name_row(path, "line", 1, error);
    if (status == MG_OK) status = take_cells(grid, axis, csv, path, error);
    mg_csv_free(csv);
    return status;
}

/* ---- JSON ---- */

/* A value as it would be typed; MG_ERR_INPUT for a list or an object. */
static mg_status text_of(const mg_sweep_grid *grid, const json_t *value, const char **text, mg_error *error) {
    char number[64];
    *text = NULL;
    if (json_is_null(value)) return MG_OK;
    if (json_is_integer(value))
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        mg_format_real(json_real_value(value), number, sizeof number);
    else if (json_is_boolean(value))
        snprintf(number, sizeof number, "%s", json_is_true(value) ? "true" : "false");
    else if (!json_is_string(value))
        return mg_error_set(error, MG_ERR_INPUT, "a value is a text, a number, true, false or null");
    const char *found = json_is_string(value) ? json_string_value(value) : number;
    *text = mg_sweep_grid_keep(grid, found, strlen(found));
    return MG_OK;
}

static mg_sweep_choice *column_of(const mg_sweep_axis *axis, const mg_setting *setting) {
    for (int s = 0; s < axis->n_settings; s++)
        if (axis->column[s]->setting == setting) return axis->column[s];
    return NULL;
}

static mg_status take_object(mg_sweep_grid *grid, mg_sweep_axis *axis, int row, json_t *object, mg_error *error) {
    const char *key;
    json_t *value;
    if (!json_is_object(object)) return mg_error_set(error, MG_ERR_INPUT, "it is not an object of settings");
    json_object_foreach(object, key, value) {
        mg_sweep_choice choice;
        mg_status status = mg_sweep_find(key, strlen(key), &choice, error);
        if (status == MG_OK && !column_of(axis, choice.setting)) status = mg_sweep_axis_add(grid, axis, choice, error);
        if (status != MG_OK) return status;
        mg_sweep_choice *place = &column_of(axis, choice.setting)[row];
        if (place->text)
            return mg_error_set(error, MG_ERR_INPUT, "it has --%s under two spellings", choice.setting->name);
        status = text_of(grid, value, &place->text, error);
        if (status == MG_OK && place->text) status = check_choice(place, error);
        if (status != MG_OK) return status;
    }
    return MG_OK;
}

static mg_status add_json(mg_sweep_grid *grid, const char *text, size_t length, const char *path, mg_error *error) {
    json_error_t reason;
    mg_sweep_axis *axis = NULL;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &reason);
    if (!root) return mg_error_set(error, MG_ERR_FORMAT, "%s, line %d: %s", path, reason.line, reason.text);
    int64_t n = (int64_t)json_array_size(root);
    mg_status status = json_is_array(root) ? check_rows(n, path, error)
                                           : mg_error_set(error, MG_ERR_INPUT, "%s is not a list of objects", path);
    if (status == MG_OK) status = mg_sweep_grid_new_axis(grid, (int)n, &axis, error);
    for (int i = 0; status == MG_OK && i < (int)n; i++)
        if (take_object(grid, axis, i, json_array_get(root, (size_t)i), error) != MG_OK)
            status = name_row(path, "entry", i + 1, error);
    json_decref(root);
    return status;
}

mg_status mg_sweep_grid_add_file(mg_sweep_grid *grid, const char *path, mg_error *error) {
    char *text;
    size_t length;
    mg_status status = mg_read_text(path, MOST_BYTES, &text, &length, error);
    if (status != MG_OK) return status;
    bool is_json = text[strspn(text, " \t\r\n")] == '[' || text[strspn(text, " \t\r\n")] == '{';
    status = is_json ? add_json(grid, text, length, path, error) : add_csv(grid, text, length, path, error);
    mg_free(text);
    return status;
}
