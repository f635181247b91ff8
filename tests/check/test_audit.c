/* The audit's probes on models made for it: each kind of fault gets the right first verdict and the right pair, and
 * what is honest is acquitted. */
#include "audit.h"

#include "check.h"

#include <stdlib.h>

/* ---- A model that does as it is told ----
 *
 * Logit k of position i is a sum over the tokens that it sees, weighted by their distance. */

typedef struct toy toy;
struct toy {
    const char *name;
    bool (*sees)(const toy *m, int i, int j);
    int V, T, most_rows;
    int from, period, width;       /* of the rule in `sees` */
    double leak;                   /* factor of what a later token adds */
    double noise, rare_noise;      /* of every logit in every call; in one call of seven */
    double wide_noise;             /* in calls of more than eight rows */
    bool dropout;                  /* as noise, in training mode only */
    bool rows_share, order_counts; /* rows see each other; a row sees its number */
    bool first_call_differs, remembers;
    bool length_counts;                   /* a prefix is not the beginning of the whole */
    bool pads_seen, pads_counted;         /* the padded path */
    bool padded_unmasked, train_unmasked; /* a mask dropped on one path */
    bool documents_seen, segments_unmasked;
    bool stale, restarts, no_cache, refuses_end, stale_after_end;
    int ahead;   /* of the targets */
    bool rolled; /* the last against the first */
    double smoothing, unit;
    double rounding; /* relative, another for every shape */
    mg_audit_dtype dtype;
    bool constant, only_itself, forbidden_token;
    bool bare;  /* offers logits only */
    int nan_at; /* the call that answers NaN, from 1 on */
    int refuse_at, break_at;
    /* What is right: */
    mg_audit_probe first;
    mg_audit_verdict verdict;
    int query, key;
    const char *says;
    /* At work: */
    long calls;
    int *fed, n_fed;
    int memory, last;
};

static bool causal(const toy *m, int i, int j) {
    (void)m;
    return j <= i;
}

static double table(int id, int k) {
    enum { MOST = 300 };
    static double values[MOST][MOST];
    if (values[id][k] == 0) values[id][k] = mg_rng_normal((mg_rng){3, MG_STREAM_TEST, (uint32_t)id}, (uint64_t)k);
    return values[id][k];
}

static bool toy_sees(const toy *m, const int *mask, const int *segments, bool unmasked, int i, int j) {
    if (m->only_itself && i != j) return false;
    if (mask && !mask[j] && !m->pads_seen) return false;
    if (segments && segments[i] != segments[j] && !m->documents_seen) return false;
    return unmasked || m->sees(m, i, j);
}

/* One row: logits (n,K). */
static void toy_row(const toy *m, int n, const int *ids, const int *mask, const int *segments, bool unmasked, int K,
                    const int *columns, double *logits) {
    int pads = 0;
    for (int i = 0; i < n; i++) {
        double *logit = logits + (int64_t)i * K;
        pads += mask && !mask[i];
        double position = 0.1 * (i - (mask && !m->pads_counted ? pads : 0)) + (m->length_counts ? 0.01 * n : 0);
        for (int k = 0; k < K; k++) logit[k] = m->constant ? k : position;
        for (int j = 0; j < n && !m->constant; j++) {
            if (!toy_sees(m, mask, segments, unmasked, i, j)) continue;
            double weight = (j > i && m->leak != 0 ? m->leak : 1) / (1 + abs(i - j));
            for (int k = 0; k < K; k++) logit[k] += weight * table(ids[j], columns ? columns[k] : k);
        }
        if (m->forbidden_token) logit[0] = -INFINITY;
    }
}

static mg_status toy_count(toy *m, mg_error *error) {
    m->calls++;
    if (m->calls == m->refuse_at) return mg_error_set(error, MG_ERR_INPUT, "not today");
    if (m->calls == m->break_at) return mg_error_set(error, MG_ERR_IO, "the pipe broke");
    return MG_OK;
}

static double toy_noise(const toy *m, const mg_audit_batch *b, int64_t i) {
    bool rare = m->rare_noise > 0 && m->calls % 7 == 0;
    double size = rare ? m->rare_noise : m->dropout && !b->train ? 0 : m->noise;
    if (b->rows > 8) size += m->wide_noise;
    if (m->first_call_differs && m->calls == 1) size = 0.1;
    return size > 0 ? size * mg_rng_normal((mg_rng){5, MG_STREAM_TEST, (uint32_t)m->calls}, (uint64_t)i) : 0;
}

