/* The probes that come first: is the model a function, and of each row separately? */
#include "audit_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char noise_look[] = "dropout or other randomness left on (model.eval()), state that lives on between "
                                 "calls, sums whose order changes from run to run";

/* ---- repeat ---- */

enum { REPEATS = 4, MOST_ROWS = 4 };

static int few_rows(const audit *a) {
    return a->rows < MOST_ROWS ? a->rows : MOST_ROWS;
}

/* rows × length ids, each row another sequence from number `first` on. */
static int *rows_of(audit *a, int first, int rows, int length) {
    int *ids = mg_audit_ints(a, (int64_t)rows * length);
    for (int r = 0; r < rows; r++)
        memcpy(ids + (int64_t)r * length, mg_audit_sequence(a, first + r, length), (size_t)length * sizeof *ids);
    return ids;
}

/* Answers 0 and 1 come one after the other, 2 and 3 after calls of other ids and of another shape. */
static bool ask_again(audit *a, double *const *answer) {
    int n = a->full, half = (n + 1) / 2, B = few_rows(a);
    mg_audit_batch same = mg_audit_probe_batch(a, B, n, rows_of(a, 0, B, n));
    mg_audit_batch other = mg_audit_probe_batch(a, B, n, rows_of(a, 100, B, n));
    mg_audit_batch shorter = mg_audit_probe_batch(a, 1, half, rows_of(a, 200, 1, half));
    double *ignored = mg_audit_doubles(a, (int64_t)B * n * a->n_columns);
    return mg_audit_logits(a, &same, answer[0]) && mg_audit_logits(a, &same, answer[1]) &&
           mg_audit_logits(a, &other, ignored) && mg_audit_logits(a, &same, answer[2]) &&
           mg_audit_logits(a, &shorter, ignored) && mg_audit_logits(a, &same, answer[3]);
}

static double share_that_differs(int64_t n, const double *x, const double *y) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) count += x[i] != y[i];
    return (double)count / (double)n;
}

static void judge_noise(audit *a, int64_t size, double *const *answer) {
    double next = mg_audit_difference(size, answer[0], answer[1]), later = 0;
    for (int k = 2; k < REPEATS; k++) later = fmax(later, mg_audit_difference(size, answer[1], answer[k]));
    double noise = a->noise = a->result->noise = fmax(next, later);
    a->scale = mg_audit_scale(size, answer[0]);
    if (noise == 0) {
        mg_audit_say(a, MG_AUDIT_PASS, "the same ids gave the same bits %d times, also after other calls", REPEATS);
        return;
    }
    const char *when = next == 0    ? "equal calls agree until another call comes between them"
                       : later == 0 ? "only the first call differs from the later ones"
                                    : "equal calls differ each time";
    double share = share_that_differs(size, answer[0], answer[next > 0 ? 1 : 2]);
    mg_audit_say(a, MG_AUDIT_FAIL,
                 "%s: %.3g%% of the logits, by up to %.3g. From here on only what exceeds %d times that noise counts",
                 when, 100 * share, noise, AUDIT_NOISE_MULTIPLE);
    mg_audit_look(a, noise_look);
    mg_audit_probe_finding(a)->largest = noise;
}

void mg_audit_repeat(audit *a) {
    int64_t size = (int64_t)few_rows(a) * a->full * a->n_columns;
    double *answer[REPEATS];
    for (int k = 0; k < REPEATS; k++) answer[k] = mg_audit_doubles(a, size);
    if (ask_again(a, answer)) judge_noise(a, size, answer);
}

long mg_audit_repeat_calls(const audit *a) {
    (void)a;
    return REPEATS + 2;
}

/* ---- batch ---- */

typedef struct rows_seen {
    int replaced;    /* the first row that moves when the others are replaced; -1: none */
    int replaced_at; /* and at which position */
    double by;       /* the largest such change */
    int permuted;    /* the first row that differs in another place of the batch; -1: none */
    int alone;       /* the first row that differs on its own; -1: none */
    double apart;    /* the largest difference of the last two, */
    double limit;    /* and what is allowed */
} rows_seen;

