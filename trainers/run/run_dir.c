#include "run_dir.h"
#include "atomic_file.h"
#include "checkpoint.h"
#include "heap.h"
#include "regular_file.h"
#include "run_log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_NAME ".lock"

static char *join(const char *folder, const char *name, mg_error *error) {
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = mg_alloc(size, 1, "a path", error);
    if (path) snprintf(path, size, "%s/%s", folder, name);
    return path;
}

mg_status mg_check_run_folder(const char *path, mg_error *error) {
    struct stat about;
    char *file = join(path, "run.json", error);
    if (!file) return MG_ERR_MEMORY;
    bool found = access(file, F_OK) == 0;
    mg_free(file);
    if (found) return MG_OK;
    if (stat(path, &about) != 0)
        return mg_error_set(error, MG_ERR_IO, "'%s' cannot be read: %s", path, strerror(errno));
    if (!S_ISDIR(about.st_mode)) return mg_error_set(error, MG_ERR_IO, "'%s' is not a run folder", path);
    return mg_error_set(error, MG_ERR_IO, "%s holds no run: there is no run.json in it", path);
}

mg_status mg_run_dir_name(mg_run_dir *dir, const char *path, mg_error *error) {
    *dir = (mg_run_dir){
        .path = mg_strdup(path, error),
        .run_json = join(path, "run.json", error),
        .log = join(path, "log.csv", error),
        .position = join(path, "position.csv", error),
        .checkpoint = join(path, MG_CHECKPOINT_NAME, error),
        .samples = join(path, "samples.txt", error),
        .alarms = join(path, "alarms.csv", error),
        .attention = join(path, "attention.csv", error),
        .lock = -1,
    };
    if (dir->path && dir->run_json && dir->log && dir->position && dir->checkpoint && dir->samples && dir->alarms &&
        dir->attention)
        return MG_OK;
    mg_run_dir_close(dir);
    return MG_ERR_MEMORY;
}

mg_status mg_make_folders(const char *path, size_t *was_there, mg_error *error) {
    if (!*path) return mg_error_set(error, MG_ERR_INPUT, "the name of a folder is empty");
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
        else if (stat(part, &found) != 0)
            status = mg_error_set(error, MG_ERR_IO, "cannot make the folder %s: %s leads nowhere: %s", path, part,
                                  strerror(errno));
        else if (!S_ISDIR(found.st_mode))
            status = mg_error_set(error, MG_ERR_IO, "cannot make the folder %s: %s exists and is not a folder", path,
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
    enum { FLAGS = O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW };
    char *path = join(dir->path, LOCK_NAME, error);
    if (!path) return MG_ERR_MEMORY;
    dir->lock = open(path, FLAGS | O_EXCL, 0666);
    dir->made_lock = dir->lock >= 0;
    if (dir->lock < 0 && errno == EEXIST) dir->lock = open(path, FLAGS, 0666);
    mg_free(path);
    if (dir->lock < 0)
        return mg_error_set(error, MG_ERR_IO, "cannot write in the folder %s: %s", dir->path, strerror(errno));
    if (flock(dir->lock, LOCK_EX | LOCK_NB) == 0) return MG_OK;
    if (errno != EWOULDBLOCK)
        return mg_error_set(error, MG_ERR_IO, "cannot lock the folder %s: %s", dir->path, strerror(errno));
    dir->held = true;
    return mg_error_set(error, MG_ERR_STATE,
                        "another maskgrad process is using %s: wait for it to finish, or choose another --out-dir",
                        dir->path);
}

/* One that cannot be removed does no harm. */
static void remove_leftovers(const mg_run_dir *dir) {
    DIR *folder = opendir(dir->path);
    if (!folder) return;
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (mg_temporary_is_left_over(entry->d_name)) unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
}

mg_status mg_run_dir_lock(mg_run_dir *dir, mg_error *error) {
    mg_status status = mg_make_folders(dir->path, &dir->was_there, error);
    if (status == MG_OK) status = take_lock(dir, error);
    if (status == MG_OK) remove_leftovers(dir);
    return status;
}

/* A file or folder that is not the lock's; NULL if there is none, or the folder cannot be read. */
static char *first_entry(const char *path, mg_error *error) {
    DIR *folder = opendir(path);
    char *found = NULL;
    if (!folder) return NULL;
    for (const struct dirent *entry; !found && (entry = readdir(folder));) {
        const char *name = entry->d_name;
        bool own = strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, LOCK_NAME) == 0;
        if (!own) found = mg_strdup(name, error);
    }
    closedir(folder);
    return found;
}

