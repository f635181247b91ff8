/* The verdicts of lab hidden. */
#include "hidden.h"
#include "lab_private.h"

#include <math.h>

#define REACHED 0.05   /* nats: down at the floor */
#define COLLAPSED 0.05 /* nats */
#define WORTH 0.1      /* nats that the other side must be worth, to tell the two apart */

/* Where the source is known: the lowest loss possible on the windows that the model was measured on. */
static double lowest(const lab_hidden_model *m) {
    return m->measured.mean - m->gap.mean;
}

static double quarter(const lab_hidden_model *m, int steps, int number) {
    double sum = 0;
    int begin = (int)((int64_t)steps * number / 4), end = (int)((int64_t)steps * (number + 1) / 4);
    for (int i = begin; i < end; i++) sum += m->loss[i];
    return end > begin ? sum / (end - begin) : NAN;
}

/* Why a loss that is too high by `excess` says nothing yet; NULL if it does: it falls slowly, and would not get there
 * in as many steps again, not even as fast as it fell last. A young model's loss falls by fits and starts. */
static const char *too_early(mg_lab *lab, const lab_hidden_model *m, int steps, double excess) {
    static const double FAST = 0.1; /* nats per quarter */
    double fell = quarter(m, steps, 2) - quarter(m, steps, 3);
    if (steps < 4) return "too few steps";
    if (fell < FAST && excess > 4 * fell) return NULL;
    return lab_format(lab,
                      "too few steps: the loss still fell by %.3f nats from the third quarter of the training to the "
                      "last",
                      fell);
}

static void check_below(mg_lab *lab, const lab_hidden_model *m, int steps, const char *name, double observed,
                        double limit) {
    const char *why = observed < limit ? NULL : too_early(lab, m, steps, observed - limit);
    if (why)
        lab_undecided(lab, name, observed, "nats", "%s", why);
    else
        lab_check_below(lab, name, observed, limit, "nats");
}

static void check_floor(mg_lab *lab, const lab_hidden_model *m, const lab_hidden_truth *x, int steps,
                        const char *sides) {
    const char *gap = lab_format(lab, "%s: gap to the entropy given %s", m->name, sides);
    const char *below = lab_format(lab, "%s: the same, at least minus 3 standard errors", m->name);
    if (!x->known) {
        lab_undecided(lab, gap, m->measured.mean, "nats", "the source is a text: nobody knows its entropy");
        return;
    }
    check_below(lab, m, steps, gap, m->gap.mean, REACHED);
    lab_check_at_least(lab, below, m->gap.mean, -3 * m->gap.error, "nats");
}

/* A loss that is much lower with both sides is no proof: the other model may not have learned what the left one says.
 */
static void check_other_side(mg_lab *lab, lab_hidden_model models[N_MODELS], const lab_hidden_truth *x, int steps) {
    const char *name = "both sides: loss, against what the left one allows";
    double left = lowest(&models[LEFT]), worth = left - lowest(&models[BOTH]);
    if (!x->known)
        lab_undecided(lab, name, models[BOTH].measured.mean, "nats",
                      "the source is a text: nobody knows what the left one allows; the model that sees it only loses "
                      "%.4f nats",
                      models[LEFT].measured.mean);
    else if (worth < WORTH)
        lab_undecided(lab, name, models[BOTH].measured.mean, "nats",
                      "in this source the tokens after a gap say little about it "
                      "that those before do not: %.3f nats",
                      lab_larger(0, worth));
    else
        check_below(lab, &models[BOTH], steps, name, models[BOTH].measured.mean, left - WORTH / 2);
}

void lab_hidden_check(mg_lab *lab, lab_hidden_model models[N_MODELS], const lab_hidden_truth *x, int steps) {
    check_floor(lab, &models[BOTH], x, steps, "both sides");
    check_floor(lab, &models[LEFT], x, steps, "the left");
    check_other_side(lab, models, x, steps);
    const char *shown = "not hidden: loss";
    double easiest = x->known ? lowest(&models[BOTH]) : models[BOTH].measured.mean;
    if (easiest < 2 * COLLAPSED)
        lab_undecided(lab, shown, models[SHOWN].measured.mean, "nats",
                      "this source is too easy: an honest model comes as low");
    else
        check_below(lab, &models[SHOWN], steps, shown, models[SHOWN].measured.mean, COLLAPSED);
    lab_table *table = lab_table_begin(lab, "losses", "Loss on held-out windows, in nats per hidden token",
                                       "model\tloss\t± s.e.\tbest possible\tgap");
    for (int i = 0; i < N_MODELS; i++)
        if (x->known)
            lab_table_row(table, "%s\t%.4f\t%.4f\t%.4f\t%.4f", models[i].name, models[i].measured.mean,
                          models[i].measured.error, i == SHOWN ? 0 : models[i].measured.mean - models[i].gap.mean,
                          i == SHOWN ? models[i].measured.mean : models[i].gap.mean);
        else
            lab_table_row(table, "%s\t%.4f\t%.4f\t-\t-", models[i].name, models[i].measured.mean,
                          models[i].measured.error);
    lab_table_end(table, "Best possible: by the forward-backward algorithm on "
                         "the very same windows, so that luck of the "
                         "draw cancels.");
    lab_answer(lab, "both", models[BOTH].measured.mean);
    lab_answer(lab, "left", models[LEFT].measured.mean);
    lab_answer(lab, "shown", models[SHOWN].measured.mean);
}
