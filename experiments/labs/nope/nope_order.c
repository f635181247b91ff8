/* What order is to a model without position embeddings: nothing without the mask; with it, a count. */
#include "lab_private.h"
#include "nope.h"
#include "training.h"

#include <math.h>
#include <string.h>

static mg_tape *new_tape(void) {
    mg_tape *tape;
    mg_tape_new(&tape, NULL);
    lab_need_memory(tape, "a tape");
    mg_tape_record(tape, false);
    return tape;
}

/* ---- Shuffled tokens ---- */

/* order[t]: where token t goes. Fisher & Yates. */
static void shuffle(const mg_lab *lab, int number, int T, int *order) {
    mg_rng rng = {lab_asked(lab)->seed, MG_STREAM_LAB, 3};
    for (int t = 0; t < T; t++) order[t] = t;
    for (int t = T - 1; t > 0; t--) {
        int other = (int)mg_rng_below(rng, (uint64_t)(number * T + t), (uint64_t)t + 1), kept = order[t];
        order[t] = order[other];
        order[other] = kept;
    }
}

/* The largest difference between the logits of a shuffled text and the shuffled logits of the text, as a share of the
 * largest logit. */
static double moved_by_order(mg_lab *lab, const nope_options *o, mg_gpt *gpt) {
    enum { TEXTS = 20 };
    int T = o->block_size, V = mg_gpt_get_config(gpt)->vocab_size;
    int *ids = lab_memory(lab, 3 * (size_t)T, sizeof *ids), *shuffled = ids + T, *order = shuffled + T;
    mg_tape *tape = new_tape();
    double most = 0, largest = 0;
    for (int number = 0; number < TEXTS; number++) {
        nope_text(lab, T, (uint64_t)number, ids);
        shuffle(lab, number, T, order);
        for (int t = 0; t < T; t++) shuffled[order[t]] = ids[t];
        const mg_real *a = mg_gpt_forward(gpt, tape, ids, 1, T, NULL)->data;
        const mg_real *b = mg_gpt_forward(gpt, tape, shuffled, 1, T, NULL)->data;
        for (int t = 0; t < T; t++)
            for (int k = 0; k < V; k++) {
                double x = (double)a[t * V + k];
                most = lab_larger(most, fabs(x - (double)b[order[t] * V + k]));
                largest = lab_larger(largest, fabs(x));
            }
        mg_tape_reset(tape);
    }
    mg_tape_free(tape);
    return most / largest;
}

void nope_check_order(mg_lab *lab, const nope_options *o, mg_gpt *masked, mg_gpt *blind) {
    lab_check_at_most(lab, "no mask: change of a prediction when the text is shuffled, by largest logit",
                      moved_by_order(lab, o, blind), 1e-4, "");
    lab_check_at_least(lab, "masked, the control: the same", moved_by_order(lab, o, masked), 0.1, "");
}

/* ---- A constant text ---- */

enum { LENGTH = 256, STEPS = LENGTH - 2, FROM = 16 }; /* the power law is read from position FROM on */

/* The same weights in a model with a longer context: without position embeddings no shape depends on it. */
static mg_status lengthen(mg_gpt **out, mg_gpt *gpt, mg_error *error) {
    mg_gpt_config config = *mg_gpt_get_config(gpt);
    config.block_size = LENGTH;
    mg_status status = mg_gpt_new_zeros(out, &config, false, error);
    if (status) return status;
    const mg_params *from = mg_gpt_params(gpt), *to = mg_gpt_params(*out);
    MG_CHECK(from->size == to->size, "lab nope: the context is in the shape of a parameter");
    memcpy(to->values, from->values, (size_t)to->size * sizeof *to->values);
    return MG_OK;
}

/* step[i]: |x_{i+2} − x_{i+1}| of what comes out of the first block, STEPS numbers; how far the logits of any two
 * positions after the first are apart, as a share of the largest, is returned. */