static mg_status toy_logits(void *user, const mg_audit_batch *b, double *logits, mg_error *error) {
    toy *m = user;
    mg_status status = toy_count(m, error);
    if (status) return status;
    int K = b->n_columns, T = b->length;
    bool unmasked = (b->train && m->train_unmasked) || (b->mask && m->padded_unmasked) ||
                    (b->segments && m->segments_unmasked);
    for (int r = 0; r < b->rows; r++) {
        int64_t at = (int64_t)r * T;
        toy_row(m, T, b->ids + at, b->mask ? b->mask + at : NULL, b->segments ? b->segments + at : NULL, unmasked, K,
                b->columns, logits + at * K);
    }
    double shared = m->remembers ? m->memory : 0;
    for (int i = 0; m->rows_share && i < b->rows * T; i++) shared += 1e-3 * (i + 1) * b->ids[i];
    for (int64_t i = 0; i < (int64_t)b->rows * T * K; i++) {
        logits[i] += shared + toy_noise(m, b, i) + (m->order_counts ? (double)(i / (T * K)) : 0);
        logits[i] *= 1 + m->rounding * sin(b->rows + 10. * T);
    }
    m->memory += m->calls > 1 && m->last != b->ids[0];
    m->last = b->ids[0];
    if (m->calls == m->nan_at) logits[T * K / 2] = NAN;
    return MG_OK;
}

static mg_status toy_step(void *user, const int *ids, int n, bool reset, int K, const int *columns, double *logits,
                          mg_error *error) {
    toy *m = user;
    mg_status status = toy_count(m, error);
    if (status) return status;
    bool over = m->n_fed + n > m->T;
    if (reset && !m->stale && !(m->stale_after_end && m->n_fed > m->T)) m->n_fed = 0;
    if (m->n_fed + n > m->T && m->refuses_end) return mg_error_set(error, MG_ERR_INPUT, "full");
    m->fed = realloc(m->fed, (size_t)(m->n_fed + n) * sizeof *ids);
    memcpy(m->fed + m->n_fed, ids, (size_t)n * sizeof *ids);
    m->n_fed += n;
    int first = m->restarts                   ? m->n_fed - n
                : over && !reset && !m->stale ? m->n_fed - m->T
                                              : 0,
        length = m->n_fed - first;
    double *all = malloc((size_t)length * (size_t)K * sizeof *all);
    toy_row(m, length, m->fed + first, NULL, NULL, false, K, columns, all);
    for (int64_t i = 0, skipped = (int64_t)(length - n) * K; i < (int64_t)n * K; i++)
        logits[i] = all[skipped + i] * (1 + m->rounding * sin(n));
    free(all);
    return MG_OK;
}

static mg_status toy_loss(void *user, const int *ids, int n, double *loss, mg_error *error) {
    toy *m = user;
    mg_status status = toy_count(m, error);
    if (status) return status;
    double *row = malloc((size_t)n * (size_t)m->V * sizeof *row), sum = 0;
    toy_row(m, n, ids, NULL, NULL, false, m->V, NULL, row);
    int count = 0;
    for (int t = 0; t < n; t++) {
        int target = m->rolled ? (t + m->ahead) % n : t + m->ahead;
        if (target < 0 || target >= n) continue;
        double total = 0, mean = 0;
        for (int k = 0; k < m->V; k++) total += exp(row[t * m->V + k]);
        for (int k = 0; k < m->V; k++) mean += log(total) - row[t * m->V + k];
        sum += (1 - m->smoothing) * (log(total) - row[t * m->V + ids[target]]) + m->smoothing * mean / m->V;
        count++;
    }
    *loss = sum / count * (m->unit > 0 ? m->unit : 1);
    free(row);
    return MG_OK;
}

static mg_audit_model model_of(toy *m) {
    if (!m->V) m->V = 11;
    if (!m->T) m->T = 24;
    if (!m->sees) m->sees = causal;
    return (mg_audit_model){.user = m,
                            .vocab = m->V,
                            .context = m->T,
                            .most_rows = m->most_rows,
                            .dtype = m->dtype,
                            .logits = toy_logits,
                            .can_train = !m->bare,
                            .can_pad = !m->bare,
                            .can_segment = !m->bare,
                            .step = m->no_cache || m->bare ? NULL : toy_step,
                            .loss = m->bare ? NULL : toy_loss};
}

static mg_audit audit_toy(toy *m, const mg_audit_options *options) {
    mg_audit_model model = model_of(m);
    mg_audit audit;
    mg_error error;
    if (mg_audit_run(&audit, &model, options, &error)) fail_msg("%s: %s", m->name, error.message);
    assert_true(audit.calls <= audit.planned && audit.asked <= audit.planned_tokens);
    free(m->fed);
    m->fed = NULL;
    m->n_fed = 0;
    return audit;
}

/* ---- Faults ---- */

static bool all(const toy *m, int i, int j) {
    (void)m, (void)i, (void)j;
    return true;
}

static bool inverted(const toy *m, int i, int j) {
    (void)m;
    return j >= i;
}

static bool next_too(const toy *m, int i, int j) {
    return j <= i + (m->width ? m->width : 1);
}

static bool late(const toy *m, int i, int j) {
    return j <= i || i >= m->from;
}

static bool periodic(const toy *m, int i, int j) {
    return j <= i || (j == i + 1 && (i + 1) % m->period == 0);
}

static bool blocks(const toy *m, int i, int j) {
    return j <= i || i / m->period == j / m->period;
}

static bool last_key(const toy *m, int i, int j) {
    return j <= i || j == m->T - 1;
}

static bool one_pair(const toy *m, int i, int j) {
    return j <= i || (i == m->from && j == m->from + m->width);
}

static bool window(const toy *m, int i, int j) {
    return j <= i && j > i - m->width;
}

