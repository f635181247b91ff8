#include "time_left.h"
#include "language.h"

#include <math.h>
#include <stdio.h>

double lab_seconds_left(double elapsed, long done, long total) {
    enum { LEAST_SECONDS = 2, LEAST_PART = 50 };
    if (elapsed < LEAST_SECONDS || done < 1 || done < total / LEAST_PART) return NAN;
    return elapsed / (double)done * (double)(total - done);
}

/* The next multiple above: better early than late. */
static long rounded_up(double value, long unit) {
    return (long)ceil(value / (double)unit) * unit;
}

void lab_time_left_words(double seconds, char *text, size_t size) {
    enum { LEAST = 2, MINUTE = 60, HOUR = 3600 };
    text[0] = '\0';
    if (!(seconds >= LEAST)) return;
    if (seconds <= 10)
        mg_snprintf(text, size, "about %ld s left", rounded_up(seconds, 1));
    else if (seconds <= MINUTE)
        mg_snprintf(text, size, "about %ld s left", rounded_up(seconds, 5));
    else if (seconds <= HOUR)
        mg_snprintf(text, size, "about %ld min left", rounded_up(seconds, MINUTE) / MINUTE);
    else
        mg_snprintf(text, size, "about %.1f h left", seconds / HOUR);
}
