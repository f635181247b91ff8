#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANNOT_RUN = 127 }; /* a shell's status for a command that it cannot run */

/* In the child, between fork and exec: only what is safe in a signal handler. */
MG_NORETURN static void become(char *const *words, int output, pid_t parent) {
    int nothing = open("/dev/null", O_RDONLY);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent && nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
        dup2(output, STDERR_FILENO) >= 0)
        execv(words[0], words);
    _exit(CANNOT_RUN);
}

mg_status mg_child_start(mg_child *child, char *const *words, const char *output, mg_error *error) {
    int file = open(output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file < 0) return mg_error_set(error, MG_ERR_IO, "cannot write %s: %s", output, strerror(errno));
    pid_t parent = getpid(), id = fork();
    if (id == 0) become(words, file, parent);
    int reason = errno;
    close(file);
    if (id < 0) return mg_error_set(error, MG_ERR_IO, "cannot start another process: %s", strerror(reason));
    child->id = id;
    return MG_OK;
}

void mg_child_ask(const mg_child *child) {
    if (child->id > 0) kill(child->id, SIGTERM);
}

bool mg_child_has_ended(mg_child *child, int *exit_status, int *signal_number) {
    int status = 0;
    if (child->id == 0) return false;
    pid_t found = waitpid(child->id, &status, WNOHANG);
    bool lost = found < 0 && errno == ECHILD; /* SIGCHLD was ignored, so its status is unknown */
    if (found != child->id && !lost) return false;
    *exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    *signal_number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    child->id = 0;
    return true;
}
