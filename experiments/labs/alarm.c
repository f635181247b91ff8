/* Lab alarm: a training run that notices that its model reads labels, at the one position where it can be known.
 *
 * The loops here train without mg_trainer, whose targets are always right: some of the runs shift them wrongly. */
#include "lab_private.h"
#include "labs.h"
#include "training.h"

#include <math.h>

typedef enum run_id { HONEST, BY_HEART, NO_MASK, ONE, FOUR, HEAD, UNSHIFTED, TWICE, N_RUNS } run_id;

/* What is wrong with each run, and what the alarm is to say of it. */
static const struct {
    const char *name;
    int lookahead, leak, shift;
    bool leaky;
    mg_alarm_cause cause;
    lab_color color;
} faults[N_RUNS] = {
    [HONEST] = {"honest", 0, 0, 1, false, 0, LAB_MASKED},
    [BY_HEART] = {"by heart", 0, 0, 1, false, 0, LAB_SKY},
    [NO_MASK] = {"no mask", MG_LOOKAHEAD_ALL, 0, 1, true, MG_CAUSE_RIGHT, LAB_UNMASKED},
    [ONE] = {"1 ahead", 1, 0, 1, true, MG_CAUSE_RIGHT, LAB_GREEN},
    [FOUR] = {"4 ahead", 4, 0, 1, true, MG_CAUSE_RIGHT, LAB_GREEN},
    [HEAD] = {"one head", 0, 1, 1, true, MG_CAUSE_RIGHT, LAB_PURPLE},
    [UNSHIFTED] = {"not shifted", 0, 0, 0, true, MG_CAUSE_UNSHIFTED, LAB_AMBER},
    [TWICE] = {"shifted twice", 0, 0, 2, false, MG_CAUSE_SHIFTED_TWICE, LAB_GREEN},
};
enum { HEART_TOKENS = 400, LEAST_CONTEXT = 2 };

/* ---- Options ---- */

static void set_defaults(void *own) {
    mg_run_options *o = own;
    *o = mg_run_defaults();
    o->train.model.n_embd = 32;
    o->train.model.n_head = 2;
    o->train.max_iters = 600;
    o->train.schedule.lr = 3e-3;
}

static void set_quick(void *own) {
    mg_run_options *o = own;
    o->train.max_iters = 400;
}

const lab_options lab_alarm_options = {lab_training_tables, sizeof(mg_run_options), set_defaults, set_quick};

/* ---- One run ---- */

typedef struct watched {
    run_id id;
    int shift;
    mg_train_options options;
    mg_corpus corpus; /* a view: of all, or of the beginning to be known by heart */
    mg_gpt *gpt;
    mg_adamw *adamw;
    mg_alarm *alarm;
    int *ids, *targets; /* of a step */
    mg_real *row_loss;

    mg_alarm_reading at_alarm, at_end;
    double *loss, *first, *evidence; /* of every step: the mean loss, that of position 0, and the evidence */
} watched;

static mg_status open_run(mg_lab *lab, watched *r, run_id id, const mg_corpus *corpus, const mg_train_options *options,
                          mg_error *error) {
    *r = (watched){.id = id, .shift = faults[id].shift, .options = *options, .corpus = *corpus};
    mg_gpt_config *model = &r->options.model;
    model->vocab_size = mg_tokenizer_size(corpus->tokenizer);
    model->mask = mg_lookahead(faults[id].lookahead);
    model->leak_layer = -1;
    if (faults[id].leak && !lab_broken("alarm.leak")) {
        model->leak_layer = model->leak_head = 0;
        model->leak_lookahead = faults[id].leak;
    }
    if (id == HONEST && lab_broken("alarm.honest")) model->mask = mg_lookahead(1);
    if (id == UNSHIFTED && lab_broken("alarm.shift")) r->shift = 1;
    ptrdiff_t piece = HEART_TOKENS + model->block_size;
    if (id == BY_HEART && piece < r->corpus.n_train) r->corpus.n_train = piece;

    ptrdiff_t T = model->block_size, n = options->batch_size * options->grad_accum * T;
    r->ids = lab_memory(lab, (size_t)n, sizeof *r->ids);
    r->targets = lab_memory(lab, (size_t)n, sizeof *r->targets);
    r->row_loss = lab_reals(lab, n);
    r->loss = lab_numbers(lab, options->max_iters);
    r->first = lab_numbers(lab, options->max_iters);
    r->evidence = lab_numbers(lab, options->max_iters);
    mg_status status = mg_gpt_config_check(model, error);
    if (status == MG_OK) status = mg_gpt_new(&r->gpt, model, options->seed, error);
    if (status == MG_OK)
        status = mg_adamw_new(&r->adamw, mg_gpt_params(r->gpt), options->beta1, options->beta2, options->weight_decay,
                              error);
    if (status == MG_OK) status = mg_alarm_new(&r->alarm, &r->corpus, MG_TRAIN, T, error);
    return status;
}

