#include "arena.h"

#include <stdint.h>
#include <string.h>

typedef struct chunk {
    struct chunk *next;
    unsigned char *memory;
    size_t size;
} chunk;

struct mg_arena {
    chunk *newest; /* memory is given out from here; the chunks after it are older, and full */
    size_t offset; /* of the first free byte in newest */
    size_t used, peak, total;
    size_t most; /* the most in use since the last reset */
};

enum { SMALLEST_CHUNK = 1 << 18 };

mg_status mg_arena_new(mg_arena **arena, mg_error *error) {
    *arena = mg_alloc_zero(1, sizeof **arena, "an arena", error);
    return *arena ? MG_OK : MG_ERR_MEMORY;
}

static void free_chunks(mg_arena *arena) {
    for (chunk *c = arena->newest, *next; c; c = next) {
        next = c->next;
        mg_free(c->memory);
        mg_free(c);
    }
    arena->newest = NULL;
    arena->offset = arena->total = 0;
}

void mg_arena_free(mg_arena *arena) {
    if (!arena) return;
    free_chunks(arena);
    mg_free(arena);
}

static bool add_chunk(mg_arena *arena, size_t size) {
    chunk *c = mg_alloc(1, sizeof *c, "an arena's chunk", NULL);
    if (!c) return false;
    *c = (chunk){.next = arena->newest, .memory = mg_alloc(size, 1, "an arena's chunk", NULL), .size = size};
    if (!c->memory) {
        mg_free(c);
        return false;
    }
    arena->newest = c;
    arena->offset = 0;
    arena->total += size;
    return true;
}

/* A quarter of what is there already, so that growth needs few chunks and wastes little. */
static bool grow(mg_arena *arena, size_t bytes) {
    size_t size = arena->total / 4;
    if (size < SMALLEST_CHUNK) size = SMALLEST_CHUNK;
    return add_chunk(arena, size > bytes ? size : bytes);
}

void *mg_arena_alloc(mg_arena *arena, size_t count, size_t size, const char *what) {
    if (size != 0 && count > (size_t)PTRDIFF_MAX / 4 / size)
        MG_FAIL(MG_FAILURE_BUG, "%s: %zu times %zu bytes is more than this machine can address", what, count, size);
    size_t bytes = (count * size + MG_ALIGNMENT - 1) / MG_ALIGNMENT * MG_ALIGNMENT;
    if (!arena->newest || arena->newest->size - arena->offset < bytes)
        if (!grow(arena, bytes))
            MG_FAIL(MG_FAILURE_MEMORY, "out of memory: %zu bytes for %s, beside the %zu in use", bytes, what,
                    arena->used);
    void *block = arena->newest->memory + arena->offset;
    arena->offset += bytes;
    arena->used += bytes;
    if (arena->used > arena->most) arena->most = arena->used;
    if (arena->used > arena->peak) arena->peak = arena->used;
#ifdef MG_HOSTILE
    memset(block, 0xff, bytes); /* every float of it is a NaN */
#endif
    return block;
}

/* If a round needed several chunks, replace them by one that holds it all, plus an eighth: the next round of the same
 * size allocates nothing, and slowly growing rounds allocate only now and then. If there is no memory for it now, the
 * next request tries again. */
void mg_arena_reset(mg_arena *arena) {
    if (arena->newest && (arena->newest->next || arena->newest->size < arena->most)) {
        size_t size = arena->most + arena->most / 8;
        free_chunks(arena);
        mg_heap_trim();
        add_chunk(arena, size);
    }
    arena->offset = arena->used = arena->most = 0;
}

mg_arena_mark mg_arena_here(const mg_arena *arena) {
    return (mg_arena_mark){arena->newest, arena->offset, arena->used};
}

void mg_arena_rewind(mg_arena *arena, mg_arena_mark mark) {
    while (arena->newest != mark.chunk) {
        chunk *newest = arena->newest;
        arena->newest = newest->next;
        arena->total -= newest->size;
        mg_free(newest->memory);
        mg_free(newest);
    }
    arena->offset = mark.offset;
    arena->used = mark.used;
}

size_t mg_arena_peak(const mg_arena *arena) {
    return arena->peak;
}
