/* What a child process that reads a hostile file may use: little time, little memory, and few system calls. */
#ifndef MASKGRAD_SANDBOX_H
#define MASKGRAD_SANDBOX_H

#include <stddef.h>

/* Only for a process that was just forked; it cannot be undone. It keeps its descriptors up to `last`; it may read and
 * write those, take `memory` bytes more than it has and `seconds` of processor time, and open no file, socket or
 * process: by resource limits everywhere, by a filter of system calls too where the system is Linux on x86-64 or ARM64.
 * A refused call fails with EPERM; too much time ends the process by SIGXCPU; too much memory is not given. */
void mg_sandbox_enter(int last, unsigned seconds, size_t memory);

#endif
