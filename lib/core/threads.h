/* How many threads compute. Results do not depend on it. Any number of the user's threads may use the library, each
 * with its own tape and model; their parallel loops take turns. */
#ifndef MASKGRAD_THREADS_H
#define MASKGRAD_THREADS_H

#include "error.h"

/* The number of threads for the loops that follow, 1 to 256; 0 takes one per processor, which is the default. */
MG_API void mg_set_threads(int threads);

/* End the threads and free their scratch memory, which are otherwise kept from loop to loop. Waits for a running loop;
 * must not be called inside a tile. */
MG_API void mg_parallel_release(void);

/* ---- Not installed: between maskgrad's own files ---- */
int mg_threads(void);

#endif
