/* Errors of two kinds.
 *
 * What a file, a user or the machine can get wrong returns mg_status and fills the caller's mg_error with one
 * sentence that names the culprit and what would be right.
 *
 * What only the programmer can get wrong (a shape, a null pointer) is checked by MG_CHECK, which reports to a
 * replaceable handler and does not return. Running out of memory in the middle of an operation goes to the same
 * handler, with its own kind. */
#ifndef MASKGRAD_ERROR_H
#define MASKGRAD_ERROR_H

#include <stdarg.h>
#include <stdint.h>

#if defined(__GNUC__)
#define MG_API __attribute__((visibility("default")))
#define MG_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define MG_NORETURN __attribute__((noreturn))
#else
#define MG_API
#define MG_PRINTF(text, first)
#define MG_NORETURN
#endif

typedef enum mg_status {
    MG_OK = 0,
    MG_ERR_MEMORY, /* an allocation failed; the message says what it was for and how much */
    MG_ERR_IO,     /* the system refused: missing file, no permission, full disk */
    MG_ERR_FORMAT, /* a file's content is not what it should be */
    MG_ERR_INPUT,  /* a value given by the user is out of range or does not fit the rest */
    MG_ERR_STATE   /* the request makes sense, but not for this model, run or cache */
} mg_status;

typedef struct mg_error {
    mg_status status;
    char message[1024]; /* one sentence on one line; control characters in it are written out (printable.h) */
} mg_error;

/* Fill *error (which may be NULL) and return status, so that a function can end with `return mg_error_set(...)`. */
MG_API mg_status mg_error_set(mg_error *error, mg_status status, const char *format, ...) MG_PRINTF(3, 4);
MG_API mg_status mg_error_vset(mg_error *error, mg_status status, const char *format, va_list arguments)
    MG_PRINTF(3, 0);
/* A number with its noun, for messages: "1 token", "2 tokens". */
typedef struct mg_count_text {
    char text[64];
} mg_count_text;
MG_API mg_count_text mg_count(int64_t n, const char *noun);
/* The short name of a status, for logs and tests: "ok", "memory", "io", "format", "input", "state". */
MG_API const char *mg_status_name(mg_status status);

typedef enum mg_failure {
    MG_FAILURE_BUG,   /* the caller broke a contract */
    MG_FAILURE_MEMORY /* an operation could not get memory */
} mg_failure;

/* A handler must not return: it exits, aborts or longjmps. `message` lives until the handler ends. */
typedef void mg_failure_handler(mg_failure kind, const char *message, void *user);

/* Replace the handler; NULL restores the default, which prints the message on stderr and aborts. */
MG_API void mg_set_failure_handler(mg_failure_handler *handler, void *user);

/* Report a failure: "FILE:LINE: " and the formatted message go to the handler. */
MG_API MG_NORETURN void mg_fail(mg_failure kind, const char *file, int line, const char *format, ...) MG_PRINTF(4, 5);

#define MG_CHECK(condition, ...) ((condition) ? (void)0 : mg_fail(MG_FAILURE_BUG, __FILE__, __LINE__, __VA_ARGS__))

#endif
