#include "sweep.h"
#include "child.h"
#include "clock.h"
#include "run_dir.h"

#include <string.h>
#include <unistd.h>

typedef struct slot {
    mg_child child;
    int run;
} slot;

typedef struct sweep {
    const mg_sweep_plan *plan;
    const mg_sweep_how *how;
    const mg_sweep_watch *watch;
    mg_sweep_end *end;
    slot *slot;
    int64_t *steps; /* of each run, done so far */
    int next;       /* the first run that was not looked at yet */
    mg_sweep_progress progress;
} sweep;

/* ---- One run ---- */

static void end_run(sweep *s, int run, mg_sweep_end end) {
    s->end[run] = end;
    s->progress.count[MG_SWEEP_OPEN]--;
    s->progress.count[end]++;
    if (s->watch->ended) s->watch->ended(s->plan, run, end, s->watch->user);
}

static void say_signal(const char *output, int signal_number) {
    FILE *file = fopen(output, "ab");
    if (!file) return;
    fprintf(file, "the process was ended by signal %d (%s)\n", signal_number, strsignal(signal_number));
    fclose(file);
}

/* The output of a run that failed gets the name that says so, with one rename. */
static void keep_failure(sweep *s, int run, int signal_number) {
    char *output = mg_sweep_output(s->plan, run, MG_SWEEP_OUTPUT),
         *failed = mg_sweep_output(s->plan, run, MG_SWEEP_FAILURE);
    if (signal_number) say_signal(output, signal_number);
    rename(output, failed);
    mg_free(output);
    mg_free(failed);
}

static void forget_failure(sweep *s, int run) {
    char *failed = mg_sweep_output(s->plan, run, MG_SWEEP_FAILURE);
    unlink(failed);
    mg_free(failed);
}

/* train's exit status (flags.h of the commands), and what its folder says: the folder decides whether it is finished.
 */
static mg_status judge(sweep *s, int run, int exit_status, int signal_number, bool asked, mg_error *error) {
    enum { INTERRUPTED = 130, HELD = 3 };
    mg_sweep_state state;
    mg_status status = mg_sweep_look(s->plan, run, &state, &s->steps[run], error);
    if (status != MG_OK) return status;
    if (exit_status == HELD)
        end_run(s, run, state == MG_SWEEP_FINISHED ? MG_SWEEP_DONE : MG_SWEEP_HELD);
    else if (state == MG_SWEEP_FINISHED)
        end_run(s, run, MG_SWEEP_DONE);
    else if (exit_status != INTERRUPTED && !asked) {
        keep_failure(s, run, signal_number);
        end_run(s, run, MG_SWEEP_FAILED);
    }
    return MG_OK;
}

static mg_status start_run(sweep *s, int at, int run, mg_error *error) {
    mg_arena_mark mark = mg_arena_here(s->plan->grid->arena);
    char *output = mg_sweep_output(s->plan, run, MG_SWEEP_OUTPUT);
    char **words = mg_sweep_words(s->plan, run, mg_sweep_threads(s->how, at));
    mg_status status = mg_child_start(&s->slot[at].child, words, output, error);
    if (status == MG_OK) {
        s->slot[at].run = run;
        s->progress.running++;
        forget_failure(s, run);
    }
    mg_arena_rewind(s->plan->grid->arena, mark);
    mg_free(output);
    return status;
}

/* ---- All of them ---- */

int mg_sweep_threads(const mg_sweep_how *how, int slot_index) {
    if (how->threads == 0) return 0;
    int share = how->threads / how->jobs + (slot_index < how->threads % how->jobs);
    return share > 0 ? share : 1;
}

static mg_status look_at_all(sweep *s, mg_error *error) {
    for (int run = 0; run < s->plan->n; run++) {
        mg_sweep_state state;
        mg_status status = mg_sweep_look(s->plan, run, &state, &s->steps[run], error);
        if (status != MG_OK) return status;
        bool failed = state == MG_SWEEP_FAILED_BEFORE && !s->how->retry;
        s->end[run] = state == MG_SWEEP_FINISHED ? MG_SWEEP_DONE : failed ? MG_SWEEP_FAILED : MG_SWEEP_OPEN;
        s->progress.count[s->end[run]]++;
        s->progress.all_steps += mg_sweep_options(s->plan, run).train.max_iters;
        s->progress.steps_before += s->steps[run];
    }
    return MG_OK;
}

