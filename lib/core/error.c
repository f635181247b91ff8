#include "failure.h"

#include "printable.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = sizeof((mg_error *)NULL)->message };

static mg_formatter *formatter;
static mg_counter *counter;

void mg_set_wording(mg_formatter *sentences, mg_counter *counts) {
    formatter = sentences;
    counter = counts;
}

int mg_vsnprintf(char *text, size_t size, const char *format, va_list arguments) {
    return (formatter ? formatter : vsnprintf)(text, size, format, arguments);
}

int mg_snprintf(char *text, size_t size, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int n = mg_vsnprintf(text, size, format, arguments);
    va_end(arguments);
    return n;
}

/* Every message passes through here, since names of files, cells and words are untrusted. The buffer holds more than
 * the message can. */
static void format_printable(char *message, mg_formatter *format_text, const char *format, va_list arguments) {
    char text[LONGEST + 4];
    int length = format_text(text, sizeof text, format, arguments);
    size_t n = length < 0 ? 0 : length < (int)sizeof text ? (size_t)length : sizeof text - 1;
    mg_printable(message, LONGEST, text, n, "");
}

mg_status mg_error_vset(mg_error *error, mg_status status, const char *format, va_list arguments) {
    if (error) {
        error->status = status;
        format_printable(error->message, mg_vsnprintf, format, arguments);
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
    if (!counter) return mg_count_in_english(n, noun);
    counter(count.text, sizeof count.text, n, noun);
    return count;
}

mg_count_text mg_count_in_english(int64_t n, const char *noun) {
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
    case MG_ERR_STOPPED: return "stopped";
    }
    return "unknown";
}

static mg_failure_handler *failure_handler;
static void *failure_user;
static _Thread_local mg_trap *current_trap;
static _Thread_local mg_place current_place;

void mg_set_failure_handler(mg_failure_handler *handler, void *user) {
    failure_handler = handler;
    failure_user = user;
}

mg_trap *mg_trap_set(mg_trap *trap) {
    mg_trap *before = current_trap;
    current_trap = trap;
    if (trap) trap->place = current_place;
    return before;
}

/* Never returns, and leaves the thread in no public call: the handler may jump anywhere. */
MG_NORETURN static void report(mg_failure kind, mg_place at, mg_place check, const char *text) {
    char message[sizeof current_trap->text + 256];
    if (current_trap) {
        current_trap->kind = kind;
        current_trap->at = at;
        current_trap->check = check;
        memcpy(current_trap->text, text, sizeof current_trap->text);
        current_place = current_trap->place;
        longjmp(current_trap->jump, 1);
    }
    if (!at.file) at = current_place.file ? current_place : check;
    current_place = (mg_place){0};
    snprintf(message, sizeof message, "%s:%d: %s", at.file, at.line, text);
    if (failure_handler) failure_handler(kind, message, failure_user);
    /* The default, also used when a handler returns although it must not. */
    fprintf(stderr, "maskgrad: %s\n", message);
    abort();
}

void mg_fail_again(const mg_trap *trap) {
    report(trap->kind, trap->at, trap->check, trap->text);
}

void mg_fail(mg_failure kind, const char *file, int line, const char *format, ...) {
    char text[LONGEST];
    va_list arguments;
    va_start(arguments, format);
    format_printable(text, vsnprintf, format, arguments);
    va_end(arguments);
    report(kind, (mg_place){file, line}, (mg_place){file, line}, text);
}

void mg_fail_in_call(mg_failure kind, const char *file, int line, const char *format, ...) {
    char text[LONGEST];
    va_list arguments;
    va_start(arguments, format);
    format_printable(text, vsnprintf, format, arguments);
    va_end(arguments);
    report(kind, (mg_place){0}, (mg_place){file, line}, text);
}

static void check_given(const char *function, const char *names, int n, const void *const *given) {
    for (int i = 0; i < n; i++) {
        names += strspn(names, "(, ");
        int length = (int)strcspn(names, ",)");
        if (!given[i]) mg_fail_in_call(MG_FAILURE_BUG, __FILE__, __LINE__, "%s: %.*s is NULL", function, length, names);
        names += length;
    }
}

mg_place mg_call_enter(const char *file, int line, const char *function, const char *names, int n,
                       const void *const *given) {
    mg_place before = current_place;
    current_place = (mg_place){file, line};
    check_given(function, names, n, given);
    return before;
}

void mg_call_leave(mg_place before) {
    current_place = before;
}
