#include "interrupt.h"

#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t asked;

static void ask(int signal_number) {
    (void)signal_number;
    if (asked) _exit(130);
    asked = 1;
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
