#include "atomic_file.h"

#include "heap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

mg_status mg_atomic_file_check(const char *path, mg_error *error) {
    struct stat file;
    if (stat(path, &file) != 0 || S_ISREG(file.st_mode)) return MG_OK;
    return mg_error_set(error, MG_ERR_IO, "'%s' is %s: nothing was written", path,
                        S_ISDIR(file.st_mode) ? "a folder" : "not a regular file");
}

static int write_fully(int fd, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t n = write(fd, bytes, length);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        bytes += n;
        length -= (size_t)n;
    }
    return 0;
}

static mg_status failed(const char *path, const char *doing, mg_error *error) {
    return mg_error_set(error, MG_ERR_IO, "'%s' cannot be %s: %s", path, doing, strerror(errno));
}

static mg_status write_temporary(const char *temporary, const char *path, const void *bytes, size_t length,
                                 mg_error *error) {
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) return failed(path, "written", error);
    mg_status status = MG_OK;
    if (write_fully(fd, bytes, length) != 0 || fsync(fd) != 0) status = failed(path, "written", error);
    if (close(fd) != 0 && status == MG_OK) status = failed(path, "written", error);
    return status;
}

/* The rename itself must survive a power cut. Some file systems cannot sync a folder: nothing to be done there. */
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

mg_status mg_atomic_file_write(const char *path, const void *bytes, size_t length, mg_error *error) {
    mg_status status = mg_atomic_file_check(path, error);
    if (status != MG_OK) return status;
    size_t room = strlen(path) + 32;
    char *temporary = mg_alloc(room, 1, "a file name", error);
    if (!temporary) return MG_ERR_MEMORY;
    snprintf(temporary, room, "%s.tmp.%ld", path, (long)getpid());
    status = write_temporary(temporary, path, bytes, length, error);
    if (status == MG_OK && rename(temporary, path) != 0) status = failed(path, "written", error);
    if (status == MG_OK)
        status = sync_folder(temporary, error);
    else
        unlink(temporary);
    mg_free(temporary);
    return status;
}
