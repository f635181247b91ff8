/* A model whose faults a test can choose, to test the audit.
 *
 * Logit k of position i is a sum over the tokens that it sees, weighted by their distance. */
#ifndef MASKGRAD_TESTS_TOY_H
#define MASKGRAD_TESTS_TOY_H

#include "audit.h"

#include "check.h"

#include <limits.h>
#include <stdlib.h>

typedef struct toy toy;
struct toy {
    const char *name;
    bool (*sees)(const toy *m, int i, int j);
    int V, T, most_rows;
    int from, period, width;       /* of the rule in `sees` */
    double leak;                   /* factor of what a later token adds */
    double noise, rare_noise;      /* of every logit in every call; in one call of seven */
    double wide_noise;             /* in calls of more than eight rows */
    bool dropout, seeded;          /* both noises in training mode only; the same in each call */
    bool rows_share, order_counts; /* rows see each other; a row sees its number */
    double shared;                 /* how much; 0: 1e-3 */
    bool first_call_differs, remembers;
    bool length_counts;                   /* a prefix is not the beginning of the whole */
    bool pads_seen, pads_counted;         /* the padded path */
    bool padded_unmasked, train_unmasked; /* a mask dropped on one path, */
    int train_from;                       /* from this position on */
    /* In training mode: zeros; less half the mean over the rows, at each position; less the mean over rows and
     * positions. */
    bool train_zero, train_rows_share, train_centers;
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
    const char *says, *look;
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

static bool toy_sees(const toy *m, const int *mask, const int *segments, int open_from, int i, int j) {
    if (m->only_itself && i != j) return false;
    if (mask && !mask[j] && !m->pads_seen) return false;
    if (segments && segments[i] != segments[j] && !m->documents_seen) return false;
    return i >= open_from || m->sees(m, i, j);
}

/* One row: logits (n,K). */
static void toy_row(const toy *m, int n, const int *ids, const int *mask, const int *segments, int open_from, int K,
                    const int *columns, double *logits) {
    int pads = 0;
    for (int i = 0; i < n; i++) {
        double *logit = logits + (int64_t)i * K;
        pads += mask && !mask[i];
        double position = 0.1 * (i - (mask && !m->pads_counted ? pads : 0)) + (m->length_counts ? 0.01 * n : 0);
        for (int k = 0; k < K; k++) logit[k] = m->constant ? k : position;
        for (int j = 0; j < n && !m->constant; j++) {
            if (!toy_sees(m, mask, segments, open_from, i, j)) continue;
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
    double size = m->dropout && !b->train ? 0 : rare ? m->rare_noise : m->noise;
    if (b->rows > 8) size += m->wide_noise;
    if (m->first_call_differs && m->calls == 1) size = 0.1;
    return size > 0 ? size * mg_rng_normal((mg_rng){5, MG_STREAM_TEST, m->seeded ? 0 : (uint32_t)m->calls}, (uint64_t)i)
                    : 0;
}

/* What normalization by batch statistics does to logits (B,T,K). */
static void toy_normalize(const toy *m, int B, int T, int K, double *logits) {
    for (int i = 0; i < T * K; i++) {
        double sum = 0;
        for (int r = 0; r < B; r++) sum += logits[r * T * K + i];
        for (int r = 0; m->train_rows_share && r < B; r++) logits[r * T * K + i] -= sum / B / 2;
    }
    for (int k = 0; m->train_centers && k < K; k++) {
        double sum = 0;
        for (int i = 0; i < B * T; i++) sum += logits[i * K + k];
        for (int i = 0; i < B * T; i++) logits[i * K + k] -= sum / (B * T);
    }
    for (int i = 0; m->train_zero && i < B * T * K; i++) logits[i] = 0;
}

static mg_status toy_logits(void *user, const mg_audit_batch *b, double *logits, mg_error *error) {
    toy *m = user;
    mg_status status = toy_count(m, error);
    if (status) return status;
    int K = b->n_columns, T = b->length;
    bool unmasked = (b->train && m->train_unmasked) || (b->mask && m->padded_unmasked) ||
                    (b->segments && m->segments_unmasked);
    int open_from = unmasked ? m->train_from : INT_MAX;
    for (int r = 0; r < b->rows; r++) {
        int64_t at = (int64_t)r * T;
        toy_row(m, T, b->ids + at, b->mask ? b->mask + at : NULL, b->segments ? b->segments + at : NULL, open_from, K,
                b->columns, logits + at * K);
    }
    if (b->train) toy_normalize(m, b->rows, T, K, logits);
    double shared = m->remembers ? m->memory : 0;
    for (int i = 0; m->rows_share && i < b->rows * T; i++)
        shared += (m->shared > 0 ? m->shared : 1e-3) * (i + 1) * b->ids[i];
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
    toy_row(m, length, m->fed + first, NULL, NULL, INT_MAX, K, columns, all);
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
    toy_row(m, n, ids, NULL, NULL, INT_MAX, m->V, NULL, row);
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

/* ---- Who sees whom ---- */

static bool next_too(const toy *m, int i, int j) {
    return j <= i + (m->width ? m->width : 1);
}

static bool one_pair(const toy *m, int i, int j) {
    return j <= i || (i == m->from && j == m->from + m->width);
}

#endif
