/* Asking the model, and comparing what it answers. A NaN never gets past here. */
#include "audit_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Calls ---- */

static bool may_call(audit *a, int64_t tokens) {
    mg_audit *r = a->result;
    MG_CHECK(r->calls < r->planned, "audit: call %ld of at most %ld", r->calls + 1, r->planned);
    const mg_audit_options *o = &a->options;
    if (o->progress && !o->progress(o->user, a->at, r->calls, r->planned)) {
        mg_audit_say(a, MG_AUDIT_INCONCLUSIVE, "the audit was stopped here");
        a->broken = mg_error_set(a->error, MG_ERR_STATE, "the audit was stopped after %ld calls", r->calls);
        return false;
    }
    r->calls++;
    r->asked += tokens;
    return true;
}

static bool answered(audit *a, mg_status status) {
    if (!status) return true;
    if (status == MG_ERR_INPUT) {
        a->result->refusals++;
        mg_audit_say(a, MG_AUDIT_INCONCLUSIVE, "the model refused: %s", a->error->message);
    } else {
        mg_audit_say(a, MG_AUDIT_INCONCLUSIVE, "%s", a->error->message);
        a->broken = status;
    }
    return false;
}

/* A logit of −inf is a token that cannot be; NaN and +inf are not logits. Predictions at pads do not count. */
static bool are_numbers(audit *a, int rows, int length, int width, const int *mask, const double *x) {
    for (int64_t i = 0; i < (int64_t)rows * length * width; i++) {
        if (!isnan(x[i]) && x[i] != (double)INFINITY) continue;
        int64_t position = i / width;
        if (mask && !mask[position]) continue;
        char row[32] = "";
        if (rows > 1) snprintf(row, sizeof row, "row %lld, ", (long long)(position / length));
        mg_audit_say(a, MG_AUDIT_FAIL, "a logit is %s (%sposition %lld of %d)", isnan(x[i]) ? "NaN" : "infinite", row,
                     (long long)(position % length), length);
        mg_audit_look(a, "a softmax over a row that is masked out entirely, a division by 0, an overflow");
        return false;
    }
    return true;
}

bool mg_audit_logits(audit *a, const mg_audit_batch *batch, double *logits) {
    return may_call(a, (int64_t)batch->rows * batch->length) &&
           answered(a, a->model->logits(a->model->user, batch, logits, a->error)) &&
           are_numbers(a, batch->rows, batch->length, batch->n_columns, batch->mask, logits);
}

bool mg_audit_step(audit *a, const int *ids, int n, bool reset, double *logits) {
    const mg_audit_model *m = a->model;
    return may_call(a, n) && answered(a, m->step(m->user, ids, n, reset, a->n_columns, a->columns, logits, a->error)) &&
           are_numbers(a, 1, n, a->n_columns, NULL, logits);
}

bool mg_audit_step_or_refusal(audit *a, const int *ids, int n, double *logits, bool *refused) {
    if (!may_call(a, n)) return false;
    const mg_audit_model *m = a->model;
    mg_status status = m->step(m->user, ids, n, false, a->n_columns, a->columns, logits, a->error);
    *refused = status == MG_ERR_INPUT;
    return *refused || (answered(a, status) && are_numbers(a, 1, n, a->n_columns, NULL, logits));
}

bool mg_audit_loss(audit *a, const int *ids, int length, double *loss) {
    if (!may_call(a, length) || !answered(a, a->model->loss(a->model->user, ids, length, loss, a->error))) return false;
    if (isfinite(*loss)) return true;
    bool is_nan = isnan(*loss);
    mg_audit_say(a, is_nan ? MG_AUDIT_FAIL : MG_AUDIT_INCONCLUSIVE, "the loss is %s",
                 is_nan ? "NaN" : "infinite: some target has probability 0");
    mg_audit_look(a, "a logit of -inf, the log of 0, a mean over no target");
    return false;
}

mg_audit_batch mg_audit_probe_batch(const audit *a, int rows, int length, const int *ids) {
    return (mg_audit_batch){.rows = rows,
                            .length = length,
                            .ids = ids,
                            .n_columns = a->n_columns,
                            .columns = a->columns,
                            .seed = a->options.seed};
}

/* ---- Sequences ---- */

/* Steps of the random stream. */
enum { OTHERS = 1, DEALS = 1 << 24 };

int *mg_audit_ints(audit *a, int64_t n) {
    return mg_arena_alloc(a->arena, (size_t)n, sizeof(int), "an audit's token ids");
}

