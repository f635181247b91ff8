/* Who moves whom in windows of several documents, bit by bit. */
#include "arithmetic.h"
#include "lab_private.h"
#include "packed.h"

#include <math.h>
#include <string.h>

/* Nats. BLAS sums a row of a product in an order that depends on where in the product the row is; portable arithmetic
 * does not. */
static const double ROUNDING = MG_ONE_SUM ? 0 : 1e-4;
static const double LEAST_CONTROL = 10; /* % of the tokens, whose loss depends on what is before their document */
enum { N_WINDOWS = 16, N_QUICK = 6, MOST_DRAWS = 50, MOST_POSITIONS = 64, MOST_LOGITS = 1 << 23 };

typedef struct window {
    int *ids, *targets;
    int *document; /* which of the window's documents a position is in, from 0; the token that ends one is in it */
} window;

typedef struct windows {
    mg_lab *lab;
    const char **labels; /* of the first window's tokens */
    int n, T, V, end;
    int copies; /* of a window in a batch, so that its logits fit into memory */
    window *window;
    mg_tape *tape;
    mg_real *before; /* (copies,T,V): logits */
    int *batch;      /* (copies,T) */
} windows;

static void number_documents(const windows *w, window *at) {
    at->document[0] = 0;
    for (int t = 1; t < w->T; t++) at->document[t] = at->document[t - 1] + (at->ids[t - 1] == w->end);
}

/* The first windows of the draw that hold a border. */
static void draw_windows(windows *w, const mg_corpus *corpus, int most) {
    mg_rng rng = {lab_asked(w->lab)->seed, MG_STREAM_LAB, 2};
    w->window = lab_memory(w->lab, (size_t)most, sizeof *w->window);
    for (int draw = 0; draw < MOST_DRAWS * most && w->n < most; draw++) {
        window *at = &w->window[w->n];
        if (!at->ids) {
            at->ids = lab_memory(w->lab, (size_t)w->T, sizeof(int));
            at->targets = lab_memory(w->lab, (size_t)w->T, sizeof(int));
            at->document = lab_memory(w->lab, (size_t)w->T, sizeof(int));
        }
        mg_corpus_windows(corpus, MG_VALIDATION, rng, draw, 1, w->T, at->ids, at->targets);
        number_documents(w, at);
        w->n += at->document[w->T - 1] > 0;
    }
}

/* ---- Influence ---- */

typedef struct influence {
    long within, within_moved, across, across_moved; /* pairs of a token and a later prediction */
    double largest_across;
    double *map; /* (T,T) of the first window: the largest change of a logit of prediction i by token j */
} influence;

/* Another token of the vocabulary; but one that ends a document stays, and none becomes one that does, so that who sees
 * whom stays as it was. */
static int replacement(const windows *w, int id) {
    if (id == w->end) return id;
    int other = (id + 1) % w->V;
    return other == w->end ? (other + 1) % w->V : other;
}

/* The largest change of each prediction's logits by each of the tokens begin … end − 1, into columns of `map` (T,T).
 * Row j of a batch is the window with one token replaced; beside it the same batch with none replaced, so that what is
 * compared was computed at the same place of the same products. */
static void change_tokens(windows *w, mg_gpt *gpt, const window *at, int begin, int end, double *map) {
    int T = w->T, V = w->V, n = end - begin;
    for (int j = 0; j < n; j++) memcpy(w->batch + j * T, at->ids, (size_t)T * sizeof(int));
    mg_tensor *before = mg_gpt_forward(gpt, w->tape, w->batch, n, T, NULL);
    memcpy(w->before, before->data, (size_t)mg_size(before) * sizeof(mg_real));
    mg_tape_reset(w->tape);
    for (int j = 0; j < n; j++) w->batch[j * T + begin + j] = replacement(w, at->ids[begin + j]);
    const mg_real *after = mg_gpt_forward(gpt, w->tape, w->batch, n, T, NULL)->data;
    for (int j = 0; j < n; j++) {
        for (int i = 0; i < T; i++) {
            double change = 0;
            for (int v = 0; v < V; v++) {
                ptrdiff_t k = ((ptrdiff_t)j * T + i) * V + v;
                change = lab_larger(change, fabs((double)after[k] - (double)w->before[k]));
            }
            map[i * T + begin + j] = change;
        }
    }
    mg_tape_reset(w->tape);
}

