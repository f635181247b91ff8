#include "run_dir.h"
#include "checkpoint.h"
#include "heap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static char *join(const char *folder, const char *name, mg_error *error) {
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = mg_alloc(size, 1, "a path", error);
    if (path) snprintf(path, size, "%s/%s", folder, name);
    return path;
}

mg_status mg_run_dir_name(mg_run_dir *dir, const char *path, mg_error *error) {
    *dir = (mg_run_dir){
        .path = mg_strdup(path, error),
        .run_json = join(path, "run.json", error),
        .log = join(path, "log.csv", error),
        .position = join(path, "position.csv", error),
        .checkpoint = join(path, MG_CHECKPOINT_NAME, error),
        .samples = join(path, "samples.txt", error),
        .lock = -1,
    };
    if (dir->path && dir->run_json && dir->log && dir->position && dir->checkpoint && dir->samples) return MG_OK;
    mg_run_dir_close(dir);
    return MG_ERR_MEMORY;
}

mg_status mg_make_folders(const char *path, size_t *was_there, mg_error *error) {
    char *part = mg_strdup(path, error);
    if (!part) return MG_ERR_MEMORY;
    mg_status status = MG_OK;
    size_t there = 0;
    bool any_made = false;
    for (char *c = part + 1; status == MG_OK; c++) {
        if (*c != '/' && *c != '\0') continue;
        bool last = *c == '\0';
        *c = '\0';
        struct stat found;
        bool made = mkdir(part, 0777) == 0;
        if (!made && errno != EEXIST)
            status = mg_error_set(error, MG_ERR_IO, "cannot make the folder %s: %s", part, strerror(errno));
        else if (stat(part, &found) != 0 || !S_ISDIR(found.st_mode))
            status = mg_error_set(error, MG_ERR_IO, "cannot make the folder %s: %s is there and is no folder", path,
                                  part);
        if (!made && !any_made) there = (size_t)(c - part);
        any_made = any_made || made;
        if (last) break;
        *c = '/';
    }
    mg_free(part);
    if (was_there) *was_there = there;
    return status;
}

static mg_status take_lock(mg_run_dir *dir, mg_error *error) {
    char *path = join(dir->path, ".lock", error);
    if (!path) return MG_ERR_MEMORY;
    dir->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    mg_free(path);
    if (dir->lock < 0)
        return mg_error_set(error, MG_ERR_IO, "cannot write in the folder %s: %s", dir->path, strerror(errno));
    if (flock(dir->lock, LOCK_EX | LOCK_NB) == 0) return MG_OK;
    if (errno != EWOULDBLOCK)
        return mg_error_set(error, MG_ERR_IO, "cannot lock the folder %s: %s", dir->path, strerror(errno));
    return mg_error_set(error, MG_ERR_STATE,
                        "another maskgrad process works in %s: wait for its end, or choose another --out-dir",
                        dir->path);
}

/* A process that was killed while it wrote left NAME.tmp.PID behind. Whoever holds the lock is the only writer, so any
 * such file is nobody's. One that cannot be removed does no harm. */
static void remove_leftovers(const mg_run_dir *dir) {
    DIR *folder = opendir(dir->path);
    if (!folder) return;
    for (const struct dirent *entry; (entry = readdir(folder));) {
        const char *tail = strstr(entry->d_name, ".tmp.");
        if (!tail || tail == entry->d_name || tail[5] == '\0') continue;
        if (tail[5 + strspn(tail + 5, "0123456789")] == '\0') unlinkat(dirfd(folder), entry->d_name, 0);
    }
    closedir(folder);
}

mg_status mg_run_dir_lock(mg_run_dir *dir, mg_error *error) {
    mg_status status = mg_make_folders(dir->path, &dir->was_there, error);
    if (status == MG_OK) status = take_lock(dir, error);
    if (status == MG_OK) remove_leftovers(dir);
    return status;
}

void mg_run_dir_unmake(mg_run_dir *dir) {
    size_t length = strlen(dir->path);
    if (dir->lock < 0 || dir->was_there == length) return;
    /* Other files in it: the folder is not empty, and stays as it is. */
    int n = 0;
    DIR *folder = opendir(dir->path);
    while (folder && readdir(folder)) n++;
    if (folder) closedir(folder);
    if (n > 3) return; /* ".", ".." and the lock */
    char *path = join(dir->path, ".lock", NULL);
    if (!path) return;
    unlink(path);
    for (path[length] = '\0'; length > dir->was_there && rmdir(path) == 0; path[length] = '\0')
        while (length > dir->was_there && path[--length] != '/') continue;
    mg_free(path);
}

void mg_run_dir_close(mg_run_dir *dir) {
    mg_free(dir->path);
    mg_free(dir->run_json);
    mg_free(dir->log);
    mg_free(dir->position);
    mg_free(dir->checkpoint);
    mg_free(dir->samples);
    if (dir->lock >= 0) close(dir->lock);
    *dir = (mg_run_dir){.lock = -1};
}

bool mg_run_dir_holds_run(const mg_run_dir *dir) {
    return access(dir->checkpoint, F_OK) == 0;
}
