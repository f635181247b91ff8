/* Errors of two kinds.
 *
 * What a file, a user or the machine can get wrong returns mg_status and fills the caller's mg_error with one
 * sentence that names the culprit and what would be right.
 *
 * What only the programmer can get wrong (a shape, a null pointer) goes to a replaceable handler, with the line of the
 * call, and does not return. Running out of memory in the middle of an operation goes to the same handler, with its own
 * kind. */
#ifndef MASKGRAD_ERROR_H
#define MASKGRAD_ERROR_H

#include <stdarg.h>
#include <stddef.h>
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
    MG_ERR_STATE,  /* the request makes sense, but not for this model, run or cache */
    MG_ERR_STOPPED /* the caller asked to stop */
} mg_status;

typedef struct mg_error {
    mg_status status;
    char message[1024]; /* one sentence on one line; control characters in it are escaped */
} mg_error;

/* Fill *error (which may be NULL) and return status, so that a function can end with `return mg_error_set(...)`. */
MG_API mg_status mg_error_set(mg_error *error, mg_status status, const char *format, ...) MG_PRINTF(3, 4);

typedef enum mg_failure {
    MG_FAILURE_BUG,   /* the caller broke a contract */
    MG_FAILURE_MEMORY /* an operation could not get memory */
} mg_failure;

/* A handler must not return: it exits, aborts or longjmps. `message` lives until the handler ends. */
typedef void mg_failure_handler(mg_failure kind, const char *message, void *user);

/* Replace the handler; NULL restores the default, which prints the message on stderr and aborts. */
MG_API void mg_set_failure_handler(mg_failure_handler *handler, void *user);

/* ---- Which line a failure names ----
 *
 * A public function that can fail is also a macro of the same name, which hands over the file and line of the call:
 *
 *     MG_CALLED(mg_tensor *, mg_exp, (tape, x), (tape, x), mg_tape *tape, mg_tensor *x)
 *     #define mg_exp(...) MG_AT(mg_exp, __VA_ARGS__)
 *
 * The first list names the pointers that must not be NULL, the second is what the function is called with. The place is
 * passed as an argument, so calls may nest in any way, whatever order a compiler evaluates arguments in. Inside the
 * library (MG_LIBRARY) there are no such macros: what it calls in turn still names the user's line. (mg_exp)(tape, x)
 * is the function itself. */
typedef struct mg_place {
    const char *file; /* NULL: in no public call */
    int line;
} mg_place;

/* This thread is in a call of `function` from here until mg_call_leave; returns the place of the call that it was in
 * before. Fails with the name of the first NULL among n pointers, whose names are "(a, b, c)". */
MG_API mg_place mg_call_enter(const char *file, int line, const char *function, const char *names, int n,
                              const void *const *given);
MG_API void mg_call_leave(mg_place before);

#define MG_LIST(...) __VA_ARGS__
#define MG_ENTER_CALL(name, given)                                                                                     \
    const void *given_[] = {MG_LIST given};                                                                            \
    mg_place before_ = mg_call_enter(file_, line_, #name, #given, (int)(sizeof given_ / sizeof given_[0]), given_);
#define MG_CALLED(type, name, given, arguments, ...)                                                                   \
    static inline type name##_at(const char *file_, int line_, __VA_ARGS__) {                                          \
        MG_ENTER_CALL(name, given)                                                                                     \
        type result_ = (name)arguments;                                                                                \
        mg_call_leave(before_);                                                                                        \
        return result_;                                                                                                \
    }
#define MG_CALLED_VOID(name, given, arguments, ...)                                                                    \
    static inline void name##_at(const char *file_, int line_, __VA_ARGS__) {                                          \
        MG_ENTER_CALL(name, given)                                                                                     \
        (name) arguments;                                                                                              \
        mg_call_leave(before_);                                                                                        \
    }
#define MG_AT(name, ...) name##_at(__FILE__, __LINE__, __VA_ARGS__)

/* ---- Not installed: between maskgrad's own files ---- */
/* Report a failure: "FILE:LINE: " and the formatted message go to the handler. */
MG_NORETURN void mg_fail(mg_failure kind, const char *file, int line, const char *format, ...) MG_PRINTF(4, 5);
/* The same for functions of a library: inside a public call the message names the line of that call instead. */
MG_NORETURN void mg_fail_in_call(mg_failure kind, const char *file, int line, const char *format, ...) MG_PRINTF(4, 5);

#ifdef MG_LIBRARY
#define MG_FAIL(kind, ...) mg_fail_in_call(kind, __FILE__, __LINE__, __VA_ARGS__)
#else
#define MG_FAIL(kind, ...) mg_fail(kind, __FILE__, __LINE__, __VA_ARGS__)
#endif
#define MG_CHECK(condition, ...) ((condition) ? (void)0 : MG_FAIL(MG_FAILURE_BUG, __VA_ARGS__))

/* A sentence that the function which shows it cannot see, because it is in a table: marked for xgettext. */
#define N_(text) text
/* Sentences in another language: what takes the place of vsnprintf for mg_error_set, and of mg_count. NULL: English. */
typedef int mg_formatter(char *text, size_t size, const char *format, va_list arguments);
typedef int mg_counter(char *text, size_t size, int64_t n, const char *noun);
void mg_set_wording(mg_formatter *formatter, mg_counter *counter);
/* snprintf and vsnprintf for sentences, in that language. */
int mg_snprintf(char *text, size_t size, const char *format, ...) MG_PRINTF(3, 4);
int mg_vsnprintf(char *text, size_t size, const char *format, va_list arguments) MG_PRINTF(3, 0);

/* A number with its noun, for messages: "1 token", "2 tokens". */
typedef struct mg_count_text {
    char text[64];
} mg_count_text;
mg_status mg_error_vset(mg_error *error, mg_status status, const char *format, va_list arguments) MG_PRINTF(3, 0);
mg_count_text mg_count(int64_t n, const char *noun);
mg_count_text mg_count_in_english(int64_t n, const char *noun); /* for what is written to files */
/* The short name of a status, for logs and tests: "ok", "memory", "io", "format", "input", "state", "stopped". */
const char *mg_status_name(mg_status status);

#endif
