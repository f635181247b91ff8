/* Which token is position t scored against? The model's own loss, against the cross-entropies of its logits and the
 * tokens −2 … 3 ahead. */
#include "arithmetic.h"
#include "audit_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    LEAST = -2,
    MOST = 3,
    AHEADS = MOST - LEAST + 1,
    ROLLED = AHEADS,
    RULES,
    SEQUENCES = 3,
    MOST_TOKENS = 64,
    MOST_LOGITS = 1 << 26
};

/* The logits may be those of the sequence, or of all but its last token, which has no target: the same for a causal
 * model, and not for one that leaks. By the rule ROLLED the target is one token ahead, and the last position's the
 * first.
 */
enum { WHOLE, ALL_BUT_LAST, INPUTS };

typedef struct scores {
    double loss[SEQUENCES], by[INPUTS][SEQUENCES][RULES];
    double limit[SEQUENCES];
} scores;

static double log_sum_exp(int n, const double *x) {
    double most = -INFINITY, sum = 0;
    for (int k = 0; k < n; k++) most = fmax(most, x[k]);
    for (int k = 0; k < n; k++) sum += mg_exp_double(x[k] - most);
    return most + mg_log_double(sum);
}

/* The mean over those of n positions whose target is among the T ids; rolled: over all, the last against the first. */
static double cross_entropy(int V, int n, int T, const double *logits, const int *ids, int ahead, bool rolled) {
    double sum = 0;
    int count = 0;
    for (int t = 0; t < n; t++) {
        int target = rolled ? (t + ahead) % T : t + ahead;
        if (target < 0 || target >= T) continue;
        const double *row = logits + (int64_t)t * V;
        sum += log_sum_exp(V, row) - row[ids[target]];
        count++;
    }
    return count > 0 ? sum / count : NAN;
}

static bool score_input(audit *a, int input, int T, const int *ids, double *logits, double *by) {
    int V = a->model->vocab, n = input == WHOLE ? T : T - 1;
    mg_audit_batch batch = mg_audit_probe_batch(a, 1, n, ids);
    batch.n_columns = V;
    batch.columns = NULL;
    if (!mg_audit_logits(a, &batch, logits)) return false;
    for (int k = 0; k < AHEADS; k++) by[k] = cross_entropy(V, n, T, logits, ids, LEAST + k, false);
    by[ROLLED] = input == WHOLE ? cross_entropy(V, n, T, logits, ids, 1, true) : (double)NAN;
    return true;
}

static bool score(audit *a, int T, scores *s) {
    double *logits = mg_audit_doubles(a, (int64_t)T * a->model->vocab);
    for (int n = 0; n < SEQUENCES; n++) {
        int *ids = mg_audit_sequence(a, n, T);
        for (int input = 0; input < INPUTS; input++)
            if (!score_input(a, input, T, ids, logits, s->by[input][n])) return false;
        if (!mg_audit_loss(a, ids, T, &s->loss[n])) return false;
        s->limit[n] = fmax(mg_audit_limit(a, 1, &s->loss[n]), mg_audit_rounding(a));
    }
    return true;
}

/* The most that the loss differs from this rule's in any sequence, as a part of what is allowed. −inf among the logits
 * makes an infinite cross-entropy, which no loss equals. */
static double deviation_of(const scores *s, int input, int rule, double factor) {
    double most = 0;
    for (int n = 0; n < SEQUENCES; n++) {
        double part = fabs(s->loss[n] - factor * s->by[input][n][rule]) / s->limit[n];
        most = isfinite(part) ? fmax(most, part) : (double)INFINITY;
    }
    return most;
}

static double deviation(const scores *s, int rule) {
    return fmin(deviation_of(s, WHOLE, rule, 1), deviation_of(s, ALL_BUT_LAST, rule, 1));
}

/* The same number times this rule's in every sequence, though those differ: a loss in bits, or a sum; or 0. */
static double multiple_of(const scores *s, int rule) {
    for (int input = 0; input < INPUTS; input++) {
        const double(*by)[RULES] = s->by[input];
        double ratio = s->loss[0] / by[0][rule], spread = 0;
        for (int n = 0; n < SEQUENCES; n++) spread = fmax(spread, fabs(by[n][rule] - by[0][rule]) / s->limit[n]);
        if (ratio > 0 && spread > 10 / fmin(1, ratio) && deviation_of(s, input, rule, ratio) <= 1) return ratio;
    }
    return 0;
}

static void list_rules(audit *a, const scores *s) {
    mg_audit_add(a, ". Its loss is %.4f; the cross-entropies of the tokens %d to %d ahead are", s->loss[0], LEAST,
                 MOST);
    for (int k = 0; k < AHEADS; k++) mg_audit_add(a, "%s %.4f", k ? "," : "", s->by[WHOLE][0][k]);
}

/* By how many tokens the newest one that a prediction sees comes before it: 0, or 1 of a model that shifts its input
 * itself. The map has the answer; without one, 0. */
