#include "interrupt.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t asked;

static void ask(int signal_number) {
    (void)signal_number;
    static const char said[] = "\nfinishing the step; Ctrl-C again stops at once\n";
    if (asked) _exit(130);
    asked = 1;
    int held = errno;
    ssize_t written = write(STDERR_FILENO, said, sizeof said - 1);
    (void)written; /* if nobody listens, nothing is lost */
    errno = held;
}

void mg_interrupt_watch(void) {
    struct sigaction action = {.sa_handler = ask, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    struct sigaction inherited;
    if (sigaction(SIGHUP, NULL, &inherited) == 0 && inherited.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, NULL);
}

bool mg_interrupt_asked(void) {
    return asked != 0;
}
