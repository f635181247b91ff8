/* The mask beyond `full`, where every pair would be too many: a sample of cuts. If one of them moves a prediction
 * before it, more cuts say which is the first, how far it sees, and which others do. */
#include "audit_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WINDOW = 64, /* cuts after the first leak, one after the other: they show how it goes on */
    PROBES = 8   /* that are looked at together when something is searched for: each round leaves a ninth */
};

typedef struct far {
    audit *a;
    mg_audit_batch like;
    int *ids, *others;
    bool *looked;   /* (T + 1): at this cut; T, after the last token, is none that could move anything */
    int *reach;     /* (T): how far ahead a prediction is known to see; 0: it sees nothing; −1: unknown */
    int last;       /* the last cut that moved anything before it; −1: none */
    double largest; /* such change */
} far;

/* ---- Which cuts ---- */

/* 1, T−2, T−1, and both sides of each power of 2 from 16 on. */
static int n_borders(const audit *a) {
    int borders = 3;
    for (int64_t p = 16; p < a->T; p *= 2) borders += 2;
    return borders;
}

static int n_cuts_of(const audit *a) {
    int borders = n_borders(a);
    return a->options.cuts > borders ? a->options.cuts : borders;
}

static int compare_ints(const void *x, const void *y) {
    int a = *(const int *)x, b = *(const int *)y;
    return (a > b) - (a < b);
}

/* The borders of blocks of 16, 32, 64, …, both ends, and the rest spread evenly; ascending, in 1 … T−1. */
static int *choose_cuts(audit *a, int *count) {
    int n = n_cuts_of(a), T = a->T, at = 0, *cut = mg_audit_ints(a, n);
    int ends[] = {1, T - 2, T - 1};
    for (int i = 0; i < 3; i++) cut[at++] = ends[i];
    for (int64_t p = 16; p < T; p *= 2) {
        cut[at++] = (int)p;
        cut[at++] = (int)(p + 1 < T ? p + 1 : T - 1);
    }
    for (int i = 0, spread = n - at; i < spread; i++)
        cut[at++] = 1 + (int)((int64_t)(T - 2) * (2 * i + 1) / (2 * (int64_t)spread));
    qsort(cut, (size_t)n, sizeof *cut, compare_ints);
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (kept == 0 || cut[i] != cut[kept - 1]) cut[kept++] = cut[i];
    *count = kept;
    return cut;
}

/* ---- Looking ---- */

static void see_cut(far *f, int cut, const double *moved) {
    f->looked[cut] = true;
    for (int i = 0; i < cut; i++) {
        if (moved[i] == 0) continue;
        f->largest = fmax(f->largest, moved[i]);
        if (f->reach[i] < cut - i) f->reach[i] = cut - i;
        if (f->last < cut) f->last = cut;
    }
    /* The prediction before the cut has seen every token after it replaced. */
    if (f->reach[cut - 1] < 0) f->reach[cut - 1] = 0;
}

/* The control's rows come with the first look: heard (T) is then what an earlier token moves. */
static bool look(far *f, int n, const int *cut, bool *heard) {
    audit *a = f->a;
    int T = a->T, n_rows = n + (heard ? AUDIT_CONTROLS : 0);
    mg_arena_mark mark = mg_arena_here(a->arena);
    int *rows = mg_audit_ints(a, (int64_t)n_rows * T);
    double *moved = mg_audit_doubles(a, (int64_t)n_rows * T);
    for (int r = 0; r < n; r++) mg_audit_splice(T, f->ids, f->others, cut[r], T, rows + (int64_t)r * T);
    if (heard) mg_audit_control_rows(T, f->ids, f->others, rows + (int64_t)n * T);
    bool done = mg_audit_moves(a, &f->like, f->ids, n_rows, rows, moved);
    for (int r = 0; r < n && done; r++) see_cut(f, cut[r], moved + (int64_t)r * T);
    for (int t = 0; t < T && done && heard; t++) heard[t] = moved[(int64_t)(n + t % AUDIT_CONTROLS) * T + t] > 0;
    mg_arena_rewind(a->arena, mark);
    return done;
}

/* Of m places at most PROBES, spread evenly: 1 … m. */
static int spread(int m, int place[PROBES]) {
    int n = m < PROBES ? m : PROBES;
    for (int p = 0; p < n; p++) place[p] = m <= PROBES ? p + 1 : (int)((int64_t)(m + 1) * (p + 1) / (PROBES + 1));
    return n;
}

static int rounds(int m) {
    int count = 0;
    for (; m > 0; m /= PROBES + 1) count++;
    return count;
}

/* ---- What leaks ---- */

/* −1: nothing does. */
static int first_leak(const far *f) {
    for (int i = 0; i < f->a->T; i++)
        if (f->reach[i] > 0) return i;
    return -1;
}

/* Goes from the first leak back, `stride` at a time, as long as nothing is known of the prediction there: to one that
 * sees nothing ahead, or to `low`. */
static bool step_back(far *f, int stride, int low) {
    for (;;) {
        int first = first_leak(f), unknown = 0, place[PROBES];
        while (first - (unknown + 1) * stride > low && f->reach[first - (unknown + 1) * stride] < 0) unknown++;
        if (unknown == 0) return true;
        int n = spread(unknown, place);
        for (int p = 0; p < n; p++) place[p] = first - place[p] * stride + 1;
        if (!look(f, n, place, NULL)) return false;
    }
}

/* Cuts of the next `width` predictions, WINDOW at most. */
static bool look_after(far *f, int width) {
    int cut[WINDOW], n = 0, first = first_leak(f);
    for (int c = first + 1; c < f->a->T && c <= first + width && n < WINDOW; c++)
        if (!f->looked[c]) cut[n++] = c;
    return n == 0 || look(f, n, cut, NULL);
}

