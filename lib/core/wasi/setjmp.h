/* wasi-libc has no setjmp, and WebAssembly no jump out of a function. With one thread nothing sets a trap (parallel.c
 * beside this file), so that a failure goes straight to its handler and nobody jumps. */
#ifndef MASKGRAD_WASI_SETJMP_H
#define MASKGRAD_WASI_SETJMP_H

#include <stdlib.h>

typedef int jmp_buf[1];
#define setjmp(buffer) ((buffer)[0] = 0)
#define longjmp(buffer, value) abort()

#endif
