/* The progress of a run, on stderr: one line that is overwritten on a terminal, a plain line now and then elsewhere. */
#ifndef MASKGRAD_PROGRESS_H
#define MASKGRAD_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The line: what is written there, and when. */
typedef struct mg_live_line {
    bool live;   /* stderr is a terminal */
    bool shown;  /* the line is on it now */
    double last; /* when it was renewed, in seconds of the monotonic clock */
} mg_live_line;
mg_live_line mg_live_line_begin(void);
/* Whether it is time to renew it: after so many seconds on a terminal, after ten elsewhere. If so, it counts as
 * renewed. */
bool mg_live_line_is_due(mg_live_line *line, double seconds);
void mg_live_line_show(mg_live_line *line, const char *text);
/* Make room before another line is printed. */
void mg_live_line_clear(mg_live_line *line);

typedef struct mg_progress {
    mg_live_line line;
    int64_t first, total; /* steps: done before this process, and in all */
    double begun;         /* seconds of the monotonic clock */
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
void mg_progress_clear(mg_progress *progress);

#endif