static bool replace_others(audit *a, int B, const int *ids, const double *plain, rows_seen *seen) {
    int n = a->full, K = a->n_columns, *changed = mg_audit_ints(a, (int64_t)B * n);
    double *answer = mg_audit_doubles(a, (int64_t)B * n * K);
    const int *others = rows_of(a, 300, B, n);
    for (int r = 0; r < B; r++) {
        memcpy(changed, others, (size_t)B * (size_t)n * sizeof *ids);
        memcpy(changed + (int64_t)r * n, ids + (int64_t)r * n, (size_t)n * sizeof *ids);
        mg_audit_batch batch = mg_audit_probe_batch(a, B, n, changed);
        if (!mg_audit_logits(a, &batch, answer)) return false;
        for (int t = 0; t < n; t++) {
            int64_t at = ((int64_t)r * n + t) * K;
            double change = mg_audit_change(a, K, plain + at, answer + at);
            if (change > 0 && seen->replaced < 0) {
                seen->replaced = r;
                seen->replaced_at = t;
            }
            seen->by = fmax(seen->by, change);
        }
    }
    return true;
}

/* The rows in reverse, and each of the outer ones on its own. */
static bool move_rows(audit *a, int B, const int *ids, const double *plain, rows_seen *seen) {
    int n = a->full, K = a->n_columns, *reversed = mg_audit_ints(a, (int64_t)B * n);
    int64_t size = (int64_t)n * K;
    double *answer = mg_audit_doubles(a, B * size);
    for (int r = 0; r < B; r++)
        memcpy(reversed + (int64_t)r * n, ids + (int64_t)(B - 1 - r) * n, (size_t)n * sizeof *ids);
    mg_audit_batch batch = mg_audit_probe_batch(a, B, n, reversed);
    if (!mg_audit_logits(a, &batch, answer)) return false;
    for (int r = B - 1; r >= 0; r--)
        if (mg_audit_first_apart(a, n, plain + r * size, answer + (B - 1 - r) * size, seen->limit, &seen->apart) >= 0)
            seen->permuted = r;
    for (int r = B - 1; r >= 0; r -= B - 1) {
        batch = mg_audit_probe_batch(a, 1, n, ids + (int64_t)r * n);
        if (!mg_audit_logits(a, &batch, answer)) return false;
        if (mg_audit_first_apart(a, n, plain + r * size, answer, seen->limit, &seen->apart) >= 0) seen->alone = r;
    }
    return true;
}

static void judge_rows(audit *a, int B, const rows_seen *seen) {
    if (seen->replaced >= 0) {
        mg_audit_say(a, MG_AUDIT_FAIL,
                     "position %d of row %d changes when the other rows of the batch are replaced, by up to %.3g",
                     seen->replaced_at, seen->replaced, seen->by);
        mg_audit_look(
            a, "batch_first, or a transpose of batch and time; batch statistics; a capacity or a scale that rows "
               "share; a reshape that mixes the two axes");
        mg_audit_doubt_rounding(a, seen->by);
    } else if (seen->permuted >= 0 || seen->alone >= 0) {
        int row = seen->permuted >= 0 ? seen->permuted : seen->alone;
        mg_audit_say(a, MG_AUDIT_FAIL, "row %d %s differs by up to %.3g; %.3g is allowed", row,
                     seen->permuted >= 0 ? "in another place of the batch" : "on its own", seen->apart, seen->limit);
        mg_audit_look(a, "anything that depends on the number or the order of the rows");
    } else {
        mg_audit_say(
            a, MG_AUDIT_PASS,
            "no bit of any of %d rows depends on the others; in another place and on its own a row differs by at "
            "most %.2g (%.2g is allowed)",
            B, seen->apart, seen->limit);
        return;
    }
    mg_audit_probe_finding(a)->largest = fmax(seen->by, seen->apart);
    mg_audit_add(a, ". From here on the audit asks for one row at a time");
    a->rows = a->sequences = 1;
    a->one_value = true;
}

void mg_audit_rows(audit *a) {
    int B = few_rows(a), n = a->full;
    int *ids = rows_of(a, 0, B, n);
    int64_t size = (int64_t)B * n * a->n_columns;
    double *plain = mg_audit_doubles(a, size);
    mg_audit_batch batch = mg_audit_probe_batch(a, B, n, ids);
    rows_seen seen = {.replaced = -1, .permuted = -1, .alone = -1};
    if (!mg_audit_logits(a, &batch, plain)) return;
    seen.limit = mg_audit_limit(a, size, plain);
    if (replace_others(a, B, ids, plain, &seen) && move_rows(a, B, ids, plain, &seen)) judge_rows(a, B, &seen);
}

long mg_audit_rows_calls(const audit *a) {
    (void)a;
    return 1 + MOST_ROWS + 3;
}
