/* The probe all this is for: does a later token move an earlier prediction? And its control: does an earlier one? */
#include "audit_private.h"

#include <math.h>
#include <stdio.h>
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

/* ---- With what is beyond it ---- */

bool mg_audit_confirm(audit *a, const mg_audit_batch *like, const audit_leak *leak, int key, bool *confirmed) {
    int n = like->length, *rows = mg_audit_ints(a, 2 * (int64_t)n);
    double *moved = mg_audit_doubles(a, 2 * (int64_t)n);
    mg_audit_splice(n, leak->ids, leak->row, leak->cut, key + 1, rows);
    mg_audit_splice(n, leak->ids, leak->row, 0, 0, rows + n);
    if (!mg_audit_moves(a, like, leak->ids, 2, rows, moved)) return false;
    *confirmed = key > leak->query && moved[leak->query] > 0 && moved[n + leak->query] == 0;
    return true;
}

/* Whether there is a prediction that later tokens move, but by rounding only. */
static bool rounds(const audit *a) {
    int64_t n = a->full;
    for (int64_t i = 0; i < n; i++) {
        double largest = 0;
        for (int64_t j = i + 1; j < n; j++) largest = fmax(largest, a->result->map[i * n + j]);
        if (largest > 0 && largest <= a->ignored) return true;
    }
    return false;
}

/* Where rounding moves predictions, it says nothing of a leak that moves some of them more. */
static void forget_rounding(audit *a) {
    int64_t n = a->full;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++)
            if (a->result->map[i * n + j] <= a->ignored) a->result->map[i * n + j] = 0;
}

/* The earliest prediction that moves, and the token that moves it: of single tokens, or of several together. */
static bool find_first_pair(audit *a, const mg_audit_batch *like, const leaks *seen) {
    int n = a->full;
    mg_influence *found = &a->result->influence;
    bool together = mg_audit_leaks_before(&seen->cut, &seen->token);
    const audit_leak *first = together ? &seen->cut : &seen->token;
    if (first->is_large && rounds(a)) forget_rounding(a);
    *found = mg_influence_read(n, a->result->map);
    a->confirmed = true;
    if (first->query < 0) return true;
    a->leak_query = first->query;
    a->leak_key = first->cut;
    a->leak_is_large = first->is_large;
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

static void see_silence(audit *a, int position, bool moved) {
    a->n_listening++;
    if (moved) return;
    if (a->n_silent++ == 0) a->silent = position;
}

static void take_far(audit *a, const audit_far *far) {
    mg_influence *found = &a->result->influence;
    if (far->silent > 0 && a->n_silent == 0) a->silent = far->first_silent;
    a->n_silent += far->silent;
    a->n_listening += far->listening;
    a->result->looked_at = far->looked_at;
    found->largest = fmax(found->largest, far->largest);
    if (far->query < 0 || a->leak_is_large) return;
    a->leak_is_far = true;
    a->leak_query = far->query;
    a->leak_key = far->key;
    a->confirmed = far->confirmed;
    *found = far->influence;
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
    bool is_large = seen.token.is_large || seen.cut.is_large, moves = seen.token.query >= 0 || seen.cut.query >= 0;
    a->ignored = is_large ? mg_audit_largest_rounding(a) : 0;
    if (!find_first_pair(a, &like, &seen)) return false;
    a->ignored = moves ? mg_audit_largest_rounding(a) : 0;
    if (T == n) return true;
    audit_far far;
    int *ids = mg_audit_sequence(a, a->options.n_ids > 0 ? AUDIT_USERS : 0, a->T);
    like = mg_audit_probe_batch(a, 1, a->T, NULL);
    if (!mg_audit_far(a, &like, ids, !a->leak_is_large, &far)) return false;
    take_far(a, &far);
    return true;
}

/* For the mask and its control together. What could not be measured for the one is not tried again for the other. */
static bool measure(audit *a) {
    if (!a->tried) {
        a->tried = true;
        a->measured = measure_once(a);
        a->ignored = 0;
        return a->measured;
    }
    if (!a->measured) mg_audit_say(a, MG_AUDIT_INCONCLUSIVE, "it could not be measured: see the mask");
    return a->measured;
}

static long measure_calls(const audit *a) {
    int n = a->full;
    long calls = a->sequences * mg_audit_moves_calls(full_rows(n), a->rows) + mg_audit_values_calls(a);
    if (a->leaks) calls += mg_audit_find_key_calls(n, a->rows) + mg_audit_moves_calls(2, a->rows);
    return a->T == n ? calls : calls + mg_audit_far_calls(a, a->rows, a->leaks);
}

/* ---- Verdicts ---- */

static const char *where_to_look(const mg_influence *found) {
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
    int n = a->full, tried = mg_audit_values_tried(a);
    int64_t pair = (int64_t)a->leak_query * n + a->leak_key;
    mg_audit_say(a, MG_AUDIT_FAIL, "position %d moves with token %d, which comes later", a->leak_query, a->leak_key);
    if (a->leak_is_far) {
        mg_audit_add(a,
                     ": %s (the largest change %.3g). Of %lld pairs %lld were looked at; those of the first %d "
                     "tokens show no leak",
                     found->pattern, found->largest, (long long)a->result->pairs, (long long)a->result->looked_at, n);
    } else {
        mg_audit_add(a, ", by %.3g", a->result->map[pair]);
        if (a->moved_by[pair] > 0 && a->moved_by[pair] < tried)
            mg_audit_add(a, " (by %d of %d other tokens there)", a->moved_by[pair], tried);
        mg_audit_add(a, ": %s (%s, the largest change %.3g)", found->pattern,
                     mg_count_in_english(found->pairs, "pair").text, found->largest);
    }
    mg_audit_pair(a, a->leak_query, a->leak_key, found->largest);
    mg_audit_look(a, where_to_look(found));
    mg_audit_doubt_rounding(a, found->largest);
}

/* In which sequences, and with how many of the values that a token may have. */
static void add_coverage(audit *a) {
    int tried = mg_audit_values_tried(a), others = a->model->vocab - 1;
    mg_audit_add(a, ", in %s with %d of the %d tokens", mg_count_in_english(a->sequences, "sequence").text,
                 a->result->tokens, a->model->vocab);
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
        snprintf(of, sizeof of, "%s", mg_count_in_english(r->pairs, "pair").text);
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
    return measure_calls(a) + mg_audit_training_calls(a);
}

void mg_audit_control(audit *a) {
    if (nothing_to_change(a) || !measure(a)) return;
    if (a->n_silent == 0) {
        mg_audit_say(a, MG_AUDIT_PASS, "each of %s is moved by an earlier token",
                     mg_count_in_english(a->n_listening, "prediction").text);
        return;
    }
    mg_audit_say(a, MG_AUDIT_INCONCLUSIVE, "no earlier token moves position %d; so it is with %d of %s", a->silent,
                 a->n_silent, mg_count_in_english(a->n_listening, "prediction").text);
    mg_audit_look(a,
                  "weights that are 0 or were never loaded, an output that is constant, a mask that hides the past, "
                  "attention whose result is not used; a model that only looks at the current token is like that too");
}