static void close_run(watched *r) {
    mg_adamw_free(r->adamw);
    mg_alarm_free(r->alarm);
    mg_gpt_free(r->gpt);
}

/* Windows whose target at t is the token t + shift; 1 is right. A target past the split's end is ignored. */
static void draw(const watched *r, int64_t step, ptrdiff_t B, ptrdiff_t T) {
    const int *ids = mg_corpus_ids(&r->corpus, MG_TRAIN);
    ptrdiff_t n = mg_corpus_tokens(&r->corpus, MG_TRAIN);
    mg_rng rng = {r->options.seed, MG_STREAM_BATCH, (uint32_t)step};
    for (ptrdiff_t b = 0; b < B; b++) {
        ptrdiff_t begin = (ptrdiff_t)mg_rng_below(rng, (uint64_t)b, (uint64_t)(n - T));
        for (ptrdiff_t t = 0; t < T; t++) {
            ptrdiff_t at = begin + t;
            r->ids[b * T + t] = ids[at];
            r->targets[b * T + t] = at + r->shift < n ? ids[at + r->shift] : -1;
        }
    }
}

static mg_status one_step(watched *r, mg_tape *tape, int64_t step, mg_error *error) {
    const mg_train_options *o = &r->options;
    ptrdiff_t B = (ptrdiff_t)o->batch_size * o->grad_accum, T = o->model.block_size;
    mg_params *params = mg_gpt_params(r->gpt);
    mg_gpt_pass pass = {.dropout_seed = o->seed, .dropout_step = (uint32_t)step, .training = true};
    draw(r, step, B, T);
    mg_tensor *loss = mg_gpt_loss(r->gpt, tape, r->ids, r->targets, B, T, &pass, r->row_loss);
    r->loss[step] = (double)loss->data[0];
    mg_backward(tape, loss);
    mg_tape_reset(tape);
    double norm = mg_params_grad_norm(params);
    if (!isfinite(r->loss[step]) || !isfinite(norm))
        return mg_error_set(error, MG_ERR_STATE, "'%s': the loss of step %lld is no number; give a lower --lr",
                            faults[r->id].name, (long long)step);
    for (ptrdiff_t b = 0; b < B; b++) r->first[step] += (double)r->row_loss[b * T] / (double)B;
    if (mg_alarm_observe(r->alarm, step, B, r->ids, r->targets, r->row_loss)) r->at_alarm = mg_alarm_read(r->alarm);
    r->evidence[step] = mg_alarm_read(r->alarm).evidence;
    mg_adamw_step(r->adamw, params, mg_lr_at(&o->schedule, step), mg_clip_scale(norm, o->grad_clip));
    mg_params_zero_grad(params);
    return MG_OK;
}

static mg_status train(mg_lab *lab, watched runs[N_RUNS], mg_error *error) {
    int64_t steps = runs[0].options.max_iters;
    mg_tape *tape;
    mg_status status = mg_tape_new(&tape, error);
    if (status != MG_OK) return status;
    mg_tape_recycle_gradients(tape, true);
    for (int i = 0; i < N_RUNS && status == MG_OK; i++) {
        for (int64_t step = 0; step < steps && status == MG_OK; step++) {
            if (step % 20 == 0)
                lab_progress(lab, "training", (long)(i * steps + step), (long)(N_RUNS * steps), "%s", faults[i].name);
            status = lab_interrupted(lab, error);
            if (status == MG_OK) status = one_step(&runs[i], tape, step, error);
        }
        runs[i].at_end = mg_alarm_read(runs[i].alarm);
    }
    lab_progress(lab, "training", (long)(N_RUNS * steps), (long)(N_RUNS * steps), "%s", "done");
    mg_tape_free(tape);
    return status;
}

