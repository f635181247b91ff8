/* The alarm: does a model read its labels while it trains?
 *
 * Position 0 of a window sees one token, x0. Let p(x1|x0) say how often x1 follows x0 where windows may begin, counted
 * over the split that is trained on. Whatever an honest model has learned or memorised, its prediction q at position 0
 * depends on x0 only, and the window was drawn after the last update; so E[q(x1|x0) / p(x1|x0)] <= 1, and
 *
 *     evidence = sum over windows of  -ln p(x1|x0) - (the loss at position 0)     in nats
 *
 * is the logarithm of a nonnegative supermartingale. From any step on, an honest model's evidence ever reaches h with
 * probability exp(-h) at most (Ville 1939). We watch the largest sum over all beginnings (Page 1954) and raise the
 * alarm at 30 nats: among honest runs of a million steps, fewer than one in ten million is accused. No variance is
 * estimated, so this holds on every corpus, also where the next token is nearly certain and where a model repeats its
 * text by heart. A resumed run makes a new alarm, whose evidence is never more than the old one's would be: it has
 * fewer beginnings.
 *
 *     mg_alarm_new(&alarm, corpus, MG_TRAIN, T, &error);
 *     each step: mg_gpt_loss(gpt, tape, ids, targets, B, T, &pass, row_loss);
 *                if (mg_alarm_observe(alarm, step, B, ids, targets, row_loss)) ... mg_alarm_read, mg_alarm_say ...
 */
#ifndef MASKGRAD_ALARM_H
#define MASKGRAD_ALARM_H

#include "gpt.h"
#include "pairs.h"

#define MG_ALARM_EVIDENCE 30.0 /* nats; exp(-30) is 1e-13 */

typedef enum mg_alarm_cause {
    MG_CAUSE_RIGHT,        /* the last position, which has no label to its right, loses more than the first */
    MG_CAUSE_UNSHIFTED,    /* the last is as low as the first: the target of a position is its own input */
    MG_CAUSE_SHIFTED_TWICE /* so it is, but the first is no lower than the token after the next allows */
} mg_alarm_cause;

/* What the alarm knows. Losses are means in nats per token over the windows counted as evidence: those since the sum
 * was last 0. NaN where there is none. */
typedef struct mg_alarm_reading {
    int64_t raised_at;    /* the step; -1: not raised */
    double evidence;      /* nats */
    int64_t windows;      /* counted in it */
    double first;         /* the loss at position 0 */
    double bound;         /* the lowest loss that one token allows on the same windows: first + evidence / windows */
    double last, mean;    /* the loss at the last position, and at all positions */
    double entropy;       /* H(x1|x0) of the split: the average of the bound */
    mg_alarm_cause cause; /* the likely one, from the last hundred steps; more certain some steps after the alarm */
} mg_alarm_reading;

typedef struct mg_alarm mg_alarm;

/* Counts the pairs of the split, in one pass. Borrows the corpus. T: the length of the windows to come. */
mg_status mg_alarm_new(mg_alarm **alarm, const mg_corpus *corpus, mg_split split, ptrdiff_t T, mg_error *error);
void mg_alarm_free(mg_alarm *alarm);
/* The windows of a step, (B,T), drawn from the split, and the loss at each position before the update. True at the one
 * step that raises the alarm. */
bool mg_alarm_observe(mg_alarm *alarm, int64_t step, ptrdiff_t B, const int *ids, const int *targets,
                      const mg_real *row_loss);
mg_alarm_reading mg_alarm_read(const mg_alarm *alarm);

/* By how many nats the loss at position 0 is below what one token allows. The evidence is the sum of these. */
double mg_alarm_gain(const mg_pairs *pairs, ptrdiff_t T, const int *ids, const int *targets, double loss);
/* A sentence that accuses, with its numbers and the likely cause: the mask where `config` has an open one. */
const char *mg_alarm_say(const mg_alarm_reading *reading, const mg_gpt_config *config, char *text, size_t size);
/* "mask", "shift" or "shift twice": the cause in a table. */
const char *mg_alarm_cause_name(mg_alarm_cause cause);

#endif
