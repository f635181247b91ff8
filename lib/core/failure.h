/* A failure that waits: one in a tile of a parallel loop must not reach the handler on a thread that the caller does
 * not know, nor jump out of the loop. It is caught at the tile's end and raised again where the loop was called. */
#ifndef MASKGRAD_FAILURE_H
#define MASKGRAD_FAILURE_H

#include "error.h"

#include <setjmp.h>

typedef struct mg_trap {
    jmp_buf jump;
    mg_failure kind;
    char message[1280];
} mg_trap;

/* From now on a failure on this thread fills *trap and jumps to trap->jump; NULL: it goes to the handler. Returns the
 * trap that was there before. */
mg_trap *mg_trap_set(mg_trap *trap);
MG_NORETURN void mg_fail_again(const mg_trap *trap);

#endif
