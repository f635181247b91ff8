/* Who moves whom: a row of a batch against the same row of a batch of the same shape. */
#include "audit_private.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* Rows that are probed at once to find a token: each round leaves a ninth. */
enum { PROBES = 8 };

static void repeat_ints(int rows, int length, const int *row, int *to) {
    for (int r = 0; r < rows; r++) memcpy(to + (int64_t)r * length, row, (size_t)length * sizeof *row);
}

/* The path of `like`, whose mask and segments are those of one row, for as many rows as a call has. */
static mg_audit_batch wide_batch(audit *a, const mg_audit_batch *like, int *ids) {
    mg_audit_batch batch = *like;
    const int **of[] = {&batch.mask, &batch.segments};
    for (int i = 0; i < 2; i++) {
        if (!*of[i]) continue;
        int *wide = mg_audit_ints(a, (int64_t)a->rows * like->length);
        repeat_ints(a->rows, like->length, *of[i], wide);
        *of[i] = wide;
    }
    batch.rows = a->rows;
    batch.ids = ids;
    return batch;
}

static bool moves(audit *a, const mg_audit_batch *like, const int *ids, int n, const int *rows, double *moved) {
    int T = like->length, B = a->rows, K = like->n_columns;
    int64_t size = (int64_t)B * T * K;
    int *asked = mg_audit_ints(a, (int64_t)B * T);
    double *plain = mg_audit_doubles(a, size), *changed = mg_audit_doubles(a, size);
    mg_audit_batch batch = wide_batch(a, like, asked);
    repeat_ints(B, T, ids, asked);
    if (!mg_audit_logits(a, &batch, plain)) return false;
    for (int first = 0; first < n; first += B) {
        int here = n - first < B ? n - first : B;
        repeat_ints(B, T, ids, asked);
        memcpy(asked, rows + (int64_t)first * T, (size_t)here * (size_t)T * sizeof *rows);
        if (!mg_audit_logits(a, &batch, changed)) return false;
        for (int64_t i = 0; i < (int64_t)here * T; i++)
            moved[(int64_t)first * T + i] = mg_audit_change(a, K, plain + i * K, changed + i * K);
    }
    return true;
}

bool mg_audit_moves(audit *a, const mg_audit_batch *like, const int *ids, int n, const int *rows, double *moved) {
    mg_arena_mark mark = mg_arena_here(a->arena);
    bool done = moves(a, like, ids, n, rows, moved);
    mg_arena_rewind(a->arena, mark);
    return done;
}

long mg_audit_moves_calls(int n, int rows) {
    return 1 + (n + rows - 1) / rows;
}

void mg_audit_splice(int length, const int *ids, const int *others, int from, int to, int *row) {
    for (int t = 0; t < length; t++) row[t] = t >= from && t < to ? others[t] : ids[t];
}

void mg_audit_control_rows(int length, const int *ids, const int *others, int *rows) {
    for (int r = 0; r < AUDIT_CONTROLS; r++)
        for (int t = 0; t < length; t++) rows[(int64_t)r * length + t] = t % AUDIT_CONTROLS == r ? ids[t] : others[t];
}

audit_leak mg_audit_no_leak(audit *a, int length) {
    return (audit_leak){.query = -1,
                        .cut = -1,
                        .ids = mg_audit_ints(a, length),
                        .row = mg_audit_ints(a, length),
                        .rounding = mg_audit_largest_rounding(a)};
}

static bool comes_first(const audit_leak *seen, int query, int cut, bool is_large) {
    if (seen->query < 0) return true;
    if (is_large != seen->is_large) return is_large;
    return query < seen->query || (query == seen->query && cut < seen->cut);
}

void mg_audit_see_cut(audit_leak *seen, int length, int cut, const int *ids, const int *row, const double *moved) {
    for (int i = 0; i < cut; i++) {
        if (moved[i] == 0) continue;
        bool is_large = moved[i] > seen->rounding;
        seen->largest = fmax(seen->largest, moved[i]);
        if (!comes_first(seen, i, cut, is_large)) continue;
        seen->query = i;
        seen->cut = cut;
        seen->is_large = is_large;
        memcpy(seen->ids, ids, (size_t)length * sizeof *ids);
        memcpy(seen->row, row, (size_t)length * sizeof *row);
    }
}

bool mg_audit_leaks_before(const audit_leak *one, const audit_leak *other) {
    return one->query >= 0 && comes_first(other, one->query, INT_MAX, one->is_large);
}

/* The smallest end such that replacing [cut, end) moves the query: the token before it does. In (low, high], where low
 * does not move it and high does. */
bool mg_audit_find_key(audit *a, const mg_audit_batch *like, const audit_leak *leak, int *key) {
    int T = like->length, low = leak->cut, high = T;
    mg_arena_mark mark = mg_arena_here(a->arena);
    int *rows = mg_audit_ints(a, (int64_t)PROBES * T), end[PROBES];
    double *moved = mg_audit_doubles(a, (int64_t)PROBES * T);
    bool done = true;
    while (done && high - low > 1) {
        for (int p = 0; p < PROBES; p++) {
            end[p] = low + (int)((int64_t)(high - low) * (p + 1) / (PROBES + 1));
            mg_audit_splice(T, leak->ids, leak->row, leak->cut, end[p], rows + (int64_t)p * T);
        }
        done = mg_audit_moves(a, like, leak->ids, PROBES, rows, moved);
        for (int p = 0; p < PROBES && done; p++) {
            if (moved[(int64_t)p * T + leak->query] > 0) {
                high = end[p];
                break;
            }
            low = end[p];
        }
    }
    mg_arena_rewind(a->arena, mark);
    *key = high - 1;
    return done;
}

long mg_audit_find_key_calls(int length, int rows) {
    long rounds = 0;
    for (int width = length; width > 1; width = (width + PROBES) / (PROBES + 1)) rounds++;
    return rounds * mg_audit_moves_calls(PROBES, rows);
}
