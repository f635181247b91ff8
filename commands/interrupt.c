#include "interrupt.h"
#include "language.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t asked, reader_is_gone;
static char said[128];

static void ask(int signal_number) {
    (void)signal_number;
    if (asked) _exit(130);
    asked = 1;
    int held = errno;
    ssize_t written = write(STDERR_FILENO, said, strlen(said));
    (void)written; /* a failure here loses nothing */
    errno = held;
}

static void lose_reader(int signal_number) {
    (void)signal_number;
    reader_is_gone = asked = 1; /* the write fails with EPIPE, and main reports it */
}

void mg_interrupt_watch(const char *doing) {
    if (doing) mg_snprintf(said, sizeof said, "\n%s; Ctrl-C again stops at once\n", doing);
    struct sigaction action = {.sa_handler = ask, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    struct sigaction pipe = {.sa_handler = lose_reader, .sa_flags = SA_RESTART}, inherited;
    sigemptyset(&pipe.sa_mask);
    sigaction(SIGPIPE, &pipe, NULL);
    if (sigaction(SIGHUP, NULL, &inherited) == 0 && inherited.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, NULL);
}

bool mg_interrupt_asked(void) {
    return asked != 0;
}

static bool stop_asked(void *user) {
    (void)user;
    return mg_interrupt_asked();
}

mg_stop mg_interrupt_stop(void) {
    return (mg_stop){.asked = stop_asked};
}

bool mg_interrupt_by_reader(void) {
    return reader_is_gone != 0;
}
