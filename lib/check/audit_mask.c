/* The probe all this is for: does a later token move an earlier prediction? And its control: does an earlier one? */
#include "audit_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Up to `full`: every single token, and every cut ---- */

/* Rows 0 … n−1 replace only token r, rows n … 2n−3 all tokens from r−n+1 on. The last cut is the last token. */
static int full_rows(int n) {
    return n > 1 ? 2 * n - 2 : n;
}

static void write_full_rows(int n, const int *ids, const int *others, int *rows) {
    for (int r = 0; r < full_rows(n); r++) {
        int from = r < n ? r : r - n + 1;
        mg_audit_splice(n, ids, others, from, r < n ? from + 1 : n, rows + (int64_t)r * n);
    }
}

void mg_audit_see_token(audit *a, int j, const int *ids, const int *row, const double *moved, bool counts,
                        audit_leak *seen) {
    int n = a->full;
    double *map = a->result->map;
    for (int i = 0; i < n; i++) {
        map[(int64_t)i * n + j] = fmax(map[(int64_t)i * n + j], moved[i]);
        if (counts) a->moved_by[(int64_t)i * n + j] += moved[i] > 0;
    }
    mg_audit_see_cut(seen, n, j, ids, row, moved);
}

/* What single tokens showed, and what cuts: a prediction may only move with several tokens together. */
typedef struct leaks {
    audit_leak token, cut;
} leaks;

static bool see_full(audit *a, const mg_audit_batch *like, const int *ids, const int *others, bool counts,
                     leaks *seen) {
    int n = a->full, *rows = mg_audit_ints(a, (int64_t)full_rows(n) * n);
    double *moved = mg_audit_doubles(a, (int64_t)full_rows(n) * n);
    write_full_rows(n, ids, others, rows);
    if (!mg_audit_moves(a, like, ids, full_rows(n), rows, moved)) return false;
    for (int r = 0; r < full_rows(n); r++) {
        const int *row = rows + (int64_t)r * n;
        const double *by = moved + (int64_t)r * n;
        if (r < n)
            mg_audit_see_token(a, r, ids, row, by, counts, &seen->token);
        else
            mg_audit_see_cut(&seen->cut, n, r - n + 1, ids, row, by);
    }
    return true;
}

/* ---- Beyond it: a sample of cuts ---- */

/* 1, T−2, T−1, and both sides of each power of 2 from 16 on. */
static int n_borders(const audit *a) {
    int borders = 3;
    for (int64_t p = 16; p < a->T; p *= 2) borders += 2;
    return borders;
}

static int n_far_cuts(const audit *a) {
    int borders = n_borders(a);
    return a->options.cuts > borders ? a->options.cuts : borders;
}

static int compare_ints(const void *x, const void *y) {
    int a = *(const int *)x, b = *(const int *)y;
    return (a > b) - (a < b);
}

