#include "grid.h"
#include "suggest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

mg_status mg_sweep_grid_new(mg_sweep_grid *grid, mg_error *error) {
    *grid = (mg_sweep_grid){0};
    return mg_arena_new(&grid->arena, error);
}

void mg_sweep_grid_free(mg_sweep_grid *grid) {
    mg_arena_free(grid->arena);
    *grid = (mg_sweep_grid){0};
}

const char *mg_sweep_grid_keep(const mg_sweep_grid *grid, const char *text, size_t length) {
    char *copy = mg_arena_alloc(grid->arena, length + 1, 1, "the texts of a sweep");
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

/* ---- Settings and their values ---- */

/* A sweep names the folders, and begins or continues what is in them. */
static bool is_its_own(const mg_setting *setting) {
    static const char *const names[] = {"out-dir", "name", "resume", "auto-resume", "force"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(setting->name, names[i]) == 0) return true;
    return false;
}

static mg_status refuse_name(const char *name, size_t length, mg_error *error) {
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), name);
    mg_suggestion near = {.word = word};
    for (const mg_settings *table = mg_run_settings; table->rows; table++) mg_suggest_rows(&near, table->rows);
    const char *why_not = mg_suggest_why_not(word);
    if (why_not) return mg_error_set(error, MG_ERR_INPUT, "'%s' is not a flag of train: %s", word, why_not);
    if (near.best)
        return mg_error_set(error, MG_ERR_INPUT, "'%s' is not a flag of train: did you mean %s?", word, near.best);
    return mg_error_set(error, MG_ERR_INPUT, "'%s' is not a flag of train: `maskgrad train --help` lists them", word);
}

mg_status mg_sweep_find(const char *name, size_t length, mg_sweep_choice *choice, mg_error *error) {
    char word[64];
    if (length >= 2 && name[0] == '-' && name[1] == '-') {
        name += 2;
        length -= 2;
    }
    for (size_t k = 0; k < length && k < sizeof word; k++) word[k] = name[k] == '_' ? '-' : name[k];
    *choice = (mg_sweep_choice){0};
    for (const mg_settings *table = mg_run_settings; table->rows && length < sizeof word; table++)
        for (const mg_setting *row = table->rows; !mg_setting_is_end(row); row++)
            if (length > 0 && mg_setting_is_spelled(row, word, length))
                *choice = (mg_sweep_choice){.setting = row, .base = table->base};
    if (!choice->setting) return refuse_name(name, length, error);
    if (strcmp(choice->setting->name, "config") == 0)
        return mg_error_set(error, MG_ERR_INPUT,
                            "--config has no place in a sweep: give the flags that it holds, after the --");
    if (is_its_own(choice->setting))
        return mg_error_set(error, MG_ERR_INPUT,
                            "--%s is the sweep's own: it names the run folders, in its --out-dir before the --, and "
                            "continues what is there",
                            choice->setting->name);
    return MG_OK;
}

bool mg_sweep_switch_is_on(const char *text) {
    return strcmp(text, "true") == 0;
}

mg_status mg_sweep_choice_apply(const mg_sweep_choice *choice, mg_run_options *options, mg_error *error) {
    const char *text = choice->text;
    void *values = (char *)options + choice->base;
    if (!mg_setting_is_switch(choice->setting)) return mg_setting_set(choice->setting, values, text, error);
    bool on = mg_sweep_switch_is_on(text);
    if (!on && strcmp(text, "false") != 0)
        return mg_error_set(error, MG_ERR_INPUT, "--%s is a switch: its values are true and false, not '%s'",
                            choice->setting->name, text);
    bool as_text = on == (choice->setting->kind == MG_SETTING_ON);
    return mg_setting_set(choice->setting, values, as_text ? "true" : "false", error);
}

bool mg_sweep_is_same(const mg_setting *a, size_t base_a, const mg_setting *b, size_t base_b) {
    bool custom = a->kind == MG_SETTING_CUSTOM && b->kind == MG_SETTING_CUSTOM;
    return a == b || (custom && base_a + a->offset == base_b + b->offset);
}

