/* The only access to the heap. Everything that maskgrad allocates passes through here, so that a test can make any
 * request fail, count the requests, or fill fresh memory with NaN. */
#ifndef MASKGRAD_HEAP_H
#define MASKGRAD_HEAP_H

#include "error.h"

#include <stddef.h>

enum { MG_ALIGNMENT = 64 }; /* bytes: a cache line, and the widest vector register */

MG_API void mg_free(void *block); /* NULL is fine */

/* The system's allocator, which a test can replace. `allocate` returns 64-byte aligned memory or NULL. */
typedef struct mg_allocator {
    void *(*allocate)(size_t bytes, void *user);
    void (*release)(void *block, void *user);
    void *user;
} mg_allocator;

/* ---- Not installed: between maskgrad's own files ---- */
/* count objects of `size` bytes each, 64-byte aligned, not initialized. If the product overflows or the system refuses,
 * returns NULL and fills *error with what the memory was for and how much was requested. A count of 0 returns a valid
 * pointer. Free with mg_free. */
void *mg_alloc(size_t count, size_t size, const char *what, mg_error *error);
/* The same, filled with zeros. */
void *mg_alloc_zero(size_t count, size_t size, const char *what, mg_error *error);
/* Grow a block got from mg_alloc (or NULL) from old_count to new_count objects; on failure the old block stays. */
void *mg_alloc_grow(void *block, size_t old_count, size_t new_count, size_t size, const char *what, mg_error *error);
/* A copy of a string, or of its first `length` bytes, followed by a 0. */
char *mg_strdup(const char *text, mg_error *error);
char *mg_strndup(const char *text, size_t length, mg_error *error);
/* For a block that fills up gradually: use small pages, so that what is never written takes no memory. Otherwise large
 * blocks get large pages if the system has them. */
void mg_heap_fills_slowly(void *block, size_t bytes);
/* Return freed memory to the system, for instance after reading a large file. */
void mg_heap_trim(void);
/* For tests: how many requests have been made since the program started, … */
size_t mg_allocation_count(void);
/* … and another allocator; NULL: the system's own. Only change it while nothing allocated through another is alive. */
void mg_set_allocator(const mg_allocator *allocator);

#endif
