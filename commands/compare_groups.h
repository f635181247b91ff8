/* What `compare` shows of groups of runs: means over seeds in tables and pictures. */
#ifndef MASKGRAD_COMPARE_GROUPS_H
#define MASKGRAD_COMPARE_GROUPS_H

#include "gather.h"
#include "groups.h"
#include "lab.h"

/* Tables on stdout, within 80 columns. `loss`: what was waited for; NaN: nothing. */
void mg_groups_print(const mg_run_groups *groups, const mg_run_set *set, double loss);
/* The runs that are not finished, of which the final numbers are not: how many, their names and steps. */
void mg_groups_tell_unfinished(const mg_run_set *set);
/* Adds the picture "loss", and one of what the final loss depends on where one or two settings differ. */
void mg_groups_draw(mg_lab *lab, const mg_run_groups *groups, const mg_run_set *set);

/* One row per run and step: the run's folder, the settings that tell groups apart, the seed, and log.csv's columns, of
 * which lr is called lr_at_step.
 * A CSV, or a JSON list of objects in which what is missing or not finite is null. */
mg_status mg_groups_write_csv(const char *path, const mg_run_groups *groups, const mg_run_set *set, mg_error *error);
mg_status mg_groups_write_json(const char *path, const mg_run_groups *groups, const mg_run_set *set, mg_error *error);

#endif
