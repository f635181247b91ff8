/* The progress of a run, on stderr: one line that is overwritten on a terminal, a plain line now and then elsewhere. */
#ifndef MASKGRAD_PROGRESS_H
#define MASKGRAD_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mg_progress {
    bool live;            /* stderr is a terminal */
    bool shown;           /* a live line is on the screen now */
    int64_t first, total; /* steps: done before this process, and in all */
    double begun, last;   /* seconds of the monotonic clock */
    int64_t tokens_per_step;
} mg_progress;

/* "45s", "2m30s", "1h05m" */
void mg_format_duration(double seconds, char *text, size_t size);
mg_progress mg_progress_begin(int64_t first, int64_t total, int64_t tokens_per_step);
/* `done` steps are done; the last had this loss. Shows something at most ten times a second, or every ten seconds. */
void mg_progress_step(mg_progress *progress, int64_t done, double loss);
/* What is done between two steps, if it may take long: shown at once on a terminal, and elsewhere before the first
 * step. */
void mg_progress_say(mg_progress *progress, int64_t done, const char *what);
/* Make room before another line is printed. */
void mg_progress_clear(mg_progress *progress);

#endif
