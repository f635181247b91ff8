#define _GNU_SOURCE /* pipe2 */
#include "audit_pipe.h"
#include "clock.h"
#include "heap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* ---- The process ---- */

static void close_end(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

/* The child's ends come as its 0 and 1; SIGPIPE does to it what it does to any program. */
static int spawn(pid_t *pid, char *const *argv, int in, int out) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed) return failed;
    failed = posix_spawnattr_init(&attributes);
    if (!failed) {
        posix_spawnattr_setsigdefault(&attributes, &defaults);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
        failed = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
        if (!failed) failed = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
        if (!failed) failed = posix_spawnp(pid, argv[0], &actions, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

static void set_nonblocking(int fd) {
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

mg_status audit_pipe_start(audit_pipe *p, char *const *argv, mg_error *error) {
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    signal(SIGPIPE, SIG_IGN); /* errno says that a program is gone */
    p->to = p->from = -1;
    int failed = pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) ? errno : 0;
    if (!failed) failed = spawn(&p->pid, argv, in[0], out[1]);
    close_end(&in[0]);
    close_end(&out[1]);
    p->to = in[1];
    p->from = out[0];
    if (failed) {
        p->pid = 0;
        return mg_error_set(error, MG_ERR_IO, "'%s' cannot be started: %s", argv[0], strerror(failed));
    }
    set_nonblocking(p->to);
    p->asked[0] = 0;
    p->deadline = mg_seconds() + p->timeout;
    return MG_OK;
}

void audit_pipe_stdio(audit_pipe *p) {
    signal(SIGPIPE, SIG_IGN);
    p->from = STDIN_FILENO;
    p->to = STDOUT_FILENO;
    set_nonblocking(p->to);
    p->asked[0] = 0;
    p->deadline = mg_seconds() + p->timeout;
}

/* Whether the child is gone within so many seconds; its status, as of waitpid. */
static bool wait_for(audit_pipe *p, double seconds, int *status) {
    double deadline = mg_seconds() + seconds;
    for (;;) {
        pid_t gone = waitpid(p->pid, status, WNOHANG);
        if (gone == p->pid || (gone < 0 && errno == ECHILD)) {
            p->pid = 0;
            return true;
        }
        if (mg_seconds() >= deadline) return false;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
}

void audit_pipe_close(audit_pipe *p, bool kindly) {
    int status = 0;
    if (p->to != STDOUT_FILENO) close_end(&p->to);
    if (p->from != STDIN_FILENO) close_end(&p->from);
    if (p->pid > 0 && !(kindly && wait_for(p, 2, &status))) {
        kill(p->pid, SIGTERM);
        if (!wait_for(p, 1, &status)) {
            kill(p->pid, SIGKILL);
            wait_for(p, 5, &status);
        }
    }
    mg_free(p->buffer);
    p->buffer = NULL;
}

/* ---- What went wrong ---- */

audit_pipe_moment audit_pipe_when(const audit_pipe *p) {
    audit_pipe_moment when = {" before it greeted"};
    if (p->asked[0]) snprintf(when.text, sizeof when.text, " when asked for %s", p->asked);
    return when;
}

static mg_status say_ended(audit_pipe *p, mg_error *error) {
    int status = 0;
    if (p->pid == 0)
        return mg_error_set(error, MG_ERR_IO, "the model's side of the pipe closed%s", audit_pipe_when(p).text);
    if (!wait_for(p, 1, &status))
        return mg_error_set(error, MG_ERR_IO, "the program closed its standard output%s", audit_pipe_when(p).text);
    if (WIFSIGNALED(status))
        return mg_error_set(error, MG_ERR_IO, "the program was ended by signal %d (%s)%s", WTERMSIG(status),
                            strsignal(WTERMSIG(status)), audit_pipe_when(p).text);
    return mg_error_set(error, MG_ERR_IO, "the program ended with status %d%s", WEXITSTATUS(status),
                        audit_pipe_when(p).text);
}

static mg_status say_silent(const audit_pipe *p, mg_error *error) {
    char got[64] = "did not answer";
    if (p->length > 0)
        snprintf(got, sizeof got, "stopped in its answer after %zu bytes", p->length);
    else if (!p->asked[0])
        return mg_error_set(error, MG_ERR_IO, "the program did not greet within %g s (--timeout)", p->timeout);
    return mg_error_set(error, MG_ERR_IO, "the program %s within %g s (--timeout)%s", got, p->timeout,
                        audit_pipe_when(p).text);
}

/* ---- Bytes ---- */

/* Until one of the two can be used, or time is up. `sending`: also when more can be sent. */
static mg_status wait_ready(audit_pipe *p, bool sending, bool *readable, bool *writable, mg_error *error) {
    struct pollfd fds[2] = {{.fd = p->from, .events = POLLIN}, {.fd = sending ? p->to : -1, .events = POLLOUT}};
    for (;;) {
        if (p->stopped && p->stopped()) return mg_error_set(error, MG_ERR_STATE, "interrupted");
        double left = p->deadline - mg_seconds();
        if (left <= 0) return say_silent(p, error);
        /* A signal between the question and the poll is seen a fifth of a second later. */
        int ready = poll(fds, 2, left < 0.2 ? (int)(left * 1000) + 1 : 200);
        if (ready < 0 && errno != EINTR)
            return mg_error_set(error, MG_ERR_IO, "the pipe to the program failed: %s", strerror(errno));
        *readable = ready > 0 && fds[0].revents;
        *writable = ready > 0 && fds[1].revents;
        if (*readable || *writable) return MG_OK;
    }
}

static mg_status make_room(audit_pipe *p, size_t n, mg_error *error) {
    if (p->start > 0) memmove(p->buffer, p->buffer + p->start, p->length);
    p->start = 0;
    if (p->length + n <= p->capacity) return MG_OK;
    size_t capacity = 2 * p->capacity > p->length + n ? 2 * p->capacity : p->length + n;
    char *grown = mg_alloc_grow(p->buffer, p->length, capacity, 1, "a program's answer", error);
    if (!grown) return MG_ERR_MEMORY;
    p->buffer = grown;
    p->capacity = capacity;
    return MG_OK;
}

static mg_status receive(audit_pipe *p, mg_error *error) {
    enum { CHUNK = 65536 };
    mg_status status = make_room(p, CHUNK, error);
    if (status) return status;
    ssize_t got = read(p->from, p->buffer + p->length, CHUNK);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return MG_OK;
    if (got < 0) return mg_error_set(error, MG_ERR_IO, "the program's answer cannot be read: %s", strerror(errno));
    if (got == 0) return say_ended(p, error);
    p->length += (size_t)got;
    return MG_OK;
}

static mg_status refuse_unasked(const audit_pipe *p, mg_error *error) {
    return mg_error_set(error, MG_ERR_FORMAT,
                        "the program wrote '%.*s' on its standard output before it was asked for %s: what it prints "
                        "belongs on its standard error",
                        (int)(p->length < 60 ? p->length : 60), p->buffer + p->start, p->asked);
}

/* Both directions at once: a program that writes before it reads would otherwise wait for us, and we for it. */
mg_status audit_pipe_ask(audit_pipe *p, const char *text, size_t n, mg_error *error) {
    p->deadline = mg_seconds() + p->timeout;
    for (size_t sent = 0; sent < n;) {
        bool readable, writable;
        if (p->length > 0) return refuse_unasked(p, error);
        mg_status status = wait_ready(p, true, &readable, &writable, error);
        if (!status && readable) status = receive(p, error);
        if (status) return status;
        if (!writable || p->length > 0) continue;
        ssize_t put = write(p->to, text + sent, n - sent);
        if (put > 0) sent += (size_t)put;
        if (put < 0 && errno != EINTR && errno != EAGAIN) return say_ended(p, error);
    }
    return MG_OK;
}

static mg_status receive_more(audit_pipe *p, mg_error *error) {
    bool readable, writable;
    mg_status status = wait_ready(p, false, &readable, &writable, error);
    return status ? status : receive(p, error);
}

static void take(audit_pipe *p, size_t n) {
    p->start += n;
    p->length -= n;
}

mg_status audit_pipe_bytes(audit_pipe *p, size_t n, const char **bytes, mg_error *error) {
    while (p->length < n) {
        mg_status status = receive_more(p, error);
        if (status) return status;
    }
    *bytes = p->buffer + p->start;
    take(p, n);
    return MG_OK;
}

mg_status audit_pipe_line(audit_pipe *p, size_t most, const char **line, mg_error *error) {
    size_t searched = 0;
    for (;;) {
        char *from = p->length > searched ? p->buffer + p->start + searched : NULL;
        char *end = from ? memchr(from, '\n', p->length - searched) : NULL;
        if (end) {
            char *begin = p->buffer + p->start;
            take(p, (size_t)(end - begin) + 1);
            *end = 0;
            *line = begin;
            return MG_OK;
        }
        searched = p->length;
        if (searched > most)
            return mg_error_set(error, MG_ERR_FORMAT, "the program's answer has no end of line in %zu bytes", searched);
        mg_status status = receive_more(p, error);
        if (status) return status;
    }
}