static int shift_of_input(const audit *a) {
    int64_t n = a->full;
    for (int64_t d = 0; a->measured && d < n && d < MOST; d++)
        for (int64_t i = d; i < n; i++)
            if (a->result->map[i * n + i - d] > a->ignored) return (int)d;
    return 0;
}

static void judge_rule(audit *a, const scores *s, int T, int rule) {
    int ahead = rule == ROLLED ? 1 : LEAST + rule, shifted = shift_of_input(a), beyond = ahead - (1 - shifted);
    char sees[96] = "";
    if (shifted > 0)
        snprintf(sees, sizeof sees, " (predictions see the token %d before their own, and none after it)", shifted);
    if (beyond == 0 && rule != ROLLED) {
        mg_audit_say(a, MG_AUDIT_PASS, "the loss %.4f is the cross-entropy of the token %d ahead%s", s->loss[0], ahead,
                     sees);
        return;
    }
    const char *what = rule == ROLLED ? "the targets were rolled: the last position is scored against the first token"
                       : beyond == -1 ? "the targets are not shifted"
                       : beyond == 1  ? "the targets are shifted twice"
                       : beyond < 0   ? "the targets are shifted the wrong way"
                                      : "the targets are shifted three times";
    mg_audit_say(a, MG_AUDIT_FAIL, "the loss %.4f is the cross-entropy of the token %d ahead%s: %s", s->loss[0], ahead,
                 sees, what);
    list_rules(a, s);
    if (rule == ROLLED)
        mg_audit_pair(a, T - 1, 0, 0);
    else
        mg_audit_pair(a, ahead < 0 ? -ahead : 0, ahead < 0 ? 0 : ahead, 0);
    mg_audit_look(
        a, "where labels are made of ids: exactly one place may shift, either the data or the loss, and what was "
           "shifted out at the end is dropped or ignored");
}

/* The rule that fits best, and whether it is the only one: the others do not fit, or do so far worse. */
static int find_rule(const scores *s, bool *fits, bool *alone) {
    int rule = 0;
    double best = INFINITY, second = INFINITY;
    for (int k = 0; k < RULES; k++) {
        double part = deviation(s, k);
        if (part < best) {
            second = best;
            best = part;
            rule = k;
        } else
            second = fmin(second, part);
    }
    *fits = best <= 1;
    *alone = second > 1 || (second > 3 * best && second > 0.02);
    return rule;
}

static void judge_multiple(audit *a, const scores *s, int T) {
    int rule = -1, count = 0;
    for (int k = 0; k < RULES; k++)
        if (multiple_of(s, k) > 0) {
            rule = k;
            count++;
        }
    if (count == 1) {
        judge_rule(a, s, T, rule);
        mg_audit_add(a, ", times %.5g: a loss in bits, a sum, or a weight", multiple_of(s, rule));
        return;
    }
    mg_audit_say(a, MG_AUDIT_INCONCLUSIVE, "the loss is that of no token from %d to %d ahead", LEAST, MOST);
    list_rules(a, s);
    mg_audit_look(a, "label smoothing, auxiliary terms, ignored positions or another reduction: offer the plain mean "
                     "cross-entropy in nats to have its targets checked");
}

/* Whether every offset has the same cross-entropy in each sequence, as far as that can be told: then no loss says which
 * one it is. */
static bool all_are_alike(const scores *s) {
    for (int n = 0; n < SEQUENCES; n++) {
        double least = INFINITY, most = -INFINITY;
        for (int k = 0; k < AHEADS; k++) {
            double by = s->by[WHOLE][n][k];
            if (!isnan(by)) least = fmin(least, by);
            if (!isnan(by)) most = fmax(most, by);
        }
        if (!(most - least <= 2 * s->limit[n])) return false;
    }
    return true;
}

void mg_audit_shift(audit *a) {
    int T = a->T < MOST_TOKENS ? a->T : MOST_TOKENS;
    while (T > 2 && (int64_t)T * a->model->vocab > MOST_LOGITS) T /= 2;
    if (T < 2) {
        mg_audit_say(a, MG_AUDIT_INCONCLUSIVE, "a sequence of one token has no target");
        return;
    }
    scores s;
    if (!score(a, T, &s)) return;
    bool fits, alone;
    int rule = find_rule(&s, &fits, &alone);
    if (all_are_alike(&s)) {
        mg_audit_say(a, MG_AUDIT_INCONCLUSIVE, "all offsets give the same, so that no loss tells them apart");
        list_rules(a, &s);
        mg_audit_look(a, "weights that are 0, or a vocabulary of which only one token can be");
    } else if (fits && alone)
        judge_rule(a, &s, T, rule);
    else if (!fits)
        judge_multiple(a, &s, T);
    else {
        mg_audit_say(a, MG_AUDIT_INCONCLUSIVE,
                     "several rules give this loss: the predictions are too much alike to tell");
        list_rules(a, &s);
        mg_audit_look(a, "weights that are 0, or a context of too few tokens");
    }
}

long mg_audit_shift_calls(const audit *a) {
    (void)a;
    return (1 + INPUTS) * SEQUENCES;
}
