#include "atomic_file.h"

#include "heap.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

mg_status mg_atomic_file_check(const char *path, mg_error *error) {
    struct stat file;
    if (stat(path, &file) != 0 || S_ISREG(file.st_mode)) return MG_OK;
    return mg_error_set(error, MG_ERR_IO, "'%s' is %s: nothing was written", path,
                        S_ISDIR(file.st_mode) ? "a folder" : "not a regular file");
}

static mg_status failed(const char *path, const char *doing, mg_error *error) {
    return mg_error_set(error, MG_ERR_IO, "'%s' cannot be %s: %s", path, doing, strerror(errno));
}

/* The rename itself must survive a power cut. Some file systems cannot sync a folder; that cannot be helped. */
static mg_status sync_folder(char *path, mg_error *error) {
    char *slash = strrchr(path, '/');
    if (slash) slash[slash == path ? 1 : 0] = '\0';
    const char *folder = slash ? path : ".";
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno == EACCES ? MG_OK : failed(folder, "synced", error); /* a folder may be write-only */
    mg_status status = MG_OK;
    if (fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP) status = failed(folder, "synced", error);
    close(fd);
    return status;
}

static const char temporary_prefix[] = ".maskgrad-tmp-";

char *mg_temporary_path(const char *path, mg_error *error) {
    enum { LONGEST_NAME = 200 }; /* file systems allow at most 255 */
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t room = strlen(path) + sizeof temporary_prefix + 32;
    char *temporary = mg_alloc(room, 1, "a file name", error);
    if (temporary)
        snprintf(temporary, room, "%.*s%s%ld-%.*s", (int)(name - path), path, temporary_prefix, (long)getpid(),
                 LONGEST_NAME, name);
    return temporary;
}

bool mg_temporary_is_left_over(const char *name) {
    size_t prefix = strlen(temporary_prefix);
    char *end;
    if (strncmp(name, temporary_prefix, prefix) != 0 || !isdigit((unsigned char)name[prefix])) return false;
    errno = 0;
    long pid = strtol(name + prefix, &end, 10);
    return errno == 0 && *end == '-' && pid > 0 && pid <= INT_MAX && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

mg_status mg_atomic_file_begin(mg_atomic_file *file, const char *path, mg_error *error) {
    *file = (mg_atomic_file){.fd = -1, .path = path};
    mg_status status = mg_atomic_file_check(path, error);
    if (status != MG_OK) return status;
    file->temporary = mg_temporary_path(path, error);
    if (!file->temporary) return MG_ERR_MEMORY;
    file->fd = open(file->temporary, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    return file->fd >= 0 ? MG_OK : failed(path, "written", error);
}

mg_status mg_atomic_file_commit(mg_atomic_file *file, mg_error *error) {
    mg_status status = fsync(file->fd) == 0 ? MG_OK : failed(file->path, "written", error);
    int closed = close(file->fd);
    file->fd = -1;
    if (status == MG_OK && closed != 0) status = failed(file->path, "written", error);
    if (status == MG_OK)
        status = mg_atomic_file_check(file->path, error); /* again: it may have changed during writing */
    if (status == MG_OK && rename(file->temporary, file->path) != 0) status = failed(file->path, "written", error);
    if (status == MG_OK)
        status = sync_folder(file->temporary, error);
    else
        unlink(file->temporary);
    mg_free(file->temporary);
    file->temporary = NULL;
    return status;
}

void mg_atomic_file_abandon(mg_atomic_file *file) {
    if (file->fd >= 0) {
        close(file->fd);
        unlink(file->temporary);
    }
    mg_free(file->temporary);
    *file = (mg_atomic_file){.fd = -1};
}

mg_status mg_atomic_text_begin(mg_atomic_text *text, const char *path, mg_error *error) {
    text->out = NULL;
    snprintf(text->path, sizeof text->path, "%s", path);
    mg_status status = mg_atomic_file_begin(&text->file, text->path, error);
    if (status == MG_OK) {
        int copy = dup(text->file.fd); /* fclose closes its own; the commit still needs one */
        text->out = copy >= 0 ? fdopen(copy, "w") : NULL;
        if (text->out) return MG_OK;
        status = failed(path, "written", error);
        if (copy >= 0) close(copy);
    }
    mg_atomic_file_abandon(&text->file);
    return status;
}

mg_status mg_atomic_text_end(mg_atomic_text *text, mg_error *error) {
    errno = 0;
    bool lost = ferror(text->out) != 0;
    if (fclose(text->out) == 0 && !lost) return mg_atomic_file_commit(&text->file, error);
    mg_status status = mg_error_set(error, MG_ERR_IO, "'%s' cannot be written: %s", text->path,
                                    errno ? strerror(errno) : "only a part reached the disk");
    mg_atomic_file_abandon(&text->file);
    return status;
}

void mg_atomic_text_abandon(mg_atomic_text *text) {
    fclose(text->out);
    mg_atomic_file_abandon(&text->file);
}

mg_status mg_atomic_text_finish(mg_atomic_text *text, mg_status printed, mg_error *error) {
    if (printed == MG_OK) return mg_atomic_text_end(text, error);
    mg_atomic_text_abandon(text);
    return printed;
}