static mg_status start_more(sweep *s, mg_error *error) {
    for (int at = 0; at < s->how->jobs; at++) {
        if (s->slot[at].child.id > 0) continue;
        while (s->next < s->plan->n && s->end[s->next] != MG_SWEEP_OPEN) s->next++;
        if (s->next == s->plan->n) return MG_OK;
        mg_status status = start_run(s, at, s->next++, error);
        if (status != MG_OK) return status;
    }
    return MG_OK;
}

static void ask_all(sweep *s) {
    for (int at = 0; at < s->how->jobs; at++) mg_child_ask(&s->slot[at].child);
}

static mg_status collect(sweep *s, bool asked, mg_error *error) {
    for (int at = 0; at < s->how->jobs; at++) {
        int exit_status, signal_number;
        if (!mg_child_has_ended(&s->slot[at].child, &exit_status, &signal_number)) continue;
        s->progress.running--;
        mg_status status = judge(s, s->slot[at].run, exit_status, signal_number, asked, error);
        if (status != MG_OK) return status;
    }
    return MG_OK;
}

static void report(sweep *s) {
    if (!s->watch->progressed) return;
    for (int at = 0; at < s->how->jobs; at++) {
        mg_run_log_row last;
        mg_run_dir dir;
        if (s->slot[at].child.id == 0) continue;
        char *folder = mg_sweep_folder(s->plan, s->slot[at].run);
        if (mg_run_dir_name(&dir, folder, NULL) == MG_OK && mg_run_log_last(dir.log, &last))
            s->steps[s->slot[at].run] = mg_run_log_steps_done(&last);
        mg_run_dir_close(&dir);
        mg_free(folder);
    }
    s->progress.steps = 0;
    for (int run = 0; run < s->plan->n; run++) s->progress.steps += s->steps[run];
    s->watch->progressed(s->plan, &s->progress, s->watch->user);
}

/* Until all runs have ended, or, once a stop was asked for or something failed here, those that run now. */
static mg_status work(sweep *s, mg_error *error) {
    const struct timespec pause = {.tv_nsec = 20000000};
    mg_error later;
    bool asked = false;
    mg_status status = MG_OK;
    for (int turn = 0;; turn++) {
        bool stop = status != MG_OK || (s->watch->stop.asked && s->watch->stop.asked(s->watch->stop.user));
        if (stop && !asked) ask_all(s);
        asked = asked || stop;
        mg_status collected = collect(s, asked, status == MG_OK ? error : &later);
        if (status == MG_OK) status = collected;
        if (status == MG_OK && !asked) status = start_more(s, error);
        if (s->progress.running == 0 && (asked || status != MG_OK || s->next == s->plan->n)) break;
        if (turn % 10 == 0) report(s);
        nanosleep(&pause, NULL);
    }
    if (status == MG_OK && asked) status = mg_error_set(error, MG_ERR_STOPPED, "the sweep was stopped");
    return status;
}

mg_status mg_sweep_run(const mg_sweep_plan *plan, const mg_sweep_how *how, const mg_sweep_watch *watch,
                       mg_sweep_end *end, mg_error *error) {
    sweep s = {.plan = plan, .how = how, .watch = watch, .end = end, .progress.begun = mg_seconds()};
    s.slot = mg_alloc_zero((size_t)how->jobs, sizeof *s.slot, "the processes of a sweep", error);
    s.steps = s.slot ? mg_alloc_zero((size_t)plan->n, sizeof *s.steps, "a sweep", error) : NULL;
    mg_status status = s.steps ? look_at_all(&s, error) : MG_ERR_MEMORY;
    if (status == MG_OK) status = mg_sweep_make_folders(plan, error);
    if (status == MG_OK) status = work(&s, error);
    mg_free(s.slot);
    mg_free(s.steps);
    return status;
}