/* ---- What came out ---- */

static bool accused(const watched *r) {
    return r->at_end.raised_at >= 0;
}

static double mean(const double *x, int64_t end, int64_t most) {
    int64_t begin = end > most ? end - most : 0;
    double sum = 0;
    for (int64_t i = begin; i < end; i++) sum += x[i];
    return sum / (double)(end - begin);
}
enum { FEW = 20 }; /* steps averaged into one point of a curve */

static double loss_at_alarm(const watched *r) {
    return accused(r) ? mean(r->loss, r->at_end.raised_at + 1, FEW) : NAN;
}

static double largest_evidence(const watched *r) {
    double most = 0;
    for (int64_t i = 0; i < r->options.max_iters; i++) most = fmax(most, r->evidence[i]);
    return most;
}

/* Whether the loss of position 0 ends below what one token leaves open. */
static bool ends_below(const watched *r) {
    return mean(r->first, r->options.max_iters, FEW) < r->at_end.entropy;
}

static const char *names_of(mg_lab *lab, const watched runs[N_RUNS], bool (*has)(const watched *r), bool leaky) {
    const char *names = "";
    for (int i = 0; i < N_RUNS; i++)
        if (i != TWICE && faults[i].leaky == leaky && has(&runs[i]))
            names = lab_format(lab, "%s%s%s", names, *names ? ", " : "", faults[i].name);
    return *names ? names : "none";
}

static void show_runs(mg_lab *lab, const watched runs[N_RUNS]) {
    int64_t steps = runs[0].options.max_iters;
    lab_table *table = lab_table_begin(lab, "runs", "What the alarm says of each run",
                                       "run\talarm at\tloss then\tcause\tevidence\tfirst\tlast\tall");
    for (int i = 0; i < N_RUNS; i++) {
        const watched *r = &runs[i];
        ptrdiff_t T = r->options.model.block_size;
        double last = 0, B = (double)r->options.batch_size * r->options.grad_accum;
        for (ptrdiff_t b = 0; b < (ptrdiff_t)B; b++) last += (double)r->row_loss[b * T + T - 1] / B;
        const char *when = accused(r) ? lab_format(lab, "%d", (int)r->at_end.raised_at) : "never";
        const char *then = accused(r) ? lab_format(lab, "%.4f", loss_at_alarm(r)) : "–";
        lab_table_row(table, "%s\t%s\t%s\t%s\t%.1f\t%.4f\t%.4f\t%.4f", faults[i].name, when, then,
                      accused(r) ? mg_alarm_cause_name(r->at_end.cause) : "", largest_evidence(r),
                      mean(r->first, steps, FEW), last, mean(r->loss, steps, FEW));
    }
    lab_table_end(
        table,
        "Alarm at: the step. Loss then: the mean loss. Evidence: the most there was, in nats; %g raise the "
        "alarm. First, last, all: the losses of these positions at the end. Losses are means over %d steps, "
        "that of the last position over one. Accused: of the honest runs %s, of the leaky ones %s. Which honest run "
        "has the lower loss, and does that count against it? How low is the mean loss of a leaky run when it is "
        "accused?",
        MG_ALARM_EVIDENCE, FEW, names_of(lab, runs, accused, false), names_of(lab, runs, accused, true));
}

static void show_first(mg_lab *lab, const watched runs[N_RUNS]) {
    static const run_id shown[] = {HONEST, NO_MASK, HEAD, UNSHIFTED};
    int steps = (int)runs[0].options.max_iters, width = steps / 60 > 1 ? steps / 60 : 1;
    lab_figure *figure = lab_figure_begin(lab, "first", "The training loss at position 0",
                                          (lab_axes){.x = "step", .y = "loss (nats per token)", .y_from_zero = true});
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        const watched *r = &runs[shown[i]];
        double *x = lab_numbers(lab, steps), *y = lab_numbers(lab, steps);
        int n = lab_smooth(steps, r->first, width, x, y);
        lab_line(figure, faults[r->id].color, faults[r->id].name, n, x, y);
    }
    lab_floor(figure, "the best from one token", runs[HONEST].at_end.entropy);
    lab_figure_end(figure,
                   "Means over %d steps. Position 0 sees one token: an honest model's expected loss there is at least "
                   "the dashed line, whatever it learns. A leaky one's can fall through it. Means of the last %d "
                   "steps below it: of the honest runs %s, of the leaky ones %s.",
                   width, FEW, names_of(lab, runs, ends_below, false), names_of(lab, runs, ends_below, true));
}