/* clang-format off */
static const toy faults[] = {
    {.name = "noise", .noise = 0.01, .first = MG_AUDIT_REPEAT, .says = "differ each time: 100%"},
    {.name = "noise of many rows", .wide_noise = 1e-9, .first = MG_AUDIT_MASK, .verdict = MG_AUDIT_INCONCLUSIVE,
     .says = "not a function"},
    {.name = "tiny noise", .noise = 1e-12, .first = MG_AUDIT_REPEAT},
    {.name = "noise over a leak", .noise = 1e-9, .sees = all, .first = MG_AUDIT_REPEAT},
    {.name = "first call", .first_call_differs = true, .first = MG_AUDIT_REPEAT, .says = "only the first call"},
    {.name = "memory", .remembers = true, .first = MG_AUDIT_REPEAT, .says = "until another call"},
    {.name = "shared rows", .rows_share = true, .first = MG_AUDIT_BATCH, .says = "position 0 of row 0 changes"},
    {.name = "row order", .order_counts = true, .first = MG_AUDIT_BATCH, .says = "in another place"},
    {.name = "no mask", .sees = all, .first = MG_AUDIT_MASK, .query = 0, .key = 1,
     .says = "every prediction sees every later token"},
    {.name = "no mask, T 2", .sees = all, .T = 2, .first = MG_AUDIT_MASK, .query = 0, .key = 1},
    {.name = "no mask, one row", .sees = all, .most_rows = 1, .first = MG_AUDIT_MASK, .query = 0, .key = 1},
    {.name = "no mask, far", .sees = all, .T = 150, .first = MG_AUDIT_MASK, .query = 0, .key = 1},
    {.name = "inverted", .sees = inverted, .first = MG_AUDIT_MASK, .query = 0, .key = 1},
    {.name = "diagonal 1", .sees = next_too, .first = MG_AUDIT_MASK, .query = 0, .key = 1,
     .says = "every prediction sees 1 token ahead"},
    {.name = "3 ahead", .sees = next_too, .width = 3, .first = MG_AUDIT_MASK, .query = 0, .key = 1,
     .says = "up to 3 tokens"},
    {.name = "late", .sees = late, .from = 20, .first = MG_AUDIT_MASK, .query = 20, .key = 21,
     .says = "from position 20 on"},
    {.name = "last but one", .sees = late, .from = 22, .first = MG_AUDIT_MASK, .query = 22, .key = 23},
    {.name = "late and far", .sees = late, .T = 200, .from = 100, .first = MG_AUDIT_MASK, .query = 100, .key = 101},
    {.name = "every 8th", .sees = periodic, .period = 8, .first = MG_AUDIT_MASK, .query = 7, .key = 8,
     .says = "every 8th prediction, from position 7 on"},
    {.name = "every 2nd", .sees = periodic, .period = 2, .first = MG_AUDIT_MASK, .query = 1, .key = 2,
     .says = "every 2nd prediction"},
    {.name = "every 3rd", .sees = periodic, .period = 3, .first = MG_AUDIT_MASK, .query = 2, .key = 3,
     .says = "every 3rd prediction"},
    {.name = "every 11th", .sees = periodic, .period = 11, .T = 40, .first = MG_AUDIT_MASK, .query = 10, .key = 11,
     .says = "every 11th prediction"},
    {.name = "border of 64", .sees = periodic, .period = 64, .T = 130, .first = MG_AUDIT_MASK, .query = 63, .key = 64},
    {.name = "blocks of 8", .sees = blocks, .period = 8, .first = MG_AUDIT_MASK, .query = 0, .key = 1,
     .says = "block of 8"},
    {.name = "last key", .sees = last_key, .first = MG_AUDIT_MASK, .query = 0, .key = 23,
     .says = "token 23 is seen by 23 earlier predictions"},
    {.name = "one pair", .sees = one_pair, .from = 3, .width = 9, .first = MG_AUDIT_MASK, .query = 3, .key = 12,
     .says = "only the prediction at position 3"},
    {.name = "one pair, 64", .sees = one_pair, .from = 62, .width = 1, .T = 64, .first = MG_AUDIT_MASK, .query = 62,
     .key = 63},
    {.name = "tiny leak", .sees = all, .leak = 1e-8, .first = MG_AUDIT_MASK, .query = 0, .key = 1,
     .says = "no larger than rounding"},
    {.name = "tiny leak in float64", .sees = all, .leak = 1e-8, .dtype = MG_AUDIT_F64, .first = MG_AUDIT_MASK,
     .query = 0, .key = 1, .says = "every later token"},
    {.name = "training only", .train_unmasked = true, .first = MG_AUDIT_MASK, .query = 0, .key = 1,
     .says = "in training mode"},
    {.name = "constant", .constant = true, .first = MG_AUDIT_MASK, .verdict = MG_AUDIT_INCONCLUSIVE,
     .says = "nothing flows"},
    {.name = "only itself", .only_itself = true, .first = MG_AUDIT_MASK, .verdict = MG_AUDIT_INCONCLUSIVE},
    {.name = "vocabulary 1", .V = 1, .first = MG_AUDIT_MASK, .verdict = MG_AUDIT_INCONCLUSIVE, .says = "one token"},
    {.name = "one token", .T = 1, .first = MG_AUDIT_MASK, .verdict = MG_AUDIT_INCONCLUSIVE, .says = "one token"},
    {.name = "length", .length_counts = true, .first = MG_AUDIT_PREFIX, .query = 0, .key = 1},
    {.name = "length, logits only", .length_counts = true, .bare = true, .first = MG_AUDIT_PREFIX, .query = 0, .key = 1},
    {.name = "pads seen", .pads_seen = true, .first = MG_AUDIT_PADDING, .says = "other ids in the 6 pads on the left"},
    {.name = "pads counted", .pads_counted = true, .first = MG_AUDIT_PADDING, .says = "real position 0 differs"},
    {.name = "padded path", .padded_unmasked = true, .first = MG_AUDIT_PADDING, .says = "differs"},
    {.name = "stale", .stale = true, .first = MG_AUDIT_CACHE, .says = "after a reset"},
    {.name = "restarts", .restarts = true, .first = MG_AUDIT_CACHE, .query = 1, .key = -1, .says = "one by one"},
    {.name = "stale after the end", .stale_after_end = true, .first = MG_AUDIT_CACHE, .says = "after the end"},
    {.name = "not shifted", .ahead = -1, .first = MG_AUDIT_SHIFT, .query = 0, .key = 0, .says = "are not shifted"},
    {.name = "shifted twice", .ahead = 2, .first = MG_AUDIT_SHIFT, .query = 0, .key = 2, .says = "shifted twice"},
    {.name = "backwards", .ahead = -2, .first = MG_AUDIT_SHIFT, .query = 1, .key = 0, .says = "the wrong way"},
    {.name = "rolled", .rolled = true, .first = MG_AUDIT_SHIFT, .says = "rolled"},
    {.name = "far targets", .ahead = 5, .first = MG_AUDIT_SHIFT, .verdict = MG_AUDIT_INCONCLUSIVE},
    {.name = "smoothed", .smoothing = 0.1, .first = MG_AUDIT_SHIFT, .verdict = MG_AUDIT_INCONCLUSIVE,
     .says = "no token from -2 to 3"},
    {.name = "documents", .documents_seen = true, .first = MG_AUDIT_SEGMENTS, .query = 8, .key = 0},
    {.name = "packed path", .segments_unmasked = true, .first = MG_AUDIT_SEGMENTS, .query = 0, .key = 1},
};

