#define _DEFAULT_SOURCE /* madvise */
#include "heap.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

enum { HUGE_PAGE = 1 << 21 };

/* Large blocks ask for large pages: a matrix product reads columns, and each element of a column is on a page of its
 * own. */
static void *system_allocate(size_t bytes, void *user) {
    (void)user;
    size_t unit = bytes >= 2 * HUGE_PAGE ? HUGE_PAGE : MG_ALIGNMENT;
    size_t rounded = (bytes + MG_ALIGNMENT - 1) / MG_ALIGNMENT * MG_ALIGNMENT;
    void *block = NULL;
    if (posix_memalign(&block, unit, rounded ? rounded : MG_ALIGNMENT) != 0) return NULL;
#ifdef MADV_HUGEPAGE
    if (unit == HUGE_PAGE) madvise(block, rounded / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
    return block;
}

void mg_heap_fills_slowly(void *block, size_t bytes) {
#ifdef MADV_NOHUGEPAGE
    uintptr_t begin = ((uintptr_t)block + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    uintptr_t end = ((uintptr_t)block + bytes) / HUGE_PAGE * HUGE_PAGE;
    if (end > begin) madvise((void *)begin, end - begin, MADV_NOHUGEPAGE);
#else
    (void)block;
    (void)bytes;
#endif
}

void mg_heap_trim(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

static void system_release(void *block, void *user) {
    (void)user;
    free(block);
}

static mg_allocator current = {system_allocate, system_release, NULL};
static atomic_size_t request_count;

void mg_set_allocator(const mg_allocator *allocator) {
    current = allocator ? *allocator : (mg_allocator){system_allocate, system_release, NULL};
}

size_t mg_allocation_count(void) {
    return request_count;
}

void *mg_alloc(size_t count, size_t size, const char *what, mg_error *error) {
    if (size != 0 && count > (size_t)PTRDIFF_MAX / size) {
        mg_error_set(error, MG_ERR_MEMORY, "%s: %zu times %zu bytes is more than this machine can address", what, count,
                     size);
        return NULL;
    }
    request_count++;
    void *block = current.allocate(count * size, current.user);
    if (!block) mg_error_set(error, MG_ERR_MEMORY, "out of memory: %zu bytes for %s", count * size, what);
#ifdef MG_HOSTILE
    if (block) memset(block, 0xff, count * size); /* every float of it is a NaN */
#endif
    return block;
}

void *mg_alloc_zero(size_t count, size_t size, const char *what, mg_error *error) {
    void *block = mg_alloc(count, size, what, error);
    if (block) memset(block, 0, count * size);
    return block;
}

void *mg_alloc_grow(void *block, size_t old_count, size_t new_count, size_t size, const char *what, mg_error *error) {
    void *grown = mg_alloc(new_count, size, what, error);
    if (!grown) return NULL;
    if (block) memcpy(grown, block, (old_count < new_count ? old_count : new_count) * size);
    mg_free(block);
    return grown;
}

char *mg_strndup(const char *text, size_t length, mg_error *error) {
    char *copy = mg_alloc(length + 1, 1, "a string", error);
    if (copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

char *mg_strdup(const char *text, mg_error *error) {
    return mg_strndup(text, strlen(text), error);
}

void mg_free(void *block) {
    if (block) current.release(block, current.user);
}