const mg_setting *mg_sweep_grid_finds(const mg_sweep_grid *grid, const mg_setting *setting, size_t base) {
    for (int a = 0; a < grid->n_axes; a++)
        for (int s = 0; s < grid->axis[a].n_settings; s++) {
            const mg_sweep_choice *choice = grid->axis[a].column[s];
            if (mg_sweep_is_same(choice->setting, choice->base, setting, base)) return choice->setting;
        }
    return NULL;
}

/* ---- Axes ---- */

mg_status mg_sweep_grid_new_axis(mg_sweep_grid *grid, int n_points, mg_sweep_axis **axis, mg_error *error) {
    if (grid->n_axes == MG_SWEEP_MAX_AXES)
        return mg_error_set(error, MG_ERR_INPUT, "a sweep has at most %d lists that are crossed", MG_SWEEP_MAX_AXES);
    *axis = &grid->axis[grid->n_axes++];
    **axis = (mg_sweep_axis){.n_points = n_points};
    return MG_OK;
}

static int settings_of(const mg_sweep_grid *grid) {
    int n = 0;
    for (int a = 0; a < grid->n_axes; a++) n += grid->axis[a].n_settings;
    return n;
}

mg_status mg_sweep_axis_add(mg_sweep_grid *grid, mg_sweep_axis *axis, mg_sweep_choice choice, mg_error *error) {
    const mg_setting *other = mg_sweep_grid_finds(grid, choice.setting, choice.base);
    if (other == choice.setting)
        return mg_error_set(error, MG_ERR_INPUT, "--%s is swept twice: give its values in one list", other->name);
    if (other)
        return mg_error_set(error, MG_ERR_INPUT, "--%s and --%s set the same thing: sweep one of them", other->name,
                            choice.setting->name);
    if (settings_of(grid) == MG_SWEEP_MAX_SETTINGS)
        return mg_error_set(error, MG_ERR_INPUT, "a sweep has at most %d settings", MG_SWEEP_MAX_SETTINGS);
    mg_sweep_choice *column = mg_arena_alloc(grid->arena, (size_t)axis->n_points, sizeof *column, "a sweep");
    for (int i = 0; i < axis->n_points; i++) column[i] = choice;
    axis->column[axis->n_settings++] = column;
    return MG_OK;
}

static mg_status too_many(mg_error *error) {
    return mg_error_set(error, MG_ERR_INPUT, "that is more than %d runs, the most that one sweep has",
                        MG_SWEEP_MAX_RUNS);
}

/* ---- Lists ---- */

static int count_values(const char *list) {
    int n = 1;
    for (; *list && n <= MG_SWEEP_MAX_RUNS; list++) n += *list == ',';
    return n;
}

static mg_status fill(mg_sweep_grid *grid, const mg_sweep_axis *axis, const char *list, mg_error *error) {
    mg_sweep_choice *column = axis->column[axis->n_settings - 1];
    for (int i = 0; i < axis->n_points; i++, list++) {
        mg_run_options scratch = mg_run_defaults();
        size_t length = strcspn(list, ",");
        if (length == 0)
            return mg_error_set(error, MG_ERR_INPUT, "--%s has an empty value in its list", column->setting->name);
        column[i].text = mg_sweep_grid_keep(grid, list, length);
        mg_status status = mg_sweep_choice_apply(&column[i], &scratch, error);
        if (status != MG_OK) return status;
        list += length;
    }
    return MG_OK;
}