static const toy honest[] = {
    {.name = "plain"},
    {.name = "window", .sees = window, .width = 3},
    {.name = "window of 2", .sees = window, .width = 2},
    {.name = "vocabulary 2", .V = 2},
    {.name = "large vocabulary", .V = 300},
    {.name = "T 2", .T = 2, .V = 30, .no_cache = false},
    {.name = "T 3", .T = 3},
    {.name = "T 65", .T = 65},
    {.name = "T 200", .T = 200},
    {.name = "far window", .T = 200, .sees = window, .width = 2},
    {.name = "one row", .most_rows = 1},
    {.name = "three rows", .most_rows = 3},
    {.name = "no cache", .no_cache = true},
    {.name = "refuses the end", .refuses_end = true},
    {.name = "float32", .rounding = 1e-6},
    {.name = "bf16", .dtype = MG_AUDIT_BF16, .rounding = 4e-3},
    {.name = "float64", .dtype = MG_AUDIT_F64, .rounding = 1e-14},
    {.name = "bits", .unit = 1.4426950408889634},
    {.name = "dropout", .noise = 0.1, .dropout = true},
    {.name = "a forbidden token", .forbidden_token = true, .bare = true},
};
/* clang-format on */

/* In the tables `ahead` is one more than 0, and the pair one more than none, only where they say so. */
static toy prepared(const toy *row) {
    toy m = *row;
    m.ahead = row->ahead == 0 ? 1 : row->ahead == -1 ? 0 : row->ahead == -2 ? -1 : row->ahead;
    if (m.verdict == MG_AUDIT_NOT_OFFERED) m.verdict = MG_AUDIT_FAIL;
    return m;
}

static void check_fault(const toy *row) {
    toy m = prepared(row);
    mg_audit audit = audit_toy(&m, NULL);
    mg_audit_probe first = mg_audit_first(&audit);
    const mg_audit_finding *f = &audit.finding[row->first];
    if (first != row->first || f->verdict != m.verdict)
        fail_msg("%s: first %s, expected %s; %s: %s", row->name,
                 first < MG_AUDIT_N_PROBES ? mg_audit_probe_name(first) : "none", mg_audit_probe_name(row->first),
                 mg_audit_verdict_name(f->verdict), f->evidence);
    if (row->key && (f->query != row->query || f->key != row->key))
        fail_msg("%s: (%d, %d), expected (%d, %d): %s", row->name, f->query, f->key, row->query, row->key, f->evidence);
    if (row->says && !strstr(f->evidence, row->says))
        fail_msg("%s: '%s' is not in: %s", row->name, row->says, f->evidence);
    if (f->verdict == MG_AUDIT_FAIL) assert_true(f->look[0] != 0);
    mg_audit_free(&audit);
}

