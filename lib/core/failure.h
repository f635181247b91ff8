/* A failure that waits: a failure in a tile of a parallel loop must not reach the handler on a thread that the caller
 * does not know, nor jump out of the loop. It is caught at the tile's end and raised again after the loop. */
#ifndef MASKGRAD_FAILURE_H
#define MASKGRAD_FAILURE_H

#include "error.h"

#include <setjmp.h>
#include <stddef.h>

typedef struct mg_trap {
    jmp_buf jump;
    mg_place place; /* of the call that the thread was in when the trap was set */
    mg_failure kind;
    mg_place at;    /* of the failure; file is NULL: that of the call in which it is raised again, or else … */
    mg_place check; /* … that of the check */
    char text[sizeof((mg_error *)NULL)->message];
} mg_trap;

/* From now on a failure on this thread fills *trap and jumps to trap->jump; NULL: it goes to the handler. Returns the
 * trap that was there before. */
mg_trap *mg_trap_set(mg_trap *trap);
MG_NORETURN void mg_fail_again(const mg_trap *trap);

#endif
