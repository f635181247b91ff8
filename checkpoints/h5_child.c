#include "guard.h"
#include "h5_internal.h"
#include "sandbox.h"

#include "heap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    MEMORY = 1 << 30,             /* bytes that a child may use */
    LEAST_SECONDS = 5,            /* of processor time, */
    BYTES_PER_SECOND = 1 << 24,   /* plus one per this many bytes of the file */
    PATIENCE = 600,               /* seconds without a byte of an answer, whatever it waits for */
    FRAME_BYTES = (1 << 16) - 256 /* a piece of an answer */
};

struct mg_h5_child {
    pid_t pid;
    int socket;
    unsigned seconds;
    mg_error end; /* why it no longer answers; MG_OK while it does */
};

/* An answer is frames: bytes with MG_OK, and a last one of no bytes; or a status with its message. */
typedef struct frame {
    int32_t status;
    uint32_t bytes;
} frame;

static bool guarded;

void mg_set_file_guard(bool on) {
    guarded = on;
}

bool mg_file_guard(void) {
    return guarded;
}

/* ---- The child ---- */

enum { OUT = 1, FILE_DESCRIPTOR = 3 };
enum { NO_DESCRIPTOR = 3 }; /* exit status */

static MG_NORETURN void give_up(mg_failure kind, const char *message, void *user) {
    (void)kind;
    (void)message;
    (void)user;
    _exit(EXIT_FAILURE); /* nothing of the parent is flushed or cleaned up twice */
}

/* The socket becomes 1 and the file 3, whatever they were, with no descriptor more than the parent had. What the C library
 * prints about a corrupted heap is discarded. */
static void keep_descriptors(int socket, int file) {
    if (socket == FILE_DESCRIPTOR) socket = dup(socket);
    if (socket < 0 || dup2(file, FILE_DESCRIPTOR) < 0 || dup2(socket, OUT) < 0) _exit(NO_DESCRIPTOR);
    if (socket > FILE_DESCRIPTOR) close(socket);
    if (file > FILE_DESCRIPTOR) close(file);
    int null = open("/dev/null", O_RDWR | O_NOCTTY);
    dup2(null, STDIN_FILENO);
    dup2(null, STDERR_FILENO);
}

/* A fault ends the child; Ctrl-C, or a signal meant for the parent, does not: the child ends with its parent. */
static void reset_signals(void) {
    static const int faults[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGPIPE, SIGSEGV, SIGTRAP, SIGXCPU, SIGSYS};
    static const int others[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGALRM};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) signal(faults[i], SIG_DFL);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) signal(others[i], SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void write_fully(const void *bytes, size_t n) {
    for (const char *from = bytes; n > 0;) {
        ssize_t written = write(OUT, from, n);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) _exit(EXIT_FAILURE);
        from += written;
        n -= (size_t)written;
    }
}

/* What is sent: frames, gathered so that a short answer is one write. */
typedef struct mail {
    mg_h5_answer answer; /* first: a reply knows only this */
    size_t n;
    char bytes[1 << 16];
} mail;

static void post(mail *m, mg_status status, const void *bytes, size_t n) {
    if (m->n + sizeof(frame) + n > sizeof m->bytes) {
        write_fully(m->bytes, m->n);
        m->n = 0;
    }
    const frame f = {(int32_t)status, (uint32_t)n};
    memcpy(m->bytes + m->n, &f, sizeof f);
    memcpy(m->bytes + m->n + sizeof f, bytes, n);
    m->n += sizeof f + n;
}

static mg_status take_to_send(mg_h5_answer *answer, const void *bytes, size_t n) {
    const char *from = bytes;
    for (size_t part; n > 0; from += part, n -= part) {
        part = n < FRAME_BYTES ? n : FRAME_BYTES;
        post((mail *)answer, MG_OK, from, part);
    }
    return MG_OK;
}

static void finish_answer(mail *m, mg_status status, const mg_error *error) {
    post(m, status, error->message, status == MG_OK ? 0 : strlen(error->message));
}