static void every_fault_gets_its_verdict(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) check_fault(&faults[i]);
}

static void the_honest_are_acquitted(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof honest / sizeof *honest; i++) {
        toy m = prepared(&honest[i]);
        mg_audit audit = audit_toy(&m, NULL);
        mg_audit_probe first = mg_audit_first(&audit);
        if (first < MG_AUDIT_N_PROBES)
            fail_msg("%s: %s: %s", m.name, mg_audit_probe_name(first), audit.finding[first].evidence);
        assert_int_equal(mg_audit_overall(&audit), MG_AUDIT_PASS);
        assert_true(audit.calls > 0);
        assert_int_equal(audit.finding[MG_AUDIT_CACHE].verdict,
                         m.no_cache || m.bare ? MG_AUDIT_NOT_OFFERED : MG_AUDIT_PASS);
        assert_int_equal(audit.finding[MG_AUDIT_BATCH].verdict,
                         m.most_rows == 1 ? MG_AUDIT_NOT_OFFERED : MG_AUDIT_PASS);
        mg_audit_free(&audit);
    }
}

/* ---- The map and what is looked at ---- */

static void the_map_is_who_moves_whom(void **state) {
    (void)state;
    for (int width = 1; width <= 3; width++) {
        toy m = {.name = "band", .sees = next_too, .width = width, .ahead = 1};
        mg_audit audit = audit_toy(&m, NULL);
        for (int i = 0; i < 24; i++)
            for (int j = 0; j < 24; j++) assert_int_equal(audit.map[i * 24 + j] > 0, j <= i + width);
        assert_int_equal(audit.influence.reach, width);
        mg_audit_free(&audit);
    }
}

/* Any pair of any length up to `full`, with one row per call and with many. */
static void any_pair_is_found(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++)
        for (int ahead = 1; i + ahead < 9; ahead++)
            for (int rows = 0; rows < 2; rows++) {
                toy m = {.name = "pair",
                         .sees = one_pair,
                         .from = i,
                         .width = ahead,
                         .T = 9,
                         .most_rows = rows,
                         .V = 3,
                         .ahead = 1};
                mg_audit audit = audit_toy(&m, &(mg_audit_options){.seed = (uint64_t)(i * 9 + ahead)});
                assert_int_equal(audit.finding[MG_AUDIT_MASK].query, i);
                assert_int_equal(audit.finding[MG_AUDIT_MASK].key, i + ahead);
                mg_audit_free(&audit);
            }
}

/* Position 3 moves only when tokens 7 and 8 both change: no single token shows it, a cut does. The first call has the
 * sequences as they are, which their first tokens tell apart. */
enum { JOINT_T = 24, JOINT_ROWS = 4 };
static int joint_base[JOINT_ROWS][JOINT_T];

static bool both_changed(const int *ids) {
    for (int r = 0; r < JOINT_ROWS; r++) {
        const int *base = joint_base[r];
        if (memcmp(ids, base, 4 * sizeof *ids) == 0 && ids[7] != base[7] && ids[8] != base[8]) return true;
    }
    return false;
}

static mg_status joint_logits(void *user, const mg_audit_batch *b, double *logits, mg_error *error) {
    mg_status status = toy_logits(user, b, logits, error);
    if (((toy *)user)->calls == 1) memcpy(joint_base, b->ids, sizeof joint_base);
    for (int r = 0; b->length == JOINT_T && r < b->rows; r++)
        logits[(r * JOINT_T + 3) * b->n_columns] += both_changed(b->ids + r * JOINT_T);
    return status;
}

static void tokens_that_only_move_together_are_found(void **state) {
    (void)state;
    toy m = {.name = "joint", .V = 50, .ahead = 1};
    mg_audit_model model = model_of(&m);
    model.logits = joint_logits;
    mg_audit audit;
    assert_int_equal(mg_audit_run(&audit, &model, NULL, NULL), MG_OK);
    assert_int_equal(audit.finding[MG_AUDIT_MASK].query, 3);
    assert_int_equal(audit.finding[MG_AUDIT_MASK].key, 8);
    mg_audit_free(&audit);
    free(m.fed);
}

static void pairs_are_counted(void **state) {
    (void)state;
    toy m = {.name = "count", .T = 200, .ahead = 1};
    mg_audit audit = audit_toy(&m, NULL);
    assert_int_equal(audit.pairs, 200 * 199 / 2);
    assert_true(audit.looked_at < audit.pairs && audit.looked_at > audit.pairs * 9 / 10);
    assert_says(audit.finding[MG_AUDIT_MASK].evidence, "pairs that were looked at, out of 19900");
    mg_audit_free(&audit);
    m = (toy){.name = "count", .T = 200, .ahead = 1};
    audit = audit_toy(&m, &(mg_audit_options){.full = 200});
    assert_int_equal(audit.looked_at, audit.pairs);
    assert_int_equal(audit.full, 200);
    mg_audit_free(&audit);
    m = (toy){.name = "count", .T = 200, .ahead = 1};
    audit = audit_toy(&m, &(mg_audit_options){.length = 30});
    assert_int_equal(audit.pairs, 30 * 29 / 2);
    mg_audit_free(&audit);
}

