#include "sweep_output.h"
#include "clock.h"
#include "compare_groups.h"
#include "language.h"
#include "printable.h"
#include "progress.h"
#include "run_dir.h"
#include "say.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- The plan ---- */

/* "mask (2) x lr (3), n-embd with n-layer (2)" */
static void describe_grid(const mg_sweep_grid *grid, char *text, size_t size) {
    size_t at = 0;
    text[0] = '\0';
    for (int a = 0; a < grid->n_axes; a++) {
        const mg_sweep_axis *axis = &grid->axis[a];
        for (int s = 0; s < axis->n_settings && at < size; s++)
            at += (size_t)snprintf(text + at, size - at, "%s%s",
                                   s > 0   ? " with "
                                   : a > 0 ? " x "
                                           : "",
                                   axis->column[s]->setting->name);
        if (at < size) at += (size_t)snprintf(text + at, size - at, " (%d)", axis->n_points);
    }
}

static void describe_bytes(double bytes, char *text, size_t size) {
    static const char *const units[] = {"kB", "MB", "GB", "TB"};
    int unit = 0;
    for (bytes /= 1000; bytes >= 1000 && unit < 3; bytes /= 1000) unit++;
    snprintf(text, size, "%.*f %s", bytes < 10 ? 1 : 0, bytes, units[unit]);
}

static void tell_estimate(const mg_sweep_how *how, const mg_sweep_estimate *e) {
    char time[32], disk[32], part[96] = "", processes[64];
    snprintf(processes, sizeof processes, "%s", mg_count(how->jobs, "process").text);
    if (how->jobs > 1) snprintf(processes, sizeof processes, "%d processes", how->jobs);
    if (e->known == 0) {
        mg_tell("  ", "time and disk: unknown");
        return;
    }
    mg_format_duration(e->seconds / how->jobs, time, sizeof time);
    describe_bytes(e->bytes, disk, sizeof disk);
    if (e->known < e->runs - e->impossible)
        snprintf(part, sizeof part, "; this is for %d of the runs, and unknown for %d", e->known,
                 e->runs - e->impossible - e->known);
    mg_tell("  ", "about %s with %s, and %s of disk, from %d timed steps of %s%s", time, processes, disk,
            MG_SWEEP_TIMED_STEPS, mg_count(e->kinds, "model").text, part);
}

void mg_sweep_tell_plan(const mg_sweep_plan *plan, const mg_sweep_how *how, const mg_sweep_estimate *e) {
    char grid[1024];
    describe_grid(plan->grid, grid, sizeof grid);
    mg_tell("  ", "%s in %s: %s", mg_count(plan->n, "run").text, plan->out_dir, grid);
    if (e->runs < plan->n) mg_tell("  ", "%d finished before, %d to do", plan->n - e->runs, e->runs);
    if (e->runs > 0) tell_estimate(how, e);
    if (e->impossible > 0) mg_tell("  ", "%s cannot begin: %s", mg_count(e->impossible, "run").text, e->why);
    fflush(stdout);
}

void mg_sweep_tell_jobs(const mg_sweep_plan *plan) {
    mg_tell("  ",
            "%s/jobs.txt has one command per line, which begins or continues its run; %s/jobs.sbatch runs them under "
            "Slurm",
            plan->out_dir, plan->out_dir);
}

/* ---- The runs ---- */

/* The last validation loss, and the seconds that it took. */
static void tell_finished(const mg_sweep_plan *plan, int run) {
    mg_run_dir dir;
    mg_run_log_row last;
    char *folder = mg_sweep_folder(plan, run);
    bool read = mg_run_dir_name(&dir, folder, NULL) == MG_OK && mg_run_log_last(dir.log, &last);
    mg_printf("finished  %s", mg_shown(plan->name[run]).text);
    if (read) mg_printf("  val %.4f  %.1f s", last.loss, last.seconds);
    putchar('\n');
    mg_run_dir_close(&dir);
    mg_free(folder);
}

