#include "alarm.h"

#include <math.h>
#include <stdio.h>

/* What rounding may add to the evidence of a window. An honest model of a text without surprises is right at the bound,
 * and this keeps rounding errors from adding up to evidence. */
static const double ROUNDING = 1e-5;

/* Sums over windows. */
typedef struct loss_sums {
    int64_t windows;
    double first, last, mean;
    double later, later_squared; /* of last - first at each window */
} loss_sums;

enum { RECENT = 100 }; /* steps by which the cause is judged */

struct mg_alarm {
    const mg_corpus *corpus;
    mg_split split;
    ptrdiff_t T;
    mg_pairs *pairs;
    double entropy, entropy_after_next; /* H(x1|x0), H(x2|x0) */
    double evidence;
    loss_sums since; /* evidence was last 0 */
    int64_t raised_at, n_steps;
    loss_sums recent[RECENT]; /* step i's at i % RECENT */
};

/* ---- Making one ---- */

static mg_status entropy_at(const mg_corpus *corpus, mg_split split, ptrdiff_t T, ptrdiff_t distance, double *entropy,
                            mg_error *error) {
    mg_pairs *pairs;
    mg_status status = mg_pairs_new(&pairs, corpus, split, T, distance, error);
    if (status != MG_OK) return status;
    *entropy = mg_pairs_entropy(pairs);
    mg_pairs_free(pairs);
    return MG_OK;
}

mg_status mg_alarm_new(mg_alarm **alarm, const mg_corpus *corpus, mg_split split, ptrdiff_t T, mg_error *error) {
    *alarm = NULL;
    mg_alarm *made = mg_alloc_zero(1, sizeof *made, "the alarm", error);
    if (!made) return MG_ERR_MEMORY;
    made->corpus = corpus;
    made->split = split;
    made->T = T;
    made->raised_at = -1;
    made->entropy_after_next = INFINITY; /* two tokens have no third */
    mg_status status = mg_pairs_new(&made->pairs, corpus, split, T, 1, error);
    if (status == MG_OK && mg_corpus_tokens(corpus, split) > 2)
        status = entropy_at(corpus, split, T, 2, &made->entropy_after_next, error);
    if (status != MG_OK) {
        mg_alarm_free(made);
        return status;
    }
    made->entropy = mg_pairs_entropy(made->pairs);
    *alarm = made;
    return MG_OK;
}

void mg_alarm_free(mg_alarm *alarm) {
    if (!alarm) return;
    mg_pairs_free(alarm->pairs);
    mg_free(alarm);
}

/* ---- Watching ---- */

/* The second token is the window's own where it has two: a target is not believed to be the next token. */
double mg_alarm_gain(const mg_pairs *pairs, ptrdiff_t T, const int *ids, const int *targets, double loss) {
    return mg_pairs_surprisal(pairs, ids[0], T > 1 ? ids[1] : targets[0]) - loss - ROUNDING;
}

static loss_sums sums_of(const mg_real *row_loss, ptrdiff_t B, ptrdiff_t T) {
    loss_sums sums = {.windows = B};
    for (ptrdiff_t b = 0; b < B; b++, row_loss += T) {
        double mean = 0, first = (double)row_loss[0], last = (double)row_loss[T - 1];
        for (ptrdiff_t t = 0; t < T; t++) mean += (double)row_loss[t];
        sums.first += first;
        sums.last += last;
        sums.mean += mean / (double)T;
        sums.later += last - first;
        sums.later_squared += (last - first) * (last - first);
    }
    return sums;
}

static void add(loss_sums *to, const loss_sums *from) {
    to->windows += from->windows;
    to->first += from->first;
    to->last += from->last;
    to->mean += from->mean;
    to->later += from->later;
    to->later_squared += from->later_squared;
}

