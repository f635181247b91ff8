/* How long a piece of work still takes, from how long its finished steps took. */
#ifndef MASKGRAD_TIME_LEFT_H
#define MASKGRAD_TIME_LEFT_H

#include <stddef.h>

/* After `elapsed` seconds for `done` of `total` equal steps. NaN while it cannot be known: less than two seconds or a
 * fiftieth of the steps are done. */
double lab_seconds_left(double elapsed, long done, long total);
/* "about 40 s left", with as many digits as can be true; "" for NaN and for less than two seconds. */
void lab_time_left_words(double seconds, char *text, size_t size);

#endif
