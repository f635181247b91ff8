#include "progress.h"
#include "clock.h"
#include "columns.h"
#include "language.h"
#include "utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* ---- The line ---- */

mg_live_line mg_live_line_begin(void) {
    return (mg_live_line){.live = isatty(STDERR_FILENO) == 1, .last = mg_seconds()};
}

bool mg_live_line_is_due(mg_live_line *line, double seconds) {
    double now = mg_seconds();
    if (now - line->last < (line->live ? seconds : 10.0)) return false;
    line->last = now;
    return true;
}

/* A live line is cut where the terminal ends: what wraps would not be overwritten. */
void mg_live_line_show(mg_live_line *line, const char *text) {
    if (line->live)
        fprintf(stderr, "\r\033[K%.*s", (int)mg_utf8_fitting(text, mg_columns(stderr) - 1), text);
    else
        fprintf(stderr, "%s\n", text);
    fflush(stderr);
    line->shown = line->live;
}

void mg_live_line_clear(mg_live_line *line) {
    if (!line->shown) return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    line->shown = false;
}

/* ---- A run ---- */

mg_progress mg_progress_begin(int64_t first, int64_t total, int64_t tokens_per_step) {
    return (mg_progress){.line = mg_live_line_begin(),
                         .first = first,
                         .total = total,
                         .begun = mg_seconds(),
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

static void show(mg_progress *p, int64_t done, const char *what) {
    char line[256];
    mg_snprintf(line, sizeof line, "step %" PRId64 "/%" PRId64 "  %s", done, p->total, what);
    mg_live_line_show(&p->line, line);
}

void mg_progress_step(mg_progress *p, int64_t done, double loss) {
    if (!mg_live_line_is_due(&p->line, 0.1)) return;
    double per_step = (mg_seconds() - p->begun) / (double)(done - p->first);
    char left[32];
    mg_format_duration(per_step * (double)(p->total - done), left, sizeof left);
    char text[128];
    mg_snprintf(text, sizeof text, "loss %.4f  %.0f tokens/s  %s left", loss, (double)p->tokens_per_step / per_step,
                left);
    show(p, done, text);
}

void mg_progress_say(mg_progress *p, int64_t done, const char *what) {
    if (!p->line.live && done > p->first) return;
    show(p, done, what);
}

void mg_progress_clear(mg_progress *p) {
    mg_live_line_clear(&p->line);
}