/* A leak that only one token opens: the one that sees, or the one that is seen. */
static struct opener {
    int token;
    bool is_next;
} opener;

static bool opened(const toy *m, int i, int j) {
    (void)m;
    return j <= i;
}

static mg_status opened_logits(void *user, const mg_audit_batch *b, double *logits, mg_error *error) {
    mg_status status = toy_logits(user, b, logits, error);
    for (int r = 0; r < b->rows; r++)
        for (int i = 0; i + 1 < b->length; i++) {
            const int *ids = b->ids + r * b->length;
            if (ids[i + opener.is_next] != opener.token) continue;
            for (int k = 0; k < b->n_columns; k++) logits[(r * b->length + i) * b->n_columns + k] += 1 + ids[i + 1];
        }
    return status;
}

static mg_audit audit_opened(int V, struct opener by, const mg_audit_options *options) {
    toy m = {.name = "opened", .V = V, .sees = opened, .ahead = 1, .T = 12};
    mg_audit_model model = model_of(&m);
    opener = by;
    model.logits = opened_logits;
    mg_audit audit;
    assert_int_equal(mg_audit_run(&audit, &model, options, NULL), MG_OK);
    free(m.fed);
    return audit;
}

static void any_token_of_a_small_vocabulary_is_tried(void **state) {
    (void)state;
    for (int token = 0; token < 20; token++)
        for (int is_next = 0; is_next < 2; is_next++) {
            mg_audit audit = audit_opened(20, (struct opener){token, is_next}, NULL);
            const mg_audit_finding *mask = &audit.finding[MG_AUDIT_MASK];
            if (mask->verdict != MG_AUDIT_FAIL) fail_msg("token %d, next %d: %s", token, is_next, mask->evidence);
            assert_int_equal(mask->key, mask->query + 1);
            if (is_next) assert_int_equal(mask->query, 0);
            assert_int_equal(audit.tokens, 20);
            assert_int_equal(audit.values_tried, 19);
            mg_audit_free(&audit);
        }
}

/* What is not tried is said in numbers; its ends are. */
static void of_a_large_vocabulary_the_share_is_said(void **state) {
    (void)state;
    for (int token = 0; token < 3; token++) {
        mg_audit audit = audit_opened(300, (struct opener){token * 299 / 2, true}, NULL);
        assert_int_equal(audit.finding[MG_AUDIT_MASK].verdict, token == 1 ? MG_AUDIT_PASS : MG_AUDIT_FAIL);
        if (token == 1) assert_says(audit.finding[MG_AUDIT_MASK].evidence, "with 4 of the 299 other tokens");
        mg_audit_free(&audit);
    }
    mg_audit audit = audit_opened(300, (struct opener){149, true}, &(mg_audit_options){.values = 299});
    assert_int_equal(audit.finding[MG_AUDIT_MASK].verdict, MG_AUDIT_FAIL);
    assert_int_equal(audit.finding[MG_AUDIT_MASK].query, 0);
    mg_audit_free(&audit);
}

static void the_users_sequence_is_tested(void **state) {
    (void)state;
    int ids[] = {1, 2, 298, 4, 5};
    for (int given = 0; given < 2; given++) {
        mg_audit_options options = {.ids = ids, .n_ids = given ? 5 : 0, .seed = 4};
        mg_audit audit = audit_opened(300, (struct opener){298, false}, &options);
        assert_int_equal(audit.finding[MG_AUDIT_MASK].verdict, given ? MG_AUDIT_FAIL : MG_AUDIT_PASS);
        if (given) assert_int_equal(audit.finding[MG_AUDIT_MASK].query, 2);
        if (given) assert_int_equal(audit.finding[MG_AUDIT_MASK].key, 3);
        assert_int_equal(audit.sequences, given ? 3 : 2);
        mg_audit_free(&audit);
    }
}

/* A loss that is the same whatever the target tells nothing of the targets. */
static mg_status logits_of_zero(void *user, const mg_audit_batch *b, double *logits, mg_error *error) {
    (void)error;
    const toy *m = user;
    for (int64_t i = 0; i < (int64_t)b->rows * b->length * b->n_columns; i++) logits[i] = m->unit;
    return MG_OK;
}

static mg_status loss_of_any(void *user, const int *ids, int n, double *loss, mg_error *error) {
    (void)ids;
    (void)n;
    (void)error;
    const toy *m = user;
    *loss = log(m->V) + m->smoothing;
    return MG_OK;
}

static void equal_offsets_decide_nothing(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        toy m = {.V = i & 1 ? 1 : 7, .unit = i & 2 ? 3 : 0, .smoothing = i & 4 ? 0.5 : 0, .T = 9, .bare = true};
        mg_audit_model model = model_of(&m);
        model.logits = logits_of_zero;
        model.loss = loss_of_any;
        mg_audit audit;
        assert_int_equal(mg_audit_run(&audit, &model, NULL, NULL), MG_OK);
        assert_int_equal(audit.finding[MG_AUDIT_SHIFT].verdict, MG_AUDIT_INCONCLUSIVE);
        assert_says(audit.finding[MG_AUDIT_SHIFT].evidence, "all offsets give the same");
        assert_int_equal(audit.finding[MG_AUDIT_MASK].verdict, MG_AUDIT_INCONCLUSIVE);
        mg_audit_free(&audit);
    }
}

