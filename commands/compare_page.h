/* The tables of compare's page, report.html. */
#ifndef MASKGRAD_COMPARE_PAGE_H
#define MASKGRAD_COMPARE_PAGE_H

#include "groups.h"
#include "lab.h"

/* Runs by their last validation loss, the lowest first, with the settings in which they differ. */
void mg_compare_page_runs(mg_lab *lab, const mg_run_record *records, int n);
/* Groups by their mean final validation loss, the lowest first. */
void mg_compare_page_groups(mg_lab *lab, const mg_run_groups *groups);

#endif
