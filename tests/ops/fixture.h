/* A tape of its own for each test. */
#ifndef MASKGRAD_TESTS_FIXTURE_H
#define MASKGRAD_TESTS_FIXTURE_H

#include "ops.h"

#include "check.h"

static mg_tape *tape;

static int setup(void **state) {
    (void)state;
    tape = new_tape();
    return tape ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    mg_tape_free(tape);
    return 0;
}

#endif