/* ---- What goes wrong on the way ---- */

static mg_status no_logits(void *user, const mg_audit_batch *b, double *logits, mg_error *error) {
    (void)user;
    (void)b;
    (void)logits;
    return mg_error_set(error, MG_ERR_INPUT, "never");
}

static void a_model_that_refuses_all_is_not_audited(void **state) {
    (void)state;
    toy m = {.bare = true};
    mg_audit_model model = model_of(&m);
    model.logits = no_logits;
    mg_audit audit;
    mg_error error;
    assert_int_equal(mg_audit_run(&audit, &model, NULL, &error), MG_ERR_STATE);
    assert_says(error.message, "the model answered none of 4 calls; it refused: never");
    assert_true(!audit.complete && audit.refusals == audit.calls);
    assert_int_equal(mg_audit_overall(&audit), MG_AUDIT_INCONCLUSIVE);
    mg_audit_free(&audit);
}

static void nan_never_passes(void **state) {
    (void)state;
    toy plain = {.name = "plain", .T = 8, .ahead = 1};
    mg_audit audit = audit_toy(&plain, NULL);
    long calls = audit.calls;
    mg_audit_free(&audit);
    for (int at = 1; at <= calls; at++) {
        toy m = {.name = "nan", .T = 8, .ahead = 1, .nan_at = at};
        audit = audit_toy(&m, NULL);
        /* Only logits answer NaN here: the cache and the loss have their own calls. */
        mg_audit_probe first = mg_audit_first(&audit);
        if (first < MG_AUDIT_N_PROBES) {
            assert_int_equal(audit.finding[first].verdict, MG_AUDIT_FAIL);
            assert_says(audit.finding[first].evidence, "NaN (");
        }
        mg_audit_free(&audit);
    }
}

static void a_refusal_leaves_a_probe_inconclusive(void **state) {
    (void)state;
    for (int at = 1; at < 60; at++) {
        toy m = {.name = "refusal", .T = 8, .ahead = 1, .refuse_at = at, .refuses_end = true};
        mg_audit audit = audit_toy(&m, NULL);
        mg_audit_probe first = mg_audit_first(&audit);
        if (first < MG_AUDIT_N_PROBES) {
            assert_int_equal(audit.finding[first].verdict, MG_AUDIT_INCONCLUSIVE);
            assert_says(audit.finding[first].evidence, "not today");
        }
        assert_int_equal(mg_audit_overall(&audit), first < MG_AUDIT_N_PROBES ? MG_AUDIT_INCONCLUSIVE : MG_AUDIT_PASS);
        mg_audit_free(&audit);
    }
}

static void a_broken_model_ends_the_audit(void **state) {
    (void)state;
    for (int at = 1; at < 40; at++) {
        toy m = {.name = "broken", .T = 8, .ahead = 1, .break_at = at};
        mg_audit_model model = model_of(&m);
        mg_audit audit;
        mg_error error;
        assert_int_equal(mg_audit_run(&audit, &model, NULL, &error), MG_ERR_IO);
        assert_string_equal(error.message, "the pipe broke");
        assert_int_equal(audit.calls, at);
        assert_int_equal(audit.finding[MG_AUDIT_SEGMENTS].verdict, MG_AUDIT_INCONCLUSIVE);
        mg_audit_free(&audit);
        free(m.fed);
    }
}

static bool stop_at_five(void *user, mg_audit_probe probe, long calls, long planned) {
    (void)probe;
    assert_true(calls < planned);
    ++*(int *)user;
    return calls < 5;
}

static void it_stops_when_told_to(void **state) {
    (void)state;
    toy m = {.name = "stopped", .ahead = 1};
    mg_audit_model model = model_of(&m);
    mg_audit audit;
    int asked = 0;
    mg_audit_options options = {.progress = stop_at_five, .user = &asked};
    assert_int_equal(mg_audit_run(&audit, &model, &options, NULL), MG_ERR_STATE);
    assert_int_equal(audit.calls, 5);
    assert_int_equal(asked, 6);
    assert_int_equal(mg_audit_overall(&audit), MG_AUDIT_INCONCLUSIVE);
    mg_audit_free(&audit);
}

