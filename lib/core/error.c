#include "failure.h"

#include "printable.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { LONGEST = sizeof((mg_error *)NULL)->message };

/* The one door of every message: names of files, cells, words come from strangers. What is cut here is longer than what
 * fits there. */
static void format_printable(char *message, const char *format, va_list arguments) MG_PRINTF(2, 0);
static void format_printable(char *message, const char *format, va_list arguments) {
    char text[LONGEST + 4];
    int length = vsnprintf(text, sizeof text, format, arguments);
    size_t n = length < 0 ? 0 : length < (int)sizeof text ? (size_t)length : sizeof text - 1;
    mg_printable(message, LONGEST, text, n, "");
}

mg_status mg_error_vset(mg_error *error, mg_status status, const char *format, va_list arguments) {
    if (error) {
        error->status = status;
        format_printable(error->message, format, arguments);
    }
    return status;
}

mg_status mg_error_set(mg_error *error, mg_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    mg_error_vset(error, status, format, arguments);
    va_end(arguments);
    return status;
}

mg_count_text mg_count(int64_t n, const char *noun) {
    mg_count_text count;
    snprintf(count.text, sizeof count.text, "%" PRId64 " %s%s", n, noun, n == 1 ? "" : "s");
    return count;
}

const char *mg_status_name(mg_status status) {
    switch (status) {
    case MG_OK: return "ok";
    case MG_ERR_MEMORY: return "memory";
    case MG_ERR_IO: return "io";
    case MG_ERR_FORMAT: return "format";
    case MG_ERR_INPUT: return "input";
    case MG_ERR_STATE: return "state";
    }
    return "unknown";
}

static mg_failure_handler *failure_handler;
static void *failure_user;
static _Thread_local mg_trap *current_trap;

void mg_set_failure_handler(mg_failure_handler *handler, void *user) {
    failure_handler = handler;
    failure_user = user;
}

mg_trap *mg_trap_set(mg_trap *trap) {
    mg_trap *before = current_trap;
    current_trap = trap;
    return before;
}

MG_NORETURN static void report(mg_failure kind, const char *message) {
    if (current_trap) {
        current_trap->kind = kind;
        snprintf(current_trap->message, sizeof current_trap->message, "%s", message);
        longjmp(current_trap->jump, 1);
    }
    if (failure_handler) failure_handler(kind, message, failure_user);
    /* The default, and what happens to a handler that returns although it must not. */
    fprintf(stderr, "maskgrad: %s\n", message);
    abort();
}

void mg_fail_again(const mg_trap *trap) {
    report(trap->kind, trap->message);
}

void mg_fail(mg_failure kind, const char *file, int line, const char *format, ...) {
    char text[LONGEST], message[sizeof current_trap->message];
    va_list arguments;
    va_start(arguments, format);
    format_printable(text, format, arguments);
    va_end(arguments);
    snprintf(message, sizeof message, "%s:%d: %s", file, line, text);
    report(kind, message);
}
