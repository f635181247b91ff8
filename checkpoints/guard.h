/* Whether this process reads HDF5 files itself. */
#ifndef MASKGRAD_GUARD_H
#define MASKGRAD_GUARD_H

#include "error.h"

#include <stdbool.h>

/* HDF5 crashes, hangs or takes all memory on some damaged or crafted files: docs/hostile-files.md. On: every HDF5 file
 * that is opened for reading from now on is read by a child process, which has limits on its time, its memory and its
 * system calls and sends what it reads; whatever ends it becomes an error of the reading call, in one sentence. The
 * child costs milliseconds, and copies of the numbers through a socket. Off, the default: files are trusted. The caller
 * must not reap children that it did not start (waitpid(-1), SIGCHLD ignored), or the reason for a crash is lost. Do
 * not change this while another thread reads. */
MG_API void mg_set_file_guard(bool on);

#endif
