/* The mask in training mode: cuts of one sequence, each in a call of its own, since rows may share statistics there. */
#include "audit_private.h"

#include <math.h>
#include <stdio.h>

typedef struct training {
    double noise; /* between two equal calls */
    audit_leak leak;
    int key;
    bool confirmed;        /* the leak was seen twice */
    int silent, listening; /* predictions that no earlier token moves, of how many */
} training;

static bool see_noise(audit *a, const mg_audit_batch *like, training *seen) {
    int64_t size = (int64_t)like->length * like->n_columns;
    double *one = mg_audit_doubles(a, size), *two = mg_audit_doubles(a, size);
    if (!mg_audit_logits(a, like, one) || !mg_audit_logits(a, like, two)) return false;
    seen->noise = mg_audit_difference(size, one, two);
    return true;
}

/* Rows 0 … n−2 are the cuts 1 … n−1, the rest is the control. */
static bool see_rows(audit *a, const mg_audit_batch *like, const int *others, training *seen) {
    int n = a->full, n_rows = n - 1 + AUDIT_CONTROLS, *rows = mg_audit_ints(a, (int64_t)n_rows * n);
    double *moved = mg_audit_doubles(a, (int64_t)n_rows * n);
    for (int c = 1; c < n; c++) mg_audit_splice(n, like->ids, others, c, n, rows + (int64_t)(c - 1) * n);
    mg_audit_control_rows(n, like->ids, others, rows + (int64_t)(n - 1) * n);
    if (!mg_audit_moves(a, like, like->ids, n_rows, rows, moved)) return false;
    for (int c = 1; c < n; c++)
        mg_audit_see_cut(&seen->leak, n, c, like->ids, rows + (int64_t)(c - 1) * n, moved + (int64_t)(c - 1) * n);
    seen->listening = n - 1;
    for (int t = 1; t < n; t++) seen->silent += moved[(int64_t)(n - 1 + t % AUDIT_CONTROLS) * n + t] == 0;
    if (seen->leak.query < 0) return true;
    return mg_audit_find_key(a, like, &seen->leak, &seen->key) &&
           mg_audit_confirm(a, like, &seen->leak, seen->key, &seen->confirmed);
}

static bool see_training(audit *a, training *seen) {
    int n = a->full, *ids = mg_audit_sequence(a, 0, n), *others = mg_audit_others(a, ids, n), rows = a->rows;
    double quiet = a->noise;
    mg_audit_batch like = mg_audit_probe_batch(a, 1, n, ids);
    like.train = true;
    seen->leak = mg_audit_no_leak(a, n);
    if (!see_noise(a, &like, seen)) return false;
    a->rows = 1;
    a->noise = fmax(quiet, seen->noise);
    bool done = see_rows(a, &like, others, seen);
    a->rows = rows;
    a->noise = quiet;
    return done;
}

/* What evaluation mode showed is kept, and is no pass. */
static void leave_open(audit *a) {
    mg_audit_probe_finding(a)->verdict = MG_AUDIT_INCONCLUSIVE;
}

static void convict(audit *a, const training *seen) {
    const audit_leak *leak = &seen->leak;
    mg_audit_say(
        a, MG_AUDIT_FAIL,
        "in training mode position %d moves with token %d, which comes later, by up to %.3g, and otherwise not",
        leak->query, seen->key, leak->largest);
    mg_audit_pair(a, leak->query, seen->key, leak->largest);
    mg_audit_look(a, "what differs between training and evaluation: another attention path, a mask that only one of "
                     "them gets, statistics over the batch or over time");
}

static void blame_noise(audit *a) {
    leave_open(a);
    mg_audit_look(a, "dropout that the seed of the call does not reach: seed its generator in each call, or set its "
                     "rate to 0 in training mode");
}

static void judge(audit *a, const training *seen) {
    if (seen->leak.query >= 0 && seen->confirmed) {
        convict(a, seen);
    } else if (seen->leak.query >= 0) {
        blame_noise(a);
        mg_audit_add(a, ". In training mode position %d moved once and not again: there the model is not a function",
                     seen->leak.query);
    } else if (seen->noise > a->noise) {
        blame_noise(a);
        mg_audit_add(a, ". In training mode equal calls differ by up to %.2g: a leak below %d times that stays unseen",
                     seen->noise, AUDIT_NOISE_MULTIPLE);
    } else if (2 * seen->silent > seen->listening && !(a->options.skip & 1u << MG_AUDIT_CONTROL)) {
        leave_open(a);
        mg_audit_add(a,
                     ". But in training mode, with one row per call, no earlier token moves %d of %s: where nothing "
                     "flows, nothing can be seen to leak",
                     seen->silent, mg_count(seen->listening, "prediction").text);
    } else {
        mg_audit_add(a, ". The same in training mode");
        if (a->T > a->full) mg_audit_add(a, ", in the first %d places", a->full);
    }
}

void mg_audit_training(audit *a) {
    training seen = {.key = -1};
    mg_audit_finding before = *mg_audit_probe_finding(a), *now = mg_audit_probe_finding(a);
    if (see_training(a, &seen)) {
        judge(a, &seen);
    } else if (now->verdict != MG_AUDIT_FAIL && !a->broken) {
        char why[256];
        snprintf(why, sizeof why, "%.250s", now->evidence);
        *now = before;
        leave_open(a);
        mg_audit_add(a, ". In training mode %s", why);
    }
}

long mg_audit_training_calls(const audit *a) {
    if (!a->model->can_train) return 0;
    int n_rows = a->full - 1 + AUDIT_CONTROLS;
    return 2 + mg_audit_moves_calls(n_rows, 1) + mg_audit_find_key_calls(a->full, 1) + mg_audit_moves_calls(2, 1);
}