/* The next question; pending answers are sent before waiting for one. NULL: the parent is gone. */
static const mg_h5_question *next_question(mail *m) {
    static mg_h5_question inbox[MG_H5_AT_ONCE];
    static size_t read_bytes, used; /* of the inbox; used is a whole number of questions */
    while (read_bytes - used < sizeof *inbox) {
        memmove(inbox, (char *)inbox + used, read_bytes - used);
        read_bytes -= used;
        used = 0;
        write_fully(m->bytes, m->n);
        m->n = 0;
        ssize_t n = read(OUT, (char *)inbox + read_bytes, sizeof inbox - read_bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return NULL;
        read_bytes += (size_t)n;
    }
    used += sizeof *inbox;
    return &inbox[used / sizeof *inbox - 1];
}

static MG_NORETURN void serve(mg_h5 *h5, int socket, unsigned seconds) {
    static mail m = {.answer.take = take_to_send};
    mg_error error = {0};
    mg_set_failure_handler(give_up, NULL);
    reset_signals();
    keep_descriptors(socket, h5->driver.fd);
    h5->driver.fd = FILE_DESCRIPTOR;
    h5->error = &error;
    mg_sandbox_enter(FILE_DESCRIPTOR, seconds, MEMORY);
    finish_answer(&m, mg_h5_open_here(h5), &error);
    for (const mg_h5_question *question; (question = next_question(&m));)
        finish_answer(&m, question->reply(h5, question, &m.answer), &error);
    _exit(EXIT_SUCCESS);
}

/* ---- Its parent ---- */

static mg_status lost(const mg_h5 *h5) {
    return mg_error_set(h5->error, h5->child->end.status, "%s", h5->child->end.message);
}

/* Its exit status; -1 if other code reaped it. A child that closed the socket has ended, or is about to. */
static int wait_for_end(pid_t pid) {
    const struct timespec millisecond = {0, 1000000};
    int status;
    for (int i = 0; i < 1000; i++) {
        pid_t ended = waitpid(pid, &status, WNOHANG);
        if (ended == pid) return status;
        if (ended < 0 && errno != EINTR) return -1;
        nanosleep(&millisecond, NULL);
    }
    kill(pid, SIGKILL);
    return waitpid(pid, &status, 0) == pid ? status : -1;
}

/* The child has ended: say why, and at which object. */
static mg_status bury(const mg_h5 *h5, const char *object) {
    mg_h5_child *child = h5->child;
    int status = wait_for_end(child->pid), signal = status != -1 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    const char *at = object[0] ? object : "its start";
    child->pid = -1;
    mg_h5 mine = {.path = h5->path, .error = &child->end};
    if (signal == SIGXCPU)
        mg_h5_error(&mine, "is damaged: HDF5 did not finish reading %s within %u seconds", at, child->seconds);
    else if (signal == SIGKILL)
        mg_error_set(&child->end, MG_ERR_MEMORY, "'%s' cannot be read: the system ended the process that read it at %s",
                     h5->path, at);
    else if (signal)
        mg_h5_error(&mine, "is damaged: HDF5 crashes at %s (%s)", at, strsignal(signal));
    else if (status != -1 && WEXITSTATUS(status) == NO_DESCRIPTOR)
        mg_error_set(&child->end, MG_ERR_IO, "'%s' cannot be read: %s", h5->path, strerror(EMFILE));
    else
        mg_h5_error(&mine, "is damaged: HDF5 gives up at %s", at);
    return lost(h5);
}

/* It is alive, but sends nonsense or nothing. */
static mg_status dismiss(const mg_h5 *h5, const char *why) {
    mg_h5_child *child = h5->child;
    kill(child->pid, SIGKILL);
    waitpid(child->pid, NULL, 0);
    child->pid = -1;
    mg_error_set(&child->end, MG_ERR_FORMAT, "'%s' cannot be read: %s", h5->path, why);
    return lost(h5);
}

/* 1: complete; 0: the other end is closed; -1: no byte for too long. */
static int receive(int socket, void *to, size_t n) {
    for (size_t got = 0; got < n;) {
        ssize_t more = recv(socket, (char *)to + got, n - got, 0);
        if (more < 0 && errno == EINTR) continue;
        if (more < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return -1;
        if (more <= 0) return 0;
        got += (size_t)more;
    }
    return 1;
}

static mg_status dismiss_nonsense(const mg_h5 *h5) {
    return dismiss(h5, "the process that reads it sent an invalid answer");
}

/* The next bytes of an answer to a question about `object`. */
static mg_status receive_bytes(const mg_h5 *h5, const char *object, void *to, size_t n) {
    int got = receive(h5->child->socket, to, n);
    return got == 1 ? MG_OK : got == 0 ? bury(h5, object) : dismiss(h5, "the process that reads it does not answer");
}

/* The message of an error in the child. */
static mg_status receive_error(const mg_h5 *h5, const char *object, const frame *f) {
    char text[sizeof h5->error->message];
    if (f->status < MG_OK || f->status > MG_ERR_STATE || f->bytes >= sizeof text) return dismiss_nonsense(h5);
    mg_status status = receive_bytes(h5, object, text, f->bytes);
    if (status != MG_OK) return status;
    text[f->bytes] = '\0';
    return mg_error_set(h5->error, (mg_status)f->status, "%s", text);
}

/* An answer's length, or its error. */
static mg_status receive_answer(const mg_h5 *h5, const mg_h5_call *call, size_t *length) {
    frame f;
    for (*length = 0;; *length += f.bytes) {
        mg_status status = receive_bytes(h5, call->question.object, &f, sizeof f);
        if (status != MG_OK) return status;
        if (f.status != MG_OK) return receive_error(h5, call->question.object, &f);
        if (f.bytes == 0) return MG_OK;
        if (f.bytes > call->size - *length) return dismiss_nonsense(h5);
        status = receive_bytes(h5, call->question.object, (char *)call->to + *length, f.bytes);
        if (status != MG_OK) return status;
    }
}

static bool send_question(int socket, const mg_h5_question *question) {
    const char *from = (const char *)question;
    for (size_t sent = 0; sent < sizeof *question;) {
        ssize_t n = send(socket, from + sent, sizeof *question - sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        sent += (size_t)n;
    }
    return true;
}

mg_status mg_h5_child_ask(const mg_h5 *h5, int n, const mg_h5_call *calls) {
    if (h5->child->end.status != MG_OK) return lost(h5);
    for (int i = 0; i < n; i++)
        if (!send_question(h5->child->socket, &calls[i].question)) break; /* its answer will not come */
    mg_status first = MG_OK;
    mg_error ignored, *error = h5->error;
    for (int i = 0; i < n && h5->child->end.status == MG_OK; i++) {
        size_t length;
        mg_h5 after = *h5; /* answers after a failure are received and forgotten */
        after.error = first == MG_OK ? error : &ignored;
        mg_status status = receive_answer(&after, &calls[i], &length);
        if (status == MG_OK) status = mg_h5_check_length(&after, &calls[i], length);
        if (first == MG_OK) first = status;
    }
    return first;
}

mg_status mg_h5_child_start(mg_h5 *h5) {
    int ends[2];
    mg_h5_child *child = mg_alloc_zero(1, sizeof *child, "a process that reads", h5->error);
    if (!child) return MG_ERR_MEMORY;
    h5->child = child;
    child->pid = child->socket = -1;
    child->seconds = LEAST_SECONDS + (unsigned)(h5->driver.end / BYTES_PER_SECOND);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0) {
        child->socket = ends[0];
        fcntl(ends[0], F_SETFD, FD_CLOEXEC);
        fcntl(ends[1], F_SETFD, FD_CLOEXEC);
        child->pid = fork();
        if (child->pid == 0) serve(h5, ends[1], child->seconds);
        int reason = errno;
        close(ends[1]);
        errno = reason;
    }
    if (child->pid < 0) {
        mg_error_set(&child->end, MG_ERR_IO, "'%s' cannot be read: no process could be started to read it: %s",
                     h5->path, strerror(errno));
        return lost(h5);
    }
    setsockopt(child->socket, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_sec = PATIENCE}, sizeof(struct timeval));
    size_t none;
    return receive_answer(h5, &(mg_h5_call){.to = NULL}, &none);
}

void mg_h5_child_end(mg_h5 *h5) {
    mg_h5_child *child = h5->child;
    if (child->pid > 0) {
        kill(child->pid, SIGKILL);
        while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR) continue;
    }
    if (child->socket >= 0) close(child->socket);
    mg_free(child);
    h5->child = NULL;
}
