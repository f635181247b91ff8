/* What the losses of lab leak must be: of a grammar, whose floor is known, and of a text, whose is not. */
#include "alarm.h"
#include "lab_private.h"
#include "leak.h"

#include <math.h>

#define CLOSE 0.05   /* nats: as good as a table */
#define LITTLE 0.1   /* nats that context is worth in a text with hardly any memory */
#define REACHED 0.03 /* nats: down at the floor */

/* No model can be below the floor, whatever its seed: what is measured there is the luck of the validation windows
 * only. So the mean gap is compared with the standard error that the windows leave in it, and not with the seeds'
 * scatter. */
static void check_not_below_floor(mg_lab *lab, const char *name, const leak_seeds *seeds, const double *gap,
                                  const double *error) {
    double variance = 0;
    for (int s = 0; s < seeds->n; s++) variance += error[s] * error[s];
    lab_check_at_least(lab, lab_name_over_seeds(lab, name, seeds->n, "mean"), leak_mean_of(seeds, gap),
                       -3 * sqrt(variance) / seeds->n, "nats");
}

static void check_grammar_losses(mg_lab *lab, const leak_truth *truth, const leak_seeds *seeds) {
    int n = seeds->n;
    double cheat = truth->last / (double)truth->T;
    lab_setting(lab, "floor on these windows", "%.4f nats (over all windows: %.4f)", leak_mean_of(seeds, seeds->floor),
                truth->mean);
    lab_check_mean_below(lab, "masked: gap to the honest floor", n, seeds->gap, REACHED, "nats");
    check_not_below_floor(lab, "masked: gap to the honest floor, at least minus 3 standard errors", seeds, seeds->gap,
                          seeds->gap_error);
    const double *unmasked = seeds->loss[UNMASKED];
    lab_check_mean_below(lab, "unmasked: loss", n, unmasked, lab_collapsed(truth->last, truth->T), "nats");
    lab_check_mean_near(lab, "unmasked: loss, against H(last)/T", n, unmasked, cheat, 0.02, "nats");
    check_not_below_floor(lab, "unmasked: last position's gap to its honest floor, at least minus 3 standard errors",
                          seeds, seeds->last_gap, seeds->last_gap_error);
}

/* The training loss at the end: a mean over the last steps. */
static double final_training_loss(const lab_training *t, int model) {
    int n = t->n_steps < 50 ? t->n_steps : 50;
    double sum = 0;
    for (int i = 0; i < n; i++) sum += t->variant[model].loss[t->n_steps - 1 - i];
    return sum / n;
}

/* Why a text cannot show what the unmasked model does wrong; NULL if it can. */
const char *leak_obstacle(mg_lab *lab, const lab_training *training, const lab_contexts *c,
                          const mg_evaluation *masked) {
    double known = final_training_loss(training, MASKED);
    if (masked->loss > c->loss[0] + CLOSE && known < masked->loss / 2)
        return lab_format(lab,
                          "the masked model knows the training tokens by heart (loss %.2f) and the others worse than a "
                          "table of frequencies (%.2f): use more text or fewer steps",
                          known, masked->loss);
    return lab_too_easy(lab, masked);
}

static void below_or_undecided(mg_lab *lab, const char *name, const leak_seeds *seeds, const double *observed,
                               double limit, const char *why) {
    if (why)
        lab_undecided(lab, name, leak_mean_of(seeds, observed), "nats", "%s", why);
    else
        lab_check_mean_below(lab, name, seeds->n, observed, limit, "nats");
}

/* Why a text has nothing to learn from context; NULL if it has. */
const char *leak_no_memory(mg_lab *lab, const lab_contexts *c) {
    if (c->memory >= LITTLE) return NULL;
    return lab_format(lab,
                      "this text has next to no memory: up to %d tokens of context lower the loss of a table by %.3f "
                      "nats",
                      LAB_CONTEXTS - 1, c->memory);
}

/* Of a text nobody knows the floor, so what is expected of the masked model comes from tables that count short contexts
 * of the very same text. Where they show no memory, no model can: nothing is decided about learning from context. */
