/* Token values: a leak may depend on which token comes later, so each one is replaced by other values in turn. */
#include "audit_private.h"

#include <string.h>

enum {
    FEW_VALUES = 4,          /* of each token, where all are too many */
    MOST_TOKENS = 1 << 18,   /* that trying all values of a small vocabulary may take */
    CALLS_PER_SEQUENCE = 16, /* calls that share one answer to the unchanged sequence */
    VALUES_STEP = 1 << 20,   /* of the random stream: no sequence has this number */
    N_SPECIAL = 3
};

int mg_audit_values_tried(const audit *a) {
    int others = a->model->vocab - 1, n = a->full, most = FEW_VALUES;
    if (others < 2 || n < 2 || a->one_value) return others < 1 ? 0 : 1;
    if (a->options.values > 0)
        most = a->options.values;
    else if (others < AUDIT_SMALL && MOST_TOKENS / n / (n - 1) > most)
        most = MOST_TOKENS / n / (n - 1);
    return most < others ? most : others;
}

static bool holds(int n, const int *values, int value) {
    for (int i = 0; i < n; i++)
        if (values[i] == value) return true;
    return false;
}

/* n values for token j, all of them different, and none that ids or others has there. The token before it and both ends
 * of the vocabulary, where special tokens are, come first; then what follows a random one. */
static void choose_values(const audit *a, const int *ids, const int *others, int j, int n, int *values) {
    int V = a->model->vocab, special[N_SPECIAL] = {ids[j - 1], 0, V - 1};
    mg_rng rng = {a->options.seed, MG_STREAM_LAB, VALUES_STEP};
    int64_t start = (int64_t)mg_rng_below(rng, (uint64_t)j, (uint64_t)V);
    for (int k = 0, chosen = 0; chosen < n; k++) {
        int value = k < N_SPECIAL ? special[k] : (int)((start + k) % V);
        if (value != ids[j] && value != others[j] && !holds(chosen, values, value)) values[chosen++] = value;
    }
}

typedef struct values_row {
    int key, value;
} values_row;

static bool see_rows(audit *a, const mg_audit_batch *like, const int *ids, int n_rows, const values_row *chosen,
                     audit_leak *seen) {
    int n = a->full, *rows = mg_audit_ints(a, (int64_t)n_rows * n);
    double *moved = mg_audit_doubles(a, (int64_t)n_rows * n);
    for (int r = 0; r < n_rows; r++) {
        memcpy(rows + (int64_t)r * n, ids, (size_t)n * sizeof *ids);
        rows[(int64_t)r * n + chosen[r].key] = chosen[r].value;
    }
    if (!mg_audit_moves(a, like, ids, n_rows, rows, moved)) return false;
    for (int r = 0; r < n_rows; r++)
        mg_audit_see_token(a, chosen[r].key, ids, rows + (int64_t)r * n, moved + (int64_t)r * n, true, seen);
    return true;
}

static int rows_at_once(const audit *a) {
    return CALLS_PER_SEQUENCE * a->rows;
}

bool mg_audit_see_values(audit *a, const mg_audit_batch *like, const int *ids, const int *others, audit_leak *seen) {
    int n_values = mg_audit_values_tried(a) - 1, most = rows_at_once(a), n_rows = 0;
    if (n_values < 1) return true;
    int *values = mg_audit_ints(a, n_values);
    values_row *chosen = mg_arena_alloc(a->arena, (size_t)most, sizeof *chosen, "an audit's token values");
    for (int j = 1; j < a->full; j++) {
        choose_values(a, ids, others, j, n_values, values);
        for (int k = 0; k < n_values; k++) {
            chosen[n_rows++] = (values_row){j, values[k]};
            bool last = j == a->full - 1 && k == n_values - 1;
            if (n_rows < most && !last) continue;
            mg_arena_mark mark = mg_arena_here(a->arena);
            bool done = see_rows(a, like, ids, n_rows, chosen, seen);
            mg_arena_rewind(a->arena, mark);
            if (!done) return false;
            n_rows = 0;
        }
    }
    return true;
}

long mg_audit_values_calls(const audit *a) {
    long n_rows = (long)(a->full - 1) * (mg_audit_values_tried(a) - 1), most = rows_at_once(a);
    return n_rows < 1 ? 0 : (n_rows + a->rows - 1) / a->rows + (n_rows + most - 1) / most;
}