static double most_evidence(const watched runs[N_RUNS], bool leaky) {
    double most = 0;
    for (int i = 0; i < N_RUNS; i++)
        if (i != TWICE && faults[i].leaky == leaky) most = fmax(most, largest_evidence(&runs[i]));
    return most;
}

static void show_evidence(mg_lab *lab, const watched runs[N_RUNS]) {
    int steps = (int)runs[0].options.max_iters;
    lab_figure *figure = lab_figure_begin(lab, "evidence", "Evidence against each run",
                                          (lab_axes){.x = "step", .y = "evidence (nats)", .log_y = true});
    static const run_id shown[] = {HONEST, BY_HEART, NO_MASK, HEAD, UNSHIFTED};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        const watched *r = &runs[shown[i]];
        double *y = lab_numbers(lab, steps); /* a tenth of a nat is nothing to look at */
        for (int step = 0; step < steps; step++) y[step] = r->evidence[step] < 0.1 ? 0 : r->evidence[step];
        lab_line(figure, faults[r->id].color, faults[r->id].name, steps, NULL, y);
    }
    lab_floor(figure, "alarm", MG_ALARM_EVIDENCE);
    lab_figure_end(figure,
                   "Evidence is a game against the truth, which is set back to 0 where it would fall below: there the "
                   "curve has a gap. Against an honest model it reaches h nats with a probability of exp(-h) per game. "
                   "Most that it reached: %.1f nats against the honest runs, and %.1f against the leaky ones.",
                   most_evidence(runs, false), most_evidence(runs, true));
}

static double honest_floor(mg_lab *lab, watched *r, mg_tape *tape, const mg_corpus *corpus, mg_error *error,
                           mg_status *status) {
    mg_evaluation e;
    const mg_evaluation_options options = {.n_batches = 40, .seed = r->options.seed, .stop = lab_stop(lab)};
    *status = mg_evaluate_on(&e, r->gpt, tape, corpus, &options, error);
    if (*status != MG_OK) return NAN;
    double floor = e.floor;
    mg_evaluation_free(&e);
    return floor;
}

static void check_leaky(mg_lab *lab, const watched *r, double floor) {
    const char *name = faults[r->id].name;
    double to_read = r->at_end.entropy * (double)r->options.max_iters * r->options.batch_size * r->options.grad_accum;
    if (to_read < 10 * MG_ALARM_EVIDENCE) { /* nearly all that follows is certain */
        lab_undecided(lab, lab_format(lab, "%s: alarms", name), (double)accused(r), "",
                      "all labels of position 0 together hold %.0f nats: there is too little to read", to_read);
        return;
    }
    lab_check_count(lab, lab_format(lab, "%s: alarms", name), accused(r), 1, "");
    if (!accused(r)) return;
    lab_check_same_text(lab, lab_format(lab, "%s: the cause", name), mg_alarm_cause_name(r->at_end.cause),
                        mg_alarm_cause_name(faults[r->id].cause));
    if (!isnan(floor))
        lab_check_above(lab, lab_format(lab, "%s: mean loss at the alarm, above the honest floor", name),
                        loss_at_alarm(r) - floor, 0, "nats");
}

static void check(mg_lab *lab, const watched runs[N_RUNS], double floor) {
    for (int i = 0; i < N_RUNS; i++) {
        if (i == TWICE) continue;
        if (faults[i].leaky)
            check_leaky(lab, &runs[i], i == NO_MASK ? floor : NAN);
        else
            lab_check_count(lab, lab_format(lab, "%s: alarms", faults[i].name), accused(&runs[i]), 0, "");
    }
}

