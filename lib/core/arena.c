#include "arena.h"

#include <stdint.h>
#include <string.h>

typedef struct chunk {
    struct chunk *next;
    unsigned char *memory;
    size_t size;
} chunk;

struct mg_arena {
    chunk *first, *current; /* current is NULL until the first request after creation */
    size_t offset;          /* of the first free byte in current */
    size_t used, peak;
};

enum { SMALLEST_CHUNK = 1 << 18 };

mg_arena *mg_arena_new(mg_error *error) {
    return mg_alloc_zero(1, sizeof(mg_arena), "an arena", error);
}

void mg_arena_free(mg_arena *arena) {
    if (!arena) return;
    for (chunk *c = arena->first, *next; c; c = next) {
        next = c->next;
        mg_free(c->memory);
        mg_free(c);
    }
    mg_free(arena);
}

static chunk *new_chunk(size_t size, mg_error *error) {
    chunk *c = mg_alloc(1, sizeof *c, "an arena's chunk", error);
    if (!c) return NULL;
    *c = (chunk){.memory = mg_alloc(size, 1, "an arena's chunk", error), .size = size};
    if (c->memory) return c;
    mg_free(c);
    return NULL;
}

/* Make `current` a chunk with room for `bytes` at offset 0: the next one if it is large enough, else a new one between.
 * Chunks double in size, so that a step touches few of them. */
static bool advance(mg_arena *arena, size_t bytes, mg_error *error) {
    chunk *next = arena->current ? arena->current->next : arena->first;
    if (!next || next->size < bytes) {
        size_t size = arena->current ? 2 * arena->current->size : SMALLEST_CHUNK;
        chunk *fresh = new_chunk(size > bytes ? size : bytes, error);
        if (!fresh) return false;
        fresh->next = next;
        if (arena->current)
            arena->current->next = fresh;
        else
            arena->first = fresh;
        next = fresh;
    }
    arena->current = next;
    arena->offset = 0;
    return true;
}

void *mg_arena_alloc(mg_arena *arena, size_t count, size_t size, const char *what) {
    if (size != 0 && count > (size_t)PTRDIFF_MAX / 4 / size)
        mg_fail(MG_FAILURE_BUG, __FILE__, __LINE__, "%s: %zu times %zu bytes is more than this machine can address",
                what, count, size);
    size_t bytes = (count * size + MG_ALIGNMENT - 1) / MG_ALIGNMENT * MG_ALIGNMENT;
    mg_error error;
    if (!arena->current || arena->current->size - arena->offset < bytes)
        if (!advance(arena, bytes, &error))
            mg_fail(MG_FAILURE_MEMORY, __FILE__, __LINE__, "out of memory: %zu bytes for %s, beside the %zu in use",
                    bytes, what, arena->used);
    void *block = arena->current->memory + arena->offset;
    arena->offset += bytes;
    arena->used += bytes;
    if (arena->used > arena->peak) arena->peak = arena->used;
#ifdef MG_HOSTILE
    memset(block, 0xff, bytes); /* every float of it is a NaN */
#endif
    return block;
}

void mg_arena_reset(mg_arena *arena) {
    arena->current = NULL;
    arena->offset = arena->used = 0;
}

size_t mg_arena_used(const mg_arena *arena) {
    return arena->used;
}

size_t mg_arena_peak(const mg_arena *arena) {
    return arena->peak;
}
