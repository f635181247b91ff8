/* What the tests share. cmocka's own assert_float_equal passes on NaN; these do not. */
#ifndef MASKGRAD_TESTS_CHECK_H
#define MASKGRAD_TESTS_CHECK_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* |a − b| <= tolerance; both finite. */
#define assert_close(a, b, tolerance) check_close((double)(a), (double)(b), (double)(tolerance), #a, __FILE__, __LINE__)
static inline void check_close(double a, double b, double tolerance, const char *what, const char *file, int line) {
    if (isfinite(a) && isfinite(b) && fabs(a - b) <= tolerance) return;
    print_error("%s is %.17g, expected %.17g within %g\n", what, a, b, tolerance);
    _fail(file, line);
}

/* a < b, neither of them NaN. */
#define assert_less(a, b) check_less((double)(a), (double)(b), #a " < " #b, __FILE__, __LINE__)
static inline void check_less(double a, double b, const char *what, const char *file, int line) {
    if (a < b) return;
    print_error("%s does not hold: %.17g, %.17g\n", what, a, b);
    _fail(file, line);
}

/* The message of an error contains `part`. */
#define assert_says(message, part)                                                                                     \
    do {                                                                                                               \
        if (!strstr(message, part)) {                                                                                  \
            print_error("\"%s\" does not say \"%s\"\n", message, part);                                                \
            _fail(__FILE__, __LINE__);                                                                                 \
        }                                                                                                              \
    } while (0)

/* `statement` ends in a failure (MG_CHECK, or no memory) whose message contains `part`. */
#define assert_fails(statement, part)                                                                                  \
    do {                                                                                                               \
        mg_set_failure_handler(check_caught, NULL);                                                                    \
        if (setjmp(check_jump) == 0) {                                                                                 \
            statement;                                                                                                 \
            mg_set_failure_handler(NULL, NULL);                                                                        \
            print_error("%s did not fail\n", #statement);                                                              \
            _fail(__FILE__, __LINE__);                                                                                 \
        }                                                                                                              \
        mg_set_failure_handler(NULL, NULL);                                                                            \
        assert_says(check_message, part);                                                                              \
    } while (0)

/* `call` of an operation ends in a failure that names this file and line, the operation and `part`. Of a call over
 * several lines, gcc names the first and clang the last. */
#define assert_operation_fails(call, operation, part)                                                                  \
    do {                                                                                                               \
        int called_at = __LINE__, told = 0;                                                                            \
        assert_fails(call, ": " operation ": ");                                                                       \
        assert_says(check_message, __FILE__ ":");                                                                      \
        sscanf(strstr(check_message, __FILE__ ":") + sizeof __FILE__, "%d", &told);                                    \
        if (told < called_at - 3 || told > called_at + 3) assert_int_equal(told, called_at);                           \
        assert_says(check_message, part);                                                                              \
    } while (0)
/* `call`, on one line, ends in a failure that names this file and line, and `part`. */
#define assert_fails_here(call, part)                                                                                  \
    do {                                                                                                               \
        assert_fails(call, part);                                                                                      \
        assert_says(check_message, __FILE__ ":" CHECK_TEXT(__LINE__) ": ");                                            \
    } while (0)
#define CHECK_TEXT(line) CHECK_TEXT_OF(line)
#define CHECK_TEXT_OF(line) #line

static jmp_buf check_jump __attribute__((unused));
static char check_message[2048] __attribute__((unused));
#ifdef MASKGRAD_TAPE_H
__attribute__((unused)) static mg_tape *new_tape(void) {
    mg_tape *tape;
    assert_int_equal(mg_tape_new(&tape, NULL), MG_OK);
    return tape;
}
#endif

#ifdef MASKGRAD_ERROR_H
/* `call` returns MG_OK; else its error, which must be this one, is printed. */
static mg_error fixture_error __attribute__((unused));
#define assert_ok(call)                                                                                                \
    do {                                                                                                               \
        if ((call) != MG_OK) {                                                                                         \
            print_error("%s: %s\n", #call, fixture_error.message);                                                     \
            _fail(__FILE__, __LINE__);                                                                                 \
        }                                                                                                              \
    } while (0)

__attribute__((unused)) static void check_caught(mg_failure kind, const char *message, void *user) {
    (void)kind;
    (void)user;
    snprintf(check_message, sizeof check_message, "%s", message);
    longjmp(check_jump, 1);
}
#endif

#endif
