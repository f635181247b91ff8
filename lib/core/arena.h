/* Memory that is given out piece by piece and taken back all at once. A tape keeps its tensors here: after the first
 * step the chunks are there, and a step allocates nothing. */
#ifndef MASKGRAD_ARENA_H
#define MASKGRAD_ARENA_H

#include "heap.h"

#include <stdbool.h>

/* A position in an arena, to return to. */
typedef struct mg_arena_mark {
    const void *chunk;
    size_t offset, used;
} mg_arena_mark;

typedef struct mg_arena mg_arena;

mg_status mg_arena_new(mg_arena **arena, mg_error *error); /* MG_ERR_MEMORY, and *arena is NULL */
void mg_arena_free(mg_arena *arena);
/* count objects of `size` bytes, 64-byte aligned, not initialized, valid until the next reset. Never returns NULL:
 * running out of memory goes to the failure handler (MG_FAILURE_MEMORY), with what it was for and how much was asked.
 */
void *mg_arena_alloc(mg_arena *arena, size_t count, size_t size, const char *what);
/* Take everything back at once; the memory stays for the next round. */
void mg_arena_reset(mg_arena *arena);
/* Give back what was taken since mg_arena_here, and only that. */
mg_arena_mark mg_arena_here(const mg_arena *arena);
void mg_arena_rewind(mg_arena *arena, mg_arena_mark mark);
size_t mg_arena_peak(const mg_arena *arena); /* the most bytes in use between two resets so far */

#endif
