/* A program at the other end of two pipes, which answers in time or is named for what it does instead. */
#ifndef MASKGRAD_AUDIT_PIPE_H
#define MASKGRAD_AUDIT_PIPE_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct audit_pipe {
    pid_t pid;             /* of the child; 0: there is none, or it has been waited for */
    int to, from;          /* −1: closed */
    double timeout;        /* seconds that an answer may take */
    bool (*stopped)(void); /* whether the user wants to stop */
    char asked[96];        /* what it was asked last, for messages; "": its greeting is awaited */
    double deadline;       /* of the answer */
    char *buffer;          /* read and not used: length bytes from start on */
    size_t start, length, capacity;
} audit_pipe;

/* Start a program, found as a shell finds it, with pipes as its standard input and output; its standard error is ours.
 * MG_ERR_IO with the system's reason. A pipe is always to be closed. */
mg_status audit_pipe_start(audit_pipe *pipe, char *const *argv, mg_error *error);
/* Our own standard input and output are the pipes. */
void audit_pipe_stdio(audit_pipe *pipe);
/* End it: by closing its input; if it is not gone soon, by SIGTERM; then by SIGKILL. No other is signalled. `kindly`
 * false leaves out the first. */
void audit_pipe_close(audit_pipe *pipe, bool kindly);

/* " when asked for …" or " before it greeted", for the end of a message. */
typedef struct audit_pipe_moment {
    char text[120];
} audit_pipe_moment;
audit_pipe_moment audit_pipe_when(const audit_pipe *pipe);

/* From here the time for an answer runs. All below: MG_ERR_IO if it ended, closed its output or is silent for too long;
 * MG_ERR_STATE if the user stops it; MG_ERR_FORMAT if it answers what was not asked. */
mg_status audit_pipe_ask(audit_pipe *pipe, const char *text, size_t n, mg_error *error);
/* A line without its end, valid until the next call. Longer than `most`: MG_ERR_FORMAT. */
mg_status audit_pipe_line(audit_pipe *pipe, size_t most, const char **line, mg_error *error);
mg_status audit_pipe_bytes(audit_pipe *pipe, size_t n, const char **bytes, mg_error *error);

#endif
