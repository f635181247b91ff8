#define _GNU_SOURCE /* dladdr, MAP_FAILED, syscall */
#include "startup.h"
#include "error.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STACK_NEEDED = 256 << 10, STACK_WANTED = 8 << 20 };

static void open_standard_descriptors(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0) open("/dev/null", O_RDWR); /* the lowest number that is free */
}

static void raise_stack_limit(void) {
    struct rlimit stack;
    if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= STACK_WANTED) return;
    stack.rlim_cur = stack.rlim_max < STACK_WANTED ? stack.rlim_max : STACK_WANTED;
    setrlimit(RLIMIT_STACK, &stack);
    if (stack.rlim_cur >= STACK_NEEDED) return;
    fprintf(stderr, "maskgrad: the stack limit is %lu KiB, and maskgrad needs %d: raise it with ulimit -s\n",
            (unsigned long)stack.rlim_cur >> 10, STACK_NEEDED >> 10);
    exit(1);
}

void mg_startup(void) {
    open_standard_descriptors();
    raise_stack_limit();
}

/* ---- OpenBLAS without memory ----
 *
 * OpenBLAS asks for its work buffers in an endless loop: when it is loaded, before main, and later in any thread that
 * multiplies. Where the address space is limited (ulimit -v) the program would spin without a word. Its calls of mmap
 * come through this one, and after a number of refusals in a row the program ends. */

#ifdef __has_feature
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#if defined(SYS_mmap) && !SANITIZED /* a sanitizer has an mmap of its own */

enum { MOST_REFUSALS = 32 };

static int is_openblas(const void *caller) {
    Dl_info library;
    return dladdr(caller, &library) != 0 && library.dli_fname && strstr(library.dli_fname, "openblas");
}

/* This may run before main, or in any thread: only write(2) and _exit(2). */
static void give_up(void) {
    static const char sentence[] = "maskgrad: out of memory: OpenBLAS cannot allocate its buffers; raise the limit "
                                   "on memory (ulimit -v), or use fewer --threads\n";
    ssize_t written = write(STDERR_FILENO, sentence, sizeof sentence - 1);
    (void)written;
    _exit(1);
}

MG_API void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
    static _Thread_local int refusals;
    void *block = (void *)syscall(SYS_mmap, address, length, protection, flags, fd, offset); /* NOLINT */
    if (block != MAP_FAILED)
        refusals = 0;
    else if (++refusals >= MOST_REFUSALS && is_openblas(__builtin_return_address(0)))
        give_up();
    return block;
}

#endif

void mg_program_path(char *path, size_t size) {
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    path[length > 0 ? length : 0] = '\0';
}

void mg_program_folder(int up, char *path, size_t size) {
    mg_program_path(path, size);
    for (char *slash; up >= 0 && (slash = strrchr(path, '/')); up--) *slash = '\0';
}