static void check_masked_text(mg_lab *lab, const lab_contexts *c, const leak_seeds *seeds) {
    const double *masked = seeds->loss[MASKED];
    bool by_heart = leak_mean_of(seeds, masked) > c->loss[0] + CLOSE && seeds->why;
    below_or_undecided(lab, "masked: loss, against a table of token frequencies", seeds, masked, c->loss[0] + CLOSE,
                       by_heart ? seeds->why : NULL);
    below_or_undecided(lab, "masked: loss, against a table of what follows each token", seeds, masked,
                       c->loss[1] + CLOSE, by_heart ? seeds->why : leak_no_memory(lab, c));
}

/* At position 0 any model that sees no future predicts from one token, whatever it knows by heart: the alarm's
 * evidence, on the windows of the evaluation. */
static void check_position_0(mg_lab *lab, const leak_seeds *seeds) {
    const char *name = lab_name_over_seeds(lab, "masked: evidence that position 0 reads its label", seeds->n,
                                           "largest");
    double evidence = lab_largest(seeds->n, seeds->evidence), to_read = lab_smallest(seeds->n, seeds->to_read);
    if (to_read < 10 * MG_ALARM_EVIDENCE)
        lab_undecided(lab, name, evidence, "nats",
                      "all labels of position 0 together hold %.0f nats: there is too little to read", to_read);
    else
        lab_check_below(lab, name, evidence, MG_ALARM_EVIDENCE, "nats");
}

static void check_text_losses(mg_lab *lab, const lab_contexts *c, const leak_seeds *seeds, ptrdiff_t T) {
    const char *why = seeds->why;
    check_masked_text(lab, c, seeds);
    below_or_undecided(lab, "unmasked: loss", seeds, seeds->loss[UNMASKED],
                       lab_collapsed(leak_mean_of(seeds, seeds->last[MASKED]), T), why);
    below_or_undecided(lab, "unmasked: loss where the label is in the input", seeds, seeds->labeled[UNMASKED],
                       leak_mean_of(seeds, seeds->labeled[MASKED]) / 20, why);
    const char *edge = "unmasked: last position, which has no label to read, minus the masked model's";
    if (why)
        lab_undecided(lab, edge, leak_mean_of(seeds, seeds->last_apart), "nats", "%s", why);
    else
        lab_check_mean_above(lab, edge, seeds->n, seeds->last_apart, -0.1, "nats");
}

/* Too few steps are the commonest reason for a failed check, and the easiest to mend. */
static void advise(mg_lab *lab, const leak_seeds *seeds, bool slow) {
    bool blind = leak_mean_of(seeds, seeds->labeled[UNMASKED]) > leak_mean_of(seeds, seeds->labeled[MASKED]) / 4;
    if (!slow && !blind) return;
    lab_note(lab,
             "After %s %s%s%s. Before reading anything else into a failed check, train longer (--max-iters) or faster "
             "(--lr 3e-3).",
             mg_count(seeds->training->n_steps, "step").text,
             slow ? "the masked model is still above what it could reach" : "", slow && blind ? ", and " : "",
             blind ? "the unmasked model has hardly found its labels" : "");
}

void leak_check_losses(mg_lab *lab, const leak_seeds *seeds, const leak_truth *truth, const lab_contexts *contexts) {
    lab_answer(lab, "masked", leak_mean_of(seeds, seeds->loss[MASKED]));
    lab_answer(lab, "unmasked", leak_mean_of(seeds, seeds->loss[UNMASKED]));
    check_position_0(lab, seeds);
    lab_check_zero(lab, "tokens in which the two models' batches differed", (double)seeds->different_tokens, "");
    if (truth->known)
        check_grammar_losses(lab, truth, seeds);
    else
        check_text_losses(lab, contexts, seeds, truth->T);
    advise(lab, seeds,
           truth->known ? leak_mean_of(seeds, seeds->gap) > REACHED
                        : leak_mean_of(seeds, seeds->loss[MASKED]) > contexts->loss[1] + CLOSE);
}