static void add_window(const windows *w, const window *at, const double *map, influence *sum) {
    for (int i = 0; i < w->T; i++) {
        for (int j = 0; j < w->T; j++) {
            double change = map[i * w->T + j];
            bool across = at->document[i] != at->document[j], moved = change != 0; /* NaN moves, too */
            if (replacement(w, at->ids[j]) == at->ids[j]) continue;
            if (across) {
                sum->across += j < i;
                sum->across_moved += moved;
                sum->largest_across = lab_larger(sum->largest_across, change);
            } else if (j < i) {
                sum->within++;
                sum->within_moved += moved;
            }
        }
    }
}

static influence measure_influence(windows *w, mg_gpt *gpt) {
    ptrdiff_t size = (ptrdiff_t)w->T * w->T;
    influence sum = {.map = lab_numbers(w->lab, size)};
    double *map = lab_numbers(w->lab, size);
    for (int k = 0; k < w->n; k++) {
        for (int begin = 0; begin < w->T; begin += w->copies)
            change_tokens(w, gpt, &w->window[k], begin, begin + w->copies < w->T ? begin + w->copies : w->T, map);
        add_window(w, &w->window[k], map, &sum);
        if (k == 0) memcpy(sum.map, map, (size_t)size * sizeof *map);
    }
    return sum;
}

static void show_influence(windows *w, const influence *causal, const influence *packed) {
    lab_heatmap *map = lab_heatmap_begin(
        w->lab, "influence", "Who moves whom: the largest change of a logit",
        (lab_scale){.unit = "change of a logit", .log = true, .rows = "prediction", .columns = "changed token"});
    const influence *of[] = {causal, packed};
    const char *titles[] = {"causal", "documents"};
    for (int i = 0; i < 2; i++)
        lab_heatmap_panel(map, (lab_panel){.title = titles[i],
                                           .n_rows = w->T,
                                           .n_columns = w->T,
                                           .values = lab_heat(w->lab, (ptrdiff_t)w->T * w->T, of[i]->map),
                                           .row_labels = w->labels,
                                           .column_labels = w->labels});
    lab_heatmap_end(map, "One window. The mask of documents leaves triangles along the diagonal, one per document; the "
                         "causal mask fills all below the diagonal. Tokens that end a document are not changed, since "
                         "then others would be seen: their columns are 0.");
}

/* ---- The loss of a document, in the window and alone ---- */

/* Where a document is when its losses are computed. */
typedef enum lab_place {
    IN_WINDOW, /* where it is */
    RUN_ON,    /* the same, but its positions count on from the documents before it */
    OTHERS,    /* the same, among other tokens: all that is not the document is replaced */
    ALONE,     /* at the beginning of a window; what was before it is after it */
} lab_place;

/* The losses of document number d of a window, one per token, in `loss`; returns how many. */
static int document_losses(windows *w, mg_gpt *gpt, const window *at, int d, lab_place place, mg_real *loss) {
    int T = w->T, begin = 0, end, ids[T], targets[T], positions[T];
    mg_interval sequence[T];
    mg_real all[T];
    while (at->document[begin] != d) begin++;
    for (end = begin; end < T && at->document[end] == d;) end++;
    int shift = place == ALONE ? begin : 0;
    for (int t = 0; t < T; t++) {
        ids[t] = at->ids[(t + shift) % T];
        if (place == OTHERS && at->document[t] != d) ids[t] = replacement(w, ids[t]);
        targets[t] = at->targets[(t + shift) % T];
        positions[t] = t;
        sequence[t] = (mg_interval){t > 0 && at->document[t] == at->document[t - 1] ? sequence[t - 1].first : t, T};
    }
    mg_gpt_pass run_on = {.sequence = sequence, .positions = positions};
    mg_gpt_loss(gpt, w->tape, ids, targets, 1, T, place == RUN_ON ? &run_on : NULL, all);
    mg_tape_reset(w->tape);
    memcpy(loss, all + begin - shift, (size_t)(end - begin) * sizeof *loss);
    return end - begin;
}