bool mg_alarm_observe(mg_alarm *alarm, int64_t step, ptrdiff_t B, const int *ids, const int *targets,
                      const mg_real *row_loss) {
    ptrdiff_t T = alarm->T;
    loss_sums *now = &alarm->recent[alarm->n_steps++ % RECENT];
    *now = sums_of(row_loss, B, T);
    for (ptrdiff_t i = 0; i < B * T; i += T)
        alarm->evidence += mg_alarm_gain(alarm->pairs, T, ids + i, targets + i, (double)row_loss[i]);
    if (alarm->evidence > 0) {
        add(&alarm->since, now);
    } else {
        alarm->evidence = 0;
        alarm->since = (loss_sums){0};
    }
    if (alarm->raised_at >= 0 || alarm->evidence < MG_ALARM_EVIDENCE) return false;
    alarm->raised_at = step;
    return true;
}

/* ---- Reading ---- */

/* The last position has no label to its right. With such a leak it stays where an honest model has it; otherwise
 * it falls with the first, and the two are compared window by window. */
static mg_alarm_cause cause_of(const mg_alarm *alarm) {
    loss_sums recent = {0};
    int64_t steps = alarm->n_steps < RECENT ? alarm->n_steps : RECENT;
    for (int64_t i = 0; i < steps; i++) add(&recent, &alarm->recent[i]);
    const loss_sums *latest = alarm->since.windows > 0 ? &alarm->since : &recent;
    double n = (double)recent.windows, later = recent.later / n, first = latest->first / (double)latest->windows;
    double error = sqrt(fmax(0, recent.later_squared / n - later * later) / n);
    bool last_is_high = latest->later > 0 && later > 2 * error && later > 0.1 * (alarm->entropy - recent.first / n);
    if (last_is_high) return MG_CAUSE_RIGHT;
    return first > 0.9 * alarm->entropy_after_next ? MG_CAUSE_SHIFTED_TWICE : MG_CAUSE_UNSHIFTED;
}

mg_alarm_reading mg_alarm_read(const mg_alarm *alarm) {
    const loss_sums *since = &alarm->since;
    double n = (double)since->windows;
    return (mg_alarm_reading){
        .raised_at = alarm->raised_at,
        .evidence = alarm->evidence,
        .windows = since->windows,
        .first = since->first / n,
        .bound = (since->first + alarm->evidence) / n,
        .last = since->last / n,
        .mean = since->mean / n,
        .entropy = alarm->entropy,
        .cause = cause_of(alarm),
    };
}

/* ---- In words ---- */

const char *mg_alarm_cause_name(mg_alarm_cause cause) {
    static const char *const names[] = {
        [MG_CAUSE_RIGHT] = "mask", [MG_CAUSE_UNSHIFTED] = "shift", [MG_CAUSE_SHIFTED_TWICE] = "shift twice"};
    return names[cause];
}

static const char *cause_in_words(const mg_alarm_reading *reading, const mg_gpt_config *config) {
    if (!mg_gpt_is_causal(config)) return "its mask is not causal";
    switch (reading->cause) {
    case MG_CAUSE_RIGHT:
        return "the last position, with no label to its right, does worse than the first: look for a way to the next "
               "token (the mask, a head, a later position's state)";
    case MG_CAUSE_SHIFTED_TWICE:
        return "the last position does as well: perhaps the targets are shifted twice, or not at all";
    case MG_CAUSE_UNSHIFTED: break;
    }
    return "the last position does as well: the targets seem not to be shifted, so that each position's label is its "
           "own input";
}

const char *mg_alarm_say(const mg_alarm_reading *reading, const mg_gpt_config *config, char *text, size_t size) {
    mg_snprintf(
        text, size,
        "the model reads its labels: position 0 sees one token, so over %s its loss is %.3f at best, and it is %.3f "
        "(at the last position %.3f); %s",
        mg_count(reading->windows, "window").text, reading->bound, reading->first, reading->last,
        cause_in_words(reading, config));
    return text;
}
