/* The operations that lib/ops/ops.h declares, for tests in which each must have a row. */
#ifndef MASKGRAD_TESTS_OPERATIONS_H
#define MASKGRAD_TESTS_OPERATIONS_H

#include "check.h"

#include <stdbool.h>
#include <stdlib.h>

/* A file of the sources; free it. */
static inline char *read_source(const char *path) {
    char name[1024], *text = calloc(1, 1 << 20);
    snprintf(name, sizeof name, "%s/%s", MASKGRAD_SOURCE_DIR, path);
    FILE *file = fopen(name, "rb");
    assert_non_null(file);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

/* Fails unless has_row("add", user) and so on; returns how many operations there are. */
static inline int check_operations(bool (*has_row)(const char *op, const void *user), const void *user,
                                   const char *where) {
    const char declaration[] = "mg_tensor *mg_";
    char *text = read_source("lib/ops/ops.h"), op[64];
    int found = 0, missing = 0;
    for (const char *at = text; (at = strstr(at, declaration)); found++) {
        at += strlen(declaration);
        snprintf(op, sizeof op, "%.*s", (int)strcspn(at, "("), at);
        if (has_row(op, user)) continue;
        missing++;
        print_error("mg_%s has no row in %s\n", op, where);
    }
    free(text);
    assert_true(found >= 28);
    assert_int_equal(missing, 0);
    return found;
}

/* The test that no operation is missing from the table `rows` of N_ROWS, whose rows have a member `op`. */
#define EVERY_OPERATION_HAS_A_ROW                                                                                      \
    static bool has_row(const char *op, const void *user) {                                                            \
        (void)user;                                                                                                    \
        for (int i = 0; i < N_ROWS; i++)                                                                               \
            if (strcmp(rows[i].op, op) == 0) return true;                                                              \
        return false;                                                                                                  \
    }                                                                                                                  \
                                                                                                                       \
    static void every_operation_has_a_row(void **state) {                                                              \
        (void)state;                                                                                                   \
        check_operations(has_row, NULL, __FILE__);                                                                     \
    }

#endif