/* Without its probe every fault gets another first verdict: there is no probe that another one makes idle. */
static void each_probe_is_needed(void **state) {
    (void)state;
    bool needed[MG_AUDIT_N_PROBES] = {false};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        toy m = prepared(&faults[i]);
        mg_audit audit = audit_toy(&m, &(mg_audit_options){.skip = 1u << m.first});
        assert_int_equal(audit.finding[m.first].verdict, MG_AUDIT_NOT_OFFERED);
        needed[m.first] |= mg_audit_first(&audit) == MG_AUDIT_N_PROBES;
        mg_audit_free(&audit);
    }
    toy m = {.name = "constant", .constant = true, .ahead = 1};
    mg_audit audit = audit_toy(&m, &(mg_audit_options){.skip = 1u << MG_AUDIT_CONTROL});
    needed[MG_AUDIT_CONTROL] = audit.finding[MG_AUDIT_MASK].verdict == MG_AUDIT_PASS;
    mg_audit_free(&audit);
    for (mg_audit_probe p = 0; p < MG_AUDIT_N_PROBES; p++)
        if (!needed[p] && p != MG_AUDIT_REPEAT) fail_msg("nothing needs the probe %s", mg_audit_probe_name(p));
}

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    static const int ids[] = {1, 2, 3, 11};
    static const struct {
        int V, T;
        mg_audit_options options;
        const char *says;
    } rows[] = {
        {-1, 8, {0}, "the vocabulary has -1"},
        {11, -3, {0}, "the context is -3"},
        {11, 8, {.length = 9}, "sequences of 9 tokens"},
        {11, 8, {.full = -1}, "up to -1 tokens"},
        {11, 8, {.cuts = -1}, "-1 cuts"},
        {11, 8, {.ids = ids, .n_ids = 1}, "a sequence of 1 ids"},
        {11, 3, {.ids = ids, .n_ids = 4}, "a sequence of 4 ids"},
        {11, 8, {.ids = ids, .n_ids = 4}, "id 11 at position 3"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        toy m = {.name = "misfit", .V = rows[i].V, .T = rows[i].T, .ahead = 1};
        mg_audit_model model = model_of(&m);
        mg_audit audit;
        mg_error error;
        assert_int_equal(mg_audit_run(&audit, &model, &rows[i].options, &error), MG_ERR_INPUT);
        assert_says(error.message, rows[i].says);
        mg_audit_free(&audit);
    }
}

/* ---- Our own model ---- */

static mg_gpt *new_gpt(int lookahead, double dropout) {
    mg_gpt_config c = {0};
    c.n_embd = 16;
    c.block_size = 12;
    c.vocab_size = 20;
    c.init_std = 0.3;
    c.mask = mg_lookahead(lookahead);
    c.dropout = dropout;
    mg_gpt *gpt;
    assert_int_equal(mg_gpt_new_zeros(&gpt, &c, false, NULL), MG_OK);
    mg_gpt_randomize(gpt, 3);
    return gpt;
}

static void our_model_is_audited_by_the_same_probes(void **state) {
    (void)state;
    for (int lookahead = 0; lookahead < 3; lookahead++)
        for (int dropout = 0; dropout < 2; dropout++) {
            mg_gpt *gpt = new_gpt(lookahead, 0.2 * dropout);
            mg_audit_model model;
            mg_audit_gpt *subject;
            mg_audit audit;
            assert_int_equal(mg_audit_gpt_new(&subject, &model, gpt, NULL), MG_OK);
            assert_int_equal(mg_audit_run(&audit, &model, NULL, NULL), MG_OK);
            mg_audit_verdict verdict = mg_audit_overall(&audit);
            if (verdict != (lookahead ? MG_AUDIT_FAIL : MG_AUDIT_PASS))
                fail_msg("lookahead %d: %s", lookahead, audit.finding[mg_audit_first(&audit)].evidence);
            /* Two layers: twice the lookahead. */
            assert_int_equal(audit.influence.reach, 2 * lookahead);
            if (lookahead) assert_int_equal(mg_audit_first(&audit), MG_AUDIT_MASK);
            if (!lookahead && dropout) assert_says(audit.finding[MG_AUDIT_MASK].evidence, "training mode");
            mg_audit_free(&audit);
            mg_audit_gpt_free(subject);
            mg_gpt_free(gpt);
        }
}

static void without_memory_nothing_is_left(void **state) {
    (void)state;
    mg_audit_gpt_free(NULL);
    toy m = {.name = "plain", .ahead = 1};
    mg_audit_model model = model_of(&m);
    mg_audit audit;
    mg_audit_free(&(mg_audit){0});
    assert_int_equal(mg_audit_run(&audit, &model, NULL, NULL), MG_OK);
    mg_audit_free(&audit);
    assert_null(audit.map);
    free(m.fed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fault_gets_its_verdict),
        cmocka_unit_test(the_honest_are_acquitted),
        cmocka_unit_test(the_map_is_who_moves_whom),
        cmocka_unit_test(any_pair_is_found),
        cmocka_unit_test(tokens_that_only_move_together_are_found),
        cmocka_unit_test(pairs_are_counted),
        cmocka_unit_test(any_token_of_a_small_vocabulary_is_tried),
        cmocka_unit_test(of_a_large_vocabulary_the_share_is_said),
        cmocka_unit_test(the_users_sequence_is_tested),
        cmocka_unit_test(equal_offsets_decide_nothing),
        cmocka_unit_test(a_model_that_refuses_all_is_not_audited),
        cmocka_unit_test(nan_never_passes),
        cmocka_unit_test(a_refusal_leaves_a_probe_inconclusive),
        cmocka_unit_test(a_broken_model_ends_the_audit),
        cmocka_unit_test(it_stops_when_told_to),
        cmocka_unit_test(each_probe_is_needed),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(our_model_is_audited_by_the_same_probes),
        cmocka_unit_test(without_memory_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
