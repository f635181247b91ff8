#include "checkpoint.h"

#include <stdio.h>
#include <sys/stat.h>

void mg_checkpoint_path(const char *asked, char *path, size_t size) {
    struct stat status;
    bool is_folder = stat(asked, &status) == 0 && S_ISDIR(status.st_mode);
    snprintf(path, size, "%s%s", asked, is_folder ? "/" MG_CHECKPOINT_NAME : "");
}