static void show_end(const mg_sweep_plan *plan, int run, mg_sweep_end end, void *user) {
    char reason[1024];
    mg_live_line_clear(user);
    if (end == MG_SWEEP_DONE) tell_finished(plan, run);
    if (end == MG_SWEEP_HELD) mg_printf("held      %s  by another process\n", mg_shown(plan->name[run]).text);
    if (end == MG_SWEEP_FAILED) {
        mg_sweep_reason(plan, run, reason, sizeof reason);
        mg_tell("    ", "failed    %s: %s", plan->name[run], reason);
    }
    fflush(stdout);
}

static void show_progress(const mg_sweep_plan *plan, const mg_sweep_progress *p, void *user) {
    char text[256], left[48] = "";
    if (!mg_live_line_is_due(user, 0.2)) return;
    int64_t here = p->steps - p->steps_before;
    if (here > 0) {
        char time[32];
        mg_format_duration((mg_seconds() - p->begun) / (double)here * (double)(p->all_steps - p->steps), time,
                           sizeof time);
        mg_snprintf(left, sizeof left, ", %s left", time);
    }
    int n = mg_snprintf(text, sizeof text, "%d/%d done, %d running", p->count[MG_SWEEP_DONE], plan->n, p->running);
    if (p->count[MG_SWEEP_FAILED] > 0)
        n += mg_snprintf(text + n, sizeof text - (size_t)n, ", %d failed", p->count[MG_SWEEP_FAILED]);
    mg_snprintf(text + n, sizeof text - (size_t)n, ", step %" PRId64 "/%" PRId64 "%s", p->steps, p->all_steps, left);
    mg_live_line_show(user, text);
}

mg_sweep_watch mg_sweep_show(mg_live_line *live) {
    return (mg_sweep_watch){.ended = show_end, .progressed = show_progress, .user = live};
}

/* ---- The end ---- */

static void list_failures(const mg_sweep_plan *plan, const mg_sweep_end *end) {
    for (int run = 0; run < plan->n; run++) {
        char reason[1024];
        if (end[run] != MG_SWEEP_FAILED) continue;
        mg_sweep_reason(plan, run, reason, sizeof reason);
        mg_tell("    ", "  %s: %s", plan->name[run], reason);
    }
}

/* What the runs that have begun came to; the settings of a single one are no group. */
static void tell_groups(const mg_sweep_plan *plan) {
    mg_run_set set;
    mg_run_groups groups;
    const char *const folder[] = {plan->out_dir};
    if (mg_run_gather(&set, 1, folder, NULL) != MG_OK) return;
    if (set.n > 1 && mg_run_groups_make(&groups, set.record, set.n, NULL, NAN, NULL) == MG_OK) {
        putchar('\n');
        mg_groups_print(&groups, &set, NAN);
        mg_run_groups_free(&groups);
    }
    mg_run_set_free(&set);
}

int mg_sweep_tell_end(const mg_sweep_plan *plan, const mg_sweep_end *end, bool stopped) {
    enum { DONE = 0, FAILED = 1, INTERRUPTED = 130 };
    int count[MG_SWEEP_N_ENDS] = {0};
    for (int run = 0; run < plan->n; run++) count[end[run]]++;
    tell_groups(plan);
    mg_printf("\n%d of %s finished", count[MG_SWEEP_DONE], mg_count(plan->n, "run").text);
    if (count[MG_SWEEP_HELD] > 0) mg_printf(", %d held by another process", count[MG_SWEEP_HELD]);
    if (count[MG_SWEEP_FAILED] > 0) mg_printf(", %d failed", count[MG_SWEEP_FAILED]);
    putchar('\n');
    if (count[MG_SWEEP_FAILED] > 0) {
        mg_printf("Failed; --retry tries them again:\n");
        list_failures(plan, end);
    }
    if (stopped) mg_tell("  ", "stopped; all is kept in %s, and the same command continues", plan->out_dir);
    fflush(stdout);
    if (stopped) return INTERRUPTED;
    return count[MG_SWEEP_DONE] == plan->n ? DONE : FAILED;
}