static mg_status measure(mg_lab *lab, watched runs[N_RUNS], const mg_corpus *corpus, mg_error *error) {
    mg_status status = train(lab, runs, error);
    if (status != MG_OK) return status;
    mg_tape *tape;
    status = mg_tape_new(&tape, error);
    if (status != MG_OK) return status;
    double floor = honest_floor(lab, &runs[HONEST], tape, corpus, error, &status);
    mg_tape_free(tape);
    if (status != MG_OK) return status;
    lab_answer(lab, "step", accused(&runs[NO_MASK]) ? (double)runs[NO_MASK].at_end.raised_at : NAN);
    lab_answer(lab, "loss", loss_at_alarm(&runs[NO_MASK]));
    show_runs(lab, runs);
    show_first(lab, runs);
    show_evidence(lab, runs);
    if (!isnan(floor))
        lab_note(lab,
                 "The best honest predictor of whole windows pays %.4f nats per token: what a mean loss would have "
                 "to be compared with, and is known for a grammar only.",
                 floor);
    lab_note(lab, "Targets that are shifted twice are not read, so nothing promises an alarm: it comes where the token "
                  "after the next is easier than the next, or as hard and independent of it.");
    check(lab, runs, floor);
    return MG_OK;
}

static void tell(mg_lab *lab, const mg_run_options *run, const mg_corpus *corpus) {
    lab_hypothesis(lab, "An honest model is not accused: not when it has learned its language, and not when it knows a "
                        "short text by heart.");
    lab_hypothesis(lab, "Whatever way there is to the label, it is noticed: no mask, an open one, one open head, "
                        "targets that are the inputs.");
    lab_hypothesis(lab, "Without a mask it is noticed while the mean loss still looks honest.");
    lab_hypothesis(lab, "The last position tells the cause: it has no label to its right, so it stays high, unless the "
                        "label is the input itself.");
    lab_guess(lab, "step", "", "At which step will the alarm notice the model that has no mask?");
    lab_guess(lab, "loss", "nats", "How low will that model's mean loss be at that step, per token?");
    lab_did(lab,
            "Eight GPTs of one size were trained on the same data from the same initial weights, one on its first %d "
            "windows only. In all, the loss at position 0 was compared with how often each token follows each other.",
            HEART_TOKENS);
    lab_training_settings(lab, run, corpus);
    lab_setting(lab, "alarm", "at %g nats of evidence: exp(−%g) is %s", MG_ALARM_EVIDENCE, MG_ALARM_EVIDENCE,
                lab_tick_number(lab, exp(-MG_ALARM_EVIDENCE)));
    lab_exercise(lab, "Why position 0? Which honest model could beat H(x₂|x₁) at position 1?");
    lab_exercise(lab, "A model reads labels at positions 16 and later only. Does the alarm notice? What does `maskgrad "
                      "audit` say?");
    lab_exercise(lab, "Train on a text in which every letter stands twice (aabbaacc…). What does one token tell of the "
                      "next, and how much is there to read?");
    lab_source(lab, "Ville 1939, “Étude critique de la notion de collectif”: the inequality.");
    lab_source(lab, "Page 1954, “Continuous inspection schemes”: the sum that is set back to 0.");
}

mg_status lab_alarm(mg_lab *lab, mg_error *error) {
    mg_run_options run = *(const mg_run_options *)lab_asked(lab)->own;
    mg_run_options_resolve(&run);
    if (run.train.model.block_size < LEAST_CONTEXT)
        return mg_error_set(error, MG_ERR_INPUT,
                            "--block-size %d is too short for this lab: one position has nothing to its right; give %d "
                            "or more",
                            run.train.model.block_size, LEAST_CONTEXT);
    mg_corpus *corpus;
    mg_status status = lab_load_corpus(lab, &run, &corpus, error);
    if (status) return status;
    tell(lab, &run, corpus);
    status = lab_begin(lab, error);
    watched runs[N_RUNS] = {{0}};
    for (int i = 0; i < N_RUNS && !status; i++) status = open_run(lab, &runs[i], (run_id)i, corpus, &run.train, error);
    if (!status) status = measure(lab, runs, corpus, error);
    for (int i = 0; i < N_RUNS; i++) close_run(&runs[i]);
    mg_corpus_free(corpus);
    return status;
}
