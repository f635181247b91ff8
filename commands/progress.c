#include "progress.h"
#include "clock.h"
#include "columns.h"
#include "utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

mg_progress mg_progress_begin(int64_t first, int64_t total, int64_t tokens_per_step) {
    double now = mg_seconds();
    return (mg_progress){.live = isatty(STDERR_FILENO) == 1,
                         .first = first,
                         .total = total,
                         .begun = now,
                         .last = now,
                         .tokens_per_step = tokens_per_step};
}

void mg_format_duration(double seconds, char *text, size_t size) {
    long s = (long)(seconds + 0.5);
    if (s >= 3600)
        snprintf(text, size, "%ldh%02ldm", s / 3600, s / 60 % 60);
    else if (s >= 60)
        snprintf(text, size, "%ldm%02lds", s / 60, s % 60);
    else
        snprintf(text, size, "%lds", s);
}

/* A live line is cut where the terminal ends: what wraps would not be overwritten. */
static void show(mg_progress *p, int64_t done, const char *what) {
    char line[256];
    snprintf(line, sizeof line, "step %" PRId64 "/%" PRId64 "  %s", done, p->total, what);
    if (p->live)
        fprintf(stderr, "\r\033[K%.*s", (int)mg_utf8_fitting(line, mg_columns(stderr) - 1), line);
    else
        fprintf(stderr, "%s\n", line);
    fflush(stderr);
    p->shown = p->live;
}

void mg_progress_step(mg_progress *p, int64_t done, double loss) {
    double now = mg_seconds();
    if (now - p->last < (p->live ? 0.1 : 10.0)) return;
    p->last = now;
    double per_step = (now - p->begun) / (double)(done - p->first);
    char left[32];
    mg_format_duration(per_step * (double)(p->total - done), left, sizeof left);
    char text[128];
    snprintf(text, sizeof text, "loss %.4f  %.0f tokens/s  %s left", loss, (double)p->tokens_per_step / per_step, left);
    show(p, done, text);
}

void mg_progress_say(mg_progress *p, int64_t done, const char *what) {
    if (!p->live && done > p->first) return;
    show(p, done, what);
}

void mg_progress_clear(mg_progress *p) {
    if (!p->shown) return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    p->shown = false;
}
