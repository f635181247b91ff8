#include "data_files.h"
#include "file_limits.h"
#include "heap.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static mg_status add(mg_data_files *files, const char *path, size_t length, mg_error *error) {
    if (files->n == MG_MOST_FILES)
        return mg_error_set(error, MG_ERR_FORMAT, "more than %d files: join some of them", MG_MOST_FILES);
    if (files->n == files->room) {
        int room = 2 * files->room + 8;
        char **grown = mg_alloc_grow(files->path, (size_t)files->n, (size_t)room, sizeof *grown, "a list of files",
                                     error);
        if (!grown) return MG_ERR_MEMORY;
        files->path = grown;
        files->room = room;
    }
    files->path[files->n] = mg_strndup(path, length, error);
    if (!files->path[files->n]) return MG_ERR_MEMORY;
    files->n++;
    return MG_OK;
}

/* ---- Folders ---- */

static mg_status add_folder(mg_data_files *files, const char *folder, int depth, mg_error *error);

static mg_status add_entry(mg_data_files *files, const char *path, int depth, mg_error *error) {
    struct stat about;
    if (stat(path, &about) != 0)
        return mg_error_set(error, MG_ERR_IO, "'%s' cannot be read: %s", path, strerror(errno));
    if (S_ISDIR(about.st_mode)) return add_folder(files, path, depth + 1, error);
    bool is_empty = S_ISREG(about.st_mode) && about.st_size == 0;
    files->n_empty += is_empty;
    return is_empty ? MG_OK : add(files, path, strlen(path), error);
}

static int is_visible(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

/* Not alphasort, whose order depends on the locale. */
static int by_bytes(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static mg_status add_folder(mg_data_files *files, const char *folder, int depth, mg_error *error) {
    char path[4096];
    struct dirent **entries;
    if (depth > MG_DEEPEST_FOLDER)
        return mg_error_set(error, MG_ERR_FORMAT, "'%s' is nested more than %d folders deep: is a link a circle?",
                            folder, MG_DEEPEST_FOLDER);
    int n = scandir(folder, &entries, is_visible, by_bytes);
    if (n < 0) return mg_error_set(error, MG_ERR_IO, "'%s' cannot be read: %s", folder, strerror(errno));
    mg_status status = MG_OK;
    for (int i = 0; i < n; i++) {
        const char *slash = folder[0] && folder[strlen(folder) - 1] == '/' ? "" : "/";
        int length = snprintf(path, sizeof path, "%s%s%s", folder, slash, entries[i]->d_name);
        free(entries[i]);
        if (status != MG_OK) continue;
        if (length >= (int)sizeof path)
            status = mg_error_set(error, MG_ERR_IO, "a path in '%.200s…' is longer than %zu bytes", folder,
                                  sizeof path - 1);
        else
            status = add_entry(files, path, depth, error);
    }
    free(entries);
    return status;
}

/* ---- The list ---- */

static mg_status add_path(mg_data_files *files, const char *path, size_t length, mg_error *error) {
    struct stat about;
    int before = files->n;
    mg_status status = add(files, path, length, error);
    if (status != MG_OK) return status;
    char *own = files->path[before];
    if (strcmp(own, "-") == 0 || stat(own, &about) != 0 || !S_ISDIR(about.st_mode)) return MG_OK;
    files->n--;
    status = add_folder(files, own, 0, error);
    if (status == MG_OK && files->n == before)
        status = mg_error_set(error, MG_ERR_FORMAT, "the folder '%s' holds no files with text", own);
    mg_free(own);
    return status;
}

mg_status mg_data_files_find(mg_data_files *files, const char *paths, mg_error *error) {
    *files = (mg_data_files){0};
    mg_status status = MG_OK;
    for (const char *at = paths; status == MG_OK; at++) {
        size_t length = strcspn(at, "\n");
        status = add_path(files, at, length, error);
        at += length;
        if (!*at) break;
    }
    if (status != MG_OK) mg_data_files_free(files);
    return status;
}

void mg_data_files_free(mg_data_files *files) {
    for (int i = 0; i < files->n; i++) mg_free(files->path[i]);
    mg_free(files->path);
    *files = (mg_data_files){0};
}

bool mg_data_is_stream(const char *paths) {
    for (size_t n; *paths; paths += n + (paths[n] == '\n')) {
        n = strcspn(paths, "\n");
        if (n == 1 && *paths == '-') return true;
    }
    return false;
}

void mg_data_name(const char *paths, char *name, size_t size) {
    size_t end = strcspn(paths, "\n"), more = 0, begin;
    for (const char *at = paths + end; *at; at++) more += *at == '\n';
    while (end > 1 && paths[end - 1] == '/') end--;
    for (begin = end; begin > 0 && paths[begin - 1] != '/';) begin--;
    bool is_stdin = end - begin == 1 && paths[begin] == '-';
    if (begin == end) begin = 0; /* "/" */
    int used = snprintf(name, size, "%.*s", is_stdin ? 5 : (int)(end - begin), is_stdin ? "stdin" : paths + begin);
    if (more > 0 && used < (int)size) snprintf(name + used, size - (size_t)used, " and %zu more", more);
}