/* Between the losses of the same tokens at two places, over all documents that do not begin their window. */
typedef struct difference {
    long tokens, differ, apart; /* apart: by more than rounding */
    double *sum;                /* T: of the absolute difference, by place in the document */
    long *count;
} difference;

static difference compare_losses(windows *w, mg_gpt *gpt, lab_place one, lab_place other) {
    mg_real first[w->T], second[w->T];
    difference c = {.sum = lab_numbers(w->lab, w->T), .count = lab_memory(w->lab, (size_t)w->T, sizeof(long))};
    for (int k = 0; k < w->n; k++) {
        const window *at = &w->window[k];
        for (int d = 1; d <= at->document[w->T - 1]; d++) {
            int n = document_losses(w, gpt, at, d, one, first);
            document_losses(w, gpt, at, d, other, second);
            for (int t = 0; t < n; t++) {
                double apart = fabs((double)first[t] - (double)second[t]);
                c.tokens++;
                c.differ += apart != 0;
                c.apart += !(apart <= ROUNDING);
                c.sum[t] += apart;
                c.count[t]++;
            }
        }
    }
    return c;
}

static void show_differences(windows *w, const difference *packed, const difference *run_on, const difference *causal) {
    const difference *of[] = {causal, run_on, packed};
    const char *names[] = {"causal", "documents, positions that run on", "documents"};
    const lab_color colors[] = {LAB_MASKED, LAB_AMBER, LAB_GREEN};
    int n = 0;
    while (n < w->T && packed->count[n] > 0) n++;
    lab_figure *figure = lab_figure_begin(
        w->lab, "alone", "How far a token's loss is from its loss where nothing is before its document",
        (lab_axes){.x = "place in the document", .y = "difference (nats)", .y_from_zero = true});
    for (int i = 0; i < 3; i++) {
        double *mean = lab_numbers(w->lab, n);
        for (int t = 0; t < n; t++) mean[t] = of[i]->sum[t] / (double)of[i]->count[t];
        lab_line(figure, colors[i], names[i], n, NULL, mean);
    }
    lab_figure_end(figure, "Documents with positions that count from 0 must lie on 0. The causal model reads the "
                           "document before, and was trained to; positions that run on are not those that the model "
                           "of documents knows.");
}

/* ---- Verdicts ---- */

static double percent(long part, long whole) {
    return whole ? 100 * (double)part / (double)whole : NAN;
}

static void check_influence(windows *w, const influence *causal, const influence *packed) {
    mg_lab *lab = w->lab;
    const char *name = "documents: predictions that a token of another document moves";
    if (packed->within == 0 || causal->across == 0) {
        lab_undecided(
            lab, name, (double)packed->across_moved, "pairs",
            "no token can be replaced that is before another of its own document, or before another document");
        return;
    }
    lab_check_count(lab, name, packed->across_moved, 0, "pairs");
    lab_check_zero(lab, "documents: largest change across a border", packed->largest_across, "");
    lab_check_at_least(lab, "documents, the control: earlier tokens of the same document that move a prediction",
                       percent(packed->within_moved, packed->within), 90, "%");
    lab_check_at_least(lab, "causal, the control: tokens of an earlier document that move a prediction",
                       percent(causal->across_moved, causal->across), 90, "%");
}

