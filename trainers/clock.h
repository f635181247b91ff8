/* Seconds of the monotonic clock, for durations. */
#ifndef MASKGRAD_CLOCK_H
#define MASKGRAD_CLOCK_H

#include <time.h>

static inline double mg_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
