#include "regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* NULL for a regular file. */
static const char *kind_of(mode_t mode) {
    return S_ISREG(mode)    ? NULL
           : S_ISDIR(mode)  ? "a folder"
           : S_ISFIFO(mode) ? "a pipe"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

mg_status mg_open_regular(const char *path, int *fd, size_t *bytes, mg_error *error) {
    struct stat about;
    *bytes = 0;
    *fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    int reason = errno; /* a socket cannot be opened, but it can be named */
    bool known = *fd >= 0 ? fstat(*fd, &about) == 0 : stat(path, &about) == 0;
    const char *kind = known ? kind_of(about.st_mode) : NULL;
    if (*fd >= 0 && known && !kind) {
        *bytes = (size_t)about.st_size;
        return MG_OK;
    }
    if (*fd >= 0) close(*fd);
    *fd = -1;
    if (kind) return mg_error_set(error, MG_ERR_IO, "'%s' is %s, not a regular file", path, kind);
    return mg_error_set(error, MG_ERR_IO, "'%s' cannot be read: %s", path, strerror(reason));
}