double *mg_audit_doubles(audit *a, int64_t n) {
    return mg_arena_alloc(a->arena, (size_t)n, sizeof(double), "an audit's logits");
}

/* The letters in a random order (Fisher and Yates). */
static void shuffle(const audit *a, uint32_t deal, int *letters) {
    mg_rng rng = {a->options.seed, MG_STREAM_LAB, DEALS + deal};
    memcpy(letters, a->letters, (size_t)a->n_letters * sizeof *letters);
    for (int i = a->n_letters - 1; i > 0; i--) {
        int j = (int)mg_rng_below(rng, (uint64_t)i, (uint64_t)i + 1), kept = letters[i];
        letters[i] = letters[j];
        letters[j] = kept;
    }
}

/* Sequences are dealt like cards, all letters before any comes again: a leak may depend on the token that sees. */
int *mg_audit_sequence(audit *a, int which, int length) {
    int *ids = mg_audit_ints(a, length), L = a->n_letters;
    mg_arena_mark mark = mg_arena_here(a->arena);
    int *letters = mg_audit_ints(a, L);
    for (int64_t t = 0, first = (int64_t)(which == AUDIT_USERS ? 1 << 10 : which) * a->T; t < length; t++) {
        if (t == 0 || (first + t) % L == 0) shuffle(a, (uint32_t)((first + t) / L), letters);
        ids[t] = letters[(first + t) % L];
    }
    mg_arena_rewind(a->arena, mark);
    if (which == AUDIT_USERS)
        memcpy(ids, a->options.ids, (size_t)(a->options.n_ids < length ? a->options.n_ids : length) * sizeof *ids);
    return ids;
}

int *mg_audit_others(audit *a, const int *ids, int length) {
    int *others = mg_audit_ints(a, length);
    mg_rng rng = {a->options.seed, MG_STREAM_LAB, OTHERS};
    for (int t = 0; t < length; t++) {
        int at = 0;
        while (at < a->n_letters - 1 && a->letters[at] != ids[t]) at++;
        /* A letter that is not the user's own id is another one wherever it is. */
        uint64_t step = 1 + mg_rng_below(rng, (uint64_t)t, a->n_letters > 1 ? (uint64_t)a->n_letters - 1 : 1);
        others[t] = a->letters[((uint64_t)at + step) % (uint64_t)a->n_letters];
        if (others[t] == ids[t]) others[t] = a->letters[(at + 1) % a->n_letters];
    }
    return others;
}

/* ---- Comparing ---- */

double mg_audit_difference(int64_t n, const double *x, const double *y) {
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        if (x[i] != y[i]) largest = fmax(largest, fabs(x[i] - y[i]));
    return largest;
}

double mg_audit_change(const audit *a, int64_t n, const double *x, const double *y) {
    double difference = mg_audit_difference(n, x, y);
    return difference > fmax(AUDIT_NOISE_MULTIPLE * a->noise, a->ignored) ? difference : 0;
}

double mg_audit_scale(int64_t n, const double *logits) {
    double scale = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(logits[i])) scale = fmax(scale, fabs(logits[i]));
    return scale;
}

double mg_audit_rounding(const audit *a) {
    static const double epsilon[] = {0x1p-24, 0x1p-53, 0x1p-11, 0x1p-8};
    return epsilon[a->model->dtype] * a->scale;
}

/* So many roundings: honest models of four layers with an FFT, a scan or a softmax over time that mixes positions reach
 * 30 in float32 and float64. What computes in 16 bits mostly adds in 32, and few would hide a leak of some percent. */
double mg_audit_largest_rounding(const audit *a) {
    static const double most[] = {256, 256, 8, 4};
    return most[a->model->dtype] * mg_audit_rounding(a);
}

bool mg_audit_is_rounding(const audit *a, double change) {
    return change <= mg_audit_largest_rounding(a);
}

double mg_audit_limit(const audit *a, int64_t n, const double *logits) {
    double tolerance = mg_audit_tolerance(a->model->dtype, mg_audit_scale(n, logits));
    return fmax(tolerance, AUDIT_NOISE_MULTIPLE * a->noise);
}

int mg_audit_first_apart(const audit *a, int length, const double *x, const double *y, double limit, double *largest) {
    int first = -1, K = a->n_columns;
    for (int t = 0; t < length; t++) {
        double difference = mg_audit_difference(K, x + (int64_t)t * K, y + (int64_t)t * K);
        if (difference > limit && first < 0) first = t;
        *largest = fmax(*largest, difference);
    }
    return first;
}