mg_status mg_sweep_grid_add(mg_sweep_grid *grid, const char *text, bool zipped, mg_error *error) {
    mg_sweep_choice choice;
    const char *flag = zipped ? "zip" : "set";
    size_t length = strcspn(text, "=");
    mg_status status = mg_sweep_find(text, length, &choice, error);
    if (status != MG_OK) return status;
    if (!text[length] || !text[length + 1])
        return mg_error_set(error, MG_ERR_INPUT, "--%s %s has no values: write --%s %s=A,B", flag, choice.setting->name,
                            flag, choice.setting->name);
    const char *list = text + length + 1;
    int n = count_values(list);
    if (n > MG_SWEEP_MAX_RUNS) return too_many(error);
    mg_sweep_axis *axis = zipped ? grid->zipped : NULL;
    if (axis && axis->n_points != n)
        return mg_error_set(error, MG_ERR_INPUT,
                            "--zip walks its lists together, but --%s has %d values and --%s has %d: give as many",
                            axis->column[0]->setting->name, axis->n_points, choice.setting->name, n);
    if (!axis) status = mg_sweep_grid_new_axis(grid, n, &axis, error);
    if (status == MG_OK) status = mg_sweep_axis_add(grid, axis, choice, error);
    if (status != MG_OK) return status;
    if (zipped) grid->zipped = axis;
    return fill(grid, axis, list, error);
}

/* ---- Seeds ---- */

static bool take_seed(const char **text, uint64_t *seed) {
    size_t digits = strspn(*text, "0123456789");
    if (digits == 0 || digits > 18) return false;
    *seed = strtoull(*text, NULL, 10);
    *text += digits;
    return true;
}

/* "7" or "1..10"; moves *text past it. */
static bool take_range(const char **text, uint64_t *first, uint64_t *last) {
    if (!take_seed(text, first)) return false;
    *last = *first;
    if (strncmp(*text, "..", 2) != 0) return true;
    *text += 2;
    return take_seed(text, last) && *last >= *first;
}

/* Both passes over the text: with NULL it counts. */
static bool walk_seeds(mg_sweep_grid *grid, const char *text, mg_sweep_choice *column, uint64_t *n) {
    *n = 0;
    for (;; text++) {
        uint64_t first, last;
        if (!take_range(&text, &first, &last) || (*text && *text != ',')) return false;
        for (uint64_t seed = first; column && seed <= last; seed++) {
            char number[32];
            int length = snprintf(number, sizeof number, "%llu", (unsigned long long)seed);
            column[*n + seed - first].text = mg_sweep_grid_keep(grid, number, (size_t)length);
        }
        *n += last - first + 1;
        if (*n > MG_SWEEP_MAX_RUNS || !*text) return true;
    }
}

mg_status mg_sweep_grid_add_seeds(mg_sweep_grid *grid, const char *text, mg_error *error) {
    mg_sweep_choice choice;
    mg_sweep_axis *axis = NULL;
    uint64_t n;
    if (!walk_seeds(grid, text, NULL, &n))
        return mg_error_set(error, MG_ERR_INPUT,
                            "--seeds takes whole numbers and ranges, as in 1..10 or 1,2,7, not '%s'", text);
    if (n > MG_SWEEP_MAX_RUNS) return too_many(error);
    mg_status status = mg_sweep_find("seed", strlen("seed"), &choice, error);
    if (status == MG_OK) status = mg_sweep_grid_new_axis(grid, (int)n, &axis, error);
    if (status == MG_OK) status = mg_sweep_axis_add(grid, axis, choice, error);
    if (status == MG_OK) walk_seeds(grid, text, axis->column[0], &n);
    return status;
}

/* ---- Combinations ---- */

mg_status mg_sweep_grid_count(const mg_sweep_grid *grid, int *n, mg_error *error) {
    int64_t product = 1;
    for (int a = 0; a < grid->n_axes; a++) {
        product *= grid->axis[a].n_points;
        if (product > MG_SWEEP_MAX_RUNS) return too_many(error);
    }
    *n = (int)product;
    return MG_OK;
}

int mg_sweep_grid_choose(const mg_sweep_grid *grid, int index, mg_sweep_choice *choices) {
    int point[MG_SWEEP_MAX_AXES], n = 0;
    for (int a = grid->n_axes - 1; a >= 0; a--) {
        point[a] = index % grid->axis[a].n_points;
        index /= grid->axis[a].n_points;
    }
    for (int a = 0; a < grid->n_axes; a++)
        for (int s = 0; s < grid->axis[a].n_settings; s++) {
            const mg_sweep_choice *choice = &grid->axis[a].column[s][point[a]];
            if (choice->text) choices[n++] = *choice;
        }
    return n;
}
