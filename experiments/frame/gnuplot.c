/* gnuplot as a process, fed through a pipe.
 *
 * The folder's name is nowhere in the script: gnuplot runs in the folder, and its files have names of ours. */
#include "plot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool program_exists(const char *program) {
    const char *path = getenv("PATH");
    while (path && *path) {
        size_t length = strcspn(path, ":");
        char candidate[4096];
        snprintf(candidate, sizeof candidate, "%.*s/%s", (int)length, path, program);
        if (access(candidate, X_OK) == 0) return true;
        path += length + (path[length] == ':');
    }
    return false;
}

bool lab_gnuplot_is_installed(void) {
    return program_exists("gnuplot");
}

/* Without the user's own settings, and in a locale that knows every sign and no decimal comma. One that hangs is ended,
 * where there is a program for that. */
static char *const gnuplot[] = {"env", "-u", "GNUTERM", "LC_ALL=C.UTF-8", "gnuplot", "-d", NULL};
static char *const gnuplot_with_a_limit[] = {
    "env", "-u", "GNUTERM", "LC_ALL=C.UTF-8", "timeout", "-s", "KILL", "60", "gnuplot", "-d", NULL};

MG_NORETURN static void become(char *const *command, int folder, int script) {
    if (fchdir(folder) == 0 && dup2(script, STDIN_FILENO) >= 0) {
        signal(SIGPIPE, SIG_DFL);
        execvp(command[0], command);
    }
    _exit(127);
}

bool lab_gnuplot_start(lab_gnuplot *p) {
    int ends[2];
    char *const *command = program_exists("timeout") ? gnuplot_with_a_limit : gnuplot;
    if (pipe(ends) != 0) return false;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    p->process = fork();
    if (p->process == 0) become(command, p->folder, ends[0]);
    close(ends[0]);
    p->pipe = p->process > 0 ? fdopen(ends[1], "w") : NULL;
    if (p->pipe) {
        fputs("set encoding utf8\n", p->pipe);
        return true;
    }
    close(ends[1]);
    if (p->process > 0) waitpid(p->process, NULL, 0);
    return false;
}

bool lab_gnuplot_end(lab_gnuplot *p) {
    bool written = ferror(p->pipe) == 0;
    int status = -1;
    written = fclose(p->pipe) == 0 && written;
    while (waitpid(p->process, &status, 0) < 0 && errno == EINTR) continue;
    return written && status == 0;
}
