/* A command as a child process, known by its own id. It cannot outlive its parent by more than a step: if the parent
 * dies, whatever the reason, the system asks the child to stop (SIGTERM), and train saves. */
#ifndef MASKGRAD_CHILD_H
#define MASKGRAD_CHILD_H

#include "error.h"

#include <stdbool.h>
#include <sys/types.h>

typedef struct mg_child {
    pid_t id; /* 0: there is none */
} mg_child;

/* Run words[0] with these arguments; what it prints is added to the file `output`. It is in a process group of its own,
 * so that a Ctrl-C reaches the parent only, which then decides. */
mg_status mg_child_start(mg_child *child, char *const *words, const char *output, mg_error *error);
void mg_child_ask(const mg_child *child); /* to save and stop */
/* Whether it has ended; does not wait. *exit_status, and *signal_number if a signal ended it, else 0. */
bool mg_child_has_ended(mg_child *child, int *exit_status, int *signal_number);

#endif
