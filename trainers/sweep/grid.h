/* Which settings a sweep varies. A grid is a list of axes, and its runs are all combinations of their points: the last
 * axis varies fastest.
 *
 *     mg_sweep_grid_add(&grid, "mask=causal,none", false, &error);
 *     mg_sweep_grid_add_seeds(&grid, "1..10", &error);
 *     mg_sweep_grid_count(&grid, &n, &error);
 */
#ifndef MASKGRAD_GRID_H
#define MASKGRAD_GRID_H

#include "arena.h"
#include "options.h"

enum { MG_SWEEP_MAX_AXES = 16, MG_SWEEP_MAX_SETTINGS = 64, MG_SWEEP_MAX_RUNS = 100000 };

/* One setting of a run, and its value as the user typed it. */
typedef struct mg_sweep_choice {
    const mg_setting *setting;
    size_t base;      /* of the setting's table in mg_run_options */
    const char *text; /* NULL: this point leaves the setting as it is */
} mg_sweep_choice;

/* Whether two rows set one value, as --mask and --lookahead do; each with the base of its table. */
bool mg_sweep_is_same(const mg_setting *a, size_t base_a, const mg_setting *b, size_t base_b);

typedef struct mg_sweep_axis {
    int n_points, n_settings;
    mg_sweep_choice *column[MG_SWEEP_MAX_SETTINGS]; /* of each setting: n_points choices */
} mg_sweep_axis;

typedef struct mg_sweep_grid {
    mg_arena *arena; /* owns the texts */
    mg_sweep_axis axis[MG_SWEEP_MAX_AXES];
    int n_axes;
    mg_sweep_axis *zipped; /* the axis of all lists that are walked together; NULL: there is none */
} mg_sweep_grid;

mg_status mg_sweep_grid_new(mg_sweep_grid *grid, mg_error *error);
void mg_sweep_grid_free(mg_sweep_grid *grid);

/* In each of these MG_ERR_INPUT says which setting or value is wrong, and what would be right. */

/* "lr=1e-3,3e-3": an axis, or, if zipped, one more setting of the axis that all zipped lists share. A switch takes true
 * and false. */
mg_status mg_sweep_grid_add(mg_sweep_grid *grid, const char *text, bool zipped, mg_error *error);
mg_status mg_sweep_grid_add_seeds(mg_sweep_grid *grid, const char *text, mg_error *error); /* "1..10,20" */
/* A CSV whose header names settings, or a JSON list of objects: one axis, whose points are the rows. An empty cell, a
 * key that is missing and null leave a setting as it is. */
mg_status mg_sweep_grid_add_file(mg_sweep_grid *grid, const char *path, mg_error *error);

/* The number of runs. */
mg_status mg_sweep_grid_count(const mg_sweep_grid *grid, int *n, mg_error *error);
/* The choices of run `index`, in the order of the axes, without those that leave a setting as it is. Returns how many;
 * there is room for MG_SWEEP_MAX_SETTINGS. */
int mg_sweep_grid_choose(const mg_sweep_grid *grid, int index, mg_sweep_choice *choices);
/* The setting among the axes that sets the same value as this one; NULL: there is none. */
const mg_setting *mg_sweep_grid_finds(const mg_sweep_grid *grid, const mg_setting *setting, size_t base);

/* Set a choice in *options, strictly. */
mg_status mg_sweep_choice_apply(const mg_sweep_choice *choice, mg_run_options *options, mg_error *error);
/* Whether a switch's text turns it on. */
bool mg_sweep_switch_is_on(const char *text);

/* ---- For grid_file.c ---- */
/* The setting of a flag's name, in either spelling; MG_ERR_INPUT if `train` has none or a sweep sets it itself. */
mg_status mg_sweep_find(const char *name, size_t length, mg_sweep_choice *choice, mg_error *error);
/* An axis of n_points whose choices are the caller's to fill; MG_ERR_INPUT if a setting is in the grid already. */
mg_status mg_sweep_grid_new_axis(mg_sweep_grid *grid, int n_points, mg_sweep_axis **axis, mg_error *error);
mg_status mg_sweep_axis_add(mg_sweep_grid *grid, mg_sweep_axis *axis, mg_sweep_choice choice, mg_error *error);
const char *mg_sweep_grid_keep(const mg_sweep_grid *grid, const char *text, size_t length); /* a copy in its arena */

#endif