static double walk(mg_lab *lab, mg_gpt *gpt, int T, bool first, double *step) {
    int C = mg_gpt_get_config(gpt)->n_embd, V = mg_gpt_get_config(gpt)->vocab_size, ids[LENGTH];
    for (int i = 0; i < LENGTH; i++) ids[i] = nope_word(T, 0);
    if (first) ids[0] = nope_first(T);
    mg_tape *tape = new_tape();
    mg_tensor **block = lab_memory(lab, (size_t)mg_gpt_get_config(gpt)->n_layer, sizeof(mg_tensor *));
    mg_gpt_capture capture = {.block = block};
    const mg_real *logits = mg_gpt_forward(gpt, tape, ids, 1, LENGTH, &(mg_gpt_pass){.capture = &capture})->data;
    const mg_real *x = block[0]->data;
    for (int i = 1; i + 1 < LENGTH; i++) {
        double square = 0;
        for (int k = 0; k < C; k++) square += pow((double)x[(i + 1) * C + k] - (double)x[i * C + k], 2);
        step[i - 1] = sqrt(square);
    }
    double apart = 0, largest = 0;
    for (int k = 0; k < V; k++) {
        double low = INFINITY, high = -INFINITY;
        for (int i = 1; i < LENGTH; i++) {
            low = lab_smaller(low, (double)logits[i * V + k]);
            high = lab_larger(high, (double)logits[i * V + k]);
        }
        apart = lab_larger(apart, high - low);
        largest = lab_larger(largest, lab_larger(fabs(low), fabs(high)));
    }
    mg_tape_free(tape);
    return apart / largest;
}

static mg_status random_model(mg_lab *lab, const nope_options *o, mg_gpt **gpt, mg_error *error) {
    mg_gpt_config config = nope_config(o, 0, false);
    config.block_size = LENGTH;
    return mg_gpt_new(gpt, &config, lab_asked(lab)->seed, error);
}

/* The exponent from position FROM on. */
static double fit(lab_figure *figure, lab_color color, const char *label, const double *x, const double *step) {
    return lab_fit_power(figure, color, label, STEPS - FROM + 1, x + FROM - 1, step + FROM - 1);
}

mg_status nope_check_steps(mg_lab *lab, const nope_options *o, mg_gpt *masked, mg_error *error) {
    mg_gpt *random = NULL, *trained = NULL;
    double x[STEPS], step[STEPS], learned[STEPS], without[STEPS];
    mg_status status = random_model(lab, o, &random, error);
    if (!status) status = lengthen(&trained, masked, error);
    if (!status) {
        int T = o->block_size;
        walk(lab, random, T, !lab_broken("nope.first"), step);
        double known = walk(lab, trained, T, true, learned), lost = walk(lab, trained, T, false, without);
        for (int i = 0; i < STEPS; i++) x[i] = i + 1;
        lab_figure *figure = lab_figure_begin(
            lab, "steps", "A constant text: how far is a position from the next?",
            (lab_axes){.x = "position i", .y = "|x(i+1) − x(i)| after the first block", .log_x = true, .log_y = true});
        lab_line(figure, LAB_MASKED, "random weights", STEPS, x, step);
        lab_line(figure, LAB_GREEN, "trained", STEPS, x, learned);
        double slope = fit(figure, LAB_AMBER, "random", x, step);
        fit(figure, LAB_PURPLE, "trained", x, learned);
        lab_figure_end(figure,
                       "The first token has a share of the attention, about 1/(i+1) where all keys weigh alike, as "
                       "they nearly do before training. A step is the difference of two shares, 1/((i+1)(i+2)): on "
                       "these axes a line of slope −2 once i is large. Does training make the steps larger "
                       "where positions had to be told apart? Does it change the slope of the rest?");
        lab_check_near(lab, "constant text, random weights: exponent of the steps", slope, -2, 0.1, "");
        lab_check_at_most(lab, "no other first token: largest difference between positions, by largest logit", lost,
                          1e-4, "");
        lab_check_at_least(lab, "another first token, the control: the same", known, 0.1, "");
    }
    mg_gpt_free(random);
    mg_gpt_free(trained);
    return status;
}