/* The furthest token that moves the first leak: between a cut that does and the next that does not. */
static bool find_reach(far *f) {
    int first = first_leak(f);
    for (;;) {
        int low = first + f->reach[first], unknown = 0, place[PROBES];
        while (!f->looked[low + 1 + unknown]) unknown++;
        if (unknown == 0) return true;
        int n = spread(unknown, place);
        for (int p = 0; p < n; p++) place[p] += low;
        if (!look(f, n, place, NULL)) return false;
    }
}

/* Whether everything that leaks sees this one token, as far as is known. */
static bool only_key(const far *f, int key) {
    int n = 0;
    if (f->last > key) return false;
    for (int i = 0; i < key; i++) {
        if (f->reach[i] > 0 && i + f->reach[i] != key) return false;
        n += f->reach[i] > 0;
    }
    return n > 1;
}

static void describe(const far *f, audit_far *seen) {
    mg_influence found = {.query = seen->query, .key = seen->key, .largest = f->largest};
    for (int i = 0; i < f->a->T; i++)
        if (f->reach[i] > found.reach) found.reach = f->reach[i];
    mg_influence_describe(f->a->T, f->reach, &found);
    if (seen->key == seen->query + f->reach[seen->query] && only_key(f, seen->key))
        snprintf(found.pattern, sizeof found.pattern, "token %d is seen by earlier predictions", seen->key);
    seen->influence = found;
}

static bool find_first_pair(far *f, audit_far *seen) {
    audit_leak first = {.query = seen->query, .cut = seen->query + 1, .ids = f->ids, .row = f->others};
    if (!mg_audit_find_key(f->a, &f->like, &first, &seen->key)) return false;
    int cut[] = {seen->key, seen->key + 1};
    return look(f, seen->key + 1 < f->a->T ? 2 : 1, cut, NULL) &&
           mg_audit_confirm(f->a, &f->like, &first, seen->key, &seen->confirmed);
}

static bool search(far *f, audit_far *seen) {
    if (!step_back(f, 1, -1) || !look_after(f, WINDOW)) return false;
    int T = f->a->T, period = (int)mg_influence_period(T, f->reach, first_leak(f));
    /* Shorter sequences have shown that nothing before `full` sees ahead that way. */
    if (period > 1 && !(step_back(f, period, f->a->full - 2) && look_after(f, period))) return false;
    seen->query = first_leak(f);
    if (!find_reach(f) || !find_first_pair(f, seen)) return false;
    describe(f, seen);
    return true;
}

/* ---- All of it ---- */

static int64_t count_looked_at(const far *f) {
    int64_t T = f->a->T, n = f->a->full, looked_at = 0;
    for (int64_t i = 0, cut = 0; i < T; i++) {
        while (cut <= i || (cut < T && !f->looked[cut])) cut++;
        int64_t from_map = i < n ? (cut < n ? cut : n) - i - 1 : 0;
        looked_at += T - cut + from_map;
    }
    return looked_at;
}

static int rows_per_call(const audit *a) {
    int most = AUDIT_FAR_TOKENS / a->T > 2 ? AUDIT_FAR_TOKENS / a->T : 2;
    return a->rows < most ? a->rows : most;
}

static bool look_far(far *f, bool wants_leak, audit_far *seen) {
    int n, T = f->a->T, *cut = choose_cuts(f->a, &n);
    bool *heard = mg_arena_alloc(f->a->arena, (size_t)T, sizeof *heard, "positions");
    if (!look(f, n, cut, heard)) return false;
    for (int t = f->a->full; t < T; t++) {
        seen->listening++;
        if (heard[t]) continue;
        if (seen->silent++ == 0) seen->first_silent = t;
    }
    seen->query = first_leak(f);
    bool done = seen->query < 0 || !wants_leak || search(f, seen);
    seen->largest = f->largest;
    seen->looked_at = count_looked_at(f);
    return done;
}

bool mg_audit_far(audit *a, const mg_audit_batch *path, int *ids, bool wants_leak, audit_far *seen) {
    int T = a->T, rows = a->rows;
    mg_arena_mark mark = mg_arena_here(a->arena);
    far f = {.a = a, .like = *path, .ids = ids, .others = mg_audit_others(a, ids, T), .last = -1};
    f.looked = mg_arena_alloc(a->arena, (size_t)T + 1, sizeof *f.looked, "cuts");
    f.reach = mg_audit_ints(a, T);
    memset(f.looked, 0, (size_t)T * sizeof *f.looked);
    f.looked[T] = true;
    for (int i = 0; i < T; i++) f.reach[i] = i < T - 1 ? -1 : 0;
    *seen = (audit_far){.query = -1, .key = -1};
    a->rows = rows_per_call(a);
    bool done = look_far(&f, wants_leak, seen);
    a->rows = rows;
    mg_arena_rewind(a->arena, mark);
    return done;
}

/* The searches are for a prediction (twice), for how far it sees, and for the token that it sees first. */
long mg_audit_far_calls(const audit *a, int rows_at_most, bool leaks) {
    audit b = *a;
    b.rows = rows_at_most;
    int rows = rows_per_call(&b);
    long calls = mg_audit_moves_calls(n_cuts_of(a) + AUDIT_CONTROLS, rows);
    if (!leaks) return calls;
    return calls + 3 * rounds(a->T) * mg_audit_moves_calls(PROBES, rows) + 2 * mg_audit_moves_calls(WINDOW, rows) +
           mg_audit_find_key_calls(a->T, rows) + 2 * mg_audit_moves_calls(2, rows);
}