mg_status mg_run_dir_claim(mg_run_dir *dir, const char *whose, mg_error *error) {
    char mark[128] = "";
    ssize_t length = pread(dir->lock, mark, sizeof mark - 1, 0);
    mark[length > 0 ? length : 0] = '\0';
    mark[strcspn(mark, "\n")] = '\0';
    if (strcmp(mark, whose) == 0) {
        dir->claimed = true;
        return MG_OK;
    }
    if (mark[0])
        return mg_error_set(error, MG_ERR_INPUT,
                            "%s holds the files of '%s', which '%s' would replace: choose another --out-dir", dir->path,
                            mark, whose);
    char *entry = first_entry(dir->path, error);
    if (entry) {
        mg_status status = mg_error_set(error, MG_ERR_INPUT,
                                        "%s holds files that are not from '%s' ('%s'), and it might replace some: "
                                        "choose another --out-dir",
                                        dir->path, whose, entry);
        mg_free(entry);
        return status;
    }
    int n = snprintf(mark, sizeof mark, "%s\n", whose);
    dir->claimed = pwrite(dir->lock, mark, (size_t)n, 0) == n;
    if (dir->claimed) return MG_OK;
    return mg_error_set(error, MG_ERR_IO, "cannot write in the folder %s: %s", dir->path, strerror(errno));
}

void mg_run_dir_unmake(mg_run_dir *dir) {
    char *entry = first_entry(dir->path, NULL);
    bool has_written = dir->claimed && entry;
    mg_free(entry);
    if (has_written || !dir->made_lock) return;
    size_t length = strlen(dir->path);
    char *path = join(dir->path, LOCK_NAME, NULL);
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
    mg_free(dir->alarms);
    mg_free(dir->attention);
    if (dir->lock >= 0) close(dir->lock);
    *dir = (mg_run_dir){.lock = -1};
}

/* ---- Its files ---- */

enum { N_FILES = 7 };

static void files_of(const mg_run_dir *dir, const char *file[N_FILES]) {
    const char *const all[N_FILES] = {dir->run_json, dir->log,       dir->position,  dir->samples,
                                      dir->alarms,   dir->attention, dir->checkpoint};
    memcpy(file, all, sizeof all);
}

bool mg_run_dir_holds_run(const mg_run_dir *dir) {
    return access(dir->checkpoint, F_OK) == 0;
}

bool mg_run_dir_was_just_begun(const mg_run_dir *dir) {
    char *lock = join(dir->path, LOCK_NAME, NULL);
    bool was_locked = lock && access(lock, F_OK) == 0;
    mg_free(lock);
    return was_locked && access(dir->run_json, F_OK) != 0 && mg_run_log_is_bare(dir->log);
}

/* Whether `path` was written after `other`, or at the same time. */
static bool is_as_new(const char *path, const char *other) {
    struct stat a, b;
    if (stat(path, &a) != 0 || stat(other, &b) != 0) return false;
    if (a.st_mtim.tv_sec != b.st_mtim.tv_sec) return a.st_mtim.tv_sec > b.st_mtim.tv_sec;
    return a.st_mtim.tv_nsec >= b.st_mtim.tv_nsec;
}

/* The samples are written last, after the checkpoint and the losses by position. A run that was continued beyond its
 * end, and killed, still has the old ones. */
bool mg_run_dir_is_finished(const mg_run_dir *dir, int64_t max_iters) {
    mg_run_log_row last;
    if (!mg_run_log_last(dir->log, &last) || !last.validation || last.step != max_iters) return false;
    return is_as_new(dir->position, dir->checkpoint) && is_as_new(dir->samples, dir->position);
}

static bool begins_as_ours(const char *run_json) {
    static const char beginning[] = "{\n  \"creator\": \"maskgrad ";
    char text[sizeof beginning] = "";
    int fd;
    size_t bytes;
    if (mg_open_regular(run_json, &fd, &bytes, NULL) != MG_OK) return false;
    ssize_t n = read(fd, text, sizeof beginning - 1);
    close(fd);
    return n == (ssize_t)sizeof beginning - 1 && strcmp(text, beginning) == 0;
}

const char *mg_run_dir_foreign_file(const mg_run_dir *dir) {
    const char *file[N_FILES];
    struct stat found;
    files_of(dir, file);
    if (begins_as_ours(dir->run_json) || mg_run_dir_was_just_begun(dir)) return NULL;
    for (int i = 0; i < N_FILES; i++)
        if (lstat(file[i], &found) == 0) return file[i];
    return NULL;
}

mg_status mg_run_dir_check_files(const mg_run_dir *dir, mg_error *error) {
    const char *file[N_FILES];
    files_of(dir, file);
    mg_status status = MG_OK;
    for (int i = 0; i < N_FILES && status == MG_OK; i++) status = mg_atomic_file_check(file[i], error);
    return status;
}

void mg_run_dir_clear(const mg_run_dir *dir) {
    const char *file[N_FILES];
    files_of(dir, file);
    for (int i = 0; i < N_FILES; i++) unlink(file[i]);
}
