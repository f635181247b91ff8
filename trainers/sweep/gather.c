#include "gather.h"
#include "heap.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static bool is_run(const char *path) {
    return mg_check_run_folder(path, NULL) == MG_OK;
}

static int is_visible(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static mg_status add(mg_run_set *set, const char *path, bool may_be_new, mg_error *error) {
    int room = set->n == 0 ? 16 : (set->n & (set->n - 1)) == 0 && set->n >= 16 ? 2 * set->n : 0;
    if (room > 0) {
        mg_run_record *grown = mg_alloc_grow(set->record, (size_t)set->n, (size_t)room, sizeof *grown, "runs", error);
        if (!grown) return MG_ERR_MEMORY;
        set->record = grown;
    }
    mg_status status = mg_run_record_read(&set->record[set->n], path, error);
    if (status == MG_ERR_STATE && may_be_new) {
        set->not_begun++;
        return MG_OK;
    }
    if (status == MG_OK) set->n++;
    return status;
}

/* The runs in a folder; *found: whether there is one. */
static mg_status add_inner(mg_run_set *set, const char *folder, bool *found, mg_error *error) {
    struct dirent **entry;
    mg_status status = MG_OK;
    int n = scandir(folder, &entry, is_visible, alphasort);
    *found = false;
    for (int i = 0; i < n; i++) {
        char path[4200];
        int length = snprintf(path, sizeof path, "%s/%s", folder, entry[i]->d_name);
        bool run = length < (int)sizeof path && is_run(path);
        if (run && status == MG_OK) status = add(set, path, true, error);
        *found = *found || run;
        free(entry[i]);
    }
    if (n >= 0) free(entry);
    return status;
}

/* ---- The same folder again, under whatever name ---- */

typedef struct place {
    struct stat about;
    int run;
} place;

static int by_place(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->about.st_dev != y->about.st_dev) return x->about.st_dev < y->about.st_dev ? -1 : 1;
    if (x->about.st_ino != y->about.st_ino) return x->about.st_ino < y->about.st_ino ? -1 : 1;
    return x->run - y->run;
}

static int by_run(const void *a, const void *b) {
    return ((const place *)a)->run - ((const place *)b)->run;
}

/* Repeated folders go to the end; else the order stays. */
static mg_status put_repeated_last(mg_run_set *set, mg_error *error) {
    int n = set->n;
    place *at = mg_alloc_zero((size_t)n + 1, sizeof *at, "runs", error);
    mg_run_record *sorted = at ? mg_alloc((size_t)n + 1, sizeof *sorted, "runs", error) : NULL;
    if (!sorted) {
        mg_free(at);
        return MG_ERR_MEMORY;
    }
    for (int i = 0; i < n; i++) {
        at[i].run = i;
        if (stat(set->record[i].dir.path, &at[i].about) != 0) at[i].about.st_ino = 0; /* gone meanwhile */
    }
    qsort(at, (size_t)n, sizeof *at, by_place);
    for (int i = n - 1; i > 0; i--) {
        const struct stat *a = &at[i - 1].about, *b = &at[i].about;
        bool same = b->st_ino != 0 && a->st_dev == b->st_dev && a->st_ino == b->st_ino;
        at[i].run += same ? n : 0;
        set->repeated += same;
    }
    qsort(at, (size_t)n, sizeof *at, by_run);
    for (int i = 0; i < n; i++) sorted[i] = set->record[at[i].run % n];
    mg_free(at);
    mg_free(set->record);
    set->record = sorted;
    set->n -= set->repeated;
    return MG_OK;
}

mg_status mg_run_gather(mg_run_set *set, int n_paths, const char *const *paths, mg_error *error) {
    *set = (mg_run_set){0};
    mg_status status = MG_OK;
    for (int i = 0; i < n_paths && status == MG_OK; i++) {
        bool found = false;
        if (!is_run(paths[i])) status = add_inner(set, paths[i], &found, error);
        if (!found && status == MG_OK) status = add(set, paths[i], false, error); /* which says what is missing */
    }
    if (status == MG_OK) status = put_repeated_last(set, error);
    if (status != MG_OK) mg_run_set_free(set);
    return status;
}

void mg_run_set_free(mg_run_set *set) {
    for (int i = 0; i < set->n + set->repeated; i++) mg_run_record_free(&set->record[i]);
    mg_free(set->record);
    *set = (mg_run_set){0};
}
