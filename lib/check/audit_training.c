/* The mask in training mode: cuts of one sequence, each in a call of its own, since rows may share statistics there. */
#include "audit_private.h"

#include <math.h>
#include <stdio.h>

typedef struct training {
    double noise;   /* between two equal calls */
    int query, key; /* the first leak; −1: none */
    double largest;
    bool confirmed;          /* the leak was seen twice */
    const mg_influence *far; /* of a leak beyond `full`; NULL: none there */
    int silent, listening;   /* predictions that no earlier token moves, of how many */
    audit_far beyond;
} training;

static bool see_noise(audit *a, const mg_audit_batch *like, double *noise) {
    int64_t size = (int64_t)like->length * like->n_columns;
    mg_arena_mark mark = mg_arena_here(a->arena);
    double *one = mg_audit_doubles(a, size), *two = mg_audit_doubles(a, size);
    bool done = mg_audit_logits(a, like, one) && mg_audit_logits(a, like, two);
    if (done) *noise = fmax(*noise, mg_audit_difference(size, one, two));
    mg_arena_rewind(a->arena, mark);
    return done;
}

/* Rows 0 … n−2 are the cuts 1 … n−1, the rest is the control. */
static bool see_rows(audit *a, const mg_audit_batch *like, const int *others, training *seen) {
    int n = a->full, n_rows = n - 1 + AUDIT_CONTROLS, *rows = mg_audit_ints(a, (int64_t)n_rows * n);
    double *moved = mg_audit_doubles(a, (int64_t)n_rows * n);
    audit_leak leak = mg_audit_no_leak(a, n);
    for (int c = 1; c < n; c++) mg_audit_splice(n, like->ids, others, c, n, rows + (int64_t)(c - 1) * n);
    mg_audit_control_rows(n, like->ids, others, rows + (int64_t)(n - 1) * n);
    if (!mg_audit_moves(a, like, like->ids, n_rows, rows, moved)) return false;
    for (int c = 1; c < n; c++)
        mg_audit_see_cut(&leak, n, c, like->ids, rows + (int64_t)(c - 1) * n, moved + (int64_t)(c - 1) * n);
    seen->listening = n - 1;
    for (int t = 1; t < n; t++) seen->silent += moved[(int64_t)(n - 1 + t % AUDIT_CONTROLS) * n + t] == 0;
    seen->query = leak.query;
    seen->largest = leak.largest;
    if (leak.query < 0) return true;
    return mg_audit_find_key(a, like, &leak, &seen->key) &&
           mg_audit_confirm(a, like, &leak, seen->key, &seen->confirmed);
}

static mg_audit_batch batch_of(audit *a, int length) {
    mg_audit_batch like = mg_audit_probe_batch(a, 1, length, mg_audit_sequence(a, 0, length));
    like.train = true;
    return like;
}

static bool see_near(audit *a, training *seen) {
    mg_audit_batch like = batch_of(a, a->full);
    if (!see_noise(a, &like, &seen->noise)) return false;
    a->noise = fmax(a->noise, seen->noise);
    return see_rows(a, &like, mg_audit_others(a, like.ids, a->full), seen);
}

static bool see_far(audit *a, training *seen) {
    mg_audit_batch like = batch_of(a, a->T);
    if (!see_noise(a, &like, &seen->noise)) return false;
    a->noise = fmax(a->noise, seen->noise);
    audit_far *far = &seen->beyond;
    if (!mg_audit_far(a, &like, mg_audit_sequence(a, 0, a->T), true, far)) return false;
    seen->silent += far->silent;
    seen->listening += far->listening;
    if (far->query < 0) return true;
    seen->query = far->query;
    seen->key = far->key;
    seen->largest = far->largest;
    seen->confirmed = far->confirmed;
    seen->far = &far->influence;
    return true;
}

static bool see_training(audit *a, training *seen) {
    double quiet = a->noise;
    int rows = a->rows;
    a->rows = 1;
    bool done = see_near(a, seen);
    if (done && seen->query < 0 && a->T > a->full) done = see_far(a, seen);
    a->rows = rows;
    a->noise = quiet;
    return done;
}

/* What evaluation mode showed is kept, and is no pass. */
static void leave_open(audit *a) {
    mg_audit_probe_finding(a)->verdict = MG_AUDIT_INCONCLUSIVE;
}

static void convict(audit *a, const training *seen) {
    mg_audit_say(
        a, MG_AUDIT_FAIL,
        "in training mode position %d moves with token %d, which comes later, by up to %.3g, and otherwise not",
        seen->query, seen->key, seen->largest);
    if (seen->far) mg_audit_add(a, ": %s", seen->far->pattern);
    mg_audit_pair(a, seen->query, seen->key, seen->largest);
    mg_audit_look(a, "what differs between training and evaluation: another attention path, a mask that only one of "
                     "them gets, statistics over the batch or over time");
    mg_audit_doubt_rounding(a, seen->largest);
}

static void blame_noise(audit *a) {
    leave_open(a);
    mg_audit_look(a, "dropout that the seed of the call does not reach: seed its generator in each call, or set its "
                     "rate to 0 in training mode");
}

static void judge(audit *a, const training *seen) {
    if (seen->query >= 0 && seen->confirmed) {
        convict(a, seen);
    } else if (seen->query >= 0) {
        blame_noise(a);
        mg_audit_add(a, ". In training mode position %d moved once and not again: there the model is not a function",
                     seen->query);
    } else if (seen->noise > a->noise) {
        blame_noise(a);
        mg_audit_add(a, ". In training mode equal calls differ by up to %.2g: a leak below %d times that stays unseen",
                     seen->noise, AUDIT_NOISE_MULTIPLE);
    } else if (2 * seen->silent > seen->listening && !(a->options.skip & 1u << MG_AUDIT_CONTROL)) {
        leave_open(a);
        mg_audit_add(a,
                     ". But in training mode, with one row per call, no earlier token moves %d of %s: where nothing "
                     "flows, nothing can be seen to leak",
                     seen->silent, mg_count_in_english(seen->listening, "prediction").text);
    } else {
        mg_audit_add(a, ". The same in training mode");
    }
}

void mg_audit_training(audit *a) {
    training seen = {.query = -1, .key = -1};
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

static long near_calls(const audit *a) {
    long calls = 2 + mg_audit_moves_calls(a->full - 1 + AUDIT_CONTROLS, 1);
    return a->leaks ? calls + mg_audit_find_key_calls(a->full, 1) + mg_audit_moves_calls(2, 1) : calls;
}

static long far_calls(const audit *a) {
    return a->T > a->full ? 2 + mg_audit_far_calls(a, 1, a->leaks) : 0;
}

long mg_audit_training_calls(const audit *a) {
    return a->model->can_train ? near_calls(a) + far_calls(a) : 0;
}

int64_t mg_audit_training_tokens(const audit *a) {
    return a->model->can_train ? near_calls(a) * (int64_t)a->full + far_calls(a) * (int64_t)a->T : 0;
}