static void check_losses(windows *w, const difference *others, const difference *packed, const difference *run_on,
                         const difference *causal) {
    mg_lab *lab = w->lab;
    lab_check_count(lab, "documents: tokens whose loss is another, to the last bit, among other documents",
                    others->differ, 0, "tokens");
    const char *name =
        ROUNDING > 0 ? lab_format(lab, "documents: tokens whose loss is more than %g nats from that alone", ROUNDING)
                     : "documents: tokens whose loss is another, to the last bit, alone";
    double of_run_on = percent(run_on->apart, run_on->tokens), of_causal = percent(causal->apart, causal->tokens);
    if (of_run_on < LEAST_CONTROL || of_causal < LEAST_CONTROL)
        lab_undecided(
            lab, name, (double)packed->apart, "tokens",
            "the control failed: hardly a token's loss depends on what is before its document, or on where it "
            "is");
    else
        lab_check_count(lab, name, packed->apart, 0, "tokens");
    lab_note(lab,
             "The control: if positions run on, the losses of %.0f %% of the tokens are that far from those alone, and "
             "of the causal model's %.0f %%.",
             of_run_on, of_causal);
}

/* The share of the causal mask's pairs of query and key that the mask of documents keeps. */
static double pairs_kept(const windows *w) {
    long kept = 0;
    for (int k = 0; k < w->n; k++)
        for (int i = 0; i < w->T; i++)
            for (int j = 0; j <= i; j++) kept += w->window[k].document[i] == w->window[k].document[j];
    return percent(kept, (long)w->n * w->T * (w->T + 1) / 2);
}

mg_status lab_packed_windows(mg_lab *lab, const mg_corpus *corpus, mg_gpt *packed, mg_gpt *causal, int end,
                             mg_error *error) {
    const mg_gpt_config *config = mg_gpt_get_config(packed);
    int most = lab_asked(lab)->quick ? N_QUICK : N_WINDOWS;
    windows w = {.lab = lab, .T = config->block_size, .V = config->vocab_size, .end = end};
    if (w.T > MOST_POSITIONS) w.T = MOST_POSITIONS;
    w.copies = MOST_LOGITS / w.V / w.T;
    w.copies = w.copies < 1 ? 1 : w.copies > w.T ? w.T : w.copies;
    draw_windows(&w, corpus, most);
    if (w.n == 0) {
        const char *why = lab_format(lab, "no validation window of %d tokens holds a border between two documents",
                                     w.T);
        lab_undecided(lab, "documents: predictions that a token of another document moves", NAN, "pairs", "%s", why);
        lab_undecided(lab, "documents: tokens whose loss is another among other documents", NAN, "tokens", "%s", why);
        lab_answer(lab, "border", NAN);
        return MG_OK;
    }
    w.labels = lab_token_labels(lab, corpus->tokenizer, w.window[0].ids, w.T);
    w.before = lab_reals(lab, (ptrdiff_t)w.copies * w.T * w.V);
    w.batch = lab_memory(lab, (size_t)(w.copies * w.T), sizeof *w.batch);
    mg_status status = mg_tape_new(&w.tape, error);
    if (status) return status;
    mg_tape_record(w.tape, false);
    influence of_causal = measure_influence(&w, causal), of_packed = measure_influence(&w, packed);
    difference others = compare_losses(&w, packed, IN_WINDOW, OTHERS),
               packed_loss = compare_losses(&w, packed, IN_WINDOW, ALONE),
               run_on = compare_losses(&w, packed, RUN_ON, ALONE),
               causal_loss = compare_losses(&w, causal, IN_WINDOW, ALONE);
    mg_tape_free(w.tape);
    lab_answer(lab, "border", percent(of_causal.across_moved, of_causal.across));
    lab_did(lab,
            "In %d validation windows of %d tokens with a border, each token was replaced by another one, and every "
            "prediction "
            "compared bit by bit. Then all that is not a document was replaced, and its losses compared bit by bit; "
            "and each document was moved to the beginning of the window, where nothing is before it.",
            w.n, w.T);
    lab_setting(lab, "pairs of query and key", "the mask of documents keeps %.0f %% of the causal mask's",
                pairs_kept(&w));
    show_influence(&w, &of_causal, &of_packed);
    show_differences(&w, &packed_loss, &run_on, &causal_loss);
    check_influence(&w, &of_causal, &of_packed);
    check_losses(&w, &others, &packed_loss, &run_on, &causal_loss);
    return MG_OK;
}