/* The borders of blocks of 16, 32, 64, …, both ends, and the rest spread evenly; ascending, in 1 … T−1. */
static int *far_cuts(audit *a, int *count) {
    int n = n_far_cuts(a), T = a->T, at = 0, *cut = mg_audit_ints(a, n);
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

void mg_audit_control_rows(int length, const int *ids, const int *others, int *rows) {
    for (int r = 0; r < AUDIT_CONTROLS; r++)
        for (int t = 0; t < length; t++) rows[(int64_t)r * length + t] = t % AUDIT_CONTROLS == r ? ids[t] : others[t];
}

static void write_far_rows(const audit *a, int n_cuts, const int *cut, const int *ids, const int *others, int *rows) {
    int T = a->T;
    for (int r = 0; r < n_cuts; r++) mg_audit_splice(T, ids, others, cut[r], T, rows + (int64_t)r * T);
    mg_audit_control_rows(T, ids, others, rows + (int64_t)n_cuts * T);
}

static void count_looked_at(audit *a, int n_cuts, const int *cut) {
    int64_t T = a->T, n = a->full, looked_at = 0;
    for (int64_t i = 0, c = 0; i < T; i++) {
        while (c < n_cuts && cut[c] <= i) c++;
        int64_t from_cut = c < n_cuts ? T - cut[c] : 0, first = c < n_cuts ? cut[c] : T;
        int64_t from_map = i < n ? (first < n ? first : n) - i - 1 : 0;
        looked_at += from_cut + from_map;
    }
    a->result->looked_at = looked_at;
}

static void see_silence(audit *a, int position, bool moved) {
    a->n_listening++;
    if (moved) return;
    if (a->n_silent++ == 0) a->silent = position;
}

static int far_batch(const audit *a) {
    int most = AUDIT_FAR_TOKENS / a->T > 2 ? AUDIT_FAR_TOKENS / a->T : 2;
    return a->rows < most ? a->rows : most;
}

static bool see_far(audit *a, const int *ids, const int *others, audit_leak *seen) {
    int T = a->T, n_cuts, *cut = far_cuts(a, &n_cuts), n = n_cuts + AUDIT_CONTROLS, kept = a->rows;
    int *rows = mg_audit_ints(a, (int64_t)n * T);
    double *moved = mg_audit_doubles(a, (int64_t)n * T);
    mg_audit_batch like = mg_audit_probe_batch(a, 1, T, NULL);
    write_far_rows(a, n_cuts, cut, ids, others, rows);
    a->rows = far_batch(a);
    bool done = mg_audit_moves(a, &like, ids, n, rows, moved);
    if (!done) return false;
    for (int r = 0; r < n_cuts; r++)
        mg_audit_see_cut(seen, T, cut[r], ids, rows + (int64_t)r * T, moved + (int64_t)r * T);
    for (int t = a->full; t < T; t++) see_silence(a, t, moved[(int64_t)(n_cuts + t % AUDIT_CONTROLS) * T + t] > 0);
    count_looked_at(a, n_cuts, cut);
    if (seen->query >= 0 && a->leak_query < 0) {
        /* The nearest token may come before the cut, which was one of a few. */
        audit_leak nearest = {.query = seen->query, .cut = seen->query + 1, .ids = seen->ids, .row = (int *)others};
        a->leak_query = seen->query;
        done = mg_audit_find_key(a, &like, &nearest, &a->leak_key);
    }
    a->rows = kept;
    return done;
}

/* ---- Both ---- */

bool mg_audit_confirm(audit *a, const mg_audit_batch *like, const audit_leak *leak, int key, bool *confirmed) {
    int n = a->full, *rows = mg_audit_ints(a, 2 * (int64_t)n);
    double *moved = mg_audit_doubles(a, 2 * (int64_t)n);
    mg_audit_splice(n, leak->ids, leak->row, leak->cut, key + 1, rows);
    mg_audit_splice(n, leak->ids, leak->row, 0, 0, rows + n);
    if (!mg_audit_moves(a, like, leak->ids, 2, rows, moved)) return false;
    *confirmed = key > leak->query && moved[leak->query] > 0 && moved[n + leak->query] == 0;
    return true;
}

/* The earliest prediction that moves, and the token that moves it: of single tokens, or of several together. */
static bool find_first_pair(audit *a, const mg_audit_batch *like, const leaks *seen) {
    int n = a->full;
    mg_influence *found = &a->result->influence;
    bool together = seen->cut.query >= 0 && (seen->token.query < 0 || seen->cut.query < seen->token.query);
    const audit_leak *first = together ? &seen->cut : &seen->token;
    *found = mg_influence_read(n, a->result->map);
    a->confirmed = true;
    if (first->query < 0) return true;
    a->leak_query = first->query;
    a->leak_key = first->cut;
    if (together) {
        if (!mg_audit_find_key(a, like, first, &a->leak_key)) return false;
        a->result->map[(int64_t)a->leak_query * n + a->leak_key] = first->largest;
        *found = mg_influence_read(n, a->result->map);
    }
    return mg_audit_confirm(a, like, first, a->leak_key, &a->confirmed);
}

/* How many of these tokens were not had before. */
static int note_tokens(int n, const int *ids, bool *had) {
    int count = 0;
    for (int t = 0; t < n; t++) {
        count += !had[ids[t]];
        had[ids[t]] = true;
    }
    return count;
}

static bool see_sequences(audit *a, const mg_audit_batch *like, leaks *seen) {
    int n = a->full, V = a->model->vocab;
    bool user = a->options.n_ids > 0, *had = mg_arena_alloc(a->arena, (size_t)V, sizeof *had, "an audit's tokens");
    memset(had, 0, (size_t)V * sizeof *had);
    for (int s = 0; s < a->sequences; s++) {
        mg_arena_mark mark = mg_arena_here(a->arena);
        int *ids = mg_audit_sequence(a, user ? s - 1 : s, n), *others = mg_audit_others(a, ids, n);
        a->result->tokens += note_tokens(n, ids, had);
        bool done = see_full(a, like, ids, others, s == 0, seen);
        if (done && s == 0) done = mg_audit_see_values(a, like, ids, others, &seen->token);
        mg_arena_rewind(a->arena, mark);
        if (!done) return false;
    }
    return true;
}

static bool measure_once(audit *a) {
    int64_t T = a->T;
    int n = a->full;
    mg_audit_batch like = mg_audit_probe_batch(a, 1, n, NULL);
    leaks seen = {mg_audit_no_leak(a, n), mg_audit_no_leak(a, n)};
    a->moved_by = mg_audit_ints(a, (int64_t)n * n);
    memset(a->moved_by, 0, (size_t)n * (size_t)n * sizeof *a->moved_by);
    a->result->pairs = a->result->looked_at = T * (T - 1) / 2;
    a->result->values_tried = mg_audit_values_tried(a);
    if (!see_sequences(a, &like, &seen)) return false;
    for (int i = 1; i < n; i++) {
        double moved = 0;
        for (int j = 0; j < i; j++) moved = fmax(moved, a->result->map[(int64_t)i * n + j]);
        see_silence(a, i, moved > 0);
    }
    if (!find_first_pair(a, &like, &seen)) return false;
    if (T == n) return true;
    audit_leak far = mg_audit_no_leak(a, a->T);
    int *ids = mg_audit_sequence(a, a->options.n_ids > 0 ? AUDIT_USERS : 0, a->T);
    if (!see_far(a, ids, mg_audit_others(a, ids, a->T), &far)) return false;
    a->result->influence.largest = fmax(a->result->influence.largest, far.largest);
    return true;
}

/* For the mask and its control together. What could not be measured for the one is not tried again for the other. */
static bool measure(audit *a) {
    if (!a->tried) {
        a->tried = true;
        return a->measured = measure_once(a);
    }
    if (!a->measured) mg_audit_say(a, MG_AUDIT_INCONCLUSIVE, "it could not be measured: see the mask");
    return a->measured;
}

static long measure_calls(audit a) {
    int n = a.full;
    long calls = a.sequences * mg_audit_moves_calls(full_rows(n), a.rows) + mg_audit_values_calls(&a) +
                 mg_audit_find_key_calls(n, a.rows) + mg_audit_moves_calls(2, a.rows);
    if (a.T == n) return calls;
    a.rows = far_batch(&a);
    return calls + mg_audit_moves_calls(n_far_cuts(&a) + AUDIT_CONTROLS, a.rows) + mg_audit_find_key_calls(a.T, a.rows);
}

/* ---- Verdicts ---- */

static const char *where_rounding_comes_from(const audit *a) {
    if (a->model->dtype == MG_AUDIT_F64)
        return "sums whose order depends on later tokens: an FFT mixes all positions in its rounding, products have a "
               "shape that the routing decides. In float64 already, they read no label: without the FFT, as a plain "
               "sum, no bit moves. Or a leak as small as that";
    return "sums whose order depends on later tokens: an FFT, products whose shape the routing decides. Run it in "
           "float64: rounding shrinks, a leak does not. Or a finite mask value (-1e4), one added after the softmax";
}

static const char *where_to_look(const audit *a) {
    const mg_influence *found = &a->result->influence;
    if (found->query < 0) return "a mask or a buffer that is shorter than the context";
    if (mg_audit_is_rounding(a, found->largest)) return where_rounding_comes_from(a);
    if (found->reach == 1)
        return "an off-by-one: the diagonal of tril or triu, a 'same' convolution, embeddings or inputs shifted the "
               "wrong "
               "way, targets mixed into the inputs";
    if (strstr(found->pattern, "block")) return "attention inside blocks or chunks that has no mask of its own";
    if (strstr(found->pattern, "every prediction from position"))
        return "a mask or a buffer of a fixed size that ends there";
    return "the causal mask: built, passed on and applied before the softmax, as -inf, in every layer, head and path; "
           "and "
           "anything else that runs over time: pooling, an FFT, a norm, a convolution, routing by the whole sequence";
}

static void convict(audit *a) {
    const mg_influence *found = &a->result->influence;
    int n = a->full;
    bool in_map = found->query >= 0;
    double by = in_map ? a->result->map[(int64_t)a->leak_query * n + a->leak_key] : found->largest;
    mg_audit_say(a, MG_AUDIT_FAIL, "position %d moves with token %d, which comes later, by %.3g", a->leak_query,
                 a->leak_key, by);
    if (in_map) {
        int moving = a->moved_by[(int64_t)a->leak_query * n + a->leak_key], tried = mg_audit_values_tried(a);
        if (moving > 0 && moving < tried) mg_audit_add(a, " (by %d of %d other tokens there)", moving, tried);
        mg_audit_add(a, ": %s (%s, the largest change %.3g)", found->pattern, mg_count(found->pairs, "pair").text,
                     found->largest);
    } else
        mg_audit_add(a, ". Of %lld pairs %lld were looked at; those of the first %d tokens show no leak",
                     (long long)a->result->pairs, (long long)a->result->looked_at, n);
    if (mg_audit_is_rounding(a, found->largest)) mg_audit_add(a, ". It is no larger than rounding");
    mg_audit_pair(a, a->leak_query, a->leak_key, found->largest);
    mg_audit_look(a, where_to_look(a));
}

/* In which sequences, and with how many of the values that a token may have. */
static void add_coverage(audit *a) {
    int tried = mg_audit_values_tried(a), others = a->model->vocab - 1;
    mg_audit_add(a, ", in %s with %d of the %d tokens", mg_count(a->sequences, "sequence").text, a->result->tokens,
                 a->model->vocab);
    mg_audit_add(a, a->sequences > 1 ? ", in one of them also with " : ", also with ");
    if (tried == others)
        mg_audit_add(a, "every other token (%d)", others);
    else
        mg_audit_add(a, "%d of the %d other tokens", tried, others);
    if (a->T > a->full)
        mg_audit_add(a, " in each of its first %d places", a->full);
    else
        mg_audit_add(a, " in each place");
}

static void acquit(audit *a) {
    const mg_audit *r = a->result;
    char of[96];
    if (r->looked_at < r->pairs)
        snprintf(of, sizeof of, "%lld pairs that were looked at, out of %lld,", (long long)r->looked_at,
                 (long long)r->pairs);
    else
        snprintf(of, sizeof of, "%s", mg_count(r->pairs, "pair").text);
    mg_audit_say(a, MG_AUDIT_PASS, "none of %s of a prediction and a later token %s", of,
                 a->noise > 0 ? "moves by more than the noise allows to see" : "moves a bit");
    add_coverage(a);
    if (a->noise > 0) {
        mg_audit_probe_finding(a)->verdict = MG_AUDIT_INCONCLUSIVE;
        mg_audit_add(a, ": a leak below %d times the noise of %.3g stays unseen", AUDIT_NOISE_MULTIPLE, a->noise);
    } else if (a->n_silent > 0 && !(a->options.skip & 1u << MG_AUDIT_CONTROL)) {
        mg_audit_probe_finding(a)->verdict = MG_AUDIT_INCONCLUSIVE;
        mg_audit_add(
            a, ". But no earlier token moves position %d either: where nothing flows, nothing can be seen to leak",
            a->silent);
    }
}

/* What forbids any answer, said in the verdict. */
static bool nothing_to_change(audit *a) {
    if (a->n_letters > 1 && a->T > 1) return false;
    mg_audit_say(a, MG_AUDIT_INCONCLUSIVE,
                 a->T == 1 ? "a sequence of one token has no later token"
                           : "a vocabulary of one token: nothing can be changed");
    return true;
}

void mg_audit_mask(audit *a) {
    if (nothing_to_change(a) || !measure(a)) return;
    if (!a->confirmed)
        mg_audit_say(
            a, MG_AUDIT_INCONCLUSIVE,
            "position %d moved with token %d once, and not again, or moves without it: with so many rows the model is "
            "not a function",
            a->leak_query, a->leak_key);
    else if (a->leak_query >= 0)
        convict(a);
    else
        acquit(a);
    if (a->leak_query < 0 && a->model->can_train) mg_audit_training(a);
}

long mg_audit_mask_calls(const audit *a) {
    return measure_calls(*a) + mg_audit_training_calls(a);
}

void mg_audit_control(audit *a) {
    if (nothing_to_change(a) || !measure(a)) return;
    if (a->n_silent == 0) {
        mg_audit_say(a, MG_AUDIT_PASS, "each of %s is moved by an earlier token",
                     mg_count(a->n_listening, "prediction").text);
        return;
    }
    mg_audit_say(a, MG_AUDIT_INCONCLUSIVE, "no earlier token moves position %d; so it is with %d of %s", a->silent,
                 a->n_silent, mg_count(a->n_listening, "prediction").text);
    mg_audit_look(a,
                  "weights that are 0 or were never loaded, an output that is constant, a mask that hides the past, "
                  "attention whose result is not used; a model that only looks at the current token is like that too");
}
